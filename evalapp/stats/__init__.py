"""Statistics of human and automatic evaluation on plain arrays: NumPy and SciPy, no Django, no rows of a database."""

from evalapp.stats.adaptive import GOALS, Goal, NextPair, PairState, choose_pair
from evalapp.stats.adaptive_simulation import Saving, Trace, simulate_choice, simulate_saving
from evalapp.stats.agreement import SCALES, Scale, krippendorff_alpha
from evalapp.stats.agreement_table import AgreementTable, PairAgreement, agreement_table, agreement_tables
from evalapp.stats.bias import Bias, length_bias, side_bias
from evalapp.stats.calibration import (
    Calibrated,
    Calibration,
    calibrate_raters,
)
from evalapp.stats.ceiling import disattenuated, noise_ceiling
from evalapp.stats.coding import VERDICTS, ColumnError
from evalapp.stats.combining import Stacking, mean_of_z, stack, standardise
from evalapp.stats.comparisons import (
    COMPARISON_METHODS,
    Adjust,
    ComparisonMethod,
    Interval,
    rank_by_comparisons,
)
from evalapp.stats.components import (
    Components,
    variance_components,
)
from evalapp.stats.connectivity import Connectivity, connectivity
from evalapp.stats.correlation import (
    ALL_COEFFICIENTS,
    COEFFICIENTS,
    Coefficient,
    critical_correlation,
    fisher_interval,
    kendall,
    kendall_c,
    midranks,
    pearson,
    spearman,
)
from evalapp.stats.dialogue import DialogueScores, calibrated_correlations, dialogue_correlations, dialogue_scores
from evalapp.stats.estimate import Estimate
from evalapp.stats.fragility import Fragility, fragility
from evalapp.stats.icc import ICC_FORMS, IccForm, icc
from evalapp.stats.kappa import KAPPA_WEIGHTS, KappaWeights, cohen_kappa, fleiss_kappa, percent_agreement
from evalapp.stats.letters import compact_letters, needed_draws, rank_clusters
from evalapp.stats.meta_evaluation import Bootstrap, Correlations, Grouping, Level, NanRule, correlate
from evalapp.stats.normalise import (
    RATING_METHODS,
    Z_METHODS,
    OutputScores,
    RatingMethod,
    aggregate_ratings,
    normalise_ratings,
)
from evalapp.stats.pair_tests import TESTS, Test
from evalapp.stats.paired import Difference, compare, holm, williams
from evalapp.stats.pairs import TieCalibration, acc_eq, calibrate_ties, tau_eq
from evalapp.stats.planning import (
    Design,
    Plan,
    plan,
)
from evalapp.stats.power import (
    POWER_TESTS,
    EffectError,
    PowerTest,
    design_effect,
    needed_judgements,
    power_of,
)
from evalapp.stats.ranking import (
    CannotDecide,
    M1Unit,
    Ranking,
    SystemScore,
    rank_by_m1,
    rank_by_mean,
    rank_by_win_rate,
)
from evalapp.stats.ranking_correlation import correlate_with_ranking
from evalapp.stats.raters import (
    RaterReport,
    rater_reports,
)
from evalapp.stats.resampling import DEFAULT_CONFIDENCE, DEFAULT_RESAMPLES, ClusterDraws, percentile_interval
from evalapp.stats.separation import Separation, separating
from evalapp.stats.significance import MIN_SYSTEMS, AllPairs, compare_all
from evalapp.stats.slices import Slice, SliceEstimates, slice_estimates
from evalapp.stats.system_pairs import soft_pairwise_accuracy, system_pairwise_accuracy

__all__ = [
    "ALL_COEFFICIENTS",
    "COEFFICIENTS",
    "COMPARISON_METHODS",
    "DEFAULT_CONFIDENCE",
    "DEFAULT_RESAMPLES",
    "GOALS",
    "ICC_FORMS",
    "KAPPA_WEIGHTS",
    "MIN_SYSTEMS",
    "POWER_TESTS",
    "RATING_METHODS",
    "SCALES",
    "TESTS",
    "VERDICTS",
    "Z_METHODS",
    "Adjust",
    "AgreementTable",
    "AllPairs",
    "Bias",
    "Bootstrap",
    "Calibrated",
    "Calibration",
    "CannotDecide",
    "ClusterDraws",
    "Coefficient",
    "ColumnError",
    "ComparisonMethod",
    "Components",
    "Connectivity",
    "Correlations",
    "Design",
    "DialogueScores",
    "Difference",
    "EffectError",
    "Estimate",
    "Fragility",
    "Goal",
    "Grouping",
    "IccForm",
    "Interval",
    "KappaWeights",
    "Level",
    "M1Unit",
    "NanRule",
    "NextPair",
    "OutputScores",
    "PairAgreement",
    "PairState",
    "Plan",
    "PowerTest",
    "Ranking",
    "RaterReport",
    "RatingMethod",
    "Saving",
    "Scale",
    "Separation",
    "Slice",
    "SliceEstimates",
    "Stacking",
    "SystemScore",
    "Test",
    "TieCalibration",
    "Trace",
    "acc_eq",
    "aggregate_ratings",
    "agreement_table",
    "agreement_tables",
    "calibrate_raters",
    "calibrate_ties",
    "calibrated_correlations",
    "choose_pair",
    "cohen_kappa",
    "compact_letters",
    "compare",
    "compare_all",
    "connectivity",
    "correlate",
    "correlate_with_ranking",
    "critical_correlation",
    "design_effect",
    "dialogue_correlations",
    "dialogue_scores",
    "disattenuated",
    "fisher_interval",
    "fleiss_kappa",
    "fragility",
    "holm",
    "icc",
    "kendall",
    "kendall_c",
    "krippendorff_alpha",
    "length_bias",
    "mean_of_z",
    "midranks",
    "needed_draws",
    "needed_judgements",
    "noise_ceiling",
    "normalise_ratings",
    "pearson",
    "percent_agreement",
    "percentile_interval",
    "plan",
    "power_of",
    "rank_by_comparisons",
    "rank_by_m1",
    "rank_by_mean",
    "rank_by_win_rate",
    "rank_clusters",
    "rater_reports",
    "separating",
    "side_bias",
    "simulate_choice",
    "simulate_saving",
    "slice_estimates",
    "soft_pairwise_accuracy",
    "spearman",
    "stack",
    "standardise",
    "system_pairwise_accuracy",
    "tau_eq",
    "variance_components",
    "williams",
]
