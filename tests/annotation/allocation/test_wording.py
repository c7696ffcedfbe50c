from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from annotation.allocation.wording import changed_words, find_content_words, shared_words, split_words


def test_content_words_exclude_function_words():
    assert find_content_words("The dog, and THE Dog's friend, didn\u2019t see it in 1999.") == {
        "dog", "dog's", "friend", "see", "1999",
    }  # fmt: skip


def test_shared_words_keep_the_order_of_the_text():
    assert shared_words("Home again, the happy children slept.", "The children drove home.") == ["home", "children"]
    assert shared_words("Nobody saw it.", "The children drove home.") == []


def test_scripts_without_spaces_share_character_pairs():
    assert shared_words("我们回家吃饭", "他们回家") == ["们回", "回家"]


def test_changed_words_match_manual_counts():
    original = "Tom went to the shop and bought bread."
    assert changed_words(original.upper(), original) == 0
    assert changed_words("Tom went to the shop and stole bread.", original) == 1
    assert changed_words("Tom went to the old shop and bought no bread.", original) == 2
    assert changed_words("Nothing.", original) == 8


def test_word_is_not_split_at_a_combining_mark():
    """Hindi “greetings, friends”, Arabic with vowels, an x that has no precomposed form with a dot below, Thai
    “fish”."""
    hindi = "\u0928\u092e\u0938\u094d\u0924\u0947"
    assert split_words(f"{hindi}, \u0926\u094b\u0938\u094d\u0924\u094b!") == [
        hindi,
        "\u0926\u094b\u0938\u094d\u0924\u094b",
    ]
    assert split_words("\u0643\u064e\u062a\u064e\u0628\u064e x\u0323y") == [
        "\u0643\u064e\u062a\u064e\u0628\u064e",
        "x\u0323y",
    ]
    # Case-folding a Turkish capital adds a combining mark; the lower-case spelling is still the same word.
    assert split_words("\u0130STANBUL") == ["i\u0307stanbul"]
    assert split_words("\u0e17\u0e35\u0e48\u0e19") == ["\u0e17\u0e35\u0e48", "\u0e19"]
    assert changed_words(f"{hindi} a", f"{hindi} b") == 1
    assert split_words("Caf\u00e9 CAFE\u0301") == ["caf\u00e9", "caf\u00e9"]


@given(st.text(max_size=40), st.text(max_size=40))
def test_bounds(text, original):
    assert set(shared_words(text, original)) == find_content_words(text) & find_content_words(original)
    assert 0 <= changed_words(text, original) <= len(split_words(text)) + len(split_words(original))
    assert changed_words(text, text) == 0
