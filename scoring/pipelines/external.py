"""Import scores made by other programs: rows of `scores` that name an evaluator. Their sets are made from their
columns; what was scored is hashed when they are stored."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _

from annotation.models import Output, ReferenceSet, System, UploadChange
from annotation.models.data import ORIGINAL
from annotation.parsers.fields import NO_STEP
from annotation.parsers.results import ExternalSet, read_external_set
from annotation.pipelines.import_results import EXTERNAL
from annotation.pipelines.import_staging import FAULTY, NEW, REPLACE, SAME
from annotation.services.bulk import update_rows
from evalapp.accounts.models import Project

from ..models import Evaluator, Score, ScoreSet
from ..selectors.external import (
    CHANGEABLE,
    NAME,
    hash_scored,
    make_external_options,
    make_external_signature,
    make_external_slug,
)
from ..selectors.inputs import get_reference_set, iterate_inputs
from ..selectors.score_sets import SCORES

#: More evaluators in an upload are a mistake in a column.
MOST_SETS = 500
#: Scores in one `UploadChange`.
BATCH = 2_000


# ---- check ------------------------------------------------------------------------------------------------


def check_external(check: Any) -> None:
    """Check the evaluators that rows of `scores` name, and compare their scores with stored ones."""
    staging = check.staging
    sql = f"SELECT name FROM scores t WHERE {EXTERNAL} AND act <> '{FAULTY}' GROUP BY name ORDER BY min(n)"
    names = [name for (name,) in staging.execute(f"{sql} LIMIT {MOST_SETS + 1}").fetchall()]
    if len(names) > MOST_SETS:
        text = _("There are more than %(n)d evaluators. Does the column “evaluator” name the metric of each score?")
        check.fail("scores", EXTERNAL, "evaluator", text % {"n": MOST_SETS})
        return
    known = _Known(check)
    for name in names:
        chosen = read_external_set(name)
        assert chosen is not None
        fault = next(known.find_faults(chosen), None)
        if fault is not None:
            check.fail("scores", f"t.name = {quote(name)}", *fault)
            continue
        stored = find_set(check.project, chosen)
        if stored is not None:
            staging.execute("INSERT INTO kept_sets VALUES (?, ?)", [name, stored.pk])
            compare_scores(check, name, stored)
        _check_systems(check, name, [] if stored is None else stored.systems)


def quote(name: str) -> str:
    """Return a text as an SQL literal."""
    return "'" + name.replace("'", "''") + "'"


def find_set(project: Project, chosen: ExternalSet) -> ScoreSet | None:
    return ScoreSet.objects.filter(
        project=project, evaluator__slug=make_external_slug(chosen.evaluator), evaluator__kind=Evaluator.Kind.EXTERNAL,
        signature=make_external_signature(chosen)[0], references=chosen.references, aspect=chosen.aspect,
    ).first()  # fmt: skip


class _Known:
    """Evaluators and reference sets that the project has or the upload adds."""

    def __init__(self, check: Any) -> None:
        self.project = check.project
        #: Kind and options by slug, of evaluators named by earlier rows or by `score_sets`.
        self.named: dict[str, tuple[str, dict[str, Any]]] = {}
        sql = "SELECT DISTINCT json_extract(row, '$.evaluator'), json_extract(row, '$.kind') FROM score_sets"
        for slug, kind in check.staging.execute(sql).fetchall():
            if kind != Evaluator.Kind.EXTERNAL:
                self.named[slug] = (kind, {})
        added = check.staging.execute('SELECT DISTINCT name FROM "references"').fetchall()
        stored = ReferenceSet.objects.filter(project=check.project).values_list("name", flat=True)
        self.references = {ORIGINAL, *stored, *(name for (name,) in added)}

    def find_faults(self, chosen: ExternalSet) -> Iterator[tuple[str, str]]:
        """Yield field and message if the evaluator cannot have these scores."""
        slug, options = make_external_slug(chosen.evaluator), make_external_options(chosen)
        if slug not in self.named:
            row = Evaluator.objects.filter(project=self.project, slug=slug).first()
            self.named[slug] = (Evaluator.Kind.EXTERNAL.value, options) if row is None else (row.kind, row.options)
        kind, stored = self.named[slug]
        facts = {"name": chosen.evaluator, "slug": slug, "other": stored.get("evaluator", "")}
        if kind != Evaluator.Kind.EXTERNAL:
            text = _(
                "“%(slug)s” is a %(kind)s evaluator of this project, whose scores are computed here. Give yours "
                "another name, such as “%(name)s (external)”."
            )
            yield "evaluator", text % {**facts, "kind": kind}
        elif stored["evaluator"] != chosen.evaluator:
            text = _("“%(name)s” and “%(other)s” have the same address, %(slug)s. Use one name, or a different one.")
            yield "evaluator", text % facts
        elif stored["higher_is_better"] != chosen.higher_is_better:
            text = _(
                "higher_is_better must be the same for all scores of “%(name)s”, in files and stored. Correct the "
                "column, or delete the stored scores first."
            )
            yield "higher_is_better", text % facts
        if chosen.references and chosen.references not in self.references:
            text = _(
                "There is no reference set “%(name)s”. There are: %(known)s. Leave it out if no reference was used."
            )
            known = ", ".join(sorted(self.references))
            yield "reference_set", text % {"name": chosen.references, "known": known}


def compare_scores(check: Any, name: str, score_set: ScoreSet) -> None:
    """Compare the staged scores of a set with the stored ones. Only those of other programs can be replaced."""
    sql = (
        "SELECT s.n, o.id, s.value FROM scores s JOIN outputs o ON o.n = s.out"
        f" WHERE s.n > ? AND s.act = '{NEW}' AND s.name = {quote(name)} ORDER BY s.n"
    )
    is_external = score_set.evaluator.is_external
    for batch in check.staging.batches(sql):
        rows = Score.objects.filter(score_set=score_set, output__in=[row[1] for row in batch])
        stored = dict(rows.values_list("output", "value"))
        decisions: list[tuple[str, int | None, int]] = []
        for n, output, value in batch:
            if output in stored and stored[output] == value:
                decisions.append((SAME, None, n))
            elif output in stored and is_external and check.replace:
                decisions.append((REPLACE, None, n))
            elif output in stored and is_external:
                check.fail_row("scores", n, "score", _explain_other_score(score_set.evaluator.slug))
            elif output in stored:
                text = _(
                    "The set “%(name)s” of this project has a different score of this output; none is overwritten."
                )
                check.fail_row("scores", n, "value", text % {"name": name})
        check.settle("scores", decisions)


def _explain_other_score(slug: str) -> str:
    text = _("A different score by “%(name)s” is stored. Use replace to overwrite it.")
    return text % {"name": slug}


def _check_systems(check: Any, name: str, stored: list[dict[str, Any]]) -> None:
    """Check scores of whole systems: the system has outputs, and no other score."""
    known = {(row["system"], row["step"]): row["value"] for row in stored}
    sql = (
        "SELECT s.n, s.system, s.step, s.value, EXISTS (SELECT 1 FROM outputs o WHERE o.system = s.system AND"
        f" o.step = s.step AND (o.id IS NOT NULL OR o.file IS NOT NULL)) FROM scores s WHERE s.item IS NULL AND"
        f" s.act = '{NEW}' AND s.name = ? ORDER BY s.n"
    )
    decisions: list[tuple[str, int | None, int]] = []
    for n, system, step_or_none, value, is_staged in check.staging.execute(sql, [name]).fetchall():
        step = None if step_or_none == NO_STEP else step_or_none
        outputs = Output.objects.filter(project=check.project, system__name=system, step=step)
        if not is_staged and not outputs.exists():
            text = _("“%(system)s” has no outputs%(step)s, so it cannot have a score.")
            at = "" if step is None else _(" of step %(step)d") % {"step": step}
            check.fail_row("scores", n, "system", text % {"system": system, "step": at})
        elif value is None:
            check.fail_row("scores", n, "score", _("The score of a whole system cannot be empty. Leave out the row."))
        elif (system, step) not in known:
            continue
        elif known[system, step] == value:
            decisions.append((SAME, None, n))
        elif check.replace:
            decisions.append((REPLACE, None, n))
        else:
            check.fail_row("scores", n, "score", _explain_other_score(read_external_set(name).evaluator))  # type: ignore[union-attr]
    check.settle("scores", decisions)


# ---- store ------------------------------------------------------------------------------------------------


def open_external_sets(promotion: Any) -> dict[int, bool]:
    """Make the new sets of other programs; return by set whether its evaluator was made too."""
    staging, project = promotion.staging, promotion.project
    sql = (
        f"SELECT name FROM scores t WHERE {EXTERNAL} AND act = '{NEW}' AND name NOT IN (SELECT name FROM kept_sets)"
        " GROUP BY name ORDER BY min(n)"
    )
    made: dict[int, bool] = {}
    for (name,) in staging.execute(sql).fetchall():
        chosen = read_external_set(name)
        assert chosen is not None
        evaluator, is_new = Evaluator.objects.get_or_create(
            project=project,
            slug=make_external_slug(chosen.evaluator),
            defaults={
                "name": NAME, "kind": Evaluator.Kind.EXTERNAL, "options": make_external_options(chosen),
            },
        )  # fmt: skip
        signature, short = make_external_signature(chosen)
        score_set = ScoreSet.objects.create(
            project=project, evaluator=evaluator, signature=signature, short_signature=short,
            references=chosen.references, aspect=chosen.aspect, scored_at=timezone.now(),
        )  # fmt: skip
        made[score_set.pk] = is_new
        staging.execute("INSERT INTO kept_sets VALUES (?, ?)", [name, score_set.pk])
    return made


def list_touched(staging: Any) -> dict[int, list[str]]:
    """Return the sets of other programs in the upload, with their names in the staging file."""
    rows = staging.execute("SELECT id, name FROM kept_sets ORDER BY id, name").fetchall()
    external = ScoreSet.objects.filter(pk__in={pk for pk, _name in rows}, evaluator__kind=Evaluator.Kind.EXTERNAL)
    known = set(external.values_list("pk", flat=True))
    result: dict[int, list[str]] = {}
    for pk, name in rows:
        if pk in known:
            result.setdefault(pk, []).append(name)
    return result


def fill_hashes(promotion: Any) -> None:
    """Hash what the staged scores of other programs are of, with the texts as stored now."""
    staging = promotion.staging
    touched = list_touched(staging)
    by_references: dict[str, list[str]] = {}
    for score_set in ScoreSet.objects.filter(pk__in=touched):
        by_references.setdefault(score_set.references, []).extend(touched[score_set.pk])
    for references, names in by_references.items():
        chosen = ",".join(map(quote, names))
        where = f"name IN ({chosen}) AND seen IS NULL AND out IS NOT NULL AND act <> '{FAULTY}'"
        if not staging.has("scores", where):
            continue
        staging.execute("CREATE TEMP TABLE hashes (id INTEGER PRIMARY KEY, hash INTEGER, empty INTEGER)")
        staging.many("INSERT INTO hashes VALUES (?, ?, ?)", _hash_inputs(promotion.project, references))
        found = "FROM outputs o JOIN hashes h ON h.id = o.id WHERE o.n = scores.out"
        staging.execute(f"UPDATE scores SET (seen, empty) = (SELECT h.hash, h.empty {found}) WHERE {where}")
        staging.execute("DROP TABLE hashes")


def _hash_inputs(project: Project, references: str) -> Iterator[tuple[int, int, int]]:
    against = get_reference_set(project, references) if references else None
    for chunk in iterate_inputs(project, references=against):
        for row in chunk:
            yield row.output, hash_scored(row.record), int(not row.record.text.strip())


def replace_scores(promotion: Any, name: str, pk: int) -> int:
    """Overwrite the stored scores of a set; with `replace` also the hashes of equal scores, whose text may have
    changed. Return their number."""
    acts = f"'{REPLACE}', '{SAME}'" if promotion.upload.options.get("replace") else f"'{REPLACE}'"
    sql = (
        "SELECT s.n, o.id, s.value, s.note, s.seen, s.empty FROM scores s JOIN outputs o ON o.n = s.out"
        f" WHERE s.n > ? AND s.act IN ({acts}) AND s.name = {quote(name)} ORDER BY s.n"
    )
    changed = 0
    for batch in promotion.staging.batches(sql, BATCH):
        rows = Score.objects.filter(score_set=pk, output__in=[row[1] for row in batch])
        stored = {output: (id, before) for output, id, *before in rows.values_list("output", "pk", *CHANGEABLE)}
        was, became = [], []
        for _n, output, value, note, seen, empty in batch:
            if output not in stored:
                continue  # deleted since the check
            id, before = stored[output]
            after = [value, note, seen, bool(empty)]
            if before != after:
                was.append([id, *before])
                became.append([*after, id])
        if was:
            changes = {"made": False, "evaluator": False, "ids": [], "was": was}
            UploadChange.objects.create(upload=promotion.upload, table=SCORES, row=pk, before=changes)
            update_rows(Score, CHANGEABLE, became)
            changed += len(was)
    return changed


def store_systems(promotion: Any, name: str, pk: int) -> list[dict[str, Any]] | None:
    """Store scores of whole systems; return those before, None if nothing has changed."""
    sql = (
        f"SELECT system, step, value, note FROM scores WHERE item IS NULL AND act IN ('{NEW}', '{REPLACE}')"
        " AND name = ? ORDER BY n"
    )
    rows = promotion.staging.execute(sql, [name]).fetchall()
    if not rows:
        return None
    score_set = ScoreSet.objects.get(pk=pk)
    before, systems = score_set.systems, {(row["system"], row["step"]): row for row in score_set.systems}
    for system, step, value, note in rows:
        at = None if step == NO_STEP else step
        systems[system, at] = {
            "system": system, "step": at, "value": value, "low": None, "high": None, "n": None,
            "note": note or "one value for the whole system, made elsewhere, without an interval",
        }  # fmt: skip
    order = dict(System.objects.filter(project=promotion.project).values_list("name", "order_key"))
    keys = sorted(systems, key=lambda key: (order[key[0]], key[1] is not None, key[1] or 0))
    ScoreSet.objects.filter(pk=pk).update(systems=[systems[key] for key in keys])
    return before
