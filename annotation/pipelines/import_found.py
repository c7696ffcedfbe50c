"""Imports the other parts of an export: rater filters, descriptions of campaigns from other installations, and what
apps downstream have registered (scores, tables). A file never changes anything that was made here."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from annotation.models import Campaign, RaterFilter, UploadChange, WritingCampaign
from annotation.parsers.fields import NO_STEP
from annotation.selectors.imported_campaigns import IMPORTED_CAMPAIGNS, list_imported_campaigns
from annotation.services import hooks
from evalapp.accounts.models import Project

from .import_checks import Check, other_content, report_twice
from .import_staging import KNOWN, NEW, REPLACE, SAME

# ---- check ------------------------------------------------------------------------------------------------


#: The maximum number of characters in rows that are read as a whole.
MOST_CHARACTERS = 16 << 20


def check(check: Check) -> None:
    for table in ("filters", "campaigns", "score_sets"):
        if check.staging.has(table):
            report_twice(check, table, ("key",), "1")
            check.fail(
                table,
                f"t.n >= (SELECT min(n) FROM (SELECT n, sum(length(row)) OVER (ORDER BY n) AS held FROM {table})"
                f" WHERE held > {MOST_CHARACTERS})",
                "",
                f"Up to this row the file holds more than {MOST_CHARACTERS >> 20} MB. Leave out what is not needed.",
            )
    _filters(check)
    _campaigns(check)
    _scores(check)
    if check.staging.has("scores") or check.staging.has("score_sets") or check.documents:
        hooks.check_found(check)
        check.tick("scores and tables: checked")


def _filters(check: Check) -> None:
    stored = dict(RaterFilter.objects.filter(project=check.project).values_list("name", "raters"))
    decisions: list[tuple[str, int | None, int]] = []
    for n, name, row in _new(check, "filters"):
        if name not in stored:
            continue
        if stored[name] == json.loads(row)["raters"]:
            decisions.append((SAME, None, n))
        else:
            what = (
                f"The filter “{name}” leaves out other raters here. A filter never changes: give this one another name."
            )
            check.fail_row("filters", n, "name", what)
    check.settle("filters", decisions)


def _campaigns(check: Check) -> None:
    """A campaign of this project takes precedence over its description in a file."""
    own = set(Campaign.objects.filter(project=check.project).values_list("slug", flat=True))
    own |= set(WritingCampaign.objects.filter(project=check.project).values_list("slug", flat=True))
    told = list_imported_campaigns(check.project)
    decisions: list[tuple[str, int | None, int]] = []
    for n, name, row in _new(check, "campaigns"):
        if name in own or told.get(name) == json.loads(row):
            decisions.append((SAME, None, n))
        elif name in told and check.replace:
            decisions.append((REPLACE, None, n))
        elif name in told:
            check.fail_row("campaigns", n, "campaign", other_content(f"What is told of the campaign “{name}”"))
    check.settle("campaigns", decisions)


def _scores(check: Check) -> None:
    """Each score needs an existing output and a score set that the upload describes."""
    staging = check.staging
    if not staging.has("scores") and not staging.has("score_sets"):
        return
    staging.execute("CREATE INDEX scores_key ON scores (name, item, system, step)")
    report_twice(check, "scores", ("name", "item", "system", "step"), "1")
    check.fail(
        "scores",
        "t.name NOT IN (SELECT key FROM score_sets)",
        "set",
        lambda name: (
            f"score_sets of this upload does not describe the set of scores “{name}”. Upload both files."
            + check.perhaps("score_sets")
        ),
        "t.name",
    )
    staging.execute(
        "UPDATE scores SET out = (SELECT n FROM outputs o WHERE o.item = scores.item AND o.system = scores.system"
        " AND o.step = scores.step LIMIT 1)"
    )
    check.fail(
        "scores",
        f"t.out IS NULL OR t.out IN (SELECT n FROM outputs WHERE act = '{KNOWN}' AND id IS NULL)",
        "system",
        lambda system, item, step: (
            f"There is no output of “{system}” for the item “{item}”{_at(step)}, neither in this upload nor stored."
            + check.perhaps("outputs")
        ),
        "t.system | t.item | t.step",
    )
    check.tick("scores: found their outputs")


def _at(step: int) -> str:
    return "" if step == NO_STEP else f" at step {step}"


def _new(check: Check, table: str) -> list[tuple[int, str, str]]:
    sql = f"SELECT n, key, row FROM {table} WHERE act = '{NEW}' ORDER BY n"
    return check.staging.execute(sql).fetchall()


# ---- store ------------------------------------------------------------------------------------------------


def store(promotion: Any) -> None:
    staging, project = promotion.staging, promotion.project
    filters = staging.execute(f"SELECT row FROM filters WHERE act = '{NEW}' ORDER BY n").fetchall()
    made = RaterFilter.objects.bulk_create(_filter(project, json.loads(row)) for (row,) in filters)
    UploadChange.objects.bulk_create(
        UploadChange(upload=promotion.upload, table="filters", row=row.pk, before={}) for row in made
    )
    _store_campaigns(promotion)
    if staging.has("score_sets") or promotion.documents:
        hooks.store_found(promotion)


def _filter(project: Project, row: dict[str, Any]) -> RaterFilter:
    made = RaterFilter(project=project, name=row["name"], raters=row["raters"], reason=row["reason"] or "")
    if row["created_at"]:
        made.created_at = datetime.fromisoformat(row["created_at"])
    if row["withdrawn_at"]:
        made.withdrawn_at = datetime.fromisoformat(row["withdrawn_at"])
    return made


def _store_campaigns(promotion: Any) -> None:
    wanted = f"SELECT key, row FROM campaigns WHERE act IN ('{NEW}', '{REPLACE}') ORDER BY n"
    found = {name: json.loads(row) for name, row in promotion.staging.execute(wanted).fetchall()}
    if not found:
        return
    project = Project.objects.get(pk=promotion.project.pk)
    told = list_imported_campaigns(project)
    was = {name: told[name] for name in found if name in told}
    UploadChange.objects.create(
        upload=promotion.upload, table="campaigns", row=project.pk, before={"was": was, "became": found}
    )
    project.meta = {**project.meta, IMPORTED_CAMPAIGNS: {**told, **found}}
    project.save(update_fields=["meta"])
    promotion.upload.project = promotion.project = project
