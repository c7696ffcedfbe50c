"""ADEM: its arithmetic, both solvers, and the common framework."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from scoring.ml import InvalidOption, TrainingDataError, fit, load, plan
from scoring.ml.encodings import Encodings
from scoring.ml.evaluators.adem.evaluator import Adem
from scoring.ml.evaluators.adem.network import AdemNetwork
from scoring.ml.evaluators.adem.ridge import Components, features, first_scale, kernel, principal_axes, solve
from scoring.ml.evaluators.unreferenced.vectors import UtteranceEncoder
from scoring.ml.training.cross_fit import fold_parts
from scoring.ml.training.fit import make_job
from scoring.ml.training.job import FitJob, TrainingProgress
from scoring.ml.types import Aspect, Dataset, Item, Output, Rating, Record
from tests.scoring.ml.tiny import WORDS, tiny_encoder

SMALL: dict[str, Any] = {"components": 6}


@pytest.fixture(scope="session")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return tiny_encoder("bert", tmp_path_factory.mktemp("frozen"))


@pytest.fixture(scope="session")
def rated() -> Dataset:
    """16 items with three outputs each; raters prefer replies that share words with the reference."""
    rng = np.random.default_rng(3)
    items, outputs, ratings = [], [], []
    for number in range(16):
        reference = " ".join(rng.choice(WORDS, 4))
        items.append(Item(f"i{number}", (" ".join(rng.choice(WORDS, 5)),), references=(reference,), group=f"g{number}"))
        for system, text in (("copy", reference), ("half", reference[:6]), ("other", " ".join(rng.choice(WORDS, 4)))):
            outputs.append(Output(f"i{number}", system, text))
            shared = len(set(text.split()) & set(reference.split()))
            ratings.append(Rating("r1", "overall", 1.0 + min(shared, 4), f"i{number}", system))
    return Dataset(
        "rated", aspects=(Aspect("overall", 1, 5),), items=tuple(items), outputs=tuple(outputs), ratings=tuple(ratings)
    )


def parts(n: int, size: int, seed: int = 1) -> Components:
    rng = np.random.default_rng(seed)
    return Components(*(rng.normal(size=(n, size)) for _ in range(3)))


@torch.no_grad()
def test_score_is_two_products_mapped_to_the_scale() -> None:
    sizes = {"vector": 2, "components": 2, "affine": False, "inputs": "both", "l1": 0.0, "l2": 0.0}
    net = AdemNetwork.from_source(None, sizes)
    net.axes.copy_(torch.eye(2))
    net.M.data = torch.tensor([[1.0, 2.0], [0.0, 1.0]])
    net.N.data = torch.tensor([[0.0, 1.0], [1.0, 0.0]])
    net.alpha.fill_(2.0)
    net.beta.fill_(4.0)
    c, r, y = (torch.tensor([x]) for x in ([1.0, 2.0], [3.0, 1.0], [2.0, -1.0]))
    # c' M y = (1, 2) . (0, -1) = -2 ; r' N y = (3, 1) . (-1, 2) = -1 ; (-3 - 2) / 4
    assert float(net(c, r, y)["value"]) == pytest.approx(-1.25)
    found = net(c, r, y, labels=torch.tensor([0.75]))
    assert float(found["loss"]) == pytest.approx(4.0)
    net.sizes = {**sizes, "l1": 0.1, "l2": 0.5}
    # sum of squares 6 and 2, of absolute values 4 and 2
    assert float(net(c, r, y, labels=torch.tensor([0.75]))["loss"]) == pytest.approx(4 + 0.5 * 8 + 0.1 * 6)


def test_initial_scores_are_near_the_middle_as_in_lowe() -> None:
    x = np.array([2.0, 4.0, 10.0])
    alpha, beta = first_scale(x, 1, 5)
    np.testing.assert_allclose((x - alpha) / beta, 3 + 4 * (x - x.mean()) / 8)
    assert first_scale(np.array([2.0, 2.0]), 1, 5)[1] == 1.0


def test_both_solvers_agree_with_the_normal_equations() -> None:
    rng = np.random.default_rng(2)
    for n in (5, 60):  # fewer rows than features, and more
        given = parts(n, 3)
        targets = rng.normal(size=n)
        f = features(given)
        np.testing.assert_allclose(kernel(given, given), f @ f.T, atol=1e-10)
        weight = 0.3 * (f**2).sum(axis=1).mean()
        expected = np.linalg.solve(f.T @ f + weight * np.eye(18), f.T @ targets)
        np.testing.assert_allclose(solve(given, targets, 0.3), expected, atol=1e-6)


def test_principal_axes_have_the_largest_variance() -> None:
    rng = np.random.default_rng(4)
    x = rng.normal(size=(200, 3)) * [5.0, 1.0, 0.1] + 7
    mean, axes = principal_axes(x, 2)
    np.testing.assert_allclose(mean, x.mean(axis=0))
    assert abs(axes[0, 0]) > 0.98
    np.testing.assert_allclose(axes.T @ axes, np.eye(2), atol=1e-9)


@pytest.fixture(scope="module", params=["recommended", "paper"])
def trained(request: pytest.FixtureRequest, encoder: str, rated: Dataset) -> Any:
    return fit("adem", rated, profile=request.param, encoder=encoder, epochs=3, **SMALL)


def test_saved_loaded_and_in_any_batch(trained: Any, rated: Dataset, tmp_path: Path) -> None:
    trained.save_pretrained(tmp_path / "out")
    loaded = load(tmp_path / "out")
    records = rated.outputs_with_context()
    values = trained.score(records)
    np.testing.assert_allclose(loaded.score(records), values, atol=1e-6)
    np.testing.assert_allclose(trained.score(records[::-1])[::-1], values, atol=1e-5)
    assert trained.score(records[3:4])[0] == pytest.approx(values[3], abs=1e-5)
    assert loaded.signature == trained.signature
    assert trained.aspects == ("overall",)


def test_undefined_empty_and_several_references(trained: Any) -> None:
    context, one, two = ("you like tea",), ("cat sat",), ("dog ran", "no")
    records = [
        Record("cat", references=one),
        Record("cat", context=context),
        Record(" ", references=one, context=context),
        *(Record("cat", references=given, context=context) for given in (one, two[:1], two[1:], two)),
    ]
    values = trained.score(records)
    assert trained.details.reasons[:2] == ("no context", "no references")
    assert values[2] == 1.0  # the low end of the scale
    assert values[6] == pytest.approx((values[4] + values[5]) / 2, abs=1e-5)
    assert values[3] != values[4]


def test_fits_its_training_data_and_reports(encoder: str, rated: Dataset) -> None:
    seen: list[TrainingProgress] = []
    evaluator = fit("adem", rated, dev=rated, encoder=encoder, l2=1e-4, progress=seen.append, components=20)
    records = rated.outputs_with_context()
    people = np.array([rating.value for rating in rated.ratings])
    assert np.corrcoef(evaluator.score(records), people)[0, 1] > 0.98
    assert {p.phase for p in seen} == {"encoding", "training", "held-out scores"}
    assert evaluator.record.correlations[0]["aspect"] == "overall"


def test_grid_is_selected_on_the_held_out_part(encoder: str, rated: Dataset) -> None:
    evaluator = fit("adem", rated, encoder=encoder, **SMALL)
    errors = {row["l2"]: row["dev_loss"] for row in evaluator.record.log}
    assert not any("step" in row for row in evaluator.record.log)
    assert len(errors) == 8
    assert evaluator.record.metrics["l2"] == min(errors, key=lambda weight: errors[weight])
    again = fit("adem", rated, encoder=encoder, **SMALL)
    assert again.signature == evaluator.signature


@pytest.mark.parametrize("ratings", ["rank", "z"])
@pytest.mark.parametrize("profile", ["recommended", "paper"])
def test_comparable_ratings_do_not_affect_the_scale(encoder: str, rated: Dataset, ratings: str, profile: str) -> None:
    """Ranks lie within 0 to 10 and were taken for ratings on that scale: scores of 4.8 for ranks around .5."""
    found = []
    for aspect in (Aspect("overall", 1, 10), Aspect("overall", -10, 10)):
        data = replace(rated, aspects=(aspect,))
        one = fit("adem", data, encoder=encoder, profile=profile, ratings=ratings, **SMALL)
        found.append((one.artefact.state, one.score(data.outputs_with_context())))
    (state, scores), (wide, others) = found
    assert state == wide
    assert max(map(abs, state.values())) < 4
    np.testing.assert_array_equal(scores, others)


def test_gradient_steps_resume_and_depend_on_the_seed(encoder: str, rated: Dataset, tmp_path: Path) -> None:
    arguments: dict[str, Any] = {"profile": "paper", "encoder": encoder, "epochs": 4, **SMALL}

    class Stop(Exception):
        pass

    def interrupt(progress: TrainingProgress) -> None:
        if progress.phase == "training" and progress.done == 3:
            raise Stop

    whole = fit("adem", rated, **arguments)
    with pytest.raises(Stop):
        fit("adem", rated, folder=tmp_path, progress=interrupt, **arguments)
    resumed = fit("adem", rated, folder=tmp_path, **arguments)
    assert resumed.signature == whole.signature
    assert whole.record.dev_groups
    assert not set(whole.record.groups) & set(whole.record.dev_groups)
    assert fit("adem", rated, seed=2, **arguments).weights != whole.weights
    assert not torch.equal(whole.artefact.network.M, torch.eye(6))


@pytest.mark.parametrize("inputs", ["text", "context"])
def test_baselines_read_only_one_side(encoder: str, rated: Dataset, inputs: str) -> None:
    evaluator = fit("adem", rated, encoder=encoder, inputs=inputs, **SMALL)
    base = Record("cat sat", references=("dog",), context=("you like",))
    text, context = replace(base, text="no tea"), replace(base, context=("i ran on",))
    values = evaluator.score([base, text, context, replace(base, references=("yes",))])
    moved = np.abs(values - values[0]) > 1e-6
    assert moved.tolist() == [False, inputs == "text", inputs == "context", False]
    with pytest.raises(InvalidOption, match="affine"):
        plan("adem", rated, encoder=encoder, inputs=inputs, affine=False)


def test_missing_input_is_reported_before_training(encoder: str, rated: Dataset) -> None:
    with pytest.raises(TrainingDataError, match="no ratings"):
        plan("adem", replace(rated, ratings=()), encoder=encoder)
    with pytest.raises(TrainingDataError, match="there are: overall"):
        plan("adem", rated, aspect="taste", encoder=encoder)
    with pytest.raises(TrainingDataError, match="0 outputs have"):
        plan("adem", replace(rated, items=tuple(replace(item, references=()) for item in rated.items)), encoder=encoder)
    empty = tuple(replace(output, text=" ") for output in rated.outputs)
    with pytest.raises(TrainingDataError, match=r"Of the other rated outputs 48 are empty\. Rate more outputs\.$"):
        plan("adem", replace(rated, outputs=empty), encoder=encoder)
    of_dialogues = tuple(Rating("r1", "overall", n, dialogue=f"d{n}") for n in range(1, 5))
    with pytest.raises(TrainingDataError, match="'overall'"):
        plan("adem", replace(rated, ratings=of_dialogues), encoder=encoder)
    with pytest.raises(TrainingDataError, match="3 outputs have"):
        plan("adem", replace(rated, ratings=rated.ratings[:3]), encoder=encoder)
    with pytest.raises(TrainingDataError, match="every rating"):
        plan("adem", replace(rated, ratings=tuple(replace(r, value=2.0) for r in rated.ratings)), encoder=encoder)
    with pytest.raises(TrainingDataError, match="the same group"):
        plan("adem", replace(rated, items=tuple(replace(item, group="g") for item in rated.items)), encoder=encoder)
    bad = (replace(rated.ratings[0], value=float("nan")), *rated.ratings[1:])
    with pytest.raises(TrainingDataError, match="not all numbers"):
        plan("adem", replace(rated, ratings=bad), encoder=encoder)
    found = plan("adem", rated, encoder=encoder)
    assert found.examples == {"rated outputs (overall)": 48}
    assert found.steps == 8


def test_exclusions_are_reported_by_cause(encoder: str, rated: Dataset) -> None:
    """Once, an empty text was reported as "without context or reference"."""
    changed = {"i1": {"references": ()}, "i2": {"context": ()}, "i3": {"references": (), "context": (" ",)}}
    items = tuple(replace(item, **changed.get(item.id, {})) for item in rated.items)
    data = replace(rated, items=items, outputs=(replace(rated.outputs[0], text=""), *rated.outputs[1:]))
    said = {
        "1 rated outputs are empty: left out.",
        "3 rated outputs have no reference: left out.",
        "3 rated outputs have no context: left out.",
        "3 rated outputs have neither context nor reference: left out.",
    }
    assert said <= set(plan("adem", data, encoder=encoder).notes)
    found = fit("adem", data, encoder=encoder, **SMALL)
    assert said == set(found.record.notes)
    assert found.record.examples == {"rated outputs": 38}


def test_folds_share_their_vectors(
    encoder: str, rated: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each text is encoded once, and the models equal those of folds that encode everything themselves."""
    encoded: list[int] = []
    batches = UtteranceEncoder.batches

    def counted(self: UtteranceEncoder, encodings: Encodings) -> Any:
        encoded.append(len(encodings))
        return batches(self, encodings)

    monkeypatch.setattr(UtteranceEncoder, "batches", counted)
    parts = list(fold_parts("adem", rated, 3, 13))
    arguments: dict[str, Any] = {"encoder": encoder, "l2": 0.1, **SMALL}

    def job(number: int, folder: Path, shared: Path | None) -> FitJob:
        train, dev = parts[number]
        return replace(make_job("adem", train, arguments, dev=dev, folder=folder), shared=shared)

    def train(number: int, folder: Path, shared: Path | None) -> tuple[Any, int]:
        before = sum(encoded)
        network = Adem.train(job(number, folder, shared)).network
        return network, sum(encoded) - before

    together = [train(number, tmp_path / f"a{number}", tmp_path / "shared") for number in range(3)]
    alone = [train(number, tmp_path / f"b{number}", None) for number in range(3)]
    texts = {text for item in rated.items for text in (*item.context, *item.references)}
    texts |= {output.text for output in rated.outputs}
    assert sum(n for _, n in together) <= len(texts) < sum(n for _, n in alone)
    for (one, _), (other, _) in zip(together, alone, strict=True):
        for mine, theirs in zip(one.state_dict().values(), other.state_dict().values(), strict=True):
            torch.testing.assert_close(mine, theirs, atol=1e-4, rtol=1e-3)
    assert train(2, tmp_path / "a2", tmp_path / "shared")[1] == 0
