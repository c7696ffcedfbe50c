"""The parameters of the main leaderboard of evaluators: how well their scores correlate with human judgements."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evalapp.translation import gettext as _
from evalapp.translation import gettext_noop
from scoring.boards.base import FIGURE_COST, RANKS_COST, Known, Query, Size, Way
from scoring.boards.choices import BY_COMPARISONS, PEOPLE

#: Scores that are read in the time of a judgement.
SAVED_COST = 10


def limit_tests(size: Size, query: Query, coefficient: str, *, is_tested: bool) -> int:
    """Return the number of ratings that a request may read if each evaluator has intervals and, if tested, is compared
    with all others."""
    n = size.count_sets(query)
    cost = n * (n + 10) // 2 if is_tested else n * FIGURE_COST
    slow = RANKS_COST if coefficient in ("spearman", "kendall") else 1
    return min(size.rows, size.correlated // (cost * slow))


@dataclass(frozen=True)
class EvaluatorsQuery(Query):
    """`coefficient` sorts the evaluators and is tested; `people` is what they are compared with: ratings, or a ranking
    of the systems from comparisons (one value per system).

    `undefined` says how groups without a coefficient count. `evaluators`, here and in other boards, are slugs separated
    by commas: only these are compared, and only outputs in their training data are left out; empty means all.
    """

    aspect: str = ""
    level: str = "segment"
    grouping: str = "none"
    systems: str = "all"
    references: str = "original"
    ratings: str = "raw"
    coefficient: str = "pearson"
    test: str = "permutation"
    filter: str = ""
    people: str = "ratings"
    undefined: str = "drop"
    evaluators: str = ""

    kind = "evaluators"
    page = "evaluation/"
    description = "Evaluators by their correlation with human judgements, trivial baselines included."
    tab = gettext_noop("Evaluators")
    has_grouping = True
    has_dialogues = True

    @classmethod
    def complete(cls, values: dict[str, str], default_method: Callable[[str, str], str]) -> dict[str, str]:
        if "people" not in values and cls._fits_comparisons(values):
            method = default_method(values.get("aspect", ""), "")
            values = {**values, "people": {"mean": "ratings"}.get(method, method)}
        return values

    @classmethod
    def adapt(cls, values: dict[str, Any]) -> dict[str, Any]:
        if values.get("people", "ratings") in ("", "ratings"):
            return super().adapt(values)
        fitting = super().adapt({**values, "level": "system"})
        return {name: value for name, value in fitting.items() if (name, value) != ("coefficient", "spa")}

    @classmethod
    def _fits_comparisons(cls, values: dict[str, str]) -> bool:
        """Return whether comparisons, which give one value per system, can answer these parameters."""
        asked = cls(**{"level": "system", **values, "people": "win-rate"})
        return asked.grouping == "none" and asked.ratings == "raw" and not [*asked._comparison_faults()]

    def _comparison_faults(self) -> Iterator[tuple[str, str]]:
        if self.people != "ratings" and self.level != "system":
            yield _("Comparisons give values of systems, not of single outputs: use the level system."), "level"
        if self.people != "ratings" and self.coefficient == "spa":
            yield _("Soft pairwise accuracy needs ratings of outputs: choose pa or a correlation."), "coefficient"

    def faults(self) -> Iterator[tuple[str, str]]:
        yield from self._comparison_faults()
        yield from super().faults()

    def list_fields(self, known: Known) -> Sequence[str]:
        fields = ["aspect", "people", "level", "grouping", "undefined", "systems", "coefficient", "test", "ratings"]
        fields += ["references", "filter"]
        hidden = {"level", "grouping", "ratings"} if self.people != "ratings" else set()
        hidden |= {"undefined"} if self.grouping == "none" else set()
        return [name for name in fields if name not in hidden]

    def list_choices(self, known: Known) -> dict[str, Sequence[str]]:
        choices = super().list_choices(known)
        if self.people != "ratings":
            choices["coefficient"] = [name for name in choices["coefficient"] if name != "spa"]
        offered = {"ratings", self.people, *(["m1"] if "m1" in known["people"] else [])}
        offered |= set(PEOPLE) - {"m1"} if "pairs" in known["people"] else set()
        return {**choices, "people": [name for name in PEOPLE if name in offered]}

    @classmethod
    def list_exported(cls, judged: Mapping[str, Collection[Way]], has_scores: bool) -> Sequence[Query]:
        options: list[tuple[Way, dict[str, str]]] = [
            ("dialogues", {"level": "dialogue"}),
            ("ratings", {"level": "segment"}),
            ("ratings", {"level": "system"}),
            ("pairs", {"level": "system", "people": "davidson"}),
            ("turing", {"level": "system", "people": "m1"}),
        ]
        return [
            cls(aspect=aspect, **params)
            for aspect, ways in judged.items()
            for way, params in options
            if has_scores and way in ways
        ]

    def is_large(self, size: Size) -> bool:
        if self.people == "glicko2":
            return size.more_than("systems", size.systems)
        if self.people != "ratings":
            return size.more_judged(self.aspect, "comparisons", size.rows)
        limit = limit_tests(size, self, self.coefficient, is_tested=self.test != "none")
        if self.level == "dialogue":
            return size.more_than("dialogues", limit)
        if size.more_judged(self.aspect, "ratings", limit, _(BY_COMPARISONS)):
            return True
        # For the judgements that evaluators save, all scores are read.
        return self.level == "segment" and size.more_than("scores", SAVED_COST * size.rows)
