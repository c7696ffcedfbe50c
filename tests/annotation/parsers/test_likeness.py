"""Detecting and describing names that look alike."""

from __future__ import annotations

import unicodedata

import pytest

from annotation.parsers.likeness import describe_name, find_alike, fold_name, list_spellings

NFC, NFD = "caf\u00e9", "cafe\u0301"


@pytest.mark.parametrize("other", [NFD, NFC + "\u200b", NFC + " ", " " + NFC, NFC + "\u00a0", "ca f\u00e9"])
def test_lookalikes_fold_to_the_same_key(other):
    assert fold_name(other) == fold_name(NFC) == NFC
    assert find_alike([NFC, other, "other"]) == [tuple(sorted((NFC, other)))]


def test_case_and_accents_are_distinct():
    assert find_alike(["a", "A", "\u00e1", "\uff41", "1", "\u0661"]) == []


def test_spellings_include_the_other_form():
    assert NFD in list_spellings(NFC)
    assert NFC in list_spellings(NFD)
    assert NFC in list_spellings(NFD + "\u200b ")
    assert list_spellings("plain") == []
    assert all(name == unicodedata.normalize("NFC", name) or name == unicodedata.normalize("NFD", name)
               for name in list_spellings(NFC))  # fmt: skip


def test_description_distinguishes_lookalikes():
    assert describe_name(NFC) == "“café” (U+00E9)"
    assert describe_name(NFD) == f"“{NFD}” (U+0301)"
    assert describe_name("a\u200b") == "“a<U+200B>” (U+200B)"
    assert describe_name("a") == "“a”"
