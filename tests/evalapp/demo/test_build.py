from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

from annotation.parsers import KINDS, check_dataset
from annotation.parsers.writer import COLUMNS
from evalapp.demo.systems import STEPS

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
FILES = ("comparisons", "corpus", "dialogues", "items", "outputs", "ratings", "systems")
Folder = dict[str, list[dict[str, Any]]]


def read(folder: Path) -> Folder:
    return {
        name: [json.loads(line) for line in (folder / f"{name}.jsonl").read_text("utf-8").splitlines()]
        for name in FILES
    }


@pytest.fixture(scope="module")
def built(demo_files: Path) -> Path:
    return demo_files


@pytest.fixture(scope="module")
def data(built: Path) -> Folder:
    return read(built)


@pytest.fixture(scope="module")
def contestants(data: Folder) -> list[tuple[str, int | None]]:
    first = data["outputs"][0]["item"]
    return [(row["system"], row["step"]) for row in data["outputs"] if row["item"] == first]


def test_dataset_names_the_simulated_parts(built: Path) -> None:
    dataset = json.loads((built / "dataset.json").read_text("utf-8"))
    assert set(dataset) == {"name", "task", "lang", "aspects", "licence", "source", "notes"}
    assert (dataset["name"], dataset["task"], dataset["lang"]) == ("Demonstration", "dialogue", "en")
    assert "simulated" in dataset["notes"]
    assert [aspect["name"] for aspect in dataset["aspects"] if aspect["min"] is not None] == [
        "naturalness",
        "relevance",
        "informativeness",
    ]


def test_importer_finds_no_error(built: Path, data: Folder) -> None:
    faults: list[tuple[str, str, str]] = []
    check_dataset(
        json.loads((built / "dataset.json").read_text("utf-8")), lambda *fault: faults.append(("dataset", *fault))
    )
    for name, rows in data.items():
        for row in rows:
            KINDS[name].check(dict(row), lambda *fault, name=name: faults.append((name, *fault)))
    assert faults == []


def test_keys_are_in_the_order_of_the_format(data: Folder) -> None:
    for name, rows in data.items():
        for row in rows:
            assert list(row) == [column for column in COLUMNS[name] if column in row], name


def test_counts_are_as_promised(data: Folder) -> None:
    domains = Counter(row["meta"]["domain"] for row in data["items"])
    assert domains == {"dialogue": 64, "restaurants": 64}
    assert all(len(row["references"]) >= 3 for row in data["items"])
    assert all(2 <= len(row["context"]) <= 5 for row in data["items"] if row["meta"]["domain"] == "dialogue")
    assert len(data["systems"]) >= 6
    assert len(data["dialogues"]) >= 60
    assert len(data["corpus"]) >= 300


def test_groups_hold_two_items_each(data: Folder) -> None:
    assert set(Counter(row["group"] for row in data["items"]).values()) == {2}


def test_every_system_answers_every_item(data: Folder, contestants: list[tuple[str, int | None]]) -> None:
    keys = Counter((row["item"], row["system"], row["step"]) for row in data["outputs"])
    assert set(keys) == {(row["id"], *one) for row in data["items"] for one in contestants}
    assert set(keys.values()) == {1}
    assert {row["system"] for row in data["outputs"]} == {row["id"] for row in data["systems"]}
    assert [step for system, step in contestants if system == "ngram"] == list(STEPS)
    assert all(row["text"].strip() == row["text"] != "" for row in data["outputs"])


def test_ratings_are_valid_and_marked(data: Folder) -> None:
    outputs = {(row["item"], row["system"], row["step"]) for row in data["outputs"]}
    keys = Counter(
        (row["item"], row["system"], row.get("step"), row["rater"], row["aspect"]) for row in data["ratings"]
    )
    assert set(keys.values()) == {1}
    assert {key[:3] for key in keys} == outputs
    assert {row["value"] for row in data["ratings"]} == {1, 2, 3, 4, 5}
    assert all(row["simulated"] is True for row in data["ratings"])
    assert set(Counter((*key[:3], key[4]) for key in keys).values()) == {3}


def test_raters_share_the_work_evenly(data: Folder) -> None:
    load = Counter(row["rater"] for row in data["ratings"])
    assert len(load) == 10
    assert max(load.values()) - min(load.values()) <= 3  # one output has three aspects


