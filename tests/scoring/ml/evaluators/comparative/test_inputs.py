"""Both input forms, the parts omitted for trivial baselines, and the truncation of long texts."""

from __future__ import annotations

import pytest

from scoring.ml.encoders.source import find_encoder
from scoring.ml.evaluators.comparative.inputs import PairReader, cut_at_sentence
from scoring.ml.types import Record

A = Record("cat", context=("tea", "mat"))
B = Record("dog", context=("tea", "mat"))
OTHER = Record("dog", context=("ran",))


@pytest.fixture(scope="module")
def source(tiny_family):
    return find_encoder(tiny_family("bert"))


def words(reader: PairReader, a: Record, b: Record) -> str:
    encoding = reader.pairs([a], [b]).encodings[0]
    return " ".join(reader.tokenizer.tokenizer.convert_ids_to_tokens(list(encoding.ids)))


def test_forms(source):
    own, shared = PairReader(source, form="own"), PairReader(source, form="shared")
    assert words(own, A, B) == "[CLS] tea mat cat [SEP] tea mat dog [SEP]"
    assert words(shared, A, B) == "[CLS] tea mat [SEP] cat [SEP] dog [SEP]"
    assert words(shared, A, OTHER) == words(own, A, OTHER) == "[CLS] tea mat cat [SEP] ran dog [SEP]"
    assert words(shared, Record("cat"), Record("dog")) == "[CLS] cat [SEP] dog [SEP]"
    blank = Record("cat", context=("", " ")), Record("dog", context=("", " "))
    assert words(shared, *blank) == words(own, *blank) == "[CLS] cat [SEP] dog [SEP]"


def test_mixed_pairs_keep_their_order(source):
    reader = PairReader(source, form="shared")
    firsts, seconds = [A, A, B, OTHER], [OTHER, B, A, A]
    together = reader.pairs(firsts, seconds)
    for row, (a, b) in enumerate(zip(firsts, seconds, strict=True)):
        assert together.encodings[row] == reader.pairs([a], [b]).encodings[0]
    assert len(reader.pairs([], []).encodings) == 0


def test_baselines_omit_a_part(source):
    assert words(PairReader(source, inputs="text"), A, B) == "[CLS] cat [SEP] dog [SEP]"
    assert words(PairReader(source, inputs="context", form="own"), A, OTHER) == "[CLS] tea mat [SEP] ran [SEP]"


def test_each_side_has_half_of_the_tokens_and_loses_its_oldest_turns(source):
    reader = PairReader(source, form="own", max_length=11)
    found = reader.pairs([Record("cat dog", context=("tea",) * 6)], [B])
    assert bool(found.truncated[0])
    # (11 - 3) // 2 = 4 tokens per side.
    assert (
        found.encodings[0].ids[1:5]
        == reader.pairs([Record("cat dog", context=("tea", "tea"))], [B]).encodings[0].ids[1:5]
    )


@pytest.mark.parametrize(
    ("text", "limit", "expected"),
    [
        ("one two. three four. five", 3, "one two."),
        ("one two. three four. five", 4, "one two. three four."),
        ("one. two three four five six. seven", 5, "one. two three four five six."),
        ("one two three four", 2, "one two"),
        ("short.", 5, "short."),
        # Neither one word of ten, nor all words.
        ("oh. two three four five six seven eight nine ten.", 6, "oh. two three four five six"),
        ("he said “two three.” four five", 4, "he said “two three.”"),
        ("one  two.\nthree", None, "one  two.\nthree"),
    ],
)
def test_long_texts_end_at_the_nearest_sentence(text, limit, expected):
    assert cut_at_sentence(text, limit) == expected


def test_texts_that_lose_words_count_as_truncated(source):
    """Truncation is reported, never silent; the tokenizer only saw the remaining text."""
    for form in ("own", "shared"):
        reader = PairReader(source, form=form, words=2)
        long, ended = Record("cat sat. on mat", context=("tea",)), Record("cat sat on.", context=("tea",))
        assert reader.pairs([long, A, ended, A], [A, long, A, A]).truncated.tolist() == [True, True, False, False]
        assert reader.singles([long, ended]).truncated.tolist() == [True, False]
    blind = PairReader(source, inputs="context", words=2)
    assert not blind.pairs([long], [A]).truncated.any()
