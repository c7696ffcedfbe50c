"""`ridge`: its solutions against brute force, features by hand, ratings and comparisons."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scoring.live import answering
from scoring.ml import InvalidOption, TrainingDataError, fit, load, plan
from scoring.ml.evaluators.ridge.features import SIDES, Rows, build_features, count_features
from scoring.ml.evaluators.ridge.solve import fit_comparisons, fit_ratings
from scoring.ml.training.cross_fit import cross_fit
from scoring.ml.types import Aspect, Comparison, Dataset, Item, Output, Rating, Record
from tests.scoring.ml.tiny import WORDS, tiny_encoder


@pytest.fixture(scope="session")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return tiny_encoder("bert", tmp_path_factory.mktemp("frozen"))


@pytest.fixture(scope="session")
def judged() -> Dataset:
    """16 items with three outputs each: `overall` is rated by shared words, `length` compared by number of words."""
    rng = np.random.default_rng(3)
    items, outputs, ratings, comparisons = [], [], [], []
    for number in range(16):
        item, reference = f"i{number}", " ".join(rng.choice(WORDS, 4))
        items.append(Item(item, (" ".join(rng.choice(WORDS, 5)),), references=(reference,), group=f"g{number}"))
        texts = {"copy": reference, "half": reference[:6], "other": " ".join(rng.choice(WORDS, 6))}
        for system, text in texts.items():
            outputs.append(Output(item, system, text))
            shared = len(set(text.split()) & set(reference.split()))
            ratings.append(Rating("r1", "overall", 1.0 + min(shared, 4), item, system))
        for a, b in (("copy", "half"), ("half", "other"), ("other", "copy")):
            n_a, n_b = (len(texts[system].split()) for system in (a, b))
            verdict = "a" if n_a > n_b else "b" if n_b > n_a else "tie"
            comparisons.append(Comparison(item, a, b, "r1", "length", verdict))
    return Dataset(
        "judged", aspects=(Aspect("overall", 1, 5), Aspect("length")), items=tuple(items), outputs=tuple(outputs),
        ratings=tuple(ratings), comparisons=tuple(comparisons),
    )  # fmt: skip


@pytest.mark.parametrize("shape", [(24, 3), (8, 20)])
def test_errors_of_groups_left_out_equal_those_of_refits(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(1)
    rows, ratings = rng.normal(size=shape), rng.normal(size=shape[0]) + 3
    groups = [f"g{number // 2}" for number in range(shape[0])]
    found = fit_ratings(rows, ratings, groups, [0.1])
    unit = float(((rows - rows.mean(axis=0)) ** 2).sum(axis=1).mean())

    def solve(part: Any) -> tuple[Any, float]:
        x, t = rows[part], ratings[part]
        centred = np.column_stack([x, np.ones(len(x))])
        penalty = np.diag([0.1 * unit] * shape[1] + [0.0])
        whole = np.linalg.solve(centred.T @ centred + penalty, centred.T @ t)
        return whole[:-1], float(whole[-1])

    weights, bias = solve(np.arange(shape[0]))
    np.testing.assert_allclose(found.weights, weights, atol=1e-8)
    assert found.bias == pytest.approx(bias)
    left_out = []
    for name in dict.fromkeys(groups):
        own = np.array([group == name for group in groups])
        weights, bias = solve(~own)
        left_out.extend((rows[own] @ weights + bias - ratings[own]) ** 2)
    assert found.errors[0.1] == pytest.approx(np.mean(left_out))


def test_the_penalty_has_the_least_error() -> None:
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(60, 5))
    groups = [str(number) for number in range(60)]
    exact = fit_ratings(rows, rows @ np.arange(5.0), groups)
    noise = fit_ratings(rows, rng.normal(size=60), groups)
    assert exact.penalty < noise.penalty
    assert exact.errors[exact.penalty] == min(exact.errors.values())


def test_comparisons_are_at_the_minimum_of_their_loss() -> None:
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(40, 60))  # more features than pairs
    wins = rng.choice([0.0, 0.5, 1.0], 40)
    found = fit_comparisons(rows, wins, [str(number) for number in range(40)], [0.2])
    unit = float((rows**2).sum(axis=1).mean())
    slope = rows.T @ (1 / (1 + np.exp(-rows @ found.weights)) - wins) + 0.2 * unit / 4 * found.weights
    np.testing.assert_allclose(slope, 0.0, atol=1e-4)
    # The other order gives the opposite.
    turned = fit_comparisons(-rows, wins, [str(number) for number in range(40)], [0.2])
    np.testing.assert_allclose(turned.weights, -found.weights, atol=1e-6)


def test_errors_of_compared_groups_left_out_are_near_those_of_refits() -> None:
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(120, 12))
    wins = (rng.random(120) < 1 / (1 + np.exp(-rows @ rng.normal(size=12) / 2))).astype(float)
    groups = [f"g{number // 3}" for number in range(120)]
    grid = (0.01, 0.1, 1.0, 10.0)
    found = fit_comparisons(rows, wins, groups, grid)
    unit = float((rows**2).sum(axis=1).mean())
    for penalty in grid:
        losses: list[float] = []
        for name in dict.fromkeys(groups):
            own = np.array([group == name for group in groups])
            # The share of the mean square is that of the whole.
            part = penalty * unit / float((rows[~own] ** 2).sum(axis=1).mean())
            odds = rows[own] @ fit_comparisons(rows[~own], wins[~own], np.array(groups)[~own].tolist(), [part]).weights
            losses.extend(np.logaddexp(0.0, odds) - wins[own] * odds)
        assert found.errors[penalty] == pytest.approx(np.mean(losses), abs=0.02)
        # The loss on its own rows is further away.
        fitted = rows @ fit_comparisons(rows, wins, groups, [penalty]).weights
        own_loss = float((np.logaddexp(0.0, fitted) - wins * fitted).mean())
        assert abs(found.errors[penalty] - np.mean(losses)) < abs(own_loss - np.mean(losses)) / 3
    assert found.penalty == min(found.errors, key=lambda penalty: found.errors[penalty])


def test_features_by_hand() -> None:
    records = [Record("y", references=("far", "near"), context=("c",)), Record("y z")]
    rows = Rows(records)
    place = {text: number for number, text in enumerate(rows.table.texts)}
    vectors = np.zeros((len(place), 2))
    for text, vector in {"y": (0, 2), "far": (3, 0), "near": (3, 4), "c": (0, 1), "y z": (1, 0)}.items():
        vectors[place[text]] = vector
    sides = rows.list_sides()
    assert sides == ("context", "references")
    found = build_features(vectors, rows, sides)
    assert found.shape == (2, count_features(2, sides))
    expected = [0, 1, 0, 1, 1, 0, 0.8, 0.8, 0.4, 1, 0]  # y, c*y, cos, nearest*y, highest and mean cos, words, letters
    np.testing.assert_allclose(found[0], expected)
    np.testing.assert_allclose(found[1], [1, 0, *[np.nan] * 7, 2, np.log(3)])
    assert count_features(2, SIDES) == 2 * 4 + 4 + 2


@pytest.fixture(scope="module")
def trained(encoder: str, judged: Dataset) -> Any:
    return fit("ridge", judged, encoder=encoder)


def test_every_judged_aspect_is_learned_from_what_it_has(trained: Any, judged: Dataset, tmp_path: Path) -> None:
    assert trained.aspects == ("length", "overall")
    assert trained.record.examples == {"comparisons (length)": 48, "ratings (overall)": 48}
    records = judged.outputs_with_context()
    values = trained.score(records)
    assert values.shape == (48, 2)
    words = np.array([len(record.text.split()) for record in records])
    assert np.corrcoef(values[:, 0], words)[0, 1] > 0.8
    assert np.corrcoef(values[:, 1], [row.value for row in judged.ratings])[0, 1] > 0.8
    assert trained.score([Record(" ")], aspect="overall")[0] == 1.0, "the low end of the scale"
    trained.save_pretrained(tmp_path / "out")
    again = load(tmp_path / "out")
    np.testing.assert_allclose(again.score(records), values, atol=1e-5)
    assert again.signature == trained.signature
    one = load(tmp_path / "out", aspect="overall")
    np.testing.assert_allclose(one.score(records), values[:, 1], atol=1e-5)
    with pytest.raises(InvalidOption, match="length, overall"):
        trained.score(records, aspect="taste")


def test_log_has_the_error_of_each_penalty_and_no_steps(trained: Any) -> None:
    log = trained.record.log
    aspects = {row["aspect"] for row in log}
    assert aspects == set(trained.aspects)
    for aspect in aspects:
        rows = [row for row in log if row["aspect"] == aspect]
        best = min(rows, key=lambda row: row["dev_loss"])
        assert trained.record.metrics[f"l2_{aspect}"] == best["l2"]
        assert not any("step" in row for row in rows)


def test_live_scores_are_those_of_the_library(trained: Any, tmp_path: Path, settings: Any, monkeypatch: Any) -> None:
    settings.ARTEFACTS_DIR = tmp_path
    models = answering.WarmModels(1)
    monkeypatch.setattr(answering, "warm_models", lambda: models)
    trained.save_pretrained(tmp_path / "1" / "ridge")
    pairs = [{"text": "cat sat", "references": ["cat sat"], "context": ["you like tea"]}, {"text": "tea"}]
    source = {"folder": "1/ridge", "slug": "ridge"}
    request = {"kind": "score", "source": source, "options": {"aspect": "overall"}, "pairs": pairs}
    found = answering.execute(request, lambda: None)
    records = [Record("cat sat", references=("cat sat",), context=("you like tea",)), Record("tea")]
    np.testing.assert_allclose(found["scores"], trained.score(records, aspect="overall"), atol=1e-5)
    assert found["signature"] == load(tmp_path / "1" / "ridge", aspect="overall").signature


def test_missing_texts_count_as_average(trained: Any) -> None:
    whole = Record("cat sat", references=("cat sat",), context=("you like tea",))
    values = trained.score([whole, replace(whole, references=(), context=()), whole])
    assert np.isfinite(values).all()
    assert not np.allclose(values[0], values[1])
    np.testing.assert_allclose(values[0], values[2])


def test_folds_score_what_they_have_not_seen(encoder: str, judged: Dataset, tmp_path: Path) -> None:
    found = cross_fit("ridge", judged, folder=tmp_path, folds=3, encoder=encoder, aspects="overall")
    values = found.score(judged.outputs_with_context(), aspect="overall")
    assert np.corrcoef(values, [row.value for row in judged.ratings])[0, 1] > 0.3


def test_missing_input_is_reported_before_training(encoder: str, judged: Dataset) -> None:
    bare = replace(judged, ratings=(), comparisons=())
    few = replace(judged, ratings=judged.ratings[:3])
    same = replace(judged, ratings=tuple(replace(row, value=2.0) for row in judged.ratings))
    one_group = replace(judged, items=tuple(replace(item, group="g") for item in judged.items))
    for data, options, words in (
        (bare, {}, "no ratings and no comparisons"),
        (judged, {"aspects": "taste"}, "there are: length, overall"),
        (few, {"aspects": "overall"}, "10 are the least"),
        (same, {"aspects": "overall"}, "nothing to learn"),
        (one_group, {}, "the same group"),
    ):
        with pytest.raises(TrainingDataError, match=words):
            plan("ridge", data, encoder=encoder, **options)
    found = plan("ridge", judged, encoder=encoder)
    assert found.examples == {"comparisons (length)": 48, "ratings (overall)": 48}
