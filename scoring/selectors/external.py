"""Scores made by other programs: names and signatures of their evaluators, who uploaded them from which file, and how
many are of texts that have changed since."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.core.cache import cache
from django.utils.translation import gettext as _

from annotation.models import Upload, UploadChange
from annotation.models.data import ORIGINAL
from annotation.services.hooks import RESULT_TABLES
from evalapp.accounts.models import Project
from evalapp.common.errors import BadInput, NotThere

from ..models import Evaluator, Score, ScoreSet
from .catalogue import entries
from .inputs import DataHash, get_reference_set, input_hash, iterate_inputs

if TYPE_CHECKING:
    from annotation.parsers.results import ExternalSet
    from scoring.ml import Record

#: `Evaluator.name` of all evaluators of other programs; their own name is in the options.
NAME = "external"
#: Part of the signature if the file has none.
REVISION = 1
#: Added to the slug of an evaluator that is named like one in the catalogue, and to signatures of negated scores.
SUFFIX, NEGATED = "-external", "|negated"
#: What an upload can change of a score, as names of columns.
CHANGEABLE = ("value", "note", "input_hash", "is_empty")
_LONGEST_SLUG, _LONGEST_SHORT = 80, 300
#: Seconds that the number of changed texts is cached; the key changes with the data.
_CACHED = 24 * 3600


# ---- names ------------------------------------------------------------------------------------------------


def make_external_slug(name: str) -> str:
    """Return the name for addresses: `COMET-22 (da)` is `comet-22-da`. A name of the catalogue gets `-external`."""
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    if not slug or len(slug) > _LONGEST_SLUG:
        digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
        slug = f"{slug[: _LONGEST_SLUG - 9].strip('-')}-{digest}".lstrip("-")
    return f"{slug}{SUFFIX}" if slug in {entry.name for entry in entries()} else slug


def make_external_signature(chosen: ExternalSet) -> tuple[str, str]:
    """Return the full and the short signature of the scores."""
    negated = "" if chosen.higher_is_better else NEGATED
    if chosen.signature:
        signature = f"{chosen.signature}{negated}"
    else:
        signature = f"{chosen.evaluator}|{NAME}{negated}|v:{REVISION}"
    return signature, signature[:_LONGEST_SHORT]


def make_external_options(chosen: ExternalSet) -> dict[str, Any]:
    """Return the options of the evaluator, which identify it."""
    return {"evaluator": chosen.evaluator, "higher_is_better": chosen.higher_is_better}


def refuse_scoring(evaluator: Evaluator) -> None:
    """Raise `BadInput` if the scores were made elsewhere, so that they cannot be computed here."""
    if evaluator.is_external:
        raise BadInput(explain_scoring(evaluator.slug))


def explain_scoring(slug: str) -> str:
    text = _("%(name)s was made elsewhere, so its scores cannot be computed here. Upload them again, with replace.")
    return text % {"name": slug}


# ---- origin -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Origin:
    """The upload of scores: its number, who uploaded them, when, and the file names."""

    upload: int
    by: str
    at: datetime | None
    files: tuple[str, ...]


def list_origins(score_set: ScoreSet) -> list[Origin]:
    """Return the uploads with scores of the set, the newest first."""
    changes = UploadChange.objects.filter(table=RESULT_TABLES[0], row=score_set.pk).values("upload")
    rows = Upload.objects.filter(pk__in=changes, project=score_set.project_id, state=Upload.State.DONE)
    return [
        Origin(
            row.pk,
            row.created_by.username if row.created_by is not None else "",
            row.finished_at,
            tuple(file["name"] for file in row.files),
        )
        for row in rows.select_related("created_by").order_by("-pk")
    ]


# ---- what was scored --------------------------------------------------------------------------------------


def hash_scored(record: Record) -> int:
    """Return the hash of text, context, source and the set's references, which another program can have scored."""
    return input_hash((NAME, record.text, record.references, record.context, record.source))


def hash_data(score_set: ScoreSet) -> str:
    """Return the hash of all scores with their inputs; the signature of another program may not tell."""
    total = DataHash()
    names = ("output__item__key", "output__system__name", "output__step", "input_hash", "value")
    for *place, seen, value in Score.objects.filter(score_set=score_set).values_list(*names).iterator(20_000):
        total.add_place((*place, seen, value))
    for row in score_set.systems:
        total.add_place((None, row["system"], row["step"], None, row["value"]))
    return total.text


def count_outdated(project: Project, sets: Iterable[ScoreSet], written: Mapping[str, datetime]) -> dict[int, int]:
    """Return by set the number of scores of texts that have changed since. Texts are read only if an upload, an undo or
    a writing campaign (`written`: its last change by reference set) may have changed them, and once for each change."""
    sets = [score_set for score_set in sets if score_set.n_scores]
    if not sets:
        return {}
    rows = Upload.objects.filter(
        project=project, state__in=[Upload.State.DONE, Upload.State.UNDONE],
        finished_at__gt=min(score_set.created_at for score_set in sets),
    )  # fmt: skip
    uploads = list(rows.only("pk", "state", "counts", "finished_at").order_by("finished_at", "pk"))
    return {score_set.pk: _count_changed(project, score_set, uploads, written) for score_set in sets}


def _count_changed(
    project: Project, score_set: ScoreSet, uploads: Iterable[Upload], written: Mapping[str, datetime]
) -> int:
    changes: list[Any] = [
        (row.pk, row.state)
        for row in uploads
        if row.finished_at is not None and row.finished_at > score_set.created_at and _may_change(row, score_set)
    ]
    last = written.get(score_set.references)
    if last is not None and last > score_set.created_at:
        changes.append(last.isoformat())
    if not changes:
        return 0
    state = [score_set.pk, score_set.data_hash, score_set.n_scores, changes]
    key = f"scoring:changed:{hashlib.sha256(repr(state).encode()).hexdigest()[:32]}"
    found = cache.get(key)
    if found is None:
        found = _compare_inputs(project, score_set)
        cache.set(key, found, _CACHED)
    return int(found)


def _may_change(upload: Upload, score_set: ScoreSet) -> bool:
    if upload.state == Upload.State.UNDONE:
        return True
    counts = upload.counts or {}
    if any(counts.get(table, {}).get("replaced") for table in ("items", "outputs", "references")):
        return True
    return score_set.references not in ("", ORIGINAL) and bool(counts.get("references", {}).get("added"))


def _compare_inputs(project: Project, score_set: ScoreSet) -> int:
    name = score_set.references
    try:
        against = get_reference_set(project, name) if name else None
    except NotThere:
        return score_set.n_scores
    chunks = iterate_inputs(project, references=against, known=score_set)
    return sum(row.known is not None and row.known != hash_scored(row.record) for chunk in chunks for row in chunk)
