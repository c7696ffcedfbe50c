"""Records from plain lists of texts, as other metric libraries take them: lists, NumPy arrays, pandas Series."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from scoring.ml.errors import InvalidRecords
from scoring.ml.types import Record, check_records

#: A list, tuple, NumPy array or pandas Series of texts.
Texts: TypeAlias = Any
#: One text per hypothesis, or one list of texts per hypothesis.
TextLists: TypeAlias = Any


def make_records(
    hypotheses: Texts,
    references: TextLists | None = None,
    *,
    sources: Texts | None = None,
    contexts: TextLists | None = None,
) -> list[Record]:
    """Return a record for each of the `hypotheses`.

    `references`: for each hypothesis a text or a list of texts. `sources`: for each a text. `contexts`: for each the
    turns before it, oldest first, or a single one. None and nan are a missing reference, source or context. Raises
    `InvalidRecords`, which names the argument and the place, for other lengths and for anything that is not a text.

    >>> [record.references for record in make_records(["a b", "c"], [["a b", "b"], ["d"]])]
    [('a b', 'b'), ('d',)]
    """
    texts = [_read_text(text, "hypotheses", place) for place, text in enumerate(_read_list(hypotheses, "hypotheses"))]
    n = len(texts)
    refs = _read_lists(references, "references", n)
    turns = _read_lists(contexts, "contexts", n)
    if sources is None:
        return [Record(text, ref, turn) for text, ref, turn in zip(texts, refs, turns, strict=True)]
    given = _read_list(sources, "sources")
    _check_length(given, "sources", n)
    read = [None if _is_missing(text) else _read_text(text, "sources", place) for place, text in enumerate(given)]
    return [Record(*fields) for fields in zip(texts, refs, turns, read, strict=True)]


def as_records(
    given: Any, references: TextLists | None, sources: Texts | None, contexts: TextLists | None, call: str
) -> Sequence[Record]:
    """Return the records `given` to the function `call`, made from hypotheses if they are texts. Raises
    `InvalidRecords` for anything else, and for records with `references`, `sources` or `contexts` of their own."""
    values = _read_list(given, "hypotheses") if _holds_texts(given) else given
    if isinstance(values, list) and (not values or any(isinstance(value, str) for value in values)):
        return make_records(values, references, sources=sources, contexts=contexts)
    check_records(values, call)
    if references is not None or sources is not None or contexts is not None:
        raise InvalidRecords(f"{call}: records have references, source and context of their own; leave the others out.")
    result: Sequence[Record] = values
    return result


def _holds_texts(given: Any) -> bool:
    if isinstance(given, str | bytes | Mapping):
        return False
    return isinstance(given, list | tuple) or hasattr(given, "to_numpy") or hasattr(given, "tolist")


def _read_list(given: Any, name: str) -> list[Any]:
    if isinstance(given, str | bytes | Mapping):
        raise InvalidRecords(f"{name} is a list of texts, found {type(given).__name__}: {name}=[{given!r:.40}]")
    if hasattr(given, "to_numpy"):  # pandas and Polars; an index plays no part
        given = given.to_numpy()
    if hasattr(given, "tolist"):
        given = given.tolist()
    if not isinstance(given, Iterable):
        raise InvalidRecords(f"{name} is a list of texts, found {type(given).__name__}")
    return list(given)


def _read_lists(given: TextLists | None, name: str, n: int) -> list[tuple[str, ...]]:
    """The texts of each hypothesis, without missing ones."""
    if given is None:
        return [()] * n
    rows = _read_list(given, name)
    _check_length(rows, name, n)
    return [_read_row(row, name, place) for place, row in enumerate(rows)]


def _read_row(row: Any, name: str, place: int) -> tuple[str, ...]:
    if isinstance(row, str):
        return (str(row),)
    if _is_missing(row):
        return ()
    if isinstance(row, bytes | Mapping) or not isinstance(row, Iterable):
        raise InvalidRecords(f"{name}[{place}] is a text or a list of texts, found {type(row).__name__}")
    return tuple(_read_text(text, f"{name}[{place}]", inner) for inner, text in enumerate(row) if not _is_missing(text))


def _read_text(text: Any, name: str, place: int) -> str:
    if isinstance(text, str):
        return str(text)
    if _is_missing(text):
        raise InvalidRecords(f"{name}[{place}] is missing ({text!r}): leave the row out, or give an empty text")
    raise InvalidRecords(f"{name}[{place}] is a text, found {type(text).__name__}: {text!r:.40}")


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and value != value) or type(value).__name__ == "NAType"


def _check_length(rows: Sequence[Any], name: str, n: int) -> None:
    if len(rows) == n:
        return
    by_set = rows and all(not isinstance(row, str) and hasattr(row, "__len__") and len(row) == n for row in rows)
    way_out = (
        f" These look like {len(rows)} sets with a text for each hypothesis, as sacrebleu takes them: give "
        f"list(zip(*{name})), one list for each hypothesis."
        if by_set
        else f" Give one for each hypothesis: place i of {name} belongs to hypothesis i."
    )
    raise InvalidRecords(f"{name} has {len(rows)} entries, there are {n} hypotheses.{way_out}")
