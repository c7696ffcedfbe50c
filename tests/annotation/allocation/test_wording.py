from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from annotation.allocation.wording import changed_words, content_words, shared_words, words_of


def test_content_words_leave_out_function_words():
    assert content_words("The dog, and THE Dog's friend, didn\u2019t see it in 1999.") == {
        "dog", "dog's", "friend", "see", "1999",
    }  # fmt: skip


def test_shared_words_stand_in_the_order_of_the_text():
    assert shared_words("Home again, the happy children slept.", "The children drove home.") == ["home", "children"]
    assert shared_words("Nobody saw it.", "The children drove home.") == []


def test_writing_without_blanks_shares_pairs_of_characters():
    assert shared_words("我们回家吃饭", "他们回家") == ["们回", "回家"]


def test_changed_words_counts_by_hand():
    original = "Tom went to the shop and bought bread."
    assert changed_words(original.upper(), original) == 0
    assert changed_words("Tom went to the shop and stole bread.", original) == 1
    assert changed_words("Tom went to the old shop and bought no bread.", original) == 2
    assert changed_words("Nothing.", original) == 8


@given(st.text(max_size=40), st.text(max_size=40))
def test_bounds(text, original):
    assert set(shared_words(text, original)) == content_words(text) & content_words(original)
    assert 0 <= changed_words(text, original) <= len(words_of(text)) + len(words_of(original))
    assert changed_words(text, text) == 0
