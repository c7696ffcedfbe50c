"""Imports the other parts of an export: rater filters, descriptions of campaigns from other installations, and what
apps downstream have registered (scores, tables, answers of judges). A file never changes what was made here."""

import json
from datetime import datetime
from typing import Any

from annotation.models import Campaign, RaterFilter, UploadChange, WritingCampaign
from annotation.selectors.imported_campaigns import IMPORTED_CAMPAIGNS, list_imported_campaigns
from annotation.services import hooks
from evalapp.accounts.models import Project
from evalapp.translation import gettext as _

from .import_faults import Check, describe_missing, explain_other_content, report_twice
from .import_staging import KNOWN, NEW, REPLACE, SAME

# ---- check ------------------------------------------------------------------------------------------------


#: Whether a staged score `t` is by another program, as in `read_external_set`.
EXTERNAL = "unicode(t.name) = 31"
#: Tables that apps downstream import.
RESULTS = ("score_sets", "scores", "judge_answers")
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
                _(
                    "Up to this row, the file has more than %(n)d MB. Leave out what is not needed.",
                    n=MOST_CHARACTERS >> 20,
                ),
            )
    _filters(check)
    _campaigns(check)
    _scores(check)
    if any(map(check.staging.has, RESULTS)) or check.documents:
        hooks.check_results(check)
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
            what = _(
                "The filter “%(name)s” excludes other raters in this project. Filters never change, so give this one "
                "another name.",
                name=name,
            )
            check.fail_row("filters", n, "name", what)
    check.settle("filters", decisions)


def _campaigns(check: Check) -> None:
    """A campaign of this project takes precedence over its description in a file."""
    slugs = set(Campaign.objects.filter(project=check.project).values_list("slug", flat=True))
    slugs |= set(WritingCampaign.objects.filter(project=check.project).values_list("slug", flat=True))
    imported = list_imported_campaigns(check.project)
    decisions: list[tuple[str, int | None, int]] = []
    for n, name, row in _new(check, "campaigns"):
        if name in slugs or imported.get(name) == json.loads(row):
            decisions.append((SAME, None, n))
        elif name in imported and check.replace:
            decisions.append((REPLACE, None, n))
        elif name in imported:
            check.fail_row(
                "campaigns",
                n,
                "campaign",
                explain_other_content(_("The description of the campaign “%(name)s”", name=name)),
            )
    check.settle("campaigns", decisions)


def _scores(check: Check) -> None:
    """Each score needs an existing output, or system, and a score set that the upload describes, or an evaluator."""
    staging = check.staging
    if not staging.has("scores") and not staging.has("score_sets"):
        return
    staging.execute("CREATE INDEX scores_key ON scores (name, item, system, step)")
    report_twice(check, "scores", ("name", "item", "system", "step"), "1")
    check.fail(
        "scores",
        f"NOT {EXTERNAL} AND t.name NOT IN (SELECT key FROM score_sets)",
        "set",
        lambda name: (
            _("score_sets of this upload does not describe the score set “%(name)s”. Upload both files.", name=name)
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
        "t.item IS NOT NULL AND"
        f" (t.out IS NULL OR t.out IN (SELECT n FROM outputs WHERE act = '{KNOWN}' AND id IS NULL))",
        "system",
        lambda system, item, step: describe_missing(system, item, step) + check.perhaps("outputs"),
        "t.system | t.item | t.step",
    )
    check.fail(
        "scores",
        f"t.item IS NULL AND t.system IN (SELECT key FROM systems WHERE act = '{KNOWN}' AND id IS NULL)",
        "system",
        lambda system: (
            _("There is no system “%(name)s”, neither in this upload nor stored.", name=system)
            + (check.lookalikes.suggest("systems", system) or check.perhaps("systems", "outputs"))
        ),
        "t.system",
    )
    check.tick("scores: found their outputs")


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
    if any(map(staging.has, RESULTS)) or promotion.documents:
        hooks.store_results(promotion)


def _filter(project: Project, row: dict[str, Any]) -> RaterFilter:
    made = RaterFilter(project=project, name=row["name"], raters=row["raters"], reason=row["reason"] or "")
    if row["created_at"]:
        made.created_at = datetime.fromisoformat(row["created_at"])
    if row["withdrawn_at"]:
        made.withdrawn_at = datetime.fromisoformat(row["withdrawn_at"])
    return made


def _store_campaigns(promotion: Any) -> None:
    wanted = f"SELECT key, row FROM campaigns WHERE act IN ('{NEW}', '{REPLACE}') ORDER BY n"
    rows = {name: json.loads(row) for name, row in promotion.staging.execute(wanted).fetchall()}
    if not rows:
        return
    project = Project.objects.get(pk=promotion.project.pk)
    imported = list_imported_campaigns(project)
    was = {name: imported[name] for name in rows if name in imported}
    UploadChange.objects.create(
        upload=promotion.upload, table="campaigns", row=project.pk, before={"was": was, "became": rows}
    )
    project.meta = {**project.meta, IMPORTED_CAMPAIGNS: {**imported, **rows}}
    project.save(update_fields=["meta"])
    promotion.upload.project = promotion.project = project
