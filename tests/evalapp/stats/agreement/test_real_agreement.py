"""Real ratings where many raters gave few: other libraries agree, repeats and words are as documented. Sets of
../shared/data."""

from __future__ import annotations

import gzip
import itertools
import json
import re
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from sklearn.metrics import cohen_kappa_score

from evalapp.stats.agreement.coefficients import MIN_SHARED_UNITS, agreement_table
from evalapp.stats.agreement.icc import iccs
from evalapp.stats.resampling.bootstrap import Bootstrap
from evalapp.words import split_words
from scoring.boards.agreement.query import AgreementQuery
from scoring.boards.base import AspectInfo
from scoring.boards.data.files import ExportFolder
from scoring.boards.data.folder import FolderData

pytestmark = pytest.mark.slow

#: Sets in which some raters did not rate every output. (On grade_convai2, with almost no variance between raters,
#: statsmodels stops before its maximum.)
SETS = [
    ("scratchplot", "naturalness"), ("scratchplot", "coherence"), ("usr_topicalchat", "overall"),
    ("usr_personachat", "overall"), ("rankme", "likert_apart_quality"), ("rankme", "me_joint_informativeness"),
]  # fmt: skip


def ratings(folder: Path, aspect: str) -> pd.DataFrame:
    """One row per rating; repeats (`x#2`) excluded."""
    path = next(folder.glob("ratings.jsonl*"))
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as lines:
        rows = [row for row in map(json.loads, lines) if row["aspect"] == aspect and "#" not in row["rater"]]
    unit = [f"{row['item']}\t{row['system']}" for row in rows]
    return pd.DataFrame({"y": [float(row["value"]) for row in rows], "u": unit, "r": [row["rater"] for row in rows]})


@pytest.mark.parametrize(("name", "aspect"), SETS)
def test_variances_equal_statsmodels(shared_data, name, aspect):
    """Consistency is never below absolute agreement, and both equal the coefficients from statsmodels' REML variances
    (of 100 outputs, since more take minutes)."""
    frame = ratings(shared_data / name, aspect)
    whole = iccs(frame["y"], frame["u"], frame["r"], bootstrap=Bootstrap(resamples=0))
    assert whole["C,1"].value >= whole["A,1"].value - 1e-9
    frame = frame[frame["u"].isin(sorted(set(frame["u"]))[::3][:100])]
    found = iccs(frame["y"], frame["u"], frame["r"], bootstrap=Bootstrap(resamples=0))
    twice = frame[frame.groupby("u")["u"].transform("size") > 1].assign(g=1)
    spread = twice["y"].std()
    parts = {"u": "0 + C(u)", "r": "0 + C(r)"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        twice["y"] /= spread
        model = smf.mixedlm("y ~ 1", twice, groups="g", re_formula="0", vc_formula=parts)
        fitted = model.fit(reml=True)
    assert fitted.converged
    variance = dict(zip(model.exog_vc.names, fitted.vcomp, strict=True))
    total = variance["u"] + variance["r"] + fitted.scale
    assert found["A,1"].value == pytest.approx(variance["u"] / total, abs=0.003)
    assert found["C,1"].value == pytest.approx(variance["u"] / (variance["u"] + fitted.scale), abs=0.003)


def test_mean_kappa_covers_all_pairs_with_enough_units(shared_data):
    """dstc7_dev: 375 pairs of raters share 10 outputs; scikit-learn's kappa of each, weighted by outputs."""
    frame = ratings(shared_data / "dstc7_dev", "relevance")
    found = agreement_table(frame["y"], frame["u"], frame["r"], max_pairs=60, bootstrap=Bootstrap(resamples=0))
    by_rater = {rater: rows.set_index("u")["y"] for rater, rows in frame.groupby("r")}
    kappas, units = [], []
    for one, two in itertools.combinations(sorted(by_rater), 2):
        both = by_rater[one].index.intersection(by_rater[two].index)
        if len(both) >= MIN_SHARED_UNITS:
            pair = by_rater[one][both].astype(int), by_rater[two][both].astype(int)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                kappas.append(cohen_kappa_score(*pair, weights="quadratic", labels=range(1, 6)))
            units.append(len(both))
    assert len(kappas) == 375
    known = ~np.isnan(kappas)
    assert len(found.pairs) == 60
    mean = np.average(np.array(kappas)[known], weights=np.array(units)[known])
    assert found.coefficients["cohen"].value == pytest.approx(mean, abs=1e-6)
    assert mean == pytest.approx(0.093, abs=0.0005)


@pytest.mark.parametrize(("aspect", "marked", "repeats"), [("quality", 395, 90), ("naturalness", 280, 62)])
def test_repeats_of_real_raters_belong_to_one_person(shared_data, aspect, marked, repeats):
    """e2e: ratings by `x#2`, and the share that repeats an output x had already rated (docs/results/floors.md)."""
    data = FolderData(ExportFolder(shared_data / "e2e"), {"table": {}}, {})
    judged = data.load_judged(AspectInfo(aspect), "ratings", AgreementQuery())
    assert len(judged) - len(judged.first_judgements()) == repeats
    with gzip.open(shared_data / "e2e" / "ratings.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [row for row in map(json.loads, lines) if row["aspect"] == aspect]
    assert sum("#" in row["rater"] for row in rows) == marked
    keys = {(row["item"], row["system"], row["rater"]) for row in rows}
    again = [row for row in rows if (row["item"], row["system"], row["rater"].partition("#")[0]) in keys]
    assert sum("#" in row["rater"] for row in again) == repeats


def test_words_of_real_non_ascii_outputs(shared_data):
    """e2e: 3,170 of 13,230 outputs (mostly "café") have different words than under `[a-z0-9']+`, but the same
    number."""
    with next((shared_data / "e2e").glob("outputs.jsonl*")).open(encoding="utf-8") as lines:
        texts = [json.loads(line)["text"] for line in lines]
    pairs = [(split_words(text), re.findall(r"[a-z0-9']+", text.lower())) for text in texts]
    assert len(pairs) == 13_230
    assert sum(one != two for one, two in pairs) == 3_170
    assert all(len(one) == len(two) for one, two in pairs)
