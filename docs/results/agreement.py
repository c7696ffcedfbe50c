"""How far do people agree on every set, by every coefficient; does alpha equal the table that comes with the data?

Ratings and comparisons of all sets, one aspect at a time; pairs of raters who are persons; raters worth a look.
"""

from __future__ import annotations

import collections
import gzip
import json
from pathlib import Path
from typing import Any

from store import Given, Result, arguments, estimate, number, publish, store_of, table

from evalapp.stats.agreement.coefficients import agreement_table
from evalapp.stats.agreement.krippendorff import krippendorff_alpha
from evalapp.stats.agreement.normalise import normalise_ratings
from evalapp.stats.agreement.raters import rater_reports
from evalapp.stats.resampling.bootstrap import Bootstrap

SEED = 13

#: Column alpha of the README beside the data: (set, aspect) -> figure. Interval unless the set is of comparisons.
PRINTED = {
    ("rankme", "likert_joint_informativeness"): 0.81,
    ("rankme", "likert_joint_naturalness"): 0.02,
    ("rankme", "likert_joint_quality"): 0.01,
    ("rankme", "likert_apart_informativeness"): 0.53,
    ("rankme", "likert_apart_naturalness"): 0.04,
    ("rankme", "likert_apart_quality"): 0.19,
    ("e2e", "naturalness"): 0.13,
    ("e2e", "quality"): 0.20,
    ("dstc7_dev", "relevance"): 0.17,
    ("dstc7_dev", "informativeness"): 0.13,
    ("usr_topicalchat", "overall"): 0.66,
    ("usr_personachat", "overall"): 0.64,
    ("grade_convai2", "coherence"): 0.12,
    ("grade_dailydialog", "coherence"): 0.08,
    ("grade_empathetic", "coherence"): 0.03,
    ("predictive_engagement", "engagement"): 0.76,
    ("union_roc", "reasonable"): 0.15,
    ("scratchplot", "naturalness"): 0.32,
    ("scratchplot", "interestingness"): 0.46,
    ("scratchplot", "coherence"): 0.24,
    ("scratchplot", "ending, round 1"): 0.15,
    ("scratchplot", "ending, round 2"): 0.23,
    ("pandalm", "overall"): 0.86,
}
#: Open scales, where the order within what one person judged side by side is used.
BY_RANK = {"e2e"}
#: A rater is a person throughout the set; elsewhere a place in the list of an item.
PERSONS = {"rankme", "e2e", "dstc7_dev", "usr_topicalchat", "usr_personachat", "scratchplot", "pandalm"}

INTRODUCTION = """# Agreement between raters

Every aspect of every set with individual raters, by every coefficient, computed by `agreement_table` and
`rater_reports` from the files alone:

```
python docs/results/agreement.py --data FOLDER_OF_SETS --out FOLDER
```

Units are outputs (comparisons: pairs of outputs of one item). Square brackets hold 95 % bootstrap intervals from 1,000
resamples of items, seed 13. “Table” is the column alpha of the README that comes with the data."""


