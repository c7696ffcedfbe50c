"""Quality of a judging campaign while it runs: reads judgements as columns for `evalapp.stats`. Progress and lists are
in `campaigns_watch`."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from django.core.cache import cache
from django.db.models import Count, Max, Sum
from django.utils.translation import get_language
from django.utils.translation import gettext as _

from annotation.allocation.answers import turn
from annotation.allocation.plan import OPTIONS
from annotation.models import Campaign, CampaignMember, Judgement, Slot, Unit
from evalapp.names import natural_key
from evalapp.side_figures import collect_failures, side_figure

from .campaigns_watch import LATEST_FOR_AGREEMENT, get_pseudonyms
from .judging_sheet import make_form

if TYPE_CHECKING:
    from evalapp.stats.planning.watching import CampaignJudgements

#: The number of latest judgements that are used; the page says if there are more.
LATEST = LATEST_FOR_AGREEMENT
KEEP_SECONDS = 3600
PAIRS_SHOWN = 12
FIELDS = (
    "annotator_id", "answer", "seconds", "created_at", "passed", "assignment__unit_id", "assignment__unit__kind",
    "assignment__unit__item_id", "assignment__unit__output_a__system__name", "assignment__unit__output_a__step",
    "assignment__unit__output_b__system__name", "assignment__unit__output_b__step", "assignment__repeat_number",
    "assignment__side_swapped", "extra",
)  # fmt: skip


def compute_quality(campaign: Campaign) -> dict[str, Any]:
    """The figures of the quality page, cached until the next judgement."""
    last = Judgement.objects.filter(campaign=campaign).aggregate(last=Max("pk"))["last"]
    version = f"{campaign.pk}:{last}:{campaign.revision}:{campaign.begun_count}:{campaign.removed_count}"
    key = f"quality:{get_language()}:{version}"
    figures = cache.get(key)
    if figures is None:
        with collect_failures() as failed:
            figures = _quality(campaign)
        figures["failed"] = failed
        if not failed:
            cache.set(key, figures, KEEP_SECONDS)
    return figures


def _quality(campaign: Campaign) -> dict[str, Any]:
    current = Judgement.objects.filter(campaign=campaign, current=True).order_by("-pk")
    rows = list(current.values_list(*FIELDS)[: LATEST + 1])
    capped, rows = len(rows) > LATEST, rows[:LATEST][::-1]
    normal = [row for row in rows if row[6] == Unit.Kind.NORMAL and not row[12] and not row[14]]
    planned = campaign.unit_count * campaign.overlap
    names = [aspect.name for aspect in make_form(campaign).aspects]
    return {
        "n": len(normal),
        "capped": capped,
        "aspects": [_watch_aspect(campaign, name, normal, rows, planned) for name in names] if normal else [],
        "cost": _cost(campaign, planned),
        "adaptive": get_adaptive_state(campaign),
    }


def _watch_aspect(
    campaign: Campaign, name: str, normal: Sequence[tuple], rows: Sequence[tuple], planned: int
) -> dict[str, Any]:
    from evalapp.stats.planning.watching import watch

    judged = _columns(campaign, name, normal)
    reports: list[dict[str, Any]] = []
    with side_figure(_("The reports of raters")):
        reports = _raters(campaign, name, rows)
    return {"name": name, **watch(judged, planned=planned), "raters": reports}


def _columns(campaign: Campaign, name: str, rows: Sequence[tuple]) -> CampaignJudgements:
    import numpy as np

    from evalapp.stats.planning.watching import CampaignJudgements

    given = [(row, turn(row[1], row[13]).get(name)) for row in rows]
    answered = [(row, value) for row, value in given if value is not None]
    systems = sorted(
        {_label(row[8], row[9]) for row, _ in answered} | {_label(row[10], row[11]) for row, _ in answered}
    )
    systems = [label for label in systems if label]
    number = {label: place for place, label in enumerate(systems)} | {"": -1}

    def column(cells: Any, kind: Any) -> Any:
        return np.array(list(cells), dtype=kind)

    return CampaignJudgements(
        kind=campaign.kind,  # type: ignore[arg-type]
        value=column((value for _, value in answered), float if campaign.kind == Campaign.Kind.LIKERT else str),
        unit=column((row[5] for row, _ in answered), int),
        item=column((row[7] for row, _ in answered), int),
        first=column((number[_label(row[8], row[9])] for row, _ in answered), int),
        second=column((number[_label(row[10], row[11])] for row, _ in answered), int),
        swapped=column((row[13] for row, _ in answered), bool),
        seconds=column((np.nan if row[2] is None else row[2] for row, _ in answered), float),
        systems=tuple(systems),
    )


def _label(name: str | None, step: int | None) -> str:
    return "" if name is None else name if step is None else f"{name} @ {step}"


def _raters(campaign: Campaign, name: str, rows: Sequence[tuple]) -> list[dict[str, Any]]:
    """Reports of raters, first those with reasons to review."""
    import numpy as np

    from evalapp.stats.agreement.raters import rater_reports
    from evalapp.stats.planning.watching import one_sided

    points = {"a": 1.0, "b": 0.0}
    sides: dict[str, Counter] = defaultdict(Counter)
    pseudonyms = get_pseudonyms(campaign)
    value, unit, rater, seconds, failed, repeat, at = [], [], [], [], [], [], []
    for user, answer, took, when, passed, number, kind, *_rest, repeated, swapped, _last in rows:
        if kind == Unit.Kind.PRACTICE:
            continue
        given_value = turn(answer, swapped).get(name)
        if given_value is None:
            continue
        sides[pseudonyms.get(user, "")][answer.get(name)] += 1
        is_control = kind == Unit.Kind.CONTROL
        plain = given_value if campaign.kind == Campaign.Kind.LIKERT else points.get(given_value, 0.5)
        if campaign.kind == Campaign.Kind.PAIRWISE and number % 2:
            plain = 1.0 - plain  # the order of the outputs in a unit is arbitrary, so it cannot be biased
        value.append(np.nan if is_control else float(plain))
        unit.append(number)
        rater.append(pseudonyms.get(user, ""))
        seconds.append(np.nan if took is None else took)
        failed.append(None if passed is None else not passed)
        repeat.append(number if repeated else None)
        at.append(when.timestamp())
    raters = rater_reports(
        value, unit, rater, seconds=seconds, at=at if campaign.kind == Campaign.Kind.LIKERT else None,
        control_failed=np.array(failed, dtype=object) if any(row is not None for row in failed) else None,
        repeat_of=np.array(repeat, dtype=object) if any(row is not None for row in repeat) else None,
    )  # fmt: skip
    reports = [report.as_dict() for report in raters]
    if campaign.kind != Campaign.Kind.LIKERT:
        for row in reports:
            row["left"], row["right"] = sides[row["rater"]]["a"], sides[row["rater"]]["b"]
            row["reasons"] += one_sided(row["left"], row["right"], raters=len(reports))
    return sorted(reports, key=lambda row: (not row["reasons"], -row["n"], natural_key(row["rater"])))


def _cost(campaign: Campaign, planned: int) -> dict[str, Any]:
    """The time spent and the time that is left, at the average pace so far."""
    totals = CampaignMember.objects.filter(campaign=campaign).aggregate(
        seconds=Sum("seconds"), done=Sum("done"), people=Count("pk")
    )
    done, seconds = totals["done"] or 0, totals["seconds"] or 0.0
    taken = Slot.objects.filter(campaign=campaign, state=Slot.State.TAKEN).count()
    left = max(0, planned - taken)
    pace = seconds / done if done else None
    return {
        "seconds": seconds,
        "left": left,
        "pace": pace,
        "to_go": None if pace is None else left * pace,
        "people": totals["people"],
        "each": None if pace is None or not totals["people"] else left * pace / totals["people"],
    }


def get_adaptive_state(campaign: Campaign) -> dict[str, Any] | None:
    """The state of adaptive pair selection; None for a campaign without a pool of pairs."""
    if not campaign.plan.get("players"):
        return None
    options = {**OPTIONS, **campaign.options}
    units = Unit.objects.filter(campaign=campaign, propensity__isnull=False)
    pairs = list(
        units.values("output_a__system__name", "output_a__step", "output_b__system__name", "output_b__step")
        .annotate(n=Count("pk"))
        .order_by("-n", "output_a__system__order_key", "output_b__system__order_key")
    )
    k = len(campaign.plan["players"])
    return {
        "on": bool(options["adaptive"]),
        "goal": options["adaptive_goal"],
        "floor": options["adaptive_floor"],
        "begun": campaign.begun_count,
        "wanted": campaign.unit_count,
        "n_pairs": k * (k - 1) // 2,
        "n_met": len(pairs),
        "pairs": [
            {
                "a": _label(row["output_a__system__name"], row["output_a__step"]),
                "b": _label(row["output_b__system__name"], row["output_b__step"]),
                "n": row["n"],
            }
            for row in pairs[:PAIRS_SHOWN]
        ],
    }
