"""Choices that boards offer: the values of their parameters, each with its label."""

from __future__ import annotations

#: Reference sets that one table of evaluators by set compares.
MOST_SETS = 8

METHODS = {
    "mean": "Mean rating",
    "win-rate": "Win rate",
    "m1": "Turing M1",
    "glicko2": "Glicko-2",
    "bradley-terry": "Bradley-Terry",
    "davidson": "Davidson",
    "rao-kupper": "Rao-Kupper",
}
#: Methods of which every system has a rating instead of a share or a mean.
MODELS = ("glicko2", "bradley-terry", "davidson", "rao-kupper")
#: Those that are fitted by maximum likelihood and take covariates.
MODELED = ("bradley-terry", "davidson", "rao-kupper")
RATINGS = {
    "raw": "as given",
    "z": "z-scores per rater",
    "z-shrunk": "z-scores per rater, shrunk towards all raters",
    "rank": "ranks within item and rater",
}
COEFFICIENTS = ("pearson", "spearman", "kendall")
#: By what evaluators can be ordered and told apart, and what a row calls the figure.
COMPARED = {
    "pearson": "Pearson",
    "spearman": "Spearman",
    "kendall": "Kendall",
    "acc-eq": "Accuracy of pairs",
    "pa": "Pairwise accuracy of systems",
    "spa": "Soft pairwise accuracy",
}
FIGURES = {"acc-eq": "accuracy"}
TESTS = {
    "permutation": "Permutation",
    "williams": "Williams",
    "bootstrap": "Paired bootstrap",
    "none": "no test",
}
#: The name of the permutation test before 0.2.0, in addresses and scripts of then.
EARLIER = "perm-both"
#: What belongs to one level only.
OF_LEVEL = {"acc-eq": "segment", "pa": "system", "spa": "system"}
LEVELS = {"segment": "Outputs", "dialogue": "Dialogues", "system": "Systems"}
GROUPINGS = {"none": "all together", "item": "within items", "system": "within systems"}
WEIGHTS = {"none": "every comparison the same", "propensity": "by the chance of the pair (adaptive campaigns)"}
#: What a model of comparisons adjusts for, besides the systems. Of `rater` the common advantage of a side is a part.
COVARIATES = {
    "none": "nothing",
    "side": "the side shown first",
    "length": "the longer text",
    "side+length": "side and length",
    "rater": "the side, for each rater",
    "length+rater": "length, and the side for each rater",
}
#: What one thing that counts is in Turing M1.
PER = {"judgement": "every judgement", "output": "the majority of each output’s judgements"}
#: What people's scores are that evaluators are compared with: ratings, or a value of every system from comparisons.
PEOPLE = {
    "ratings": "Ratings",
    "m1": "Turing M1",
    "win-rate": "Win rate",
    "bradley-terry": "Bradley-Terry",
    "davidson": "Davidson",
    "rao-kupper": "Rao-Kupper",
    "glicko2": "Glicko-2",
}
#: What a table of evaluators can do where nobody rated outputs but some were compared.
BY_COMPARISONS = (
    "Outputs were compared: choose Win rate, or Turing M1 where it was with a reference, under People’s scores by "
    "(meta --people win-rate, m1)."
)
#: What can be judged of an aspect, in the order in which a page offers it.
JUDGED = {
    "ratings": "Ratings",
    "comparisons": "Comparisons",
    "turing": "Comparisons with a reference",
    "dialogues": "Ratings of dialogues",
}
SCALES = {
    "auto": "the usual one",
    "nominal": "nominal",
    "ordinal": "ordinal",
    "interval": "interval",
    "ratio": "ratio",
}
#: What a group (an item, a system) counts in which an evaluator's scores are constant, so that it has no coefficient.
UNDEFINED = {"drop": "not at all", "zero": "as 0"}
SUBSETS = {"all": "All systems", "no-reference": "Without reference systems", "machine": "Machine systems only"}

#: The choices of each parameter that has some.
CHOICES: dict[str, dict[str, str]] = {
    "method": METHODS,
    "ratings": RATINGS,
    "systems": SUBSETS,
    "level": LEVELS,
    "grouping": GROUPINGS,
    "coefficient": COMPARED,
    "test": TESTS,
    "judged": JUDGED,
    "scale": SCALES,
    "weights": WEIGHTS,
    "covariates": COVARIATES,
    "per": PER,
    "undefined": UNDEFINED,
    "people": PEOPLE,
}
