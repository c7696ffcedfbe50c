"""Compute the tables of inter-annotator agreement."""

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from evalapp.side_figures import FAILED, side_value
from evalapp.stats.agreement.calibration import calibrate_raters
from evalapp.stats.agreement.coefficients import AgreementTable, agreement_table
from evalapp.stats.agreement.components import variance_components
from evalapp.stats.agreement.judged import NO_PAIR_LEFT, RaterJudgements, explain_missing, normalise_judgements
from evalapp.stats.agreement.krippendorff import Scale
from evalapp.stats.agreement.normalise import Z_METHODS, RatingMethod
from evalapp.stats.agreement.raters import rater_reports
from evalapp.stats.agreement.rating_columns import NO_PAIR
from evalapp.stats.core.coding import FloatArray, encode_pair
from evalapp.stats.core.estimate import Estimate
from evalapp.stats.resampling.bootstrap import DEFAULT_RESAMPLES, Bootstrap
from evalapp.translation import gettext as _
from scoring.boards.agreement.query import AgreementQuery
from scoring.boards.base import Data, Progress, Settings, Table

#: Resamples for each row of the overview; the detail of an aspect uses the default.
LINE_RESAMPLES = 500
#: Number of pairs of raters shown, those with the most shared units.
SHOWN_PAIRS = 60
LABELS = {
    "alpha": "Krippendorff's alpha",
    "percent": "percent agreement",
    "fleiss": "Fleiss' kappa",
    "cohen": "Cohen's kappa",
    "icc_1": "ICC(1)",
    "icc_a1": "ICC(A,1)",
    "icc_ak": "ICC(A,k)",
    "icc_c1": "ICC(C,1)",
    "icc_ck": "ICC(C,k)",
}
#: Coefficients of the overview; the detail has all.
IN_LINE = ("alpha", "fleiss", "icc_a1", "icc_ak", "percent")
UPLOADED = "uploaded"
#: Note on comparisons of two outputs, whose sides are arbitrary.
ORIENTED = (
    "Verdicts are oriented by system name before nominal agreement is computed: “a” is the system whose name comes "
    "first, on either side."
)
#: Coefficients of identical answers, which are meaningless for z-scores.
_OF_ANSWERS = {"percent", "fleiss", "cohen"}
_NO_ANSWERS = Estimate.undefined("z-scores of two raters are hardly ever equal")
_OF_SCALES = {"bias", "spread", "drift", "most_given", "most_given_share"}


def compute(data: Data, query: AgreementQuery, progress: Progress | None = None) -> Table:
    """Return the agreement on one aspect, or on all if the query names none."""
    settings = {**query.params, **data.draws}
    ways = data.list_ways(query)
    if not query.aspect:
        parts = ((aspect.name, way, data.load_judged(aspect, way, query)) for aspect, way in ways)
        return {**overview_table(parts, settings), **data.describe_judged()}
    aspect, way = ways[0]
    columns, controls = data.load_judged(aspect, way, query), data.load_controls(query)
    table = detail_table(columns, settings, aspect=aspect.name, judged=way, controls=controls)
    return {**table, **data.describe_judged(aspect, way)}


def overview_table(parts: Iterable[tuple[str, str, RaterJudgements]], settings: Settings) -> Table:
    """Return one row per aspect and way of judging: all judgements, then each source (campaign or upload) if there are
    several. `parts`: aspect, way of judging, columns. `settings`: scale, campaign, filter, ratings."""
    rows: list[Table] = []
    n_filtered = 0
    for aspect, judged, columns in parts:
        n_filtered += columns.n_filtered
        rows.append(_line(aspect, judged, "", columns, settings))
        if len(columns.sources) > 1:
            for code, source in enumerate(columns.sources):
                part = columns.only(columns.source == code)
                rows.append(_line(aspect, judged, source or UPLOADED, part, settings))
    return {
        "kind": "agreement",
        "aspect": "",
        **{name: settings[name] for name in ("judged", "campaign", "scale")},
        "ratings": _method(settings),
        "signature": _signature(settings, "all aspects", LINE_RESAMPLES),
        "n_filtered": n_filtered,
        "n_simulated": sum(row["n_simulated"] for row in rows if not row["source"]),
        "note": "" if rows else "There are no judgements yet.",
        "rows": rows,
    }


