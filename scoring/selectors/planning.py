"""How many judgements are needed: sample sizes from `evalapp.stats.planning`, the project's judgements as pilot."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any

from django.db.models import Count, Q
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from annotation.models import Comparison, Judgement, Rating
from evalapp.accounts.models import Project
from evalapp.common.errors import BadInput, Fault

from .aspects import choose_aspect

TESTS = {
    "preference": gettext_noop("Is one system preferred to another?"),
    "correlation": gettext_noop("Does an evaluator correlate with human judgements?"),
    "williams": gettext_noop("Does one evaluator correlate better than another?"),
    "rating": gettext_noop("Do two systems differ in their mean rating?"),
}
EFFECTS = {
    "preference": gettext_noop("the true share of decided comparisons won by one side, for example 0.6"),
    "correlation": gettext_noop("the true correlation, for example 0.3"),
    "williams": gettext_noop(
        "three correlations: the better evaluator with human scores, the worse one with human scores, and between "
        "the two, for example 0.4,0.3,0.5"
    ),
    "rating": gettext_noop(
        "the difference of the means in points of the scale, for example 0.3; needs ratings as a pilot"
    ),
}
DEFAULT_EFFECTS = {"preference": "0.6", "correlation": "0.3", "williams": "0.4,0.3,0.5", "rating": "0.3"}
SIDES = {1: gettext_noop("one-sided"), 2: gettext_noop("two-sided")}
#: Tests of judgements that an evaluator can assist.
ASSISTED = ("preference", "rating")
UNITS = {
    "preference": gettext_noop("comparisons"),
    "correlation": gettext_noop("items"),
    "williams": gettext_noop("items"),
    "rating": gettext_noop("ratings"),
}
SIMULATED = Count("pk", filter=Q(simulated=True))
#: Judgements whose median time is computed.
TIMED = 2_000


@dataclass(frozen=True)
class PowerQuestion:
    """A question about sample size. `effect` is text as entered; `ties` None means the project's share, or none;
    `sides` None means one for Williams' test and two for the others; `rho` is the correlation within systems of an
    evaluator that assists the judgements."""

    test: str = "preference"
    effect: str = ""
    power: float = 0.8
    alpha: float = 0.05
    ties: float | None = None
    aspect: str = ""
    sides: int | None = None
    rho: float | None = None

    @property
    def used_sides(self) -> int:
        return self.sides or (1 if self.test == "williams" else 2)

    def describe(self, effect: Any) -> dict[str, Any]:
        """Return the members of an answer that repeat the question; `effect` is the one that was read."""
        return {
            "test": self.test, "question": _(TESTS[self.test]), "effect": effect, "power": self.power,
            "alpha": self.alpha, "sides": self.used_sides, "unit": UNITS[self.test],
        }  # fmt: skip


def read_question(given: Mapping[str, Any]) -> PowerQuestion:
    """Read the parameters of an address or a command. Raises `BadInput` with the invalid fields."""
    faults: list[Fault] = []
    test = str(given.get("test") or "preference")
    if test not in TESTS:
        faults.append(
            Fault(
                _("test must be one of %(known)s, not “%(value)s”.") % {"known": ", ".join(TESTS), "value": test},
                field="test",
            )
        )
    numbers: dict[str, float | None] = {}
    for name, default in (("power", 0.8), ("alpha", 0.05), ("ties", None), ("rho", None)):
        raw = given.get(name)
        try:
            numbers[name] = default if raw in (None, "") else float(str(raw))
        except ValueError:
            faults.append(Fault(_("%(name)s must be a number between 0 and 1.") % {"name": name}, field=name))
    sides = str(given.get("sides") or "")
    if sides not in ("", *map(str, SIDES)):
        faults.append(Fault(_("sides must be 1 or 2, not “%(value)s”.") % {"value": sides}, field="sides"))
    if (rho := numbers.get("rho")) is not None and not 0 <= rho < 1:
        faults.append(Fault(_("%(name)s must be a number between 0 and 1.") % {"name": "rho"}, field="rho"))
    if rho is not None and test not in ASSISTED:
        text = _("An evaluator can assist the tests %(tests)s, not %(test)s.")
        faults.append(Fault(text % {"tests": ", ".join(ASSISTED), "test": test}, field="rho"))
    if faults:
        raise BadInput(" ".join(fault.message for fault in faults), faults=faults)
    effect, aspect = str(given.get("effect") or DEFAULT_EFFECTS[test]), str(given.get("aspect") or "")
    power, alpha = numbers["power"], numbers["alpha"]
    assert power is not None
    assert alpha is not None
    return PowerQuestion(test, effect, power, alpha, numbers["ties"], aspect, int(sides) if sides else None, rho)


def answer_power(question: PowerQuestion, project: Project | None = None) -> dict[str, Any]:
    """Return the required sample size and the power of others; with a project also its judgements and the rest."""
    from evalapp.stats.planning.power import EffectError, compute_power, needed_judgements

    effect = _effect(question)
    pilot = _pilot(question, project) if project is not None else {}
    ties = question.ties if question.ties is not None else pilot.get("ties", 0.0)
    settings: dict[str, Any] = {
        "alpha": question.alpha,
        "two_sided": question.used_sides == 2,
        "ties": ties if question.test == "preference" else 0.0,
    }
    try:
        needed = needed_judgements(question.test, effect, power=question.power, **settings)  # type: ignore[arg-type]
        sizes = sorted({max(4, round(needed * share)) for share in (0.25, 0.5, 0.75, 1, 1.5, 2)} | {needed})
        curve = [{"n": n, "power": compute_power(question.test, effect, n, **settings)} for n in sizes]  # type: ignore[arg-type]
        if pilot.get("n"):
            pilot["power"] = compute_power(question.test, effect, pilot["n"], **settings) if pilot["n"] > 3 else None  # type: ignore[arg-type]
    except EffectError as error:
        raise _refuse_effect(error) from error
    answer = {**question.describe(effect), "ties": settings["ties"], "needed": needed, "curve": curve}
    answer["pilot"] = pilot or None
    assisted = _assist(question, needed)
    return {**answer, "assisted": assisted, "words": [*_describe(answer), *_describe_assisted(assisted)]}


def _assist(question: PowerQuestion, needed: int | None) -> dict[str, Any] | None:
    """Return the number of judgements needed with an evaluator's help; None if it was not asked for."""
    if question.rho is None:
        return None
    share = 1.0 - question.rho**2
    return {"rho": question.rho, "share": share, "needed": None if needed is None else ceil(share * needed)}


