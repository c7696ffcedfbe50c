"""The expected tokens follow the definition in `retrieval.index.tokens`, applied by hand point by point."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.index.tokens import (
    CHARACTERS,
    END,
    LONGEST,
    TOKENIZERS,
    WORDS,
    choose_tokenizer,
    tokens,
    tokens_in_order,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Where are you going? Where?", {"where", "are", "you", "going"}),
        ("Don't 'stop' rock'n'roll’s", {"don't", "stop", "rock'n'roll's"}),
        ("It costs 3.5 or 1,000. At 10:30, 7.", {"it", "costs", "3.5", "or", "1,000", "at", "10", "30", "7"}),
        ("snake_case ﬁne ＡＢＣ e\u0301t\u0117", {"snake", "case", "fine", "abc", "étė"}),
        ("STRASSE straße", {"strasse"}),
        ("soft\u00adhyphen zero\u200bwidth", {"softhyphen", "zero", "width"}),
        ("हिन्दी में", {"हिन्दी", "में"}),
        ("\u200fשלום\u200f עולם مرحبا", {"שלום", "עולם", "مرحبا"}),
        ("😂😂 👍🏽 👍 ❤️ 🇩🇪🇫🇷", {"😂", "👍", "❤", "🇩🇪", "🇫🇷"}),
        ("你好 Привет hello", {"你好", "привет", "hello"}),
        ("?! ... -- $ +", set()),
        ("", set()),
    ],
)
def test_words(text, expected):
    assert tokens(text, WORDS) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("我有iPhone12，你好。", {"我", "有", "iphone12", "你", "好"}),
        ("かなカナー々", {"か", "な", "カ", "ナ", "ー", "々"}),
        ("ที่นี่", {"ที่", "นี่"}),
        ("don't 3.5 한국어 😂", {"don't", "3.5", "한국어", "😂"}),
        ("𠀀𠀁", {"𠀀", "𠀁"}),
    ],
)
def test_characters_are_separate_tokens_in_scripts_without_spaces(text, expected):
    assert tokens(text, CHARACTERS) == expected


def test_language_code_selects_the_tokenizer():
    assert [choose_tokenizer(code) for code in ("zh", "zh-CN", "ja_JP", "TH", "yue", "km")] == [CHARACTERS] * 6
    assert [choose_tokenizer(code) for code in ("zho", "jpn", "tha", "lao", "khm", "mya-MM")] == [CHARACTERS] * 6
    assert [choose_tokenizer(code) for code in ("en", "ko", "he", "de-CH", "")] == [WORDS] * 5


def test_unknown_tokenizer_is_refused():
    with pytest.raises(ValueError, match="choose one of words, characters"):
        tokens("a", "subwords")


def test_long_token_counts_by_its_beginning():
    assert tokens("x" * 1_000_000 + " y") == {"x" * LONGEST, "y"}
    assert tokens_in_order(["x" * 500, "y"]) == ["x" * LONGEST, END, "y", END]


LETTERS = "aBz9_.,'\x01\x04’é\u0301ß你かที่हि😂\U0001f1e9\U0001f3fd\u200b\u200d\n İ"


@given(st.lists(st.text(st.sampled_from(LETTERS) | st.characters(exclude_categories=["Cs"]), max_size=12), max_size=8))
def test_batched_texts_have_the_same_tokens_as_single_ones(texts):
    for tokenizer in TOKENIZERS:
        found = tokens_in_order(texts, tokenizer)
        each: list[set[str]] = [set()]
        for token in found:
            if token == END:
                each.append(set())
            else:
                each[-1].add(token)
        assert each.pop() == set()
        assert each == [tokens(text, tokenizer) for text in texts]


@given(st.text(st.sampled_from("aZ09'.,_ \n-\x01\x03\x04"), max_size=14))
def test_ascii_is_split_by_the_definition(text):
    run = "[a-z0-9]+"
    pattern = re.compile(rf"{run}(?:(?:'|(?<=[0-9])[.,](?=[0-9])){run})*")
    for tokenizer in TOKENIZERS:
        assert tokens(text, tokenizer) == set(pattern.findall(text.lower()))
        assert tokens(text + " é", tokenizer) == tokens(text, tokenizer) | {"é"}