def detail_table(
    columns: RaterJudgements, settings: Settings, *, aspect: str, judged: str, controls: Mapping[str, tuple[int, int]]
) -> Table:
    """Return the agreement on an aspect with reports of its raters. `controls`: rater -> control items answered and
    failed. Coefficients and pairs use ratings normalised by the method of `settings`, everything else the original
    ratings."""
    scale, method = choose_scale(columns, settings), _method(settings)
    first = columns.first_judgements()
    compared, n_without = normalise_judgements(first, method)
    result = _agreement(compared, scale, DEFAULT_RESAMPLES, SHOWN_PAIRS)
    calibration, why_not = side_value(_("The calibrated means of systems"), lambda: _calibration(first), (None, FAILED))
    components = side_value(_("The components of variance"), lambda: _components(first), None)
    shares = side_value(_("How often each value was given"), lambda: prevalence(first), list[Table]())
    reports = side_value(_("The reports of raters"), lambda: _raters(columns, controls), list[Table]())
    return {
        "kind": "agreement",
        "aspect": aspect,
        "judged": judged,
        "campaign": settings["campaign"],
        "scale": scale,
        "ratings": method,
        "signature": _signature(settings, aspect, DEFAULT_RESAMPLES, scale),
        "n_units": _distinct(first.unit),
        "n_items": _distinct(first.item),
        "n_raters": _distinct(first.rater),
        "n_judgements": len(first),
        "n_repeats": len(columns) - len(first),
        "n_filtered": columns.n_filtered,
        "n_simulated": int(columns.simulated.sum()),
        "note": "" if len(columns) else f"There are no judgements of {aspect} here.",
        "rows": _coefficients(result, LABELS, method, n_without) if len(first) else [],
        "notes": [
            *result.notes,
            *explain_missing(n_without, method),
            *([ORIENTED] if judged == "comparisons" else []),
        ],
        "prevalence": shares,
        "pairs": _pairs(result, first.raters, method),
        "n_pairs": len(result.pairs) + result.pairs_left_out,
        "kappa_weights": "" if scale == "nominal" else "quadratic",
        "raters": reports,
        "calibration": calibration,
        "calibration_note": why_not,
        "components": components,
    }


def choose_scale(columns: RaterJudgements, settings: Settings) -> Scale:
    """Return the requested scale, or the default; always nominal for verdicts."""
    asked = settings["scale"]
    return columns.default_scale if asked in ("", "auto") or not columns.is_numeric else asked


def _method(settings: Settings) -> RatingMethod:
    method: RatingMethod = settings.get("ratings") or "raw"
    return method


def _line(aspect: str, judged: str, source: str, columns: RaterJudgements, settings: Settings) -> Table:
    first = columns.first_judgements()
    scale, method = choose_scale(columns, settings), _method(settings)
    compared, n_without = normalise_judgements(first, method)
    return {
        "aspect": aspect,
        "judged": judged,
        "source": source,
        "scale": scale,
        "n_units": _distinct(first.unit),
        "n_shared": _shared(first),
        "n_raters": _distinct(first.rater),
        "n_judgements": len(first),
        "n_simulated": int(first.simulated.sum()),
        "coefficients": _coefficients(_agreement(compared, scale, LINE_RESAMPLES, 0), IN_LINE, method, n_without),
    }


def _agreement(columns: RaterJudgements, scale: Scale, resamples: int, pairs: int) -> AgreementTable:
    return agreement_table(
        columns.value,
        columns.unit,
        columns.rater,
        scale=scale,
        max_pairs=pairs,
        bootstrap=Bootstrap(cluster=columns.item, resamples=resamples),
    )


def _coefficients(
    result: AgreementTable, names: Iterable[str], method: RatingMethod, n_without: int = 0
) -> list[Table]:
    """Return the coefficients for the kind of judgement, as `name`, `label` and an estimate. `n_without` ratings have
    no value by `method`, which is then the reason if no pair of ratings is left."""
    scale = f" ({result.scale})"
    reason = NO_PAIR_LEFT[method] if n_without else ""
    none = {name: _NO_ANSWERS for name in _OF_ANSWERS if name in result.coefficients}
    estimates = {**result.coefficients, **none} if method in Z_METHODS else result.coefficients
    if reason:
        estimates = {
            name: Estimate.undefined(reason, one.n) if one.note == NO_PAIR else one for name, one in estimates.items()
        }
    return [
        {"name": name, "label": LABELS[name] + (scale if name == "alpha" else ""), **estimates[name].as_dict()}
        for name in names
        if name in estimates
    ]


def _pairs(agreement: AgreementTable, raters: tuple[str, ...], method: RatingMethod) -> list[Table]:
    return [
        {
            "a": raters[pair.rater_a],
            "b": raters[pair.rater_b],
            "n": pair.n_units,
            "kappa": (_NO_ANSWERS if method in Z_METHODS else pair.kappa).as_dict(),
            "alpha": pair.alpha.as_dict(),
            "percent": (_NO_ANSWERS if method in Z_METHODS else pair.percent).as_dict(),
        }
        for pair in agreement.pairs
    ]