def test_comparisons_are_valid_and_marked(data: Folder) -> None:
    outputs = {(row["item"], row["system"], row["step"]) for row in data["outputs"]}
    references = {row["id"]: len(row["references"]) for row in data["items"]}
    seen = set()
    for row in data["comparisons"]:
        a, b = (row["system_a"], row.get("step_a")), (row["system_b"], row.get("step_b"))
        assert (row["item"], *a) in outputs
        if isinstance(b[0], dict):
            assert 0 <= b[0]["reference"] < references[row["item"]]
            assert row["aspect"] == "human-likeness"
            assert row["verdict"] in ("a", "b", "cannot_decide")
        else:
            assert (row["item"], *b) in outputs
            assert a != b
            assert row["verdict"] in ("a", "b", "tie", "both_bad")
        assert row["simulated"] is True
        key = (row["item"], frozenset({str(a), str(b)}), row["rater"], row["aspect"])
        assert key not in seen
        seen.add(key)
    assert {row["verdict"] for row in data["comparisons"]} == {"a", "b", "tie", "both_bad", "cannot_decide"}


def test_every_pair_of_contestants_meets(data: Folder, contestants: list[tuple[str, int | None]]) -> None:
    met: Counter[frozenset[tuple[str, int | None]]] = Counter()
    for row in data["comparisons"]:
        if isinstance(row["system_b"], str):
            met[frozenset({(row["system_a"], row.get("step_a")), (row["system_b"], row.get("step_b"))})] += 1
    assert len(met) == len(contestants) * (len(contestants) - 1) // 2
    assert max(met.values()) <= 2 * min(met.values())


def test_rows_are_in_canonical_order(data: Folder) -> None:
    assert [row["id"] for row in data["items"]] == sorted(row["id"] for row in data["items"])
    keys = [(row["item"], row["system"], row["step"] or 0) for row in data["outputs"]]
    assert keys == sorted(keys)
    rated = [(row["item"], row["system"], row.get("step", 0), row["rater"], row["aspect"]) for row in data["ratings"]]
    assert rated == sorted(rated)


def test_dialogues_and_corpus_leak_no_item_turn(data: Folder) -> None:
    texts = {turn for row in data["items"] for turn in (*row["context"], *row["references"])}
    texts |= {row["text"] for row in data["outputs"] if row["system"] == "written"}
    turns = {turn for row in data["dialogues"] for turn in row["turns"]}
    assert not {turn for turn in turns & texts if len(turn.split()) > 4}
    assert {text for row in data["corpus"] for text in row.values()} <= turns


def test_no_system_returns_a_reference_of_its_own_group(data: Folder) -> None:
    groups = {row["id"]: row["group"] for row in data["items"]}
    references = defaultdict(set)
    for row in data["items"]:
        references[row["group"]].update(row["references"])
    copies = [
        row
        for row in data["outputs"]
        if row["text"] in references[groups[row["item"]]] and len(row["text"].split()) > 4
    ]
    assert [row for row in copies if row["system"] in ("written", "shuffled", "template-a")] == []
    assert [row for row in copies if row["item"].startswith("dlg")] == []


def test_same_seed_gives_the_same_bytes(built: Path, tmp_path: Path) -> None:
    """Also in another process, where sets and dictionaries of strings have another order."""
    program = "import sys, pathlib; from evalapp.demo.build import build; build(pathlib.Path(sys.argv[1]))"
    run = [sys.executable, "-c", program, str(tmp_path)]
    subprocess.run(run, check=True, cwd=ROOT, env={**os.environ, "PYTHONHASHSEED": "99"})
    for name in sorted(path.name for path in built.iterdir()):
        assert (tmp_path / name).read_bytes() == (built / name).read_bytes(), name


@pytest.fixture(scope="module")
def means(data: Folder) -> dict[str, dict[str, float]]:
    """Mean simulated rating by domain (or "all") and by contestant."""
    values: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for row in data["ratings"]:
        name = row["system"] + (f"@{row['step']}" if "step" in row else "")
        for domain in (row["item"][:3], "all"):
            values[domain, name].append(row["value"])
    out: defaultdict[str, dict[str, float]] = defaultdict(dict)
    for (domain, name), list_ in values.items():
        out[domain][name] = sum(list_) / len(list_)
    return out


def test_quality_is_really_different(means: dict[str, dict[str, float]]) -> None:
    order = means["all"]
    assert order["written"] > order["template-a"] + 0.5
    assert min(order["template-a"], order["retrieval"]) > order["ngram@3000"] + 0.2
    assert order["ngram@3000"] > max(order["shuffled"], order["constant"]) + 0.2
    assert order["ngram@30"] > order["constant"]


@pytest.mark.parametrize("domain", ["dlg", "res"])
def test_ngram_gets_better_with_training(means: dict[str, dict[str, float]], domain: str) -> None:
    early, middle, late = (means[domain][f"ngram@{step}"] for step in STEPS)
    assert early + 0.1 < middle
    assert middle + 0.1 < late