def read(folder: Path, name: str) -> list[dict[str, Any]]:
    path = next(folder.glob(f"{name}.jsonl*"), None)
    if path is None:
        return []
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def by_aspect(rows: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    found = collections.defaultdict(list)
    for row in rows:
        aspect = row["aspect"]
        if aspect == "ending":
            aspect += f", round {row['item'][1]}"
        found[aspect].append(row)
    return dict(found)


def of_ratings(name: str, rows: list[dict[str, Any]]) -> Result:
    """All coefficients of one aspect's ratings, and the reports on its raters."""
    item, rater = [row["item"] for row in rows], [row["rater"] for row in rows]
    method = "rank" if name in BY_RANK else "raw"
    value = normalise_ratings([row["value"] for row in rows], item, rater, method=method)
    unit = [f"{row['item']}\t{row['system']}" for row in rows]
    found = agreement_table(value, unit, rater, scale="interval", bootstrap=Bootstrap(cluster=item, seed=SEED))
    ordinal = krippendorff_alpha(unit, value, scale="ordinal", bootstrap=Bootstrap(cluster=item, seed=SEED))
    nominal = krippendorff_alpha(unit, value, scale="nominal", bootstrap=Bootstrap(cluster=item, seed=SEED))
    result = found.as_dict() | {"ordinal": ordinal.as_dict(), "nominal": nominal.as_dict(), "method": method}
    if name in PERSONS:
        person = [who.split("#")[0] for who in rater]
        again = [place if "#" in who else None for who, place in zip(rater, unit, strict=True)]
        result["raters"] = [report.as_dict() for report in rater_reports(value, unit, person, repeat_of=again)]
    return result


def of_comparisons(rows: list[dict[str, Any]]) -> Result:
    """Nominal agreement on verdicts, each pair of outputs in one order whatever side it was shown on."""
    turned = {"a": "b", "b": "a"}
    unit, verdict, stored = [], [], [row["verdict"] for row in rows]
    for row in rows:
        swap = row["system_a"] > row["system_b"]
        first, second = sorted((row["system_a"], row["system_b"]))
        unit.append(f"{row['item']}\t{first}\t{second}")
        verdict.append(turned.get(row["verdict"], row["verdict"]) if swap else row["verdict"])
    rater, item = [row["rater"] for row in rows], [row["item"] for row in rows]
    found = agreement_table(verdict, unit, rater, scale="nominal", bootstrap=Bootstrap(cluster=item, seed=SEED))
    decided = [place for place, entry in enumerate(verdict) if entry != "tie"]
    columns = [[column[place] for place in decided] for column in (verdict, unit)]
    as_stored = krippendorff_alpha(unit, stored, scale="nominal", bootstrap=Bootstrap(cluster=item, seed=SEED))
    return found.as_dict() | {"decided": pooled_share(*columns), "stored": as_stored.as_dict()}


def pooled_share(verdict: list[str], unit: list[str]) -> float:
    """The share of equal pairs of verdicts among all pairs on one unit, every pair counting once."""
    counts: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for name, entry in zip(unit, verdict, strict=True):
        counts[name][entry] += 1
    equal = sum(k * (k - 1) for found in counts.values() for k in found.values())
    pairs = sum(n * (n - 1) for n in (found.total() for found in counts.values()))
    return equal / pairs


def compute(given: Given) -> dict[str, dict[str, Result]]:
    kept = store_of(given, "agreement")
    found: dict[str, dict[str, Result]] = {"ratings": {}, "comparisons": {}}
    for folder in sorted(path for path in given.data.iterdir() if path.is_dir()):
        for kind, work in (("ratings", of_ratings), ("comparisons", lambda _, rows: of_comparisons(rows))):
            for aspect, rows in by_aspect(read(folder, kind)).items():
                if len({row["rater"] for row in rows}) < 2:
                    continue
                setting = f"{folder.name} | {aspect}"
                if not given.page_only:
                    kept.once(f"{kind} | {setting}", SEED, lambda n=folder.name, r=rows, w=work: w(n, r))
                for result in kept.of(f"{kind} | {setting}", [SEED]):
                    found[kind][setting] = result
    return found


def printed(setting: str, result: Result, rated: bool) -> tuple[str, str]:
    """The README's figure, and whether ours rounds to it."""
    expected = PRINTED.get(tuple(setting.split(" | ")))  # type: ignore[call-overload]
    if expected is None or (not rated and setting.split(" | ")[0] in ("e2e", "rankme")):
        return "-", "-"
    value = (result["coefficients"]["alpha"] if rated else result["stored"])["value"]
    return number(expected, 2), "yes" if abs(value - expected) <= 0.0051 else f"**no**, {value - expected:+.3f}"


def rating_lines(results: dict[str, Result]) -> list[str]:
    body = []
    for setting, result in results.items():
        found = result["coefficients"]
        body.append(
            [
                setting.replace(" | ", " "),
                f"{result['n_rated_twice']:,}",
                str(result["n_raters"]),
                *printed(setting, result, True),
                estimate(found["alpha"]),
                estimate(result["ordinal"]),
                number(result["nominal"]["value"]),
                number(found["fleiss"]["value"]),
                number(found["cohen"]["value"]),
                number(found["percent"]["value"]),
                number(found["icc_1"]["value"]),
                number(found["icc_a1"]["value"]),
                number(found["icc_ak"]["value"]),
                number(found["icc_c1"]["value"]),
            ]
        )
    head = "set, aspect|outputs|raters|table|equal|alpha interval|alpha ordinal|alpha nominal|Fleiss|Cohen²|percent|"
    return table((head + "ICC 1|ICC A,1|ICC A,k|ICC C,1").split("|"), body)


def comparison_lines(results: dict[str, Result]) -> list[str]:
    body = []
    for setting, result in results.items():
        found = result["coefficients"]
        shares = {row["value"]: row["share"] for row in result["prevalence"]}
        body.append(
            [
                setting.replace(" | ", " "),
                f"{result['n_rated_twice']:,}",
                str(result["n_raters"]),
                *printed(setting, result, False),
                estimate(result["stored"]),
                estimate(found["alpha"]),
                number(found["fleiss"]["value"]),
                number(found["cohen"]["value"]),
                estimate(found["percent"]),
                number(result["decided"]),
                number(shares.get("tie", 0.0)),
            ]
        )
    head = "set, aspect|pairs|raters|table|equal|alpha, sides as stored|alpha, systems|Fleiss|Cohen|percent|"
    head += "equal where neither ties|share of ties"
    return table(head.split("|"), body)


def pair_lines(found: dict[str, dict[str, Result]]) -> list[str]:
    """Sets with few raters: every pair; sets with many: how the pairs spread."""
    few, many = [], []
    for results in found.values():
        for setting, result in results.items():
            name = setting.split(" | ")[0]
            if name not in PERSONS or not result["pairs"]:
                continue
            kappas = sorted(p["kappa"]["value"] for p in result["pairs"] if p["kappa"]["value"] is not None)
            if len(result["pairs"]) <= 10 and (name == "pandalm" or setting.endswith("overall")):
                few += [
                    [
                        setting.replace(" | ", " "),
                        f"{pair['rater_a']}, {pair['rater_b']}",
                        f"{pair['n_units']:,}",
                        number(pair["percent"]["value"]),
                        estimate(pair["kappa"]),
                        estimate(pair["alpha"]),
                    ]
                    for pair in result["pairs"]
                ]
            elif len(kappas) > 10:
                at = [kappas[round(share * (len(kappas) - 1))] for share in (0, 0.25, 0.5, 0.75, 1)]
                left = f"{result['pairs_left_out']:,}"
                many.append([setting.replace(" | ", " "), str(len(kappas)), left, *map(number, at)])
    lines = table(["set, aspect", "raters", "units", "percent", "Cohen", "alpha"], few)
    lines += [
        "",
        "Many raters: Cohen's kappa of the pairs with 10 units or more in common (at most 200, those that share",
    ]
    lines += ["most), weighted by squares for ratings.", ""]
    return lines + table(
        ["set, aspect", "pairs", "left out", "least", "quarter", "half", "three quarters", "largest"], many
    )


def rater_lines(results: dict[str, Result]) -> list[str]:
    body, examples = [], []
    for setting, result in results.items():
        reports = result.get("raters")
        if not reports:
            continue
        looked = [report for report in reports if report["reasons"]]
        repeats = [r["self_consistency"] for r in reports if r["self_consistency"]["value"] is not None]
        n = sum(r["n"] for r in repeats)
        same = number(sum(r["value"] * r["n"] for r in repeats) / n) if n else "-"
        agreed = sorted(r["agreement"]["value"] for r in reports if r["agreement"]["value"] is not None)
        middle = number(agreed[len(agreed) // 2]) if agreed else "-"
        body.append([setting.replace(" | ", " "), str(len(reports)), str(len(looked)), middle, str(n), same])
        if looked and setting.split(" | ")[0] in ("dstc7_dev", "scratchplot", "usr_topicalchat"):
            first = max(looked, key=lambda report: (len(report["reasons"]), report["n"]))
            examples.append(f"- {setting.replace(' | ', ' ')}, {first['rater']}: {' '.join(first['reasons'])}")
    lines = table(
        ["set, aspect", "raters", "worth a look", "r with the others, middle rater", "repeats", "same answer"], body
    )
    return [*lines, "", "For example:", "", *examples]


def differences(found: dict[str, dict[str, Result]]) -> list[str]:
    equal, unequal = 0, []
    for kind, results in found.items():
        for setting, result in results.items():
            said = printed(setting, result, kind == "ratings")[1]
            equal += said == "yes"
            if said.startswith("**no"):
                unequal.append(f"{setting.replace(' | ', ' ')} ({said.replace('**', '')})")
    text = f"{equal} of the {len(PRINTED)} figures of the table are met to .01."
    return [text + (f" Not met: {'; '.join(unequal)}." if unequal else "")]


NOTES = """
Outputs: those with two ratings or more. Cohen² weights by squared distance and is the mean of the pairs of raters with
10 outputs or more in common, weighted by these. ICC 1: raters nested in outputs; A: agreement; C: consistency (a dash
where too few raters share outputs); k: mean of as many ratings as an output has. e2e: ranks within what one person
judged side by side. In the grade sets, union_roc and predictive_engagement a rater is a place in the list, not a
person, so ICC A and C and the pairs say nothing more than ICC 1 there. novikova and dailydialog_multiref have medians
and means only: no agreement can be computed.
"""


def write(given: Given, found: dict[str, dict[str, Result]]) -> None:
    lines = [
        INTRODUCTION, "", "## Ratings", "", *differences(found), "", *rating_lines(found["ratings"]), NOTES,
        "## Comparisons", "",
        "Verdicts a, b and tie (nominal). “Sides as stored” takes a and b as the files have them, as the README does;",
        "the columns after it put the two systems in one order, whatever side they were shown on, so that chance is",
        "that of the systems and not of the sides: where one system is often better that lowers alpha a little.", "",
        *comparison_lines(found["comparisons"]), "",
        "“Equal where neither ties” counts every pair of raters once; the README has .625 (naturalness) and .671",
        "(quality) for e2e, where comparisons are the order within one row. PandaLM's authors print kappas of .85, .88",
        "and .86 for the three pairs of their annotators.", "",
        "## Pairs of raters", "", *pair_lines(found), "",
        "## Raters worth a look", "",
        "Reasons are given where a distance is large and not chance over all raters of the aspect together; nobody is",
        "left out for them. Repeats: outputs that one person judged twice (`#2` in the files).", "",
        *rater_lines(found["ratings"]),
    ]  # fmt: skip
    publish(given, "agreement", lines)


def main() -> None:
    given = arguments(__doc__ or "", seeds=[SEED], without=("seeds", "encoder", "items", "quick"))
    write(given, compute(given))


if __name__ == "__main__":
    main()