def _raters(columns: RaterJudgements, controls: Mapping[str, tuple[int, int]]) -> list[Table]:
    """Return a report of each rater, first those with reasons to review. `controls` become rows without a value."""
    if not len(columns):
        return []
    present = {columns.raters[code]: int(code) for code in np.unique(columns.rater)}
    checks = [
        (code, number < failed) for name, code in present.items() for answered, failed in [controls.get(name, (0, 0))]
        for number in range(answered)
    ]  # fmt: skip
    extra = len(checks)
    blank = np.full(extra, np.nan)
    failed = [None] * len(columns) + [failed for _, failed in checks]
    result = rater_reports(
        np.concatenate([to_points(columns), blank]),
        np.concatenate([columns.unit, np.full(extra, -1)]),
        np.concatenate([columns.rater, np.array([code for code, _ in checks], dtype=np.int64)]),
        seconds=np.concatenate([columns.seconds, blank]) if np.isfinite(columns.seconds).any() else None,
        control_failed=np.array(failed, dtype=object) if extra else None,
        repeat_of=_repeats(columns, extra) if columns.repeat.any() else None,
        at=np.concatenate([columns.at, blank]) if columns.is_numeric and np.isfinite(columns.at).all() else None,
    )
    rows = [{**report.as_dict(), "rater": columns.raters[int(report.rater)]} for report in result]
    if not columns.is_numeric:
        # For verdicts these would be about arbitrary sides.
        rows = [{name: cell for name, cell in row.items() if name not in _OF_SCALES} for row in rows]
    return sorted(rows, key=lambda row: (not row["reasons"], -row["n"], row["rater"]))


def to_points(columns: RaterJudgements) -> FloatArray:
    """Return ratings, or verdicts as points of the first side (1 better, .5 equal or undecided, 0 worse). For
    comparisons of two outputs every second unit is reversed, because the order of the sides is arbitrary."""
    if columns.is_numeric:
        return columns.value
    points = np.select([columns.value == "a", columns.value == "b"], [1.0, 0.0], 0.5)
    turned = (columns.system < 0) & (columns.unit % 2 == 1)
    return np.where(turned, 1.0 - points, points)


def _repeats(columns: RaterJudgements, extra: int) -> np.ndarray[Any, Any]:
    result = np.full(len(columns) + extra, None, dtype=object)
    rows = np.flatnonzero(columns.repeat)
    result[rows] = columns.unit[rows]
    return result


def _calibration(columns: RaterJudgements) -> tuple[Table | None, str]:
    """Return system means adjusted for rater biases and plain means, best first; or why there are none."""
    rated = columns.only(columns.system >= 0) if columns.is_numeric else columns
    if not columns.is_numeric:
        return None, "Calibration needs ratings; for comparisons, use a model with side and rater as covariates."
    if _distinct(rated.system) < 2 or _distinct(rated.rater) < 2:
        return None, "Calibration needs at least two systems and two raters."
    # Ratings of an output share its deviation from the system mean; without this effect intervals are too narrow.
    outputs, first = encode_pair(rated.item, rated.system, int(rated.system.max()) + 1)
    several = len(first) < len(rated)
    result = calibrate_raters(
        rated.value, rated.system, rated.rater, item=outputs if several else None, variances="reml"
    )
    raws = sorted((row.raw for row in result.systems), reverse=True)
    rows = [
        {
            "rank": place,
            "raw_rank": raws.index(row.raw) + 1,
            "system": rated.systems[int(row.label)],
            "raw": row.raw,
            **row.estimate.as_dict(),
            "sd": row.sd,
            "difference": row.estimate.value - row.raw,
        }
        for place, row in enumerate(result.systems, start=1)
    ]
    raters = [{"rater": rated.raters[int(row.label)], **row.estimate.as_dict(), "sd": row.sd} for row in result.raters]
    return {"systems": rows, "raters": raters, "sigma2": result.sigma2, "note": result.note, "n": result.n}, ""


def _components(columns: RaterJudgements) -> Table | None:
    """Return the variance components of ratings, for planning; None for verdicts."""
    if not columns.is_numeric or len(columns) < 3:
        return None
    system = columns.system if (columns.system >= 0).all() and _distinct(columns.system) > 1 else None
    return variance_components(columns.value, columns.item, columns.rater, system).as_dict()


def prevalence(columns: RaterJudgements, most: int = 12) -> list[Table]:
    """Return how often each value was given. Skewed shares lower every coefficient. Continuous values use `most`
    bins."""
    if not len(columns):
        return []
    values, counts = np.unique(columns.value, return_counts=True)
    if columns.is_numeric and len(values) > most:
        counts, edges = np.histogram(columns.value, bins=most)
        labels = [f"{low:.3g} to {high:.3g}" for low, high in pairwise(edges)]
    else:
        labels = [f"{value:g}" if columns.is_numeric else str(value) for value in values]
    total = float(counts.sum())
    return [{"value": label, "n": int(n), "share": float(n) / total} for label, n in zip(labels, counts, strict=True)]


def _distinct(codes: np.ndarray[Any, Any]) -> int:
    return len(np.unique(codes))


def _shared(columns: RaterJudgements) -> int:
    """Return the number of units judged by two or more raters."""
    _, counts = np.unique(columns.unit, return_counts=True)
    return int((counts >= 2).sum())


def _signature(settings: Settings, aspect: str, resamples: int, scale: str = "") -> str:
    of_campaign = f"|campaign:{settings['campaign']}" if settings["campaign"] else ""
    scale = scale or settings["scale"] or "auto"
    ratings = f"|ratings:{_method(settings)}" if _method(settings) != "raw" else ""
    icc = "" if scale == "nominal" else "|icc:reml-if-incomplete"
    return f"agreement|aspect:{aspect}|scale:{scale}{ratings}{icc}|boot:items|resamples:{resamples}|seed:0{of_campaign}"
