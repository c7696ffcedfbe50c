from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from annotation.allocation.texts import is_storable


def test_nul_and_lone_surrogates_are_found_anywhere():
    assert is_storable({"a": ["grüße", "日本", "😀", 3, None]})
    assert not is_storable("a\x00b")
    assert not is_storable({"a": [{"\x00": 1}]})
    assert not is_storable(["\ud83d"])


@given(st.text())
def test_storable_text_can_be_encoded(text):
    if is_storable(text):
        text.encode("utf-8")
