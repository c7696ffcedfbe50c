"""Values of the parameters of boards with their labels. Pages translate the labels where they are shown."""

from evalapp.translation import gettext_noop as _

#: Reference sets compared in one table.
MOST_SETS = 8

METHODS = {
    "mean": _("Mean rating"),
    "win-rate": _("Win rate"),
    "m1": _("Turing M1"),
    "glicko2": "Glicko-2",
    "bradley-terry": "Bradley-Terry",
    "davidson": "Davidson",
    "rao-kupper": "Rao-Kupper",
}
#: Models of comparisons, which rate systems on a scale of their own.
MODELS = ("glicko2", "bradley-terry", "davidson", "rao-kupper")
#: Models fitted by maximum likelihood, which take covariates.
MODELED = ("bradley-terry", "davidson", "rao-kupper")
#: Methods that an evaluator can assist.
ASSISTED = ("mean", "win-rate", "bradley-terry", "davidson")
#: What the intervals of assisted figures are about.
TARGETS = {"items-like-these": _("items like these"), "these-items": _("these items")}
RATINGS = {
    "raw": _("unchanged"),
    "z": _("z-scores per rater"),
    "z-shrunk": _("z-scores per rater, shrunk towards all raters"),
    "rank": _("ranks within item and rater"),
}
COEFFICIENTS = ("pearson", "spearman", "kendall")
#: Figures by which evaluators are sorted and tested.
COMPARED = {
    "pearson": "Pearson",
    "spearman": "Spearman",
    "kendall": "Kendall",
    "acc-eq": _("Pairwise accuracy of outputs"),
    "pa": _("Pairwise accuracy of systems"),
    "spa": _("Soft pairwise accuracy"),
}
#: Names of figures in the rows of tables, if they differ.
FIGURES = {"acc-eq": "accuracy"}
TESTS = {
    "permutation": _("Permutation test"),
    "williams": _("Williams’ test"),
    "bootstrap": _("Paired bootstrap"),
    "none": _("No test"),
}
#: The permutation test of version 0.1.0, in addresses and scripts of that time.
EARLIER = "perm-both"
#: Figures that exist at one level only.
LEVEL_OF_COEFFICIENT = {"acc-eq": "segment", "pa": "system", "spa": "system"}
LEVELS = {"segment": _("Outputs"), "dialogue": _("Dialogues"), "system": _("Systems")}
GROUPINGS = {"none": _("all outputs together"), "item": _("within items"), "system": _("within systems")}
WEIGHTS = {"none": _("equal"), "propensity": _("inverse sampling probability (adaptive campaigns)")}
#: Covariates of a model of comparisons. `rater` includes the common effect of the side.
COVARIATES = {
    "none": _("nothing"),
    "side": _("side shown first"),
    "length": _("length"),
    "side+length": _("side and length"),
    "rater": _("side, per rater"),
    "length+rater": _("length, and side per rater"),
}
PER = {"judgement": _("each judgement"), "output": _("majority verdict of each output")}
#: Human scores that evaluators are compared with: ratings, or values of systems from comparisons.
PEOPLE = {
    "ratings": _("Ratings"),
    "m1": _("Turing M1"),
    "win-rate": _("Win rate"),
    "bradley-terry": "Bradley-Terry",
    "davidson": "Davidson",
    "rao-kupper": "Rao-Kupper",
    "glicko2": "Glicko-2",
}
#: Advice if outputs were compared but not rated.
BY_COMPARISONS = _(
    "Outputs were compared. Under Human scores, choose Win rate, or Turing M1 for comparisons with a reference "
    "(meta --people win-rate, m1)."
)
#: Kinds of judgement, in the order of pages.
JUDGED = {
    "ratings": _("Ratings"),
    "comparisons": _("Comparisons"),
    "turing": _("Comparisons with a reference"),
    "dialogues": _("Ratings of dialogues"),
}
SCALES = {
    "auto": _("default"),
    "nominal": _("nominal"),
    "ordinal": _("ordinal"),
    "interval": _("interval"),
    "ratio": _("ratio"),
}
#: Groups in which all scores are equal have no coefficient.
UNDEFINED = {"drop": _("leave out"), "zero": _("count as 0")}
SUBSETS = {
    "all": _("All systems"),
    "no-reference": _("Without reference systems"),
    "machine": _("Machine systems only"),
}

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
    "target": TARGETS,
    "undefined": UNDEFINED,
    "people": PEOPLE,
}

#: The evaluator, trained in seconds, that other trained ones must exceed.
RIVAL = "ridge"
#: The evaluator that assists estimates unless another one is chosen; it is fitted again while people judge.
ASSISTANT = "ridge"
