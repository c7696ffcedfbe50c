"""Tokenisers against sacrebleu and rouge-score, and Unicode cases worked by hand."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from rouge_score.tokenizers import DefaultTokenizer
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a
from sacrebleu.tokenizers.tokenizer_char import TokenizerChar
from sacrebleu.tokenizers.tokenizer_zh import TokenizerZh

from scoring.ml.text.tokens import (
    character_table,
    sequence_table,
    split_unicode,
    token_table,
    tokenize,
    tokenizer_for,
)

PEERS = {"13a": Tokenizer13a(), "zh": TokenizerZh(), "char": TokenizerChar()}
awkward = st.text(
    alphabet=st.one_of(st.sampled_from(list("ab09 .,-'\"&;<>()$%\n\t\xa0\u3000，。我喜“…é$")), st.characters()),
    max_size=40,
)


@pytest.mark.parametrize("name", PEERS)
@given(text=awkward)
@example(text="0.")
@example(text=" .5 0, 我 ,5 3.5, .5 0.")
@example(text="我0. ,5 (0.")
@example(text="&quot;It&amp;lt;s 3.5, 1,000-2 don't&gt; <skipped>x foo-\nbar -<skipped>\n, ..,. 5-6 a-b")
@settings(max_examples=150)
def test_tokens_equal_sacrebleu(name, text):
    tokens = PEERS[name](text.rstrip()).split()
    assert tokenize(text, name) == tokens
    # A table has the same tokens, by number.
    table = token_table(["0. .5", text, ".5 0.", text], name)
    assert table.row(1).tolist() == table.row(3).tolist()
    assert [len(set(tokens)), len(tokens)] == [len(set(table.row(1).tolist())), table.lengths[1]]


@given(text=awkward)
@settings(max_examples=200)
def test_rouge_tokens_equal_rouge_score(text):
    assert tokenize(text, "rouge-score", lowercase=True) == DefaultTokenizer(use_stemmer=False).tokenize(text)


@pytest.mark.parametrize(
    ("word", "tokens"),
    [
        ("Hello", ["Hello"]),
        ("don't!", ["don", "t"]),
        ("café,", ["café"]),
        ("हिन्दी", ["हिन्दी"]),
        ("我喜欢", ["我", "喜", "欢"]),
        ("tea茶", ["tea", "茶"]),
        ("한국어", ["한국어"]),
        ("😀😀", ["😀", "😀"]),
        ("...", []),
    ],
)
def test_unicode_words(word, tokens):
    assert list(split_unicode(word)) == tokens


def test_letters_with_separate_marks_are_the_same_words():
    composed, separate = (unicodedata.normalize(form, "élève") for form in ("NFC", "NFD"))
    assert composed != separate
    assert list(split_unicode(separate)) == list(split_unicode(composed)) == ["élève"]


def test_tokeniser_of_a_language():
    found = [tokenizer_for(lang) for lang in ("en", "de", "zh", "zh-CN", "ZH_tw", "ja", "th", "")]
    assert found == ["13a", "13a", "zh", "zh", "zh", "char", "char", "13a"]


def test_token_table_numbers_equal_tokens_equally():
    table = token_table(["a b.", "", "b a"], "13a")
    assert table.lengths.tolist() == [3, 0, 2]
    assert table.row(0)[:2].tolist() == table.row(2)[::-1].tolist()
    assert table.size == 3
    same = sequence_table([["a", "b", "."], [], ["b", "a"]])
    assert same.ids.tolist() == table.ids.tolist()


def test_character_table_omits_white_space():
    table = character_table(["a b", "猫\n", ""])
    assert table.lengths.tolist() == [2, 1, 0]
    assert table.row(1).tolist() == [ord("猫")]
