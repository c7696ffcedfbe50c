"""Hooks by which apps downstream (retrieval, scoring) take part in annotation, which does not import them. They
register in their `AppConfig.ready`.

A *dependant* counts rows that depend on an upload, so that undoing the upload is refused with the list, or on an
output, so that its text is not replaced under a judgement::

    # scoring/apps.py
    from annotation.services import hooks
    hooks.register_dependant("scores", "scoring.selectors.score_sets:count_of_upload")

    # scoring/selectors/score_sets.py
    def count_of_upload(*, upload) -> int:
        return Score.objects.filter(output__upload=upload).count()

The pages of reference writing ask for *candidates* and for the *reliability* of a set of references. If no app has
registered, they get an empty answer with a note, and references can still be written."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext as _

from evalapp.common.hooks import load_target

_DEPENDANTS: dict[str, str | Callable[..., int]] = {}


def _resolve(target: Any) -> Callable[..., Any]:
    return load_target(target) if isinstance(target, str) else target


def register_dependant(name: str, count: str | Callable[..., int]) -> None:
    """Register `count(*, upload) -> int`, the number of `name` (a plural noun shown to users) that depend on rows of
    `upload`. A string `module:function` is imported on first use."""
    _DEPENDANTS[name] = count


def count_dependants(upload: Any) -> list[tuple[str, int]]:
    """(name, number) of the rows that depend on the upload, without zeros."""
    counts = [(name, int(_resolve(count)(upload=upload))) for name, count in sorted(_DEPENDANTS.items())]
    return [(name, count) for name, count in counts if count]


# ---- exports and imports of other apps' data --------------------------------------------------------------

_EXPORTED: dict[str, str | Callable[..., Any]] = {}
#: `UploadChange.table` values that other apps use for their undo: scores of a set, tables.
RESULT_TABLES = ("scores", "tables")


def register_export(
    *,
    prepare: str | Callable[..., None],
    rows: str | Callable[..., Iterable[tuple[str, dict[str, Any]]]],
    documents: str | Callable[..., dict[str, Any]],
    check: str | Callable[..., None],
    store: str | Callable[..., None],
    undo: str | Callable[..., dict[str, int]],
) -> None:
    """Register the functions by which an app's data are exported and imported.

    prepare: `(*, project, tick)`, may write; runs before the exported moment.
    rows: `(*, project)`, yields (table, row) in canonical order.
    documents: `(*, project, raters)`, returns files with a single object by name; `raters` maps a rater to the
        pseudonym used in this export.
    check, store: the phases of an import, called with `import_checks.Check` and `import_store.Promotion`.
    undo: `(*, upload)`, removes what `store` added, before the outputs of the upload are removed, and returns counts
        by noun. `store` saves what `undo` needs as `UploadChange` with a table name from `RESULT_TABLES`."""
    _EXPORTED.update(prepare=prepare, rows=rows, documents=documents, check=check, store=store, undo=undo)


def prepare_export(*, project: Any, tick: Callable[[int, int], None]) -> None:
    if _EXPORTED:
        _resolve(_EXPORTED["prepare"])(project=project, tick=tick)


def read_exported_rows(*, project: Any) -> Iterable[tuple[str, dict[str, Any]]]:
    return _resolve(_EXPORTED["rows"])(project=project) if _EXPORTED else ()


def make_exported_documents(*, project: Any, raters: Callable[[str], str]) -> dict[str, Any]:
    return _resolve(_EXPORTED["documents"])(project=project, raters=raters) if _EXPORTED else {}


def check_results(check: Any) -> None:
    if _EXPORTED:
        _resolve(_EXPORTED["check"])(check)


def store_results(promotion: Any) -> None:
    if _EXPORTED:
        _resolve(_EXPORTED["store"])(promotion)


def undo_results(*, upload: Any) -> dict[str, int]:
    return _resolve(_EXPORTED["undo"])(upload=upload) if _EXPORTED else {}


# ---- reference writing ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Candidate:
    """A text that may become a reference. `query` is the corpus query that it responds to, `jaccard` the similarity of
    that query to the item's context, `source` its origin: corpus, row, licence."""

    text: str
    query: str
    jaccard: float
    source: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Candidates:
    """Candidates, and a `note` that explains in one line why there are none or few."""

    rows: tuple[Candidate, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class Reliability:
    """A value for each set, or None with a `note` that explains why."""

    values: tuple[float | None, ...]
    signature: str = ""
    note: str = ""


_WRITING: dict[str, str | Callable[..., Any]] = {}


def register_candidates(candidates: str | Callable[..., Candidates]) -> None:
    """Register `candidates(*, project, corpus, item, k, turns, exclude, text) -> Candidates`: the `k` texts nearest to
    the last `turns` turns of the item's context (None: all turns), or search results for `text`, without those in
    `exclude`. A corpus that cannot be read is a note, not an error."""
    _WRITING["candidates"] = candidates


def register_corpora(corpora: str | Callable[..., list[tuple[str, str]]]) -> None:
    """Register `corpora(*, project) -> [(name, label)]`, the sources of candidates."""
    _WRITING["corpora"] = corpora


def register_reliability(reliability: str | Callable[..., Reliability]) -> None:
    """Register `reliability(*, project, evaluator, item, sets, timeout=None) -> Reliability`: the reliability that a
    trained evaluator predicts for each set of references of the item. After `timeout` seconds: None with a note."""
    _WRITING["reliability"] = reliability


def register_reliability_evaluators(evaluators: str | Callable[..., list[tuple[str, str]]]) -> None:
    """Register `evaluators(*, project) -> [(slug, label)]`, the evaluators that predict reliability."""
    _WRITING["evaluators"] = evaluators


def find_candidates(
    *, project: Any, corpus: str, item: Any, k: int = 100, turns: int | None = None,
    exclude: Collection[str] = (), text: str | None = None,
) -> Candidates:  # fmt: skip
    if "candidates" not in _WRITING:
        return Candidates(note=_("No corpus is set up here."))
    provider = _resolve(_WRITING["candidates"])
    return provider(project=project, corpus=corpus, item=item, k=k, turns=turns, exclude=exclude, text=text)


def list_corpora(*, project: Any) -> list[tuple[str, str]]:
    return _resolve(_WRITING["corpora"])(project=project) if "corpora" in _WRITING else []


def predict_reliability(
    *, project: Any, evaluator: str, item: Any, sets: list[tuple[str, ...]], timeout: float | None = None
) -> Reliability:
    if "reliability" not in _WRITING:
        return Reliability((None,) * len(sets), note=_("No evaluator is available here."))
    provider = _resolve(_WRITING["reliability"])
    return provider(project=project, evaluator=evaluator, item=item, sets=sets, timeout=timeout)


def list_reliability_evaluators(*, project: Any) -> list[tuple[str, str]]:
    return _resolve(_WRITING["evaluators"])(project=project) if "evaluators" in _WRITING else []
