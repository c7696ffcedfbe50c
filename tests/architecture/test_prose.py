"""The texts of the repository stay in plain English: rates of mannered phrases, measured by `prose.py`."""

from __future__ import annotations

import pytest

from tests.architecture.prose import OF_LIMIT, PHRASES, WHAT_LIMIT, Prose, read_prose

#: Kind of text -> phrase -> occurrences that are left above the limit. Lower them, never raise them; a phrase without
#: an entry is within its limit.
CEILINGS: dict[str, dict[str, int]] = {
    "code": {
        "of which": 540,
        "nobody": 175,
        "stands": 185,
        "told": 90,
        "beside": 85,
        "anew": 75,
        "so many": 85,
        "tell apart": 12,
        "as far as": 10,
        "of what": 180,
    },
    "strings": {
        "of which": 95,
        "nobody": 30,
        "stands": 30,
        "told": 30,
        "beside": 16,
        "anew": 14,
        "so many": 30,
        "tell apart": 12,
        "of what": 25,
    },
    "javascript": {
        "nobody": 14,
        "stands": 5,
        "told": 15,
        "beside": 2,
        "anew": 2,
        "of what": 4,
    },
    "templates": {
        "of which": 19,
        "nobody": 18,
        "stands": 7,
        "told": 5,
        "beside": 5,
        "anew": 1,
        ", too": 2,
        "tell apart": 2,
        "as far as": 2,
        "of what": 3,
    },
    "docs": {
        "stands": 15,
        "beside": 10,
        "anew": 8,
        "so many": 30,
        "tell apart": 2,
        "of what": 20,
    },
}
#: The same for docstring sentences that begin with "What" and for functions named x_of or of_x.
WHAT_CEILING, OF_CEILING = 385, 275


@pytest.fixture(scope="module")
def prose() -> Prose:
    return read_prose()


def test_every_kind_of_text_is_measured(prose: Prose) -> None:
    assert CEILINGS.keys() <= prose.kinds.keys()
    assert all(kind.words > 2000 for kind in prose.kinds.values())


@pytest.mark.parametrize("phrase", PHRASES)
@pytest.mark.parametrize("name", ["code", "strings", "javascript", "templates", "docs"])
def test_phrases_stay_within_their_limit(prose: Prose, name: str, phrase: str) -> None:
    kind, limit = prose.kinds[name], PHRASES[phrase][1]
    counts = kind.count(phrase)
    allowed = max(int(limit * kind.words / 1e4), CEILINGS[name].get(phrase, 0))
    worst = ", ".join(f"{path.name} {n}" for path, n in counts.most_common(5))
    assert counts.total() <= allowed, f"{counts.total()} of {phrase!r} in {name}, {allowed} allowed: {worst}"


def test_docstrings_say_what_a_function_does(prose: Prose) -> None:
    n, sentences = prose.count_what()
    assert n <= max(WHAT_LIMIT * sentences, WHAT_CEILING)


def test_functions_are_named_by_verbs(prose: Prose) -> None:
    n, functions = prose.count_of_names()
    assert n <= max(OF_LIMIT * functions, OF_CEILING)
