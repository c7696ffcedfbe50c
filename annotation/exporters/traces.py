"""Optional parts of an export: how each judgement of a campaign was made, statistics by rater, and the audit log. They
are not imported again."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from statistics import median
from typing import Any

from annotation.allocation.answers import turn
from annotation.models import Campaign, Comparison, Judgement, Participant, Rating
from evalapp.accounts.models import Project
from evalapp.accounts.selectors import rater_names
from evalapp.common.models import AuditEvent

Row = dict[str, Any]
CHUNK = 2_000
COLUMNS: dict[str, tuple[str, ...]] = {
    "judgements": (
        "campaign", "unit", "unit_kind", "item", "system", "step", "system_b", "step_b", "reference", "rater",
        "repeat", "order", "swapped", "propensity", "version", "extra", "passed", "answer", "seconds", "submitted_at",
        "note",
    ),
    "raters": (
        "rater", "from_upload", "n_ratings", "n_comparisons", "n_judgements", "median_seconds", "first_at", "last_at",
        "participant", "answers",
    ),
    "audit": ("position", "at", "actor", "verb", "object", "detail", "content", "link"),
}  # fmt: skip
WHOLE = frozenset(
    {
        "sample",
        "characters",
        "prompt_tokens",
        "completion_tokens",
        "unit",
        "repeat",
        "order",
        "version",
        "reference",
        "n_ratings",
        "n_comparisons",
        "n_judgements",
    }
)
NUMBERS = frozenset({"propensity", "median_seconds", "share", "cost"})
FLAGS = frozenset({"swapped", "extra", "passed", "from_upload", "refused"})
#: Events whose objects and details contain names of people.
_OF_PEOPLE = frozenset({"member", "membership", "invitation", "token", "account", "filter"})


def judgements(project: Project, *, individual: bool) -> Iterator[tuple[str, Row]]:
    """The current version of every judgement of all campaigns: position in the annotator's order, sides, and the
    probability of an adaptively selected pair. `individual`: also times and notes, which need the raters' consent."""
    names = rater_names(project.pk)
    for campaign in Campaign.objects.filter(project=project).order_by("slug"):
        rows = Judgement.objects.filter(campaign=campaign, current=True).select_related(
            "assignment__unit__item", "assignment__unit__output_a__system", "assignment__unit__output_b__system",
            "assignment__unit__reference",
        )  # fmt: skip
        numbers: dict[int, int] = {}
        for judgement in rows.order_by("pk").iterator(chunk_size=CHUNK):
            row = _judgement(judgement, campaign, names.get(judgement.annotator_id, ""), numbers)
            if individual:
                row |= {
                    "seconds": judgement.seconds, "submitted_at": judgement.created_at.isoformat(),
                    "note": judgement.note or None,
                }  # fmt: skip
            yield "judgements", {name: value for name, value in row.items() if value is not None}


def _judgement(judgement: Judgement, campaign: Campaign, rater: str, numbers: dict[int, int]) -> Row:
    assignment = judgement.assignment
    unit = assignment.unit
    a, b = unit.output_a, unit.output_b
    return {
        "campaign": campaign.slug, "unit": numbers.setdefault(unit.pk, len(numbers)), "unit_kind": unit.kind,
        "item": unit.item.key, "system": a.system.name, "step": a.step, "system_b": b.system.name if b else None,
        "step_b": b.step if b else None, "reference": unit.reference.position if unit.reference else None,
        "rater": rater, "repeat": assignment.repeat_number, "order": assignment.order_number,
        "swapped": assignment.side_swapped, "propensity": assignment.propensity, "version": judgement.version,
        "extra": judgement.extra, "passed": judgement.passed,
        "answer": turn(judgement.answer, assignment.side_swapped),
    }  # fmt: skip


def raters(project: Project, called: Callable[[str], str]) -> Iterator[tuple[str, Row]]:
    """One row per rater, by name: number of judgements and time, over all campaigns."""
    from evalapp.stats.agreement.judged import resolve_raters

    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for model, count in ((Rating, "n_ratings"), (Comparison, "n_comparisons")):
        rows = model.objects.filter(project=project).order_by().values_list("rater", "judgement")  # type: ignore[attr-defined]
        for rater, judgement in rows.iterator(chunk_size=CHUNK):
            counts[called(rater)].update([count] if judgement is not None else [count, "uploaded"])
    people, _ = resolve_raters(counts)
    rows_by_rater: dict[str, Row] = defaultdict(lambda: {"from_upload": False, "n_ratings": 0, "n_comparisons": 0})
    for key, counted in counts.items():
        row = rows_by_rater[people[key]]
        row["from_upload"] = row["from_upload"] or counted["uploaded"] > 0
        for count in ("n_ratings", "n_comparisons"):
            row[count] += counted[count]
    names = rater_names(project.pk)
    seconds: dict[str, list[float]] = defaultdict(list)
    moments: dict[str, list[Any]] = defaultdict(list)
    own_judgements = Judgement.objects.filter(campaign__project=project, current=True).order_by()
    for user, took, at in own_judgements.values_list("annotator_id", "seconds", "created_at").iterator(
        chunk_size=CHUNK
    ):
        name = names.get(user, "")
        moments[name].append(at)
        if took is not None:
            seconds[name].append(took)
    hired = _list_hired(project, names)
    for name in sorted({*rows_by_rater, *moments, *hired} - {""}):
        row = {"rater": name, **rows_by_rater[name], "n_judgements": len(moments[name])}
        if seconds[name]:
            row["median_seconds"] = median(seconds[name])
        row |= hired.get(name, {})
        if moments[name]:
            row |= {"first_at": min(moments[name]).isoformat(), "last_at": max(moments[name]).isoformat()}
        yield "raters", row


def _list_hired(project: Project, names: dict[int, str]) -> dict[str, Row]:
    """Hired participants by rater: their state, and their answers to questions if they agreed to their export."""
    people = Participant.objects.filter(recruitment__campaign__project=project)
    rows = {}
    for user, state, answers, may_export in people.values_list("user", "state", "answers", "may_export"):
        if user in names and state != Participant.State.WITHDRAWN:
            rows[names[user]] = {"participant": state, **({"answers": answers} if may_export else {})}
    return rows


def audit(project: Project) -> Iterator[tuple[str, Row]]:
    """The audit log in order, with pseudonyms. `content` and `link` are the seals with which this installation can
    prove that nothing was changed."""
    names = rater_names(project.pk)
    for event in AuditEvent.objects.filter(project=project).order_by("pk").iterator(chunk_size=CHUNK):
        about_people = event.verb.split(".")[0] in _OF_PEOPLE
        yield "audit", {
            "position": event.position, "at": event.at.isoformat(),
            "actor": names.get(event.actor_id) if event.actor_id else None,
            "verb": event.verb, "object": "" if about_people else event.object,
            "detail": {} if about_people else event.detail, "content": event.content, "link": event.link,
        }  # fmt: skip
