"""Signatures name the version; 0.1.0 called z-shrunk `z`; every part offers the same treatments of ratings."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from evalapp import __version__
from evalapp.stats.agreement.normalise import RATING_METHODS, normalise_ratings
from evalapp.versions import read_entry, read_settings, read_table, signed, split_version
from scoring.boards.choices import CHOICES
from scoring.boards.data.files import ExportFolder
from scoring.boards.recompute import main, recompute_folder
from tests.scoring.boards.test_recompute import QUALITY, data, write


def test_signature_ends_with_the_version():
    assert signed("method:mean|ratings:z") == f"method:mean|ratings:z|v:{__version__}"
    assert split_version(signed("a|b:c")) == ("a|b:c", __version__)
    assert split_version("a|b:c") == ("a|b:c", "0.1.0")


@pytest.mark.parametrize(
    ("ratings", "version", "today"),
    [
        ("z", "0.1.0", "z-shrunk"), ("z", None, "z-shrunk"), ("z", __version__, "z"), ("rank", "0.1.0", "rank"),
        ("z-shrunk", __version__, "z-shrunk"),
    ],
)  # fmt: skip
def test_settings_of_the_first_version_are_unchanged(ratings, version, today):
    assert read_settings({"ratings": ratings, "seed": 3}, version) == {"ratings": today, "seed": 3}
    assert read_settings({}, version) == {}


def test_table_of_the_first_version_keeps_its_meaning():
    old = {"ratings": "z", "signature": "a|ratings:z|b", "aspects": [{"signature": "x|ratings:z"}], "rows": [1]}
    assert read_table(old) == {
        "ratings": "z-shrunk", "signature": "a|ratings:z-shrunk|b", "aspects": [{"signature": "x|ratings:z-shrunk"}],
        "rows": [1],
    }  # fmt: skip
    new = {"ratings": "z", "signature": signed("a|ratings:z|b")}
    assert read_table(new) == new
    entry = {"params": {"ratings": "z"}, "table": old, "tables": {"q": {"params": {"ratings": "z"}, "sets": []}}}
    found = read_entry(entry)
    assert found["params"] == found["tables"]["q"]["params"] == {"ratings": "z-shrunk"}
    assert entry["params"] == {"ratings": "z"}  # the input is not modified


def export(folder: Path, *, of: str, ratings: str, sign: bool) -> Path:
    """An export with one system table computed by `of`, which uses `ratings`."""
    from scoring.boards.data.folder import compute_entry

    write(folder, data())
    params = {**QUALITY, "method": "mean", "ratings": of}
    asked = {"kind": "systems", "params": params, "table": {"aspect": "quality"}}
    table = compute_entry(ExportFolder(folder), asked, {})
    table |= {"ratings": ratings, "signature": table["signature"].replace(f"ratings:{of}", f"ratings:{ratings}")}
    table["signature"] = signed(table["signature"]) if sign else table["signature"]
    entry = {"kind": "systems", "params": {**params, "ratings": ratings}, "table": table}
    (folder / "leaderboard.json").write_text(json.dumps({"format": 1, "tables": [entry]}))
    return folder


def test_first_version_export_with_z_is_recomputed_as_shrunk(tmp_path, capsys):
    old = export(tmp_path / "old", of="z-shrunk", ratings="z", sign=False)
    assert main([str(old)]) == 0
    assert "ratings z-shrunk" in capsys.readouterr().out
    assert recompute_folder(export(tmp_path / "new", of="z", ratings="z", sign=True))[0].is_equal
    # Plain values under the old name differ from the first version's.
    mixed = export(tmp_path / "mixed", of="z", ratings="z", sign=False)
    assert main([str(mixed)]) == 1
    assert f"(computed by version 0.1.0, here {__version__})" in capsys.readouterr().out


def test_plain_z_of_systems_by_hand(tmp_path):
    """Each person's mean and sample SD over their ratings; the mean over people per output, then over outputs."""
    (found,) = recompute_folder(export(tmp_path / "z", of="z", ratings="z", sign=True))
    # Bob's repeat (bob#2) does not count.
    rows = [row for row in data()["ratings"] if row["rater"] in ("ann", "bob")]
    by_person = {name: np.array([row["value"] for row in rows if row["rater"] == name]) for name in ("ann", "bob")}
    outputs: dict[str, list[float]] = {}
    for row in (row for row in rows if row["system"] == "m1"):
        own = by_person[row["rater"]]
        outputs.setdefault(row["item"], []).append((row["value"] - own.mean()) / own.std(ddof=1))
    (m1,) = (row for row in found.recomputed["rows"] if row["label"] == "m1")
    assert m1["value"] == pytest.approx(np.mean([np.mean(values) for values in outputs.values()]), abs=1e-9)


def test_ratings_without_a_z_score_are_excluded_counted_and_reported():
    """carl rates one output, dora rates every output the same: neither has a z-score."""
    from scoring.boards.systems.rankings import systems_by_ratings
    from tests.evalapp.stats.rated import make_ratings

    rows = [("i1", "s", "ann", 1), ("i1", "t", "ann", 3), ("i2", "s", "carl", 5)]
    rows += [("i1", "s", "dora", 4), ("i1", "t", "dora", 4)]
    found = systems_by_ratings(
        make_ratings(rows), {**QUALITY, "method": "mean", "ratings": "z"}, aspect="q", low=1, high=5
    )
    assert found["counted"] == [
        "3 ratings have no z-score and are left out: their raters gave one rating, or equal ratings only."
    ]
    assert {row["label"]: row["value"] for row in found["rows"]} == pytest.approx({"t": 0.5**0.5, "s": -(0.5**0.5)})
    assert (found["n_raters"], [row["n"] for row in found["rows"]]) == (1, [1, 1])


def test_every_part_offers_the_same_treatments():
    """A treatment known only to one part would be refused, or ignored, by the others."""
    from scoring.boards.choices import RATINGS
    from scoring.ml import catalogue
    from scoring.services.training import RATINGS as TRAINED_ON

    assert tuple(RATINGS) == TRAINED_ON == RATING_METHODS
    for method in RATING_METHODS:
        assert method in CHOICES["ratings"]
        normalise_ratings([1.0, 2.0], [0, 1], [0, 0], method=method)
    assert "other" not in CHOICES["ratings"]
    named = [option for entry in catalogue() for option in entry.train_options if option.name == "ratings"]
    assert len(named) > 2
    assert all(option.choices == RATING_METHODS for option in named)
