"""Results are computed once per setting and seed, survive a kill, and can be compared with a new computation."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest


@pytest.fixture(scope="module")
def store(module: Callable[[str], ModuleType]) -> ModuleType:
    return module("store")


def open_store(store: ModuleType, folder: Path, code: str = "", again: tuple[str, ...] = ()) -> Any:
    return store.Store(folder / "x.jsonl", folder / "private.jsonl", code, again)


def test_a_result_is_computed_once(store: ModuleType, tmp_path: Path) -> None:
    calls: list[int] = []

    def work() -> dict[str, object]:
        calls.append(1)
        return {"value": np.float64(0.5), "none": float("nan"), "many": np.array([1, 2])}

    first = open_store(store, tmp_path / "out", "now").once("a", 13, work)
    second = open_store(store, tmp_path / "out", "later").once("a", 13, work)
    assert len(calls) == 1
    assert first == second
    assert (first["value"], first["none"], first["many"], first["code"]) == (0.5, None, [1, 2], "now")
    assert first["wall_seconds"] >= 0
    open_store(store, tmp_path / "out").once("a", 14, work)
    assert len(calls) == 2


def test_a_truncated_line_is_computed_again(store: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    open_store(store, tmp_path).once("a", 1, lambda: {"value": 1})
    path.write_text(path.read_text(encoding="utf-8") + '{"setting": "b", "seed"', encoding="utf-8")
    reopened = open_store(store, tmp_path)
    assert list(reopened.rows) == [("a", 1)]
    reopened.once("b", 1, lambda: {"value": 2})
    whole = open_store(store, tmp_path)
    assert [row["value"] for row in whole.get("b", [1, 2])] == [2]
    assert set(whole.rows) == {("a", 1), ("b", 1)}


def test_a_failed_result_is_not_stored_and_the_next_one_is_marked_as_resumed(store: ModuleType, tmp_path: Path) -> None:
    def work() -> dict[str, object]:
        raise RuntimeError("out of luck")

    with pytest.raises(RuntimeError):
        open_store(store, tmp_path).once("a", 1, work)
    reopened = open_store(store, tmp_path)
    assert not reopened.rows
    assert reopened.once("a", 1, lambda: {"value": 1})["resumed"]
    assert "resumed" not in reopened.once("a", 2, lambda: {"value": 1})


def test_data_and_computations_that_only_began_are_in_the_private_file(store: ModuleType, tmp_path: Path) -> None:
    opened = open_store(store, tmp_path)
    opened.once("people", 0, lambda: {"means": [4.5]}, data=True)
    opened.once("a", 1, lambda: {"value": 1 / 3})
    (row,) = map(json.loads, opened.path.read_text(encoding="utf-8").splitlines())
    assert (row["setting"], row["seed"], row["result"]["value"]) == ("a", 1, 0.33333333)
    begun, people, also_begun = map(json.loads, opened.private.read_text(encoding="utf-8").splitlines())
    assert (begun, also_begun) == ({"setting": "people", "seed": 0}, {"setting": "a", "seed": 1})
    assert people["result"]["means"] == [4.5]
    assert set(open_store(store, tmp_path).rows) == {("people", 0), ("a", 1)}


def test_settings_are_found_by_their_prefix(store: ModuleType, tmp_path: Path) -> None:
    opened = open_store(store, tmp_path)
    for setting, seed in (("a/x", 1), ("a/x", 2), ("b/x", 1)):
        opened.once(setting, seed, lambda seed=seed: {"value": seed})
    assert {name: sorted(seeds) for name, seeds in opened.find("a/").items()} == {"x": [1, 2]}


def test_a_result_is_computed_again_to_compare(store: ModuleType, tmp_path: Path) -> None:
    first = open_store(store, tmp_path, "before")
    first.once("a", 13, lambda: {"value": 0.5, "many": [1, 2], "training_seconds": 3.0})
    first.once("b", 13, lambda: {"value": 1.0})
    opened = open_store(store, tmp_path, "now", ("a@13",))
    assert opened.lacks("a", 13)
    repeated = opened.once("a", 13, lambda: {"value": 0.5 + 3e-7, "many": [1, 2], "training_seconds": 9.0})
    assert repeated["value"] == 0.5
    assert not opened.lacks("a", 13)
    compared = json.loads((tmp_path / "x.jsonl").read_text(encoding="utf-8").splitlines()[-1])["again"]
    assert (compared["difference"], compared["code"]) == (3e-7, "now")
    assert len(open_store(store, tmp_path).rows) == 2
    with pytest.raises(SystemExit, match=r"has no result a@14, c@13: use SETTING@SEED"):
        open_store(store, tmp_path, "now", ("a@14", "c@13", "b@13"))
    for other in ({"value": 1.0, "more": 1}, {"value": [1.0]}, {"value": None}):
        with pytest.raises(SystemExit, match="other fields than in the row"):
            open_store(store, tmp_path, "now", ("b@13",)).once("b", 13, lambda other=other: other)


def test_seconds_and_hashes_of_weights_are_not_compared(store: ModuleType) -> None:
    one = {"signature": "maude|w:3f", "loss": 0.5, "rows": [1.0, 2.0], "wall_seconds": 3, "load": 1, "code": "a"}
    two = {"signature": "maude|w:c4", "loss": 0.5, "rows": [1.0, 2.5], "wall_seconds": 9, "load": 2, "code": "b"}
    assert store.largest_difference(one, two) == 0.5
    assert store.largest_difference(one, {**two, "rows": [1.0]}) == float("inf")
    assert store.largest_difference(one, {**one, "signature": "maude|w:c4"}) == 0
