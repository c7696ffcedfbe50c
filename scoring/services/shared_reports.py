"""Create, open and revoke reports for people who do not sign in."""

from __future__ import annotations

import secrets
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import F
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from annotation.exporters.people import naming
from annotation.selectors.presence import has_outputs
from evalapp import __version__
from evalapp.accounts.authentication import digest
from evalapp.accounts.models import Project
from evalapp.common import audit
from evalapp.common.errors import BadInput, Conflict, Fault
from evalapp.common.naming import check_names
from scoring.boards.agreement.query import AgreementQuery
from scoring.boards.metrics.query import EvaluatorsQuery
from scoring.boards.systems.query import SystemsQuery

from ..models import SharedReport
from ..selectors.exports import without_raters
from ..selectors.leaderboards import parse_query
from ..selectors.shared_reports import count_data, find_shared, read_examples
from .leaderboards import answer_leaderboard

DAYS = 30
MAX_DAYS = 365
#: Members of a rater's report that are shown; the reasons to review a rater are for the project only.
RATER_PARTS = ("n", "bias", "spread", "self_consistency", "control_failures", "agreement", "drift")


def create_report(
    *,
    project: Project,
    user: Any,
    days: int = DAYS,
    aspect: str = "",
    raters: bool = False,
    texts: bool = False,
    label: str = "",
) -> tuple[SharedReport, str]:
    """Store the report as of now; return it with the secret of its link, which is not stored.

    `aspect`: what systems and metrics are compared on; empty means the project's default. `raters` adds pseudonyms of
    raters, `texts` some outputs. A table that is being computed again is taken as it was computed last, with that date:
    while people judge, none is ever current. Raises `Conflict` while one is being computed for the first time.
    """
    check_names(label=label)
    if not 1 <= days <= MAX_DAYS:
        text = _("From 1 to %(most)d days.") % {"most": MAX_DAYS}
        raise BadInput(_("The link has no valid end."), faults=[Fault(text, field="days")])
    if not has_outputs(project):
        raise BadInput(_("There is nothing to report yet. Upload the systems’ outputs first."))
    content = _collect(project, user, aspect, raters=raters, texts=texts)
    secret = secrets.token_urlsafe(24)
    with transaction.atomic():
        row = SharedReport.objects.create(
            project=project, label=label[:100], content=content, has_raters=bool(content["raters"]),
            has_texts=bool(content["examples"]),
            digest=digest(secret), expires_at=timezone.now() + timedelta(days=days),
            created_by=user if getattr(user, "pk", None) else None,
        )  # fmt: skip
        audit.record(
            verb="report.shared", project=project, actor=user, object=row.pk, days=days, raters=raters, texts=texts
        )
    return row, secret


def _collect(project: Project, user: Any, aspect: str, *, raters: bool, texts: bool) -> dict[str, Any]:
    given = {"aspect": aspect} if aspect else {}
    tables: dict[str, dict[str, Any]] = {}
    waiting: list[int] = []

    def get_table(query: Any) -> dict[str, Any]:
        """Return the current table, or the reason why there is none."""
        try:
            answer = answer_leaderboard(project=project, query=query, user=user)
        except BadInput:
            return {}
        if answer.table is None or answer.leaderboard is None:
            waiting.extend([answer.run.pk] if answer.run else [])
            return {}
        if answer.is_current:
            return {"table": answer.table}
        return {"table": answer.table, "computed_at": f"{answer.leaderboard.computed_at:%Y-%m-%d, %H:%M} UTC"}

    tables["systems"] = get_table(parse_query(SystemsQuery, given, project))
    tables["evaluators"] = get_table(parse_query(EvaluatorsQuery, given, project))
    tables["agreement"] = get_table(AgreementQuery())
    named = (tables["systems"].get("table") or {}).get("aspect", aspect)
    detail = get_table(AgreementQuery(aspect=named)) if raters and named else {}
    if waiting:
        text = ngettext(
            "A table is being computed for the first time, in run %(runs)s. Create the report when it is finished.",
            "Tables are being computed for the first time, in runs %(runs)s. Create the report when they are finished.",
            len(set(waiting)),
        )
        raise Conflict(text % {"runs": ", ".join(map(str, sorted(set(waiting))))})
    if agreement := tables["agreement"].get("table"):
        # Neither raters nor the campaigns of single rows.
        table = without_raters(agreement)
        tables["agreement"] = {"table": {**table, "rows": [row for row in table["rows"] if not row.get("source")]}}
    return {
        "date": f"{timezone.now():%Y-%m-%d}",
        "version": __version__,
        "project": {name: getattr(project, name) for name in ("name", "task", "lang", "licence", "source")},
        "counts": count_data(project),
        "tables": tables,
        "raters": _name_raters(project, detail.get("table") or {}) if raters else [],
        "examples": read_examples(project) if texts else [],
    }


def _name_raters(project: Project, table: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the reports of raters under pseudonyms, as in an export with pseudonyms."""
    rename = naming(project, "pseudonyms")
    rows = [
        {"rater": rename(row["rater"]), **{part: row[part] for part in RATER_PARTS if part in row}}
        for row in table.get("raters", [])
    ]
    return sorted(rows, key=lambda row: row["rater"])


def open_report(*, secret: str) -> SharedReport:
    """Return the report of a link and count that it was opened."""
    row = find_shared(secret)
    SharedReport.objects.filter(pk=row.pk).update(opens=F("opens") + 1, opened_at=timezone.now())
    return row


@transaction.atomic
def revoke_report(*, report: SharedReport, user: Any) -> SharedReport:
    """Revoke the link. The report remains for members. Idempotent."""
    if SharedReport.objects.filter(pk=report.pk, revoked_at=None).update(revoked_at=timezone.now()):
        audit.record(verb="report.revoked", project=report.project, actor=user, object=report.pk)
    report.refresh_from_db(fields=["revoked_at"])
    return report
