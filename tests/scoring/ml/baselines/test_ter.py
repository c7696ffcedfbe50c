"""TER against sacrebleu, per text and per corpus."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics.ter import TER

from scoring.ml import Record, load
from scoring.ml.text.edit_rate import Distances, count_edits

texts = st.text(alphabet="ab. C(é我\n", min_size=1, max_size=30).filter(str.strip)


def make_text(rng: random.Random, most: int, words: int) -> str:
    return " ".join(f"w{rng.randrange(words)}" for _ in range(rng.randint(1, most)))


def shuffle(rng: random.Random, text: str) -> str:
    """The text with some sequences of words moved, and some words replaced."""
    words = text.split()
    for _ in range(3):
        start, end = sorted(rng.randrange(len(words) + 1) for _ in range(2))
        part, rest = words[start:end], words[:start] + words[end:]
        place = rng.randrange(len(rest) + 1)
        words = rest[:place] + part + rest[place:]
    return " ".join(word if rng.random() < 0.9 else "other" for word in words)


@pytest.mark.parametrize(("options", "peer"), [
    ({}, {}), ({"lowercase": False}, {"case_sensitive": True}), ({"no_punct": True}, {"no_punct": True}),
])  # fmt: skip
@given(hyp=texts, refs=st.lists(texts, min_size=1, max_size=3))
@settings(max_examples=60)
def test_equals_sacrebleu(options, peer, hyp, refs):
    expected = TER(**peer).sentence_score(hyp, refs).score
    assert load("ter", **options).score([Record(hyp, tuple(refs))])[0] == pytest.approx(-expected, abs=1e-9)


# Beyond 25 words the search in a band can miss edits; with few words there are more than 1,000 shifts to try.
@pytest.mark.parametrize(("most", "words", "n"), [(25, 6, 60), (25, 200, 60), (120, 3, 6), (120, 300, 12)])
def test_long_texts_with_shifts_equal_sacrebleu(most, words, n):
    rng = random.Random(most * words)
    for _ in range(n):
        reference = make_text(rng, most, words)
        text = shuffle(rng, reference) if rng.random() < 0.7 else make_text(rng, most, words)
        expected = TER(case_sensitive=True).sentence_score(text, [reference])
        assert count_edits(text.split(), Distances(reference.split())) == expected.num_edits, (text, reference)


def test_system_score_equals_sacrebleu_corpus():
    rng = random.Random(8)
    rows = [Record("" if not k else make_text(rng, 12, 9), tuple(make_text(rng, 12, 9) for _ in range(3)))
            for k in range(40)]  # fmt: skip
    references = [[row.references[n] for row in rows] for n in range(3)]
    expected = TER().corpus_score([row.text for row in rows], references).score
    assert load("ter").system_score(rows) == pytest.approx(-expected, abs=1e-9)


def test_by_hand():
    # Moving "c d" is one edit, "x" is substituted: 2 edits for 5 words.
    assert load("ter").score([Record("c d a b x", ("a b c d e",))])[0] == pytest.approx(-40)
    assert load("ter").score([Record("A b", ("a b",)), Record(" ", ("a b",))]).tolist() == [0, -100]
