"""The texts of the repository stay in plain English: rates of mannered phrases, measured by `prose.py`."""

from __future__ import annotations

import pytest

from tests.architecture.prose import OF_LIMIT, PHRASES, WHAT_LIMIT, Prose, read_prose

#: Kind of text -> phrase -> occurrences that are left above the limit. Lower them, never raise them; a phrase without
#: an entry is within its limit.
CEILINGS: dict[str, dict[str, int]] = {
    "code": {
        "of which": 741, "nobody": 371, "stands": 321, "told": 167, "beside": 163, "anew": 113, "mend": 5,
        ", too": 70, "so many": 119, "tell apart": 25, "as far as": 19, "of what": 281,
    },
    "strings": {
        "of which": 126, "nobody": 44, "stands": 45, "told": 38, "beside": 24, "anew": 21, "so many": 36,
        "tell apart": 18, "of what": 29,
    },
    "javascript": {"nobody": 14, "stands": 5, "told": 15, "beside": 2, "anew": 2, "of what": 4},
    "templates": {
        "of which": 21, "nobody": 18, "stands": 7, "told": 5, "beside": 5, "anew": 1, ", too": 2, "tell apart": 2,
        "as far as": 2, "of what": 3,
    },
    "docs": {
        "of which": 126, "nobody": 52, "stands": 49, "told": 65, "beside": 44, "anew": 24, ", too": 45, "so many": 29,
        "tell apart": 29, "of what": 95,
    },
}  # fmt: skip
#: The same for docstring sentences that begin with "What" and for functions named x_of or of_x.
WHAT_CEILING, OF_CEILING = 597, 343


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
