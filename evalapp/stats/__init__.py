"""Statistics of human and automatic evaluation on plain arrays: NumPy and SciPy, no Django, no rows of a database."""

from evalapp.stats.agreement import SCALES, Scale, krippendorff_alpha
from evalapp.stats.coding import ColumnError
from evalapp.stats.combining import Stacking, mean_of_z, stack, standardise
from evalapp.stats.correlation import (
    ALL_COEFFICIENTS,
    COEFFICIENTS,
    Coefficient,
    kendall,
    kendall_c,
    midranks,
    pearson,
    spearman,
)
from evalapp.stats.estimate import Estimate
from evalapp.stats.meta_evaluation import Bootstrap, Correlations, Grouping, Level, NanRule, correlate
from evalapp.stats.normalise import (
    RATING_METHODS,
    OutputScores,
    RatingMethod,
    aggregate_ratings,
    normalise_ratings,
)
from evalapp.stats.paired import Difference, compare, holm, williams
from evalapp.stats.ranking import (
    VERDICTS,
    CannotDecide,
    M1Unit,
    Ranking,
    SystemScore,
    rank_by_m1,
    rank_by_mean,
    rank_by_win_rate,
)
from evalapp.stats.resampling import DEFAULT_CONFIDENCE, DEFAULT_RESAMPLES, ClusterDraws, percentile_interval

__all__ = [
    "ALL_COEFFICIENTS",
    "COEFFICIENTS",
    "DEFAULT_CONFIDENCE",
    "DEFAULT_RESAMPLES",
    "RATING_METHODS",
    "SCALES",
    "VERDICTS",
    "Bootstrap",
    "CannotDecide",
    "ClusterDraws",
    "Coefficient",
    "ColumnError",
    "Correlations",
    "Difference",
    "Estimate",
    "Grouping",
    "Level",
    "M1Unit",
    "NanRule",
    "OutputScores",
    "Ranking",
    "RatingMethod",
    "Scale",
    "Stacking",
    "SystemScore",
    "aggregate_ratings",
    "compare",
    "correlate",
    "holm",
    "kendall",
    "kendall_c",
    "krippendorff_alpha",
    "mean_of_z",
    "midranks",
    "normalise_ratings",
    "pearson",
    "percentile_interval",
    "rank_by_m1",
    "rank_by_mean",
    "rank_by_win_rate",
    "spearman",
    "stack",
    "standardise",
    "williams",
]
