"""How many judgements are needed: the closed forms of `evalapp.stats.planning.power`, what the judgements so far
say of ties, time and the power that is reached already, and designs of ratings from the variances of a pilot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Q

from annotation.models import Comparison, Judgement, Rating
from evalapp.accounts.models import Project
from evalapp.common.errors import BadInput, Fault

from .aspects import choose_aspect

TESTS = {
    "preference": "Is one system preferred to another?",
    "correlation": "Does an evaluator correlate with people?",
    "williams": "Does one evaluator correlate better than another?",
    "rating": "Do two systems differ in their mean rating?",
}
EFFECTS = {
    "preference": "the true share of decisive verdicts for one side, such as 0.6",
    "correlation": "the true correlation, such as 0.3",
    "williams": "three correlations: better evaluator with people, worse one with people, both with each other, "
    "such as 0.4,0.3,0.5",
    "rating": "the difference of the means in points of the scale, such as 0.3; from a project's ratings so far",
}
USUAL = {"preference": "0.6", "correlation": "0.3", "williams": "0.4,0.3,0.5", "rating": "0.3"}
SIDES = {1: "one-sided", 2: "two-sided"}
UNITS = {"preference": "comparisons", "correlation": "items", "williams": "items", "rating": "ratings"}
SIMULATED = Count("pk", filter=Q(simulated=True))
#: Judgements whose median time is taken.
TIMED = 2_000


@dataclass(frozen=True)
class PowerQuestion:
    """`effect` as people write it; `ties` None: those of the project, or none; `sides` None: those of the test as it is
    printed, one of Williams' and two of all others."""

    test: str = "preference"
    effect: str = ""
    power: float = 0.8
    alpha: float = 0.05
    ties: float | None = None
    aspect: str = ""
    sides: int | None = None

    @property
    def used_sides(self) -> int:
        """How many sides the test has."""
        return self.sides or (1 if self.test == "williams" else 2)


def read_question(given: Mapping[str, Any]) -> PowerQuestion:
    """From the parameters of an address or a command. Raises `BadInput` by field."""
    faults: list[Fault] = []
    test = str(given.get("test") or "preference")
    if test not in TESTS:
        faults.append(Fault(f"test is one of {', '.join(TESTS)}, not “{test}”.", field="test"))
    numbers: dict[str, float | None] = {}
    for name, usual in (("power", 0.8), ("alpha", 0.05), ("ties", None)):
        raw = given.get(name)
        try:
            numbers[name] = usual if raw in (None, "") else float(str(raw))
        except ValueError:
            faults.append(Fault(f"{name} is a number between 0 and 1.", field=name))
    sides = str(given.get("sides") or "")
    if sides not in ("", *map(str, SIDES)):
        faults.append(Fault(f"sides is 1 or 2, not “{sides}”.", field="sides"))
    if faults:
        raise BadInput(" ".join(fault.message for fault in faults), faults=faults)
    effect, aspect = str(given.get("effect") or USUAL[test]), str(given.get("aspect") or "")
    power, alpha = numbers["power"], numbers["alpha"]
    assert power is not None
    assert alpha is not None
    return PowerQuestion(test, effect, power, alpha, numbers["ties"], aspect, int(sides) if sides else None)


def answer_power(question: PowerQuestion, project: Project | None = None) -> dict[str, Any]:
    """The number that is needed and the power of other numbers; with a project also what is there and what is left."""
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
        raise BadInput(
            f"{str(error)[0].upper()}{str(error)[1:]}.", faults=[Fault(str(error), field="effect")]
        ) from error
    found = {
        "test": question.test,
        "question": TESTS[question.test],
        "effect": effect,
        "power": question.power,
        "alpha": question.alpha,
        "sides": question.used_sides,
        "ties": settings["ties"],
        "unit": UNITS[question.test],
        "needed": needed,
        "curve": curve,
        "pilot": pilot or None,
    }
    return {**found, "words": _words(found)}


