"""Agreement between raters of every set, by every coefficient."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

from experiments.files import in_order, read_rows
from study import Run, Tables, plain, row

from evalapp.stats.agreement.coefficients import agreement_table
from evalapp.stats.agreement.krippendorff import krippendorff_alpha
from evalapp.stats.agreement.normalise import normalise_ratings
from evalapp.stats.agreement.raters import rater_reports
from evalapp.stats.resampling.bootstrap import Bootstrap

SEED = 13
Rows = list[dict[str, Any]]


def compute(run: Run) -> None:
    for kind, folder, aspect, rows in read_aspects(run):
        measure = measure_ratings if kind == "ratings" else measure_comparisons
        run.once(f"{kind} | {folder} | {aspect}", SEED, lambda m=measure, f=folder, r=rows: m(run, f, r))


def read_aspects(run: Run) -> Iterator[tuple[str, str, str, Rows]]:
    """Kind, set, aspect and rows of everything that several raters judged."""
    for folder in sorted(path for path in run.data.iterdir() if path.is_dir()):
        for kind in ("ratings", "comparisons"):
            by_aspect: dict[str, Rows] = defaultdict(list)
            for entry in read_rows(folder, kind):
                # The two rounds of scratchplot are different sets of texts.
                round_ = f", round {entry['item'][1]}" if entry["aspect"] == "ending" else ""
                by_aspect[entry["aspect"] + round_].append(entry)
            for aspect, rows in by_aspect.items():
                if len({entry["rater"] for entry in rows}) > 1:
                    yield kind, folder.name, aspect, rows


def measure_ratings(run: Run, name: str, rows: Rows) -> dict[str, Any]:
    """All coefficients of an aspect's ratings, and the reports on its raters."""
    item, rater = [entry["item"] for entry in rows], [entry["rater"] for entry in rows]
    method = "rank" if name in run.settings["by_rank"] else "raw"
    value = normalise_ratings([entry["value"] for entry in rows], item, rater, method=method)
    unit = [f"{entry['item']}\t{entry['system']}" for entry in rows]
    found = agreement_table(
        value, unit, rater, scale="interval", bootstrap=Bootstrap(cluster=item, seed=SEED)
    ).as_dict()
    for scale in ("ordinal", "nominal"):
        found[scale] = krippendorff_alpha(
            unit, value, scale=scale, bootstrap=Bootstrap(cluster=item, seed=SEED)
        ).as_dict()
    if name in run.settings["persons"]:
        person = [name.split("#")[0] for name in rater]
        repeated = [place if "#" in name else None for name, place in zip(rater, unit, strict=True)]
        found["raters"] = [report.as_dict() for report in rater_reports(value, unit, person, repeat_of=repeated)]
    return found | {"method": method}


def measure_comparisons(run: Run, name: str, rows: Rows) -> dict[str, Any]:
    """Nominal agreement on verdicts, with the two systems in one order regardless of the side they were shown on."""
    ordered = [in_order(entry) for entry in rows]
    unit = [f"{entry['item']}\t{a}\t{b}" for entry, (a, b, _) in zip(rows, ordered, strict=True)]
    verdict, item = [verdict for _, _, verdict in ordered], [entry["item"] for entry in rows]
    found = agreement_table(
        verdict, unit, [entry["rater"] for entry in rows], scale="nominal", bootstrap=Bootstrap(cluster=item, seed=SEED)
    )
    stored = [entry["verdict"] for entry in rows]
    alpha = krippendorff_alpha(unit, stored, scale="nominal", bootstrap=Bootstrap(cluster=item, seed=SEED))
    decided = [(u, v) for u, v in zip(unit, verdict, strict=True) if v != "tie"]
    return found.as_dict() | {"decided": share_equal_pairs(decided), "stored": alpha.as_dict()}


def share_equal_pairs(rows: list[tuple[str, str]]) -> float:
    """The share of equal verdicts among all pairs of raters of a unit; every pair counts once."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for unit, verdict in rows:
        counts[unit][verdict] += 1
    equal = sum(k * (k - 1) for found in counts.values() for k in found.values())
    return equal / sum(n * (n - 1) for n in (found.total() for found in counts.values()))


def tabulate(run: Run) -> Tables:
    reproduced = 0
    for setting, results in run.store.find("ratings | ").items():
        result, label = results[SEED], setting.replace(" | ", " ")
        printed, found = run.settings["printed"].get(label), result["coefficients"]
        reproduced += is_reproduced(printed, found["alpha"]["value"])
        yield row(
            "ratings", "set", label, outputs=result["n_rated_twice"], raters=result["n_raters"], printed=printed,
            alpha=plain(found["alpha"]), ordinal=plain(result["ordinal"]), cohen=found["cohen"]["value"],
            percent=found["percent"]["value"], icc=found["icc_1"]["value"],
        )  # fmt: skip
        if "raters" in result:
            yield summarise_raters(label, result["raters"])
    for setting, results in run.store.find("comparisons | ").items():
        result, label = results[SEED], setting.replace(" | ", " ")
        printed = run.settings["printed_comparisons"].get(label)
        reproduced += is_reproduced(printed, result["stored"]["value"])
        ties = {one["value"]: one["share"] for one in result["prevalence"]}.get("tie", 0.0)
        yield row(
            "comparisons", "set", label, pairs=result["n_rated_twice"], raters=result["n_raters"], printed=printed,
            stored=plain(result["stored"]), alpha=plain(result["coefficients"]["alpha"]),
            percent=plain(result["coefficients"]["percent"]), decided=result["decided"], ties=ties,
        )  # fmt: skip
    total = len(run.settings["printed"]) + len(run.settings["printed_comparisons"])
    yield {"table": "facts", "reproduced": reproduced, "printed": total}


def is_reproduced(printed: float | None, value: float) -> bool:
    return printed is not None and abs(value - printed) <= 0.0051


def summarise_raters(label: str, reports: list[dict[str, Any]]) -> dict[str, Any]:
    """How many raters have a reason to review, the median agreement, and how consistent repeated ratings are."""
    repeats = [r["self_consistency"] for r in reports if r["self_consistency"]["value"] is not None]
    n = sum(r["n"] for r in repeats)
    agreed = sorted(r["agreement"]["value"] for r in reports if r["agreement"]["value"] is not None)
    return row(
        "raters", "set", label, raters=len(reports), review=sum(bool(report["reasons"]) for report in reports),
        agreement=agreed[len(agreed) // 2] if agreed else None, repeats=n,
        same=sum(r["value"] * r["n"] for r in repeats) / n if n else None,
    )  # fmt: skip
