"""The texts of the repository stay in plain English: rates of mannered phrases, measured by `prose.py`."""

from __future__ import annotations

import pytest

from tests.architecture.prose import OF_LIMIT, PHRASES, WHAT_LIMIT, Prose, read_prose

KINDS = ["code", "strings", "javascript", "templates", "docs"]


@pytest.fixture(scope="module")
def prose() -> Prose:
    return read_prose()


def test_every_kind_of_text_is_measured(prose: Prose) -> None:
    assert set(KINDS) <= prose.kinds.keys()
    assert all(kind.words > 2000 for kind in prose.kinds.values())


@pytest.mark.parametrize("phrase", PHRASES)
@pytest.mark.parametrize("name", KINDS)
def test_phrases_stay_within_their_limit(prose: Prose, name: str, phrase: str) -> None:
    kind, limit = prose.kinds[name], PHRASES[phrase][1]
    counts = kind.count(phrase)
    allowed = limit * kind.words / 1e4
    worst = ", ".join(f"{path.name} {n}" for path, n in counts.most_common(5))
    assert counts.total() <= allowed, f"{counts.total()} of {phrase!r} in {name}, {allowed:.1f} allowed: {worst}"


def test_docstrings_say_what_a_function_does(prose: Prose) -> None:
    n, sentences = prose.count_what()
    assert n <= WHAT_LIMIT * sentences


def test_functions_are_named_by_verbs(prose: Prose) -> None:
    n, functions = prose.count_of_names()
    assert n <= OF_LIMIT * functions