def answer_plan(question: PowerQuestion, table: Mapping[str, Any] | None) -> dict[str, Any]:
    """Designs that tell two systems apart by ratings. `table`: the detail table of agreement of the aspect, whose
    variances are the pilot. Raises `BadInput` where there is none."""
    from evalapp.stats.planning.designs import SignificanceTest, StudyDesign, plan
    from evalapp.stats.planning.power import EffectError

    effect = _effect(question)
    assert isinstance(effect, float)
    if table is None or not table.get("components"):
        raise BadInput(
            "This is planned from ratings that are there: name a project whose outputs were rated, best by two people "
            "or more.",
            faults=[Fault("There are no ratings to plan from.", field="test")],
        )
    components = _components(table["components"])
    per_output = max(1, round(components.ratings_per_output)) if components.ratings_per_output > 0 else 1
    try:
        found = plan(
            components,
            effect,
            design=StudyDesign(items=max(2, table["n_items"]), ratings=per_output),
            test=SignificanceTest(power=question.power, alpha=question.alpha, two_sided=question.used_sides == 2),
        ).as_dict()
    except EffectError as error:
        raise BadInput(
            f"{str(error)[0].upper()}{str(error)[1:]}.", faults=[Fault(str(error), field="effect")]
        ) from error
    cheapest = found["cheapest"]
    designs = [("as so far", found["asked"]), ("twice the items", found["more_items"])]
    designs += [("twice the ratings of each", found["more_ratings"])]
    designs += [("the fewest ratings that reach it", cheapest)] if cheapest else []
    return {
        "test": "rating",
        "question": TESTS["rating"],
        "effect": effect,
        "power": question.power,
        "alpha": question.alpha,
        "sides": question.used_sides,
        "ties": 0.0,
        "unit": UNITS["rating"],
        "needed": cheapest["judgements"] if cheapest else None,
        "curve": [{"n": design["judgements"], "power": design["power"]} for _, design in designs],
        "designs": [{"name": name, **design} for name, design in designs],
        "pilot": {
            "n": table["n_judgements"], "n_simulated": table["n_simulated"], "aspect": table["aspect"],
            "power": found["asked"]["power"], "note": "",
        },
        "plan": found,
        "words": list(found["advice"]),
    }  # fmt: skip


def _components(stored: Mapping[str, Any]) -> Any:
    """Components of variance out of a table."""
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
        text = f"The effect of this test is {EFFECTS[question.test]}."
        raise BadInput(text, faults=[Fault(text, field="effect")])
    return parts if wanted == 3 else parts[0]


def _pilot(question: PowerQuestion, project: Project) -> dict[str, Any]:
    """What the project has of what the test counts, the share of ties and the median time; {} without judgements."""
    judged_by = "comparisons" if question.test == "preference" else "ratings"
    try:
        aspect = choose_aspect(project, question.aspect, judged_by=judged_by)  # type: ignore[arg-type]
    except BadInput as error:
        return {"n": 0, "note": error.detail}
    found: dict[str, Any] = {"aspect": aspect.name, "seconds": _seconds(project), "note": ""}
    if question.test == "preference":
        rows = Comparison.objects.filter(aspect=aspect, output_b__isnull=False)
        counts = rows.aggregate(
            n=Count("pk"), even=Count("pk", filter=Q(verdict__in=["tie", "both_bad"])), simulated=SIMULATED
        )
        found["n"], found["n_simulated"] = counts["n"], counts["simulated"]
        found["ties"] = min(counts["even"] / counts["n"], 0.99) if counts["n"] else 0.0
        return found
    rated = Rating.objects.filter(aspect=aspect, output__isnull=False)
    counts = rated.aggregate(n=Count("output", distinct=True), all=Count("pk"), simulated=SIMULATED)
    per_unit = counts["all"] / counts["n"] if counts["n"] else None
    return {**found, "n": counts["n"], "n_simulated": counts["simulated"], "per_unit": per_unit}


def _seconds(project: Project) -> float | None:
    from statistics import median

    rows = Judgement.objects.filter(campaign__project=project, current=True, seconds__isnull=False).order_by("-pk")
    times = list(rows.values_list("seconds", flat=True)[:TIMED])
    return float(median(times)) if times else None


def _words(found: Mapping[str, Any]) -> list[str]:
    """The answer in sentences."""
    what = {"preference": "a true preference of {:.0%}", "correlation": "a true correlation of {:.2f}"}
    effect = found["effect"]
    if found["test"] == "williams":
        named = f"the difference between correlations of {effect[0]:.2f} and {effect[1]:.2f}"
    else:
        named = what[found["test"]].format(effect)
    with_ties = f", {found['ties']:.0%} of them ties," if found["ties"] else ""
    sentences = [
        f"{found['needed']:,} {found['unit']}{with_ties} find {named} with power {found['power']:.2f} "
        f"(alpha {found['alpha']:g}, {SIDES[found['sides']]}).".replace(",,", ",")
    ]
    pilot = found["pilot"]
    if not pilot:
        return sentences
    if not pilot["n"]:
        return [*sentences, pilot["note"]] if pilot["note"] else sentences
    power = "" if pilot["power"] is None else f": the power so far is {pilot['power']:.2f}"
    sentences.append(f"{pilot['n']:,} {found['unit']} are judged for {pilot['aspect']}{power}.")
    left = found["needed"] - pilot["n"]
    if left <= 0:
        sentences.append("No more are needed for this effect.")
        return sentences
    judgements = left * (pilot.get("per_unit") or 1.0)
    time = f", about {_span(judgements * pilot['seconds'])} of work" if pilot["seconds"] else ""
    sentences.append(f"About {left:,} more {found['unit']} are needed{time}.")
    return sentences


def _span(seconds: float) -> str:
    if seconds < 3600:
        return f"{max(1, round(seconds / 60))} min"
    return f"{seconds / 3600:.1f} h"
