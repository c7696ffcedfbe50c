"""Ports: what rooms downstream tell this room, so that it need not know them. They register in their
`AppConfig.ready`; nothing here imports them.

A *dependant* answers what of its own rests on the rows of an upload, so that undo can be refused with the list,
and on an output, so that its text is not replaced under a judgement::

    # scoring/apps.py
    from annotation.services import ports
    ports.register_dependant("scores", "scoring.selectors.dependants:count_of_upload")

    # scoring/selectors/dependants.py
    def count_of_upload(*, upload) -> int:      # rows that would lose what they are about
        return Score.objects.filter(output__upload=upload).count()

The pages of reference writing ask two rooms downstream: for *candidates*, and for the *reliability* of a set. Where
neither has registered, they answer empty with a note, and references can still be written."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

_DEPENDANTS: dict[str, str | Callable[..., int]] = {}


def _resolve(target: Any) -> Callable[..., Any]:
    if isinstance(target, str):
        module, _, name = target.partition(":")
        return getattr(import_module(module), name)
    return target


def register_dependant(name: str, count: str | Callable[..., int]) -> None:
    """`count(*, upload) -> int`: how many `name` (a plural noun for people) rest on rows that `upload` brought.
    A string `module:function` is imported at its first use."""
    _DEPENDANTS[name] = count


def dependants(upload: Any) -> list[tuple[str, int]]:
    """What rests on the upload, as (name, count), without the zeros."""
    found = [(name, int(_resolve(count)(upload=upload))) for name, count in sorted(_DEPENDANTS.items())]
    return [(name, count) for name, count in found if count]


# ---- what exports hold of rooms downstream, and what imports give back to them -----------------------------------

_EXPORTED: dict[str, str | Callable[..., Any]] = {}
#: `UploadChange.table` of what rooms downstream keep for their undo: scores of a set, tables.
FOUND = ("scores", "tables")


def register_export(
    *,
    prepare: str | Callable[..., None],
    rows: str | Callable[..., Iterable[tuple[str, dict[str, Any]]]],
    documents: str | Callable[..., dict[str, Any]],
    check: str | Callable[..., None],
    store: str | Callable[..., None],
    undo: str | Callable[..., dict[str, int]],
) -> None:
    """`prepare(*, project, tick)` may write, before the moment that is exported; `rows(*, project)` gives (table, row)
    in canonical order; `documents(*, project, raters)` files that are one object, by name, `raters` being what raters
    are called in this export. `check(check)` and `store(promotion)` are the two phases of an import: they get
    `import_checks.Check` and `import_store.Promotion`. `undo(*, upload)` takes away what `store` brought, before the
    outputs of the upload go, and says how many rows of what; what it needs for that, `store` keeps as `UploadChange`
    under table names of its own (`FOUND`)."""
    _EXPORTED.update(prepare=prepare, rows=rows, documents=documents, check=check, store=store, undo=undo)


def prepare_export(*, project: Any, tick: Callable[[int, int], None]) -> None:
    if _EXPORTED:
        _resolve(_EXPORTED["prepare"])(project=project, tick=tick)


def exported_rows(*, project: Any) -> Iterable[tuple[str, dict[str, Any]]]:
    return _resolve(_EXPORTED["rows"])(project=project) if _EXPORTED else ()


def exported_documents(*, project: Any, raters: Callable[[str], str]) -> dict[str, Any]:
    return _resolve(_EXPORTED["documents"])(project=project, raters=raters) if _EXPORTED else {}


def check_found(check: Any) -> None:
    if _EXPORTED:
        _resolve(_EXPORTED["check"])(check)


def store_found(promotion: Any) -> None:
    if _EXPORTED:
        _resolve(_EXPORTED["store"])(promotion)


def undo_found(*, upload: Any) -> dict[str, int]:
    return _resolve(_EXPORTED["undo"])(upload=upload) if _EXPORTED else {}


# ---- what the pages of reference writing ask downstream ---------------------------------------------------


@dataclass(frozen=True)
class Candidate:
    """A text that may become a reference. `query` is the corpus query it answered, `jaccard` its likeness to the
    item's context, `source` says where it comes from: corpus, row, licence, origin."""

    text: str
    query: str
    jaccard: float
    source: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Candidates:
    """`note` says in one line why there are none, or fewer than usual."""

    rows: tuple[Candidate, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class Reliability:
    """One value per set asked for, None where there is none; `note` says why."""

    values: tuple[float | None, ...]
    signature: str = ""
    note: str = ""


_WRITING: dict[str, str | Callable[..., Any]] = {}


def register_candidates(candidates: str | Callable[..., Candidates]) -> None:
    """`candidates(*, project, corpus, item, k, turns, exclude, text) -> Candidates`: the `k` texts nearest to the last
    `turns` turns of the item's context (None: all of them), or a search for `text`; never one of `exclude`. A corpus
    that cannot be read just now is a note, not an error."""
    _WRITING["candidates"] = candidates


def register_corpora(corpora: str | Callable[..., list[tuple[str, str]]]) -> None:
    """`corpora(*, project) -> [(name, label)]`: what candidates can come from."""
    _WRITING["corpora"] = corpora


def register_reliability(reliability: str | Callable[..., Reliability]) -> None:
    """`reliability(*, project, evaluator, item, sets, timeout=None) -> Reliability`: the predicted reliability of each
    set of texts as references of the item, by a trained evaluator. No answer in time is None and a note."""
    _WRITING["reliability"] = reliability


def register_reliability_evaluators(evaluators: str | Callable[..., list[tuple[str, str]]]) -> None:
    """`evaluators(*, project) -> [(slug, label)]`: trained evaluators that predict the reliability of a set."""
    _WRITING["evaluators"] = evaluators


def candidates_for(
    *, project: Any, corpus: str, item: Any, k: int = 100, turns: int | None = None,
    exclude: Collection[str] = (), text: str | None = None,
) -> Candidates:  # fmt: skip
    if "candidates" not in _WRITING:
        return Candidates(note="No corpus is set up here.")
    found = _resolve(_WRITING["candidates"])
    return found(project=project, corpus=corpus, item=item, k=k, turns=turns, exclude=exclude, text=text)


def corpora_of(*, project: Any) -> list[tuple[str, str]]:
    return _resolve(_WRITING["corpora"])(project=project) if "corpora" in _WRITING else []


def reliability_of(
    *, project: Any, evaluator: str, item: Any, sets: list[tuple[str, ...]], timeout: float | None = None
) -> Reliability:
    if "reliability" not in _WRITING:
        return Reliability((None,) * len(sets), note="No evaluator answers here.")
    found = _resolve(_WRITING["reliability"])
    return found(project=project, evaluator=evaluator, item=item, sets=sets, timeout=timeout)


def reliability_evaluators_of(*, project: Any) -> list[tuple[str, str]]:
    return _resolve(_WRITING["evaluators"])(project=project) if "evaluators" in _WRITING else []