def _describe_assisted(assisted: Mapping[str, Any] | None) -> list[str]:
    if assisted is None or assisted["needed"] is None:
        return []
    text = _(
        "With an evaluator whose scores correlate with the judgements by %(rho)s within systems, and which scores many "
        "more outputs: about %(needed)s judgements."
    )
    return [text % {"rho": f"{assisted['rho']:g}", "needed": f"{assisted['needed']:,}"}]


def answer_plan(question: PowerQuestion, table: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return designs that detect a difference of two systems by ratings.

    The pilot are the variance components of `table`, the agreement table of the aspect. Raises `BadInput` without them.
    """
    from evalapp.stats.planning.designs import SignificanceTest, StudyDesign, plan
    from evalapp.stats.planning.power import EffectError

    effect = _effect(question)
    assert isinstance(effect, float)
    if table is None or not table.get("components"):
        raise BadInput(
            _("This test needs a pilot: a project with ratings of outputs, best by two raters or more."),
            faults=[Fault(_("There are no ratings to plan from."), field="test")],
        )
    components = _components(table["components"])
    per_output = max(1, round(components.ratings_per_output)) if components.ratings_per_output > 0 else 1
    try:
        design = plan(
            components,
            effect,
            design=StudyDesign(items=max(2, table["n_items"]), ratings=per_output),
            test=SignificanceTest(power=question.power, alpha=question.alpha, two_sided=question.used_sides == 2),
        ).as_dict()
    except EffectError as error:
        raise _refuse_effect(error) from error
    cheapest = design["cheapest"]
    needed = cheapest["judgements"] if cheapest else None
    assisted = _assist(question, needed)
    designs = [(_("current design"), design["asked"]), (_("twice the items"), design["more_items"])]
    designs += [(_("twice the ratings per output"), design["more_ratings"])]
    designs += [(_("fewest ratings with this power"), cheapest)] if cheapest else []
    return {
        **question.describe(effect),
        "ties": 0.0,
        "needed": needed,
        "assisted": assisted,
        "curve": [{"n": row["judgements"], "power": row["power"]} for _name, row in designs],
        "designs": [{"name": name, **row} for name, row in designs],
        "pilot": {
            "n": table["n_judgements"], "n_simulated": table["n_simulated"], "aspect": table["aspect"],
            "power": design["asked"]["power"], "note": "",
        },
        "plan": design,
        "words": [*design["advice"], *_describe_assisted(assisted)],
    }  # fmt: skip


def _components(stored: Mapping[str, Any]) -> Any:
    """Return the variance components stored in a table."""
    from evalapp.stats.agreement.components import PARTS, Components
    from evalapp.stats.core.estimate import NAN, Estimate

    def number(value: float | None) -> float:
        return NAN if value is None else float(value)

    def estimate(row: Mapping[str, Any]) -> Estimate:
        value, low, high = (number(row[name]) for name in ("value", "low", "high"))
        return Estimate(value, low, high, row["n"], row["note"])

    parts = {part: estimate(stored[part]) for part in PARTS}
    return Components(
        **parts, mean=number(stored["mean"]), n=stored["n_ratings"],
        ratings_per_output=number(stored["ratings_per_output"]), note=stored["message"],
    )  # fmt: skip


def _effect(question: PowerQuestion) -> float | tuple[float, ...]:
    try:
        parts = tuple(float(part) for part in question.effect.replace(";", ",").split(",") if part.strip())
    except ValueError:
        parts = ()
    wanted = 3 if question.test == "williams" else 1
    if len(parts) != wanted:
        text = _("The effect must be %(description)s.") % {"description": _(EFFECTS[question.test])}
        raise BadInput(text, faults=[Fault(text, field="effect")])
    return parts if wanted == 3 else parts[0]


def _pilot(question: PowerQuestion, project: Project) -> dict[str, Any]:
    """Return the number of the project's judgements that the test uses, their share of ties and the median time."""
    judged_by = "comparisons" if question.test == "preference" else "ratings"
    try:
        aspect = choose_aspect(project, question.aspect, judged_by=judged_by)  # type: ignore[arg-type]
    except BadInput as error:
        return {"n": 0, "note": error.detail}
    result: dict[str, Any] = {"aspect": aspect.name, "seconds": _seconds(project), "note": ""}
    if question.test == "preference":
        rows = Comparison.objects.filter(aspect=aspect, output_b__isnull=False)
        counts = rows.aggregate(
            n=Count("pk"), even=Count("pk", filter=Q(verdict__in=["tie", "both_bad"])), simulated=SIMULATED
        )
        result["n"], result["n_simulated"] = counts["n"], counts["simulated"]
        result["ties"] = min(counts["even"] / counts["n"], 0.99) if counts["n"] else 0.0
        return result
    rated = Rating.objects.filter(aspect=aspect, output__isnull=False)
    counts = rated.aggregate(n=Count("output", distinct=True), all=Count("pk"), simulated=SIMULATED)
    per_unit = counts["all"] / counts["n"] if counts["n"] else None
    return {**result, "n": counts["n"], "n_simulated": counts["simulated"], "per_unit": per_unit}


def _seconds(project: Project) -> float | None:
    from statistics import median

    rows = Judgement.objects.filter(campaign__project=project, current=True, seconds__isnull=False).order_by("-pk")
    times = list(rows.values_list("seconds", flat=True)[:TIMED])
    return float(median(times)) if times else None


def _refuse_effect(error: Exception) -> BadInput:
    text = str(error)
    return BadInput(f"{text[:1].upper()}{text[1:]}.", faults=[Fault(text, field="effect")])


def _describe(answer: Mapping[str, Any]) -> list[str]:
    """Return the answer in sentences."""
    effect = answer["effect"]
    if answer["test"] == "williams":
        name = _("the difference between correlations of %(first).2f and %(second).2f")
        name %= {"first": effect[0], "second": effect[1]}
    elif answer["test"] == "preference":
        name = _("a true preference of %(share).0f%%") % {"share": 100 * effect}
    else:
        name = _("a true correlation of %(value).2f") % {"value": effect}
    text = _("%(n)s %(unit)s detect %(effect)s with power %(power).2f (alpha %(alpha)g, %(sides)s).")
    if answer["ties"]:
        text = _(
            "%(n)s %(unit)s with %(ties).0f%% ties detect %(effect)s with power %(power).2f "
            "(alpha %(alpha)g, %(sides)s)."
        )
    values = {"n": f"{answer['needed']:,}", "unit": _(answer["unit"]), "effect": name, "ties": 100 * answer["ties"]}
    values |= {"power": answer["power"], "alpha": answer["alpha"], "sides": _(SIDES[answer["sides"]])}
    sentences = [text % values]
    pilot = answer["pilot"]
    if not pilot:
        return sentences
    if not pilot["n"]:
        return [*sentences, pilot["note"]] if pilot["note"] else sentences
    counts = {"n": f"{pilot['n']:,}", "unit": _(answer["unit"]), "aspect": pilot["aspect"]}
    if pilot["power"] is None:
        sentences.append(_("%(n)s %(unit)s are judged for %(aspect)s.") % counts)
    else:
        text = _("%(n)s %(unit)s are judged for %(aspect)s: the power so far is %(power).2f.")
        sentences.append(text % {**counts, "power": pilot["power"]})
    left = answer["needed"] - pilot["n"]
    if left <= 0:
        return [*sentences, _("No more are needed for this effect.")]
    counts["n"] = f"{left:,}"
    if not pilot["seconds"]:
        return [*sentences, _("About %(n)s more %(unit)s are needed.") % counts]
    span = _span(left * (pilot.get("per_unit") or 1.0) * pilot["seconds"])
    return [*sentences, _("About %(n)s more %(unit)s are needed, about %(time)s of work.") % {**counts, "time": span}]


def _span(seconds: float) -> str:
    if seconds < 3600:
        return f"{max(1, round(seconds / 60))} min"
    return f"{seconds / 3600:.1f} h"
