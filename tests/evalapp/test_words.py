"""Words in every script; the expected words are split by hand."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotation.allocation import wording
from evalapp.words import normalise, split_words, word_runs

#: One sentence in each of 12 scripts, split by hand.
SENTENCES = {
    "latin": ("Der Übergrößenträger aß “Café”-Kekse.", ["der", "übergrössenträger", "ass", "café", "kekse"]),
    "cyrillic": ("Сегодня хорошая погода.", ["сегодня", "хорошая", "погода"]),
    "greek": ("Σήμερα έχει ήλιο!", ["σήμερα", "έχει", "ήλιο"]),
    "hebrew": ("היום יום יפה.", ["היום", "יום", "יפה"]),
    "arabic": ("الطَّقس جميل، اليوم؟", ["الطَّقس", "جميل", "اليوم"]),
    "devanagari": ("आज मौसम अच्छा है।", ["आज", "मौसम", "अच्छा", "है"]),
    "bengali": ("আজ আবহাওয়া ভালো।", ["আজ", "আবহাওয়া", "ভালো"]),
    "tamil": ("இன்று வானிலை நல்லது.", ["இன்று", "வானிலை", "நல்லது"]),
    "hangul": ("오늘 날씨가 좋아요.", ["오늘", "날씨가", "좋아요"]),
    "han": ("今天天气很好。", ["今", "天", "天", "气", "很", "好"]),
    "kana": ("きょうは がいい。", ["き", "ょ", "う", "は", "が", "い", "い"]),
    "thai": ("วันนี้ดี", ["วั", "น", "นี้", "ดี"]),
}


@pytest.mark.parametrize("script", SENTENCES)
def test_words_of_twelve_scripts(script):
    text, words = SENTENCES[script]
    assert split_words(text) == [unicodedata.normalize("NFKC", word) for word in words]


def test_emoji_flags_and_format_characters():
    assert split_words("Yes 👍🏽👎 🇩🇪!") == ["yes", "👍", "👎", "🇩🇪"]
    # Persian with a zero-width non-joiner, German with a soft hyphen: the same words without them.
    assert split_words("می\u200cروم Wort\u00adart") == ["میروم", "wortart"]
    assert split_words("Caf\u00e9 CAFE\u0301 ｃａｆｅ") == ["café", "café", "cafe"]
    assert (
        split_words("It’s ‘so’ snake_case") == split_words("It's 'so' snake_case") == ["it's", "'so'", "snake", "case"]
    )


def test_accents_typed_as_apostrophes():
    """Between letters they are apostrophes; elsewhere an accent without a letter is punctuation (NFKC would make it a
    combining mark)."""
    assert split_words("I don\u00b4t, it\u2032s, don\u2019t") == ["i", "don't", "it's", "don't"]
    assert split_words("don\u00b4t") == split_words("don't")
    assert split_words("\u00b4quoted\u00b4 5\u00b42 6\u2032 \u00a8 \u02da") == ["quoted", "5", "2", "6"]
    assert list(word_runs("don\u00b4t \u00b4")) == [["don't"]]
    bare = [chr(code) for code in range(0x3100) if unicodedata.normalize("NFKC", chr(code))[:1] == " "]
    assert [character for character in bare if split_words(f"a {character} b") != ["a", "b"]] == []


@given(st.text(alphabet=st.characters(max_codepoint=127)))
def test_ascii_texts_keep_their_words(text):
    assert split_words(text) == re.findall(r"[a-z0-9']+", text.lower())


@given(st.text(alphabet=st.characters(max_codepoint=127)))
def test_ascii_words_do_not_depend_on_other_words_of_the_text(text):
    assert split_words(f"{text} Привет") == [*split_words(text), "привет"]


@given(st.text(max_size=40))
def test_spans_match_the_words(text):
    assert [word for run in word_runs(text) for word in run] == split_words(text)
    assert wording.split_words(text) == [bare for word in split_words(text) if (bare := word.strip("'"))]


@given(st.text(max_size=40))
def test_no_letter_or_digit_is_lost(text):
    """Each letter and digit of the normal form is in exactly one word; marks and apostrophes may accompany them."""
    kept = [char for word in split_words(text) for char in word if char.isalnum()]
    assert kept == [char for char in normalise(text) if char.isalnum()]
