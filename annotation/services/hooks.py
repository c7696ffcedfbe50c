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

The other hooks are functions that one app provides: `hooks.list_corpora.register("module:function")`. Until an app has
registered, they do nothing or explain in a note what is missing; references can then still be written."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext as _

from evalapp.common.hooks import Provider, load_target

_DEPENDANTS: dict[str, str | Callable[..., int]] = {}


def register_dependant(name: str, count: str | Callable[..., int]) -> None:
    """Register `count(*, upload) -> int`, the number of `name` (a plural noun shown to users) that depend on rows of
    `upload`. A string `module:function` is imported on first use."""
    _DEPENDANTS[name] = count


def count_dependants(upload: Any) -> list[tuple[str, int]]:
    """(name, number) of the rows that depend on the upload, without zeros."""
    counts = [(name, int(load_target(count)(upload=upload))) for name, count in sorted(_DEPENDANTS.items())]
    return [(name, count) for name, count in counts if count]


# ---- exports and imports of other apps' data --------------------------------------------------------------

#: `UploadChange.table` values that other apps use for their undo: scores of a set, tables, answers of judges.
RESULT_TABLES = ("scores", "tables", "answers")

#: `(*, project, tick)`: may write; runs before the exported moment.
prepare_export = Provider[None](lambda **_asked: None)
#: `(*, project)`: yields (table, row) in canonical order.
read_exported_rows = Provider[Iterable[tuple[str, dict[str, Any]]]](lambda **_asked: ())
#: `(*, project)`: yields (table, row) of the raw answers of language models.
read_exported_answers = Provider[Iterable[tuple[str, dict[str, Any]]]](lambda **_asked: ())
#: `(*, project, raters)`: files with a single object by name; `raters` maps a rater to the pseudonym of this export.
make_exported_documents = Provider[dict[str, Any]](lambda **_asked: {})
#: The phases of an import, called with `import_faults.Check` and `import_store.Promotion`.
check_results = Provider[None](lambda _check: None)
store_results = Provider[None](lambda _promotion: None)
#: `(*, upload)`: removes what `store_results` added, before the outputs of the upload are removed, and returns counts
#: by noun. `store_results` prepares this by `UploadChange` with a table name from `RESULT_TABLES`.
undo_results = Provider[dict[str, int]](lambda **_asked: {})


#: `(*, campaign)`: sentences on what evaluators save in a rating campaign.
describe_savings = Provider[list[str]](lambda **_asked: [])


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


#: `(*, project, corpus, item, k, turns=None, exclude=(), text=None)`: the `k` texts nearest to the last `turns` turns
#: of the item's context (None: all turns), or search results for `text`, without those in `exclude`. A corpus that
#: cannot be read is a note, not an error.
find_candidates = Provider(lambda **_asked: Candidates(note=_("No corpus is set up here.")))
#: `(*, project)`: (name, label) of the sources of candidates.
list_corpora = Provider[list[tuple[str, str]]](lambda **_asked: [])
#: `(*, project, evaluator, item, sets, timeout=None)`: the reliability that a trained evaluator predicts for each set
#: of references of the item. After `timeout` seconds: None with a note.
predict_reliability = Provider(
    lambda sets, **_asked: Reliability((None,) * len(sets), note=_("No evaluator is available here."))
)
#: `(*, project)`: (slug, label) of the evaluators that predict reliability.
list_reliability_evaluators = Provider[list[tuple[str, str]]](lambda **_asked: [])
