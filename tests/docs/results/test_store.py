"""Results are computed once per setting and seed, survive a kill, and are formatted as the pages write them."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from scipy import stats

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def store() -> ModuleType:
    spec = importlib.util.spec_from_file_location("results_store", ROOT / "docs/results/store.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["results_store"] = module
    spec.loader.exec_module(module)
    return module


def opened(store: ModuleType, folder: Path, code: str = "") -> Any:
    return store.Store(folder / "x.jsonl", folder / "aside.jsonl", code)


def test_result_is_computed_once(store: ModuleType, tmp_path: Path) -> None:
    calls: list[int] = []

    def work() -> dict[str, object]:
        calls.append(1)
        return {"value": np.float64(0.5), "none": float("nan"), "many": np.array([1, 2])}

    kept = opened(store, tmp_path / "out")
    first = kept.once("a", 13, work)
    again = opened(store, tmp_path / "out").once("a", 13, work)
    assert len(calls) == 1
    assert first == again
    assert (first["value"], first["none"], first["many"]) == (0.5, None, [1, 2])
    assert first["wall_seconds"] >= 0
    opened(store, tmp_path / "out").once("a", 14, work)
    assert len(calls) == 2


def test_page_says_when_its_figures_come_from_older_code(store: ModuleType, tmp_path: Path) -> None:
    kept = opened(store, tmp_path, "now")
    new = kept.once("a", 1, lambda: {"value": 1})
    assert new["code"] == "now"
    old = {name: value for name, value in new.items() if name != "code"}
    assert "earlier" not in store.machine_line([new], "now")
    assert "**1 of 2 of these results" in store.machine_line([new, old], "now")
    assert "**All of these results" in store.machine_line([{**new, "code": "before"}], "now")
    assert store.machine_line([], "now").endswith("no result yet.")


def test_code_version_covers_what_an_evaluator_runs(store: ModuleType, tmp_path: Path) -> None:
    shared = tmp_path / "scoring" / "ml"
    own, other = (shared / "evaluators" / name / "b.py" for name in ("ream", "maude"))
    for path in (shared / "a.py", own, other):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("def f():\n    return 1\n", encoding="utf-8")

    def states() -> list[str]:
        return [store.state_of_code(*names, root=tmp_path) for names in ((), ("ream",), ("maude",))]

    def changed(path: Path, text: str) -> list[bool]:
        before = states()
        path.write_text(text, encoding="utf-8")
        return [one != other for one, other in zip(before, states(), strict=True)]

    assert states() == states()
    assert changed(own, '"""A word."""\n\n\ndef f():\n    """One."""\n    return 1  # one\n') == [False] * 3
    plan = "from a.estimate import g\n\n\ndef plan():\n    return g()\n\n\ndef f():\n    return 1\n"
    assert changed(own, plan) == [False] * 3
    assert changed(own, "def f():\n    return 2\n") == [True, True, False]
    assert changed(other, "def f():\n    return 2\n") == [True, False, True]
    assert changed(shared / "a.py", "def f():\n    return 2\n") == [True, True, True]


def test_truncated_line_is_computed_again(store: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    kept = opened(store, tmp_path)
    kept.once("a", 1, lambda: {"value": 1})
    path.write_text(path.read_text(encoding="utf-8") + '{"setting": "b", "seed"', encoding="utf-8")
    kept = opened(store, tmp_path)
    assert list(kept.rows) == [("a", 1)]
    kept.once("b", 1, lambda: {"value": 2})
    whole = opened(store, tmp_path)
    assert [row["value"] for row in whole.of("b", [1, 2])] == [2]
    assert set(whole.rows) == {("a", 1), ("b", 1)}


def test_failed_result_is_not_stored_and_its_time_is_marked_missing(store: ModuleType, tmp_path: Path) -> None:
    def work() -> dict[str, object]:
        raise RuntimeError("out of luck")

    kept = opened(store, tmp_path)
    with pytest.raises(RuntimeError):
        kept.once("a", 1, work)
    again = opened(store, tmp_path)
    assert not again.rows
    resumed = again.once("a", 1, lambda: {"value": 1})
    assert resumed == opened(store, tmp_path).rows["a", 1]
    at_once = again.once("a", 2, lambda: {"value": 1})
    assert store.minutes([resumed, at_once]) == "≥ 0.0"
    assert store.minutes([at_once]) == "0.0"
    assert "2 results took at least 0.00 h" in store.machine_line([resumed, at_once], "")
    assert "1 results took 0.00 h" in store.machine_line([at_once], "")


def test_figures_as_text(store: ModuleType) -> None:
    assert [store.number(v) for v in (0.1234, -0.5, 1.0, -1.25, None, float("nan"))] == [
        ".123", "-.500", "1.000", "-1.250", "-", "-"
    ]  # fmt: skip
    # Mean 2, SD 1 (n - 1) of 1, 2, 3.
    assert store.mean_sd([1.0, 2.0, 3.0, None]) == "2.000 ± 1.000"
    assert store.mean_sd([0.25]) == ".250"
    assert store.mean_sd([]) == "-"
    low, high = store.t_interval([1.0, 2.0, 3.0])
    expected = stats.t.interval(0.95, 2, loc=2.0, scale=3**-0.5)
    assert (low, high) == pytest.approx(expected)
    assert store.mean_interval([1.0, 2.0, 3.0], 1) == "2.0 [-.5, 4.5]"
    assert store.estimate({"value": 0.5, "low": 0.4, "high": None}) == ".500"
    assert store.estimate({"value": 0.5, "low": 0.4, "high": 0.6}) == ".500 [.400, .600]"
    assert store.estimate({"value": None, "low": None, "high": None}) == "-"
    assert store.table(["a", "b"], [["1", "2"]]) == ["| a | b |", "|---|---|", "| 1 | 2 |"]


def test_trial_run_writes_no_page_and_separates_its_results(
    store: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(store, "PAGES", tmp_path / "pages")
    (tmp_path / "pages").mkdir()
    monkeypatch.setattr(sys, "argv", ["x.py", "--data", str(tmp_path), "--out", str(tmp_path / "out"), "--quick"])
    quick = store.arguments("what it does", seeds=(1, 2, 3), parts=("a", "b"))
    assert quick.seeds == (1, 2)
    assert quick.wants("a")
    store.publish(quick, "x", ["# X"])
    assert "# X" in capsys.readouterr().out
    assert not list((tmp_path / "pages").iterdir())
    given = ["x.py", "--data", str(tmp_path), "--out", str(tmp_path / "out"), "--items", "50", "--only", "b"]
    monkeypatch.setattr(sys, "argv", given)
    real = store.arguments("what it does", seeds=(1, 2, 3), parts=("a", "b"))
    assert not real.wants("a")
    assert "about 50 items" in store.what_was_read(real)
    store.publish(real, "x", ["# X", ""])
    assert (tmp_path / "pages" / "x.md").read_text(encoding="utf-8") == "# X\n"
    assert store.store_of(quick, "x").path != store.store_of(real, "x").path
    assert store.work_folder(quick, "x", 1) != store.work_folder(real, "x", 1)
    missing = ["x.py", "--data", str(tmp_path / "nothing")]
    monkeypatch.setattr(sys, "argv", missing)
    with pytest.raises(SystemExit):
        store.arguments("what it does", seeds=(1,))


def test_figures_are_stored_apart_from_data_and_unfinished_results(store: ModuleType, tmp_path: Path) -> None:
    kept = opened(store, tmp_path)
    kept.once("people", 0, lambda: {"means": [4.5]}, data=True)
    kept.once("a", 1, lambda: {"value": 1 / 3})
    (row,) = map(json.loads, kept.path.read_text(encoding="utf-8").splitlines())
    assert (row["setting"], row["seed"], row["result"]["value"]) == ("a", 1, 0.33333333)
    begun, people, also_begun = map(json.loads, kept.aside.read_text(encoding="utf-8").splitlines())
    assert (begun, also_begun) == ({"setting": "people", "seed": 0}, {"setting": "a", "seed": 1})
    assert people["result"]["means"] == [4.5]
    again = opened(store, tmp_path)
    for one in (kept, again):
        assert [figure["value"] for figure in one.figures()] == [0.33333333]
        assert set(one.rows) == {("people", 0), ("a", 1)}


def test_option_unused_by_a_script_is_refused(
    store: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["x.py", "--data", str(tmp_path), "--items", "5"])
    assert store.arguments("what it does", seeds=(1,)).items == 5
    with pytest.raises(SystemExit):
        store.arguments("what it does", seeds=(1,), without=("items",))
    assert "--items" in capsys.readouterr().err
    monkeypatch.setattr(sys, "argv", ["x.py"])
    read_nothing = store.arguments("what it does", seeds=(1, 2), without=("data", "items", "page-only"))
    assert (read_nothing.items, read_nothing.page_only, read_nothing.seeds) == (None, False, (1, 2))


def test_results_not_recomputed_stay_and_name_their_run(store: ModuleType) -> None:
    old = "# T\n\nEncoder: x. Seeds: 13.\n\n## A\n\nold a\n\n## B\n\nold b\n\n### C\n\nNot computed yet.\n"
    new = "# T\n\nEncoder: x. Seeds: 14.\n\n## A\n\nnew a\n\n## B\n\nNot computed yet.\n\n### C\n\nNot computed yet.\n"
    page = store.with_kept(new, old)
    assert page.count("Encoder: x. Seeds: 14.") == 1
    assert "new a" in page
    assert "old a" not in page
    assert "## B\n\n*Of an earlier run, whose rows were not kept. Encoder: x. Seeds: 13.*\n\nold b\n\n### C\n" in page
    assert page.endswith("### C\n\nNot computed yet.\n")
    # Repeated: the note appears once and names the original run.
    assert store.with_kept(new.replace("14", "15"), page).count("Seeds: 13.") == 1
    assert store.with_kept(old, old) == old
    for code in (store.code_line([{"code": "abc"}], "abc"), store.code_line([{"code": "abc"}, {"code": "d"}], "abc")):
        assert f"## B\n\n*Of an earlier run, whose rows were not kept. {code}*\n\nold b" in store.with_kept(
            new.replace("14", "13"), old.replace("Seeds: 13.\n", f"Seeds: 13.\n\n{code}\n")
        )
        said = store.with_kept(new, old.replace("Seeds: 13.\n", f"Seeds: 13.\n\nMade by a script. {code}\n"))
        assert f"kept. Encoder: x. Seeds: 13. {code}*\n\nold b" in said


def test_result_is_recomputed_for_comparison(store: ModuleType, tmp_path: Path) -> None:
    first = opened(store, tmp_path, "before")
    first.once("a", 13, lambda: {"value": 0.5, "many": [1, 2], "training_seconds": 3.0})
    first.once("b", 13, lambda: {"value": 1.0})

    def again(*names: str, code: str = "now") -> Any:
        return store.Store(tmp_path / "x.jsonl", tmp_path / "aside.jsonl", code, names)

    kept = again("a@13", "b@13")
    assert kept.lacks("a", 13)
    assert kept.once("a", 13, lambda: {"value": 0.5 + 3e-7, "many": [1, 2], "training_seconds": 9.0})["value"] == 0.5
    assert not kept.lacks("a", 13)
    rows = list(again().rows.values())
    assert len(rows) == 2
    said = store.machine_line(rows, "now", again().checks)
    assert "**All of these results were computed by an earlier state" in said
    assert "a (seed 13); no figure differs by more than 3e-07, which another processor" in said
    kept.once("b", 13, lambda: {"value": 1.0})
    assert "a (seed 13); b (seed 13)" in store.machine_line(rows, "now", again().checks)
    with pytest.raises(SystemExit, match=r"has no result a@14, c@13: say SETTING@SEED"):
        again("a@14", "c@13", "b@13")
    # Results of other code are not compared; a changed shape is not a small difference.
    assert "again" not in store.machine_line(rows, "later", again().checks)
    for other in ({"value": 1.0, "more": 1}, {"value": [1.0]}, {"value": None}):
        with pytest.raises(SystemExit, match="other results than the row has"):
            again("b@13").once("b", 13, lambda other=other: other)


def test_weights_are_not_figures_but_derived_values_are(store: ModuleType) -> None:
    one = {"signature": "maude|w:3f", "loss": 0.5, "rows": [1.0, 2.0], "wall_seconds": 3, "load": 1, "code": "a"}
    two = {"signature": "maude|w:c4", "loss": 0.5, "rows": [1.0, 2.5], "wall_seconds": 9, "load": 2, "code": "b"}
    assert store.farthest(one, two) == 0.5
    assert store.farthest(one, {**two, "rows": [1.0]}) == float("inf")
    assert store.farthest(one, {**one, "signature": "maude|w:c4"}) == 0
