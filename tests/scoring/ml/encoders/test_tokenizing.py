"""Single, pair and triple inputs of every family: the tokenizer's own format, and one truncation rule."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from scoring.ml import EncoderError
from scoring.ml.encoders.source import find_encoder
from scoring.ml.encoders.tokenizing import PairTokenizer, Segment
from scoring.ml.types import Record
from tests.scoring.ml.tiny import FAMILIES, TYPED

ONE, TWO = "the cat sat on the mat.", "no, i like tea!"


@pytest.fixture(params=FAMILIES)
def source(request, tiny_family):
    return find_encoder(tiny_family(request.param))


def own_pair(made: PairTokenizer, one: str, two: str | None = None) -> list[int]:
    return made.tokenizer(one, two)["input_ids"]


def count_room(made: PairTokenizer) -> int:
    """Number of tokens of a pair, excluding special tokens."""
    return made.max_length - made.tokenizer.num_special_tokens_to_add(pair=True)


def find_marks(made: PairTokenizer) -> tuple[int, list[int], int]:
    """The special tokens before, between and after a pair."""
    ids, inside = own_pair(made, "a", "a"), content(made, "a")
    return ids[0], ids[1 + len(inside) : -1 - len(inside)], ids[-1]


def content(made: PairTokenizer, text: str) -> list[int]:
    return made.tokenizer(text, add_special_tokens=False)["input_ids"]


def test_short_inputs_equal_the_tokenizers_own(source):
    made = PairTokenizer(source)
    found = made.pairs([ONE, "", ONE], [TWO, TWO, ""], cut="left")
    expected = made.tokenizer([ONE, "", ONE], [TWO, TWO, ""])
    assert [list(e.ids) for e in found.encodings] == expected["input_ids"]
    assert not found.truncated.any()
    if source.folder.name in TYPED:
        assert [list(e.type_ids or ()) for e in found.encodings] == expected["token_type_ids"]
    else:
        assert found.encodings.type_ids is None
    assert [list(e.ids) for e in made.texts([ONE, ""]).encodings] == [own_pair(made, ONE), own_pair(made, "")]


def test_dialogue_loses_its_oldest_turns_and_a_prompt_its_end(source):
    made = PairTokenizer(source, max_length=20)
    turns = ("dog " * 20 + "dog", "yes, you ran", "i like tea")
    budget = count_room(made)
    for cut, context in (("left", turns), ("right", turns)):
        found = made.pairs([context], ["no!"], cut=cut)
        ids, second = list(found.encodings[0].ids), content(made, "no!")
        assert len(ids) == 20
        assert found.truncated.tolist() == [True]
        kept = budget - len(second)
        whole = content(made, " ".join(turns))
        part = whole[-kept:] if cut == "left" else whole[:kept]
        assert ids[1 : 1 + kept] == part
        assert ids[-len(second) - 1 : -1] == second


def test_candidate_is_whole_up_to_half_or_more_where_there_is_room(source):
    made = PairTokenizer(source, max_length=23)
    budget = count_room(made)
    long = "cat " * 30
    whole = len(content(made, long))
    found = made.pairs([long, "dog", "", long], [long, long, long, TWO[:3]], cut="left")
    assert found.truncated.tolist() == [True] * 4
    assert found.encodings.lengths.tolist() == [23] * 4
    assert whole > budget
    # With two long texts, the candidate keeps the lower half of the tokens, the context the rest.
    ids = list(found.encodings[0].ids)
    assert ids[-1 - budget // 2 : -1] == content(made, long)[: budget // 2]
    # With one short word, it keeps all but that word's tokens.
    room = budget - len(content(made, "dog"))
    assert list(found.encodings[1].ids)[-1 - room : -1] == content(made, long)[:room]


def test_triples_share_the_tokens(source):
    made = PairTokenizer(source)
    opening, between, closing = find_marks(made)
    parts = [content(made, text) for text in ("the cat sat", "no", "yes, tea")]
    found = made.triples(["the cat sat"], ["no"], ["yes, tea"], cut="left")
    expected = [opening, *parts[0], *between, *parts[1], *between, *parts[2], closing]
    assert list(found.encodings[0].ids) == expected
    if found.encodings.type_ids is not None:
        behind = len(parts[2]) + 1
        assert found.encodings[0].type_ids == (0,) * (len(expected) - behind) + (1,) * behind
    made = PairTokenizer(source, max_length=26)
    long = [word * 40 for word in ("dog ", "cat ", "tea ")]
    found = made.triples(long[:1], long[1:2], long[2:], cut="left")
    quarter = (count_room(made) - len(between)) // 2 // 2
    ids = list(found.encodings[0].ids)
    assert len(ids) == 26
    assert found.truncated.tolist() == [True]
    assert ids[-1 - quarter :] == [*content(made, long[2])[:quarter], closing]
    behind = -1 - quarter - len(between)
    assert ids[behind - quarter : behind] == content(made, long[1])[:quarter]


def test_each_side_of_segments_has_its_own_half(source):
    made = PairTokenizer(source, max_length=30)
    budget = count_room(made) // 2
    sides = [Segment("no", ("dog " * 30, "tea")), Segment("you ran")]
    found = made.segments(sides, sides[::-1])
    assert found.truncated.tolist() == [True, True]
    one, two = (list(e.ids) for e in found.encodings)
    short = len(content(made, "you ran"))
    assert one[1 : 1 + budget] == two[-1 - budget : -1]
    assert one[-1 - short : -1] == two[1 : 1 + short]
    whole = made.segments([Segment("no", "you")], [Segment("no")])
    assert list(whole.encodings[0].ids) == own_pair(made, "you no", "no")


def test_special_tokens_in_a_text_are_plain_text(source):
    made = PairTokenizer(source)
    mark = made.tokenizer.sep_token
    found = made.texts([f"no {mark} no"]).encodings[0]
    assert found.ids.count(made.tokenizer.sep_token_id) == 1


def test_order_and_repetition_do_not_matter(source):
    made = PairTokenizer(source, max_length=18)
    contexts = [("dog " * n, "tea") for n in (1, 9, 3, 9)]
    texts = ["cat", "cat " * 12, "no", "cat " * 12]
    together = made.pairs(contexts, texts, cut="left")
    for row in (3, 0, 2, 1):
        alone = made.pairs([contexts[row]], [texts[row]], cut="left")
        assert alone.encodings[0] == together.encodings[row]
        assert alone.truncated[0] == together.truncated[row]
    assert together.encodings[1] == together.encodings[3]


def test_records_are_truncated_by_their_context_kind(tiny_family):
    made = PairTokenizer(find_encoder(tiny_family("bert")), max_length=12)
    words = "cat dog sat on mat tea i you like no yes the ran"
    records = [Record("yes", context=(words,)), Record("yes", source=words), Record("yes")]
    found = made.records([*records, Record("yes", context=("tea",), source="cat")])
    texts = [made.tokenizer.decode(e.ids) for e in found.encodings]
    assert texts == [
        "[CLS] tea i you like no yes the ran [SEP] yes [SEP]",
        "[CLS] cat dog sat on mat tea i you [SEP] yes [SEP]",
        "[CLS] [SEP] yes [SEP]",
        "[CLS] cat tea [SEP] yes [SEP]",
    ]
    assert found.truncated.tolist() == [True, True, False, False]


def test_lengths_follow_positions_and_the_placeholder_is_no_limit(tiny_family):
    assert PairTokenizer(find_encoder(tiny_family("roberta"))).max_length == 64
    assert PairTokenizer(find_encoder(tiny_family("deberta-v2"))).max_length == 64
    made = PairTokenizer(find_encoder(tiny_family("deberta-v2")))
    assert made.texts(["cat " * 500]).encodings.lengths.tolist() == [64]


def test_turns_are_joined_by_the_separator(tiny_family):
    made = PairTokenizer(find_encoder(tiny_family("bert")), separator=" - ")
    assert made.tokenizer.decode(made.pairs([("no", "yes")], ["tea"], cut="left").encodings[0].ids) == (
        "[CLS] no - yes [SEP] tea [SEP]"
    )


def test_too_short_length_suggests_a_remedy(tiny_family):
    made = PairTokenizer(find_encoder(tiny_family("bert")), max_length=4)
    assert made.texts([ONE]).encodings.lengths.tolist() == [4]
    with pytest.raises(EncoderError, match=r"length .*4 .*3 special tokens"):
        made.pairs([ONE], [TWO], cut="left")


def test_nothing_to_tokenise(tiny_family):
    made = PairTokenizer(find_encoder(tiny_family("bert")))
    assert len(made.pairs([], [], cut="left").encodings) == 0
    assert made.texts([]).truncated.dtype == np.bool_


def test_lone_surrogate_is_read_as_a_replacement_character(source):
    """JSON can contain one, as `"\\ud800"`, but no tokenizer accepts it."""
    made = PairTokenizer(source)
    broken, whole = ["the \ud800 cat", "tea \udc00\ud800", ONE], ["the \ufffd cat", "tea \ufffd\ufffd", ONE]
    found, expected = made.pairs(broken, broken, cut="left"), made.pairs(whole, whole, cut="left")
    assert [list(e.ids) for e in found.encodings] == [list(e.ids) for e in expected.encodings]
    assert [list(e.ids) for e in made.texts(broken).encodings] == [list(e.ids) for e in made.texts(whole).encodings]


def test_token_without_an_embedding_is_named(tiny_family):
    source = find_encoder(tiny_family("bert"))
    made = PairTokenizer(replace(source, config={**source.config, "vocab_size": 6}))
    with pytest.raises(EncoderError, match=r"token number .* 6 word vectors"):
        made.texts(["the cat"])
