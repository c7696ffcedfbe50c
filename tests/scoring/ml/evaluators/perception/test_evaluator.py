"""`perception` as a whole on tiny random encoders."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from scoring.ml import EncoderError, InvalidOption, TrainingDataError, TrainingProgress, cross_fit, fit, load, plan
from scoring.ml.cross_fitted import CrossFitted, join_folds
from scoring.ml.encoders.tokenizing import PairTokenizer
from scoring.ml.evaluators.perception.arithmetic import system_weights
from scoring.ml.evaluators.perception.evaluator import Perception
from scoring.ml.evaluators.perception.pairs import PairBatches, encode_pool, encode_sides
from scoring.ml.evaluators.perception.reading import Reading
from scoring.ml.evaluators.perception.robustness import least_overlapping, robustness
from scoring.ml.evaluators.perception.texts import learnable, set_references_apart, unconditional
from scoring.ml.evaluators.perception.training import Trainer, judge_held_out, new_network
from scoring.ml.training import finetune
from scoring.ml.training.curve import FinetuneResult
from scoring.ml.training.fit import make_job
from scoring.ml.types import Dataset, Item, Output, Record
from tests.scoring.ml.tiny import copy_as_another_kind, tiny_encoder

REFERENCES, NEAR, FAR = ["cat sat on mat", "you like tea"], ["cat sat on the mat", "you like the tea"], ["no", "yes no"]


def data(n_items: int = 10, seed: int = 3, **changes: Any) -> Dataset:
    """System `near` writes almost the same as the references, `far` does not."""
    rng = np.random.default_rng(seed)
    items = tuple(
        Item(f"i{n}", (str(rng.choice(["the dog ran", "i like you"])),), references=tuple(REFERENCES), group=f"g{n}")
        for n in range(n_items)
    )  # fmt: skip
    outputs = tuple(
        Output(item.id, system, str(rng.choice(texts)))
        for item in items
        for system, texts in (("near", NEAR), ("far", FAR))
    )  # fmt: skip
    return replace(Dataset("hand", items=items, outputs=outputs), **changes)


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return tiny_encoder("bert", tmp_path_factory.mktemp("encoder"), dropout=0.1)


QUICK: dict[str, Any] = {"epochs": 1, "batch_size": 8, "penalty": "none"}
#: Dropout passes where their number does not matter.
FEW: dict[str, Any] = {"mc_passes": 3}


@pytest.fixture(scope="module")
def trained(encoder: str) -> Perception:
    found = fit(
        "perception", data(16), dev=data(6, seed=4), encoder=encoder, epochs=8, batch_size=8, learning_rate=2e-3,
        penalty_every=4, penalty_weight=0.1,
    )  # fmt: skip
    assert isinstance(found, Perception)
    return found


@pytest.fixture(scope="module")
def few(trained: Perception) -> Perception:
    """The same with few passes."""
    return Perception(trained.entry, trained.artefact, FEW)


def of(records: list[Record], system: str) -> list[Record]:
    return [record for record in records if record.system == system]


def test_learns_separable_data(trained: Perception) -> None:
    records = data(8, seed=5).outputs_with_context()
    near, far = trained.system_score(of(records, "near")), trained.system_score(of(records, "far"))
    assert 0 <= far < near <= 1
    assert far < 0.3
    assert trained.record.metrics["accuracy"] > 0.5
    assert {"dev_calibration_error", "dev_confidence_weight"} <= set(trained.record.log[0])


def test_batch_and_order_do_not_matter_even_with_dropout(trained: Perception, few: Perception) -> None:
    records = data(5, seed=6).outputs_with_context()
    together = trained.score(records)
    np.testing.assert_allclose(together, [trained.score([r])[0] for r in records], atol=1e-5)
    m, mean = few.certainty(records)
    alone = [few.certainty([record]) for record in records]
    np.testing.assert_allclose(m, [a[0][0] for a in alone], atol=1e-6)
    np.testing.assert_allclose(mean, [a[1][0] for a in alone], atol=1e-5)
    np.testing.assert_allclose(few.certainty(records[::-1])[0][::-1], m, atol=1e-6)
    assert ((m >= 0.75) & (m <= 1)).all()
    assert (m < 1).any()
    assert few.certainty(records)[0].tolist() == m.tolist()


def test_system_score_is_equation_14(few: Perception) -> None:
    records = data(4, seed=6).outputs_with_context()
    found = few.evaluate(records)
    m, _ = few.certainty(records)
    c = found.components["confidence"]
    wanted = system_weights(c, m, len(records)) @ found.values
    assert few.system_score(records) == pytest.approx(float(wanted), abs=1e-9)
    for uncertainty, weights in (("data", c), ("model", m), ("none", np.ones(len(c)))):
        other = Perception(few.entry, few.artefact, {**FEW, "uncertainty": uncertainty})
        assert other.system_score(records) == pytest.approx(float(weights @ found.values / weights.sum()), abs=1e-9)
        assert f"unc:{uncertainty}" in other.signature
    averaged = Perception(few.entry, few.artefact, {"p_gen": "mc_mean", "uncertainty": "none", "mc_passes": 4})
    assert averaged.system_score(records) == pytest.approx(float(averaged.certainty(records)[1].mean()))


def test_saved_and_loaded_it_scores_the_same(trained: Perception, tmp_path: Path) -> None:
    trained.save_pretrained(tmp_path / "out")
    loaded = load(tmp_path / "out")
    records = data(6, seed=6).outputs_with_context()
    np.testing.assert_allclose(loaded.score(records), trained.score(records), atol=1e-6)
    assert loaded.system_score(records) == pytest.approx(trained.system_score(records), abs=1e-6)
    assert "compare systems only under the same signature" in (tmp_path / "out" / "card.md").read_text(encoding="utf-8")


def test_several_references_are_averaged(trained: Perception) -> None:
    context = ("the dog ran",)
    one, two = (Record("no", (text,), context) for text in REFERENCES)
    both = Record("no", tuple(REFERENCES), context)
    assert trained.score([both])[0] == pytest.approx(trained.score([one, two]).mean(), abs=1e-6)


def test_model_certainty_is_the_mean_over_references(few: Perception) -> None:
    context = ("the dog ran",)
    pairs = [Record("you like the tea", (text,), context) for text in REFERENCES]
    m, mean = few.certainty(pairs)
    both = few.certainty([Record("you like the tea", tuple(REFERENCES), context)])
    np.testing.assert_allclose([both[0][0], both[1][0]], [m.mean(), mean.mean()], atol=1e-6)


@pytest.mark.parametrize("uncertainty", ["both", "data", "model", "none"])
def test_empty_texts_lower_a_system_with_full_weight(trained: Perception, uncertainty: str) -> None:
    evaluator = Perception(trained.entry, trained.artefact, {**FEW, "uncertainty": uncertainty})
    records = of(data(4, seed=6).outputs_with_context(), "near")
    values, weights = evaluator.system_weights([*records, replace(records[0], text=" ")])
    # Nothing is more certain: c = m = 1.
    assert (values[-1], weights[-1]) == (0.0, 2.0 if uncertainty == "both" else 1.0)
    assert weights[-1] >= weights.max()
    wanted = values @ weights / weights.sum()
    assert evaluator.system_score([*records, replace(records[0], text=" ")]) == pytest.approx(float(wanted))


def rewritten(whole: Dataset, **texts: str) -> Dataset:
    """The data with these texts for all outputs of the systems."""
    return replace(whole, outputs=tuple(replace(row, text=texts.get(row.system, row.text)) for row in whole.outputs))


def test_exclusions_are_counted(encoder: str) -> None:
    """Once, empty outputs and those without references were dropped silently."""
    whole = data(12)
    outputs = tuple(
        replace(row, text=" ") if row.item in ("i0", "i1") and row.system == "far" else row for row in whole.outputs
    )
    items = tuple(replace(item, references=()) if item.id == "i2" else item for item in whole.items)
    found = plan("perception", replace(whole, outputs=outputs, items=items), encoder=encoder).notes
    assert {"2 outputs are empty: left out", "2 outputs have no reference: left out"} <= set(found)
    assert not any("left out" in note for note in plan("perception", whole, encoder=encoder).notes)
    for conditional in (True, False):
        with pytest.raises(TrainingDataError, match="all 24 outputs are empty: upload"):
            plan("perception", rewritten(whole, near=" ", far=""), encoder=encoder, conditional=conditional)


def test_single_system_and_single_text_are_reported(encoder: str) -> None:
    whole = data(12)
    alone = replace(whole, outputs=tuple(row for row in whole.outputs if row.system == "near"))
    said = "all texts are of near: the discriminator knows no other system"
    assert any(said in note for note in plan("perception", alone, encoder=encoder).notes)
    # As in the paper: one model per system.
    assert not any(said in note for note in plan("perception", alone, encoder=encoder, models="per_system").notes)
    assert not any(said in note for note in plan("perception", whole, encoder=encoder).notes)
    constant = plan("perception", rewritten(whole, far="no"), encoder=encoder, models="per_system").notes
    assert "all texts of far are the same: its discriminator memorises them" in constant
    with pytest.raises(TrainingDataError, match=r"24 texts .*same"):
        plan("perception", rewritten(whole, near="no", far="no "), encoder=encoder)


@pytest.mark.parametrize(
    ("models", "phase"), [("shared", "training"), ("per_system", "training near")], ids=["shared", "per system"]
)
def test_interrupted_training_ends_with_the_same_weights(
    models: str, phase: str, encoder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Interrupted between two steps with the lazy penalty, and while the confidence weight is changing."""
    monkeypatch.setattr(finetune, "CHECKPOINT_SECONDS", 0.0)
    arguments: dict[str, Any] = {
        "dev": data(5, seed=4), "encoder": encoder, "models": models, "epochs": 3, "batch_size": 4,
        "learning_rate": 1e-3, "penalty": "pair", "penalty_every": 3,
    }  # fmt: skip

    class Stop(Exception):
        pass

    def interrupt(told: TrainingProgress) -> None:
        if (told.phase, told.done) == (phase, 5):
            raise Stop

    whole = fit("perception", data(12), **arguments)
    with pytest.raises(Stop):
        fit("perception", data(12), folder=tmp_path, progress=interrupt, **arguments)
    seen: list[tuple[str, int]] = []
    resumed = fit(
        "perception", data(12), folder=tmp_path, progress=lambda told: seen.append((told.phase, told.done)), **arguments
    )  # fmt: skip
    # The previous step was saved.
    assert seen[0] == (phase, 5)
    assert resumed.record.metrics == whole.record.metrics
    weights = whole.artefact.network.state_dict()
    assert all(torch.equal(value, weights[name]) for name, value in resumed.artefact.network.state_dict().items())


def test_one_model_per_system(encoder: str, tmp_path: Path) -> None:
    found = fit(
        "perception", data(12), dev=data(5, seed=4), encoder=encoder, models="per_system", learning_rate=1e-3, **QUICK
    )
    assert isinstance(found, Perception)
    records = data(4, seed=6).outputs_with_context()
    near, far = of(records, "near"), of(records, "far")
    swapped = [replace(record, system="near") for record in far]
    assert not np.allclose(found.score(swapped), found.score(far))
    strange = found.evaluate([replace(near[0], system="new")])
    assert np.isnan(strange.values[0])
    assert strange.reasons[0] == "no model was trained for new"
    found.save_pretrained(tmp_path / "out")
    np.testing.assert_allclose(load(tmp_path / "out").score(records), found.score(records), atol=1e-6)
    assert {row["system"] for row in found.record.log} == {"near", "far"}


def test_system_may_have_any_name(encoder: str, tmp_path: Path) -> None:
    names = {"near": "../../near", "far": "org/far" + "x" * 300}
    whole = data(8)
    named = replace(whole, outputs=tuple(replace(row, system=names[row.system]) for row in whole.outputs))
    folder = tmp_path / "a" / "b" / "work"
    found = fit("perception", named, encoder=encoder, models="per_system", folder=folder, max_steps=1, **QUICK)
    assert found.artefact.state["systems"] == sorted(names.values())
    assert [path.name for path in tmp_path.rglob("best.safetensors") if path.parent.parent != folder] == []
    assert len(list(folder.glob("*/best.safetensors"))) == 2


def any_item(n_items: int = 12, n_references: int = 20, seed: int = 3) -> Dataset:
    """Outputs on some items, references on others; both use the same few words."""
    rng = np.random.default_rng(seed)
    words = ["cat", "sat", "on", "mat", "you", "like", "tea", "the", "dog", "ran", "no", "yes"]
    texts = [" ".join(rng.permutation(words)[:5]) for _ in range(n_items + n_references)]
    written = tuple(Item(f"i{n}", (), group=f"g{n}") for n in range(n_items))
    others = tuple(
        Item(f"r{n}", (), references=(text,), group=f"h{n}") for n, text in enumerate(texts[n_items:])
    )  # fmt: skip
    outputs = tuple(Output(item.id, "near", text) for item, text in zip(written, texts, strict=False))
    return Dataset("any", items=(*written, *others), outputs=outputs)


def test_unconditional_texts_are_paired_with_fixed_references(encoder: str) -> None:
    found = fit("perception", any_item(), encoder=encoder, conditional=False, n_references=2, **QUICK)
    records = data(4, seed=6).outputs_with_context()
    other = [replace(record, context=("you no",), references=("mat mat",)) for record in records]
    np.testing.assert_allclose(found.score(records), found.score(other), atol=1e-6)
    bare = [replace(record, references=()) for record in records]
    np.testing.assert_allclose(found.score(bare), found.score(records), atol=1e-6)
    assert len(found.artefact.state["references"]) == 2


def test_unconditional_discriminator_was_not_trained_on_its_references(encoder: str) -> None:
    job = make_job("perception", any_item(), {"conditional": False, **QUICK, "encoder": encoder})
    kept, texts = set_references_apart(job, unconditional(any_item()))
    assert len(kept) == 4
    assert sorted([*kept, *texts.pool]) == sorted(item.references[0] for item in any_item().items if item.references)
    # The dev part uses neither: it has its own references, or the fixed ones if there are no others.
    trainer = Trainer(job, texts, None, kept)
    dev = unconditional(any_item(seed=4))
    met = trainer._with_dev_references(replace(dev, pool=(*dev.pool, *texts.pool))).pool
    assert set(met) == set(dev.pool) - set(texts.pool)
    assert trainer._with_dev_references(replace(dev, pool=texts.pool)).pool == tuple(kept)


def test_texts_like_references_score_near_one_half(encoder: str) -> None:
    """Texts and references of the same kind: no discriminator can separate unseen ones, whatever it memorised."""
    scores, accuracies = [], []
    for seed in (1, 2, 3):
        found = fit("perception", any_item(30, 40, seed), dev=any_item(30, 40, seed + 10), encoder=encoder, seed=seed,
                    conditional=False, confidence=False, penalty="none", epochs=12, batch_size=32,
                    learning_rate=5e-3, n_references=12)  # fmt: skip
        # The last epoch's dev figure: by then the discriminator has memorised its own references.
        accuracies.append(found.record.log[-1]["dev_accuracy"])
        scores.append(found.system_score(any_item(60, 0, seed + 20).outputs_with_context()))
    assert np.mean(scores) == pytest.approx(0.5, abs=0.1)
    assert np.mean(accuracies) == pytest.approx(0.5, abs=0.15)


def test_unconditional_discriminator_needs_more_references_than_it_keeps(encoder: str) -> None:
    few = any_item(n_references=4)
    with pytest.raises(TrainingDataError, match=r"keeps 4 references.* there are 4 different ones"):
        plan("perception", few, encoder=encoder, conditional=False, **QUICK)
    one_left = replace(few, outputs=tuple(replace(row, text=few.items[-1].references[0]) for row in few.outputs))
    said = []
    for seed in range(20):
        # Only if the seed keeps the three others.
        try:
            plan("perception", one_left, encoder=encoder, conditional=False, n_references=3, seed=seed, **QUICK)
        except TrainingDataError as error:
            said.append(str(error))
    left = [message for message in said if "no output differs from its reference" in message]
    assert left
    assert all("texts are the same: it would" in message for message in said if message not in left)


def test_unconditional_text_is_paired_with_several_references_per_epoch(encoder: str, tmp_path: Path) -> None:
    """Gu, Wu and Yu 2021: each generation is paired with r = 4 random references, new ones in each epoch."""
    given = {"conditional": False, "n_references": 3, **QUICK}
    whole = any_item()
    # The third text equals a reference, so the two are not paired.
    same = whole.items[-1].references[0]
    outputs = (*whole.outputs[:2], replace(whole.outputs[2], text=same), *whole.outputs[3:])
    texts = unconditional(replace(whole, outputs=outputs))
    job = make_job("perception", whole, {**given, "encoder": encoder}, folder=tmp_path)
    sides = encode_pool(PairTokenizer(job.encoder), texts.records, texts.pool)
    batches = PairBatches(sides, [record.system for record in texts.records], [], job, pad_id=0, phase="x")
    drawn, met_by_third = [], set()
    for epoch in range(40):
        batches.set_epoch(epoch)
        met = np.concatenate([generated for generated, _ in batches.batches])
        assert np.bincount(met).tolist() == [3] * 12
        references = np.concatenate([references for _, references in batches.batches])
        met_by_third |= {texts.pool[place] for place in references[met == 2]}
        drawn.append(references.tolist())
    assert drawn[0] != drawn[1]
    assert met_by_third == set(texts.pool) - {same}
    # 12 texts three times each, 8 per step.
    assert plan("perception", whole, encoder=encoder, **given).steps == 5


def test_text_alone_does_not_see_the_context(encoder: str) -> None:
    found = fit("perception", data(12), encoder=encoder, inputs="text", **QUICK)
    records = data(4, seed=6).outputs_with_context()
    other = [replace(record, context=("you no",)) for record in records]
    np.testing.assert_allclose(found.score(records), found.score(other), atol=1e-6)
    assert "inputs:text" in found.signature
    # A tenth of its twelve groups selected the epoch: the card must not count them as training data.
    assert (len(found.record.groups), len(found.record.dev_groups)) == (11, 1)
    assert len(found.trained_on) == 12


def test_without_confidence_all_have_equal_trust(encoder: str) -> None:
    found = fit("perception", data(12), encoder=encoder, confidence=False, **QUICK)
    records = data(4, seed=6).outputs_with_context()
    assert (found.evaluate(records).components["confidence"] == 1).all()
    assert isinstance(found, Perception)
    # docs/explanation/evaluators/perception.md#system-score: without data uncertainty w ~ m.
    np.testing.assert_allclose(found.system_weights(records)[1], found.certainty(records)[0])


def test_learning_rates_are_selected_on_the_held_out_part(encoder: str) -> None:
    found = fit(
        "perception", data(12), dev=data(5, seed=4), encoder=encoder, learning_rates="1e-9,3e-3", epochs=4,
        batch_size=8, penalty="none", stages="together",
    )  # fmt: skip
    assert found.artefact.state["learning_rates"] == {"training": 3e-3}
    assert plan("perception", data(12), encoder=encoder, learning_rates="1e-9,3e-3", **QUICK).steps == 2 * 3


def test_diverging_rate_is_not_the_best(encoder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"learning_rates": "0.1,0.2,0.3"}
    job = make_job("perception", data(), {**given, "encoder": encoder}, dev=data(4), folder=tmp_path)
    trainer = Trainer(job, learnable(data()), learnable(data(4)), [])
    losses: dict[float, dict[str, float]] = {0.1: {"loss": 0.7}, 0.2: {"loss": 0.6}, 0.3: {}}
    made = {
        rate: (new_network(job, 1, "none"), FinetuneResult((), metrics, 1, 0.0)) for rate, metrics in losses.items()
    }
    monkeypatch.setattr(trainer, "_finetune", lambda phase, encoded, rate, penalty: made[rate])
    assert trainer._best("training", trainer._encoded(trainer.texts, trainer.dev), "none")[1] is made[0.2][1]
    assert trainer.chosen == {"training": 0.2}


def test_discriminator_with_nan_outputs_has_no_loss(encoder: str, tmp_path: Path) -> None:
    job = make_job("perception", data(), {"encoder": encoder}, dev=data(4), folder=tmp_path)
    trainer = Trainer(job, learnable(data()), learnable(data(4)), [])
    network = new_network(job, 1, "none").eval()
    reading = Reading(encode_sides(trainer.tokenizer, learnable(data(4)).records, form="both"))
    assert np.isfinite(list(judge_held_out(network, reading, trainer.tokenizer.pad_id).values())).all()
    network.l1[0].weight.data.fill_(float("inf"))
    assert np.isnan(judge_held_out(network, reading, trainer.tokenizer.pad_id)["loss"])


SHORT: dict[str, Any] = {"epochs": 1, "batch_size": 8, "max_steps": 2}
AUTO: dict[str, Any] = {**SHORT, "penalty": "auto"}


@pytest.mark.parametrize(
    ("accuracies", "kept"),
    [((0.8, 0.7), "none"), ((0.7, 0.8), "pair"), ((0.7, 0.7), "none"), ((0.6, None), "none"), ((None, 0.4), "pair")],
    ids=["hinders", "profits", "equal", "pair diverged", "none diverged"],
)
def test_penalty_stays_where_held_out_pairs_benefit(
    encoder: str, monkeypatch: pytest.MonkeyPatch, accuracies: tuple[float | None, float | None], kept: str
) -> None:
    """Beta = 0 if the accuracy on held-out pairs does not improve; the choice is recorded."""
    told = dict(zip(("none", "pair"), accuracies, strict=True))
    seen: dict[str, torch.Tensor] = {}
    train = Trainer._train

    def measured(self: Trainer, systems: Any, encoded: Any, penalty: str, how: str) -> Any:
        network, found = train(self, systems, encoded, penalty, how)
        seen[penalty] = network.l1[0].weight.detach().clone()
        metrics = {"loss": 0.5} if told[penalty] is None else {"loss": 0.5, "accuracy": told[penalty]}
        return network, replace(found, metrics=metrics)

    monkeypatch.setattr(Trainer, "_train", measured)
    found = fit("perception", data(12), dev=data(5, seed=4), encoder=encoder, **AUTO)
    assert list(seen) == ["none", "pair"]
    assert torch.equal(found.artefact.network.l1[0].weight, seen[kept])  # type: ignore[index]
    assert not torch.equal(seen["none"], seen["pair"])
    assert found.artefact.state["penalties"] == told
    assert list(found.artefact.state["learning_rates"]) == ["training" + " without penalty" * (kept == "none")]
    assert f"|gp:{kept}/4|" in found.signature
    (note,) = [note for note in found.record.notes if "penalty" in note]
    assert ("left out" in note) == (kept == "none")
    assert all(("diverged" if value is None else f"{value:.3f}") in note for value in accuracies)
    assert found.record.steps == 4


def test_discriminator_with_the_selected_penalty_is_unchanged(encoder: str, tmp_path: Path) -> None:
    """Really trained twice: the accuracies equal those of two separate trainings."""
    given = {"dev": data(5, seed=4), "encoder": encoder, "epochs": 2, "batch_size": 8, "learning_rate": 2e-3}
    found = fit("perception", data(12), penalty="auto", **given)
    alone = {penalty: fit("perception", data(12), penalty=penalty, **given) for penalty in ("none", "pair")}
    # Each draws its own batches and hints from the same data: `pair` is named as if trained alone.
    assert found.artefact.state["penalties"]["pair"] == alone["pair"].record.metrics["accuracy"]
    assert found.record.steps == sum(one.record.steps for one in alone.values())
    assert plan("perception", data(12), penalty="auto", **given).steps == found.record.steps
    records = data(6, seed=9).outputs_with_context()
    found.save_pretrained(tmp_path / "kept")
    again = load(str(tmp_path / "kept"))
    np.testing.assert_allclose(again.score(records), found.score(records), atol=1e-6)
    assert again.signature == found.signature


def test_without_held_out_texts_the_penalty_stays(encoder: str) -> None:
    few = data(8)  # too few groups to hold any out
    said = "no held-out texts to choose by"
    assert any(said in note for note in plan("perception", few, encoder=encoder, **AUTO).notes)
    found = fit("perception", few, encoder=encoder, **AUTO)
    assert "|gp:pair/4|" in found.signature
    assert "penalties" not in found.artefact.state
    assert not any(said in note for note in plan("perception", data(12), encoder=encoder, **AUTO).notes)
    # Each system's model is selected on its own texts, with one penalty for all.
    dev = data(5, seed=4)
    near = replace(dev, outputs=tuple(output for output in dev.outputs if output.system == "near"))
    apart = {"encoder": encoder, "models": "per_system", **AUTO}
    assert any(said in note for note in plan("perception", data(12), dev=near, **apart).notes)
    whole = fit("perception", data(12), dev=dev, **apart)
    assert set(whole.artefact.state["penalties"]) == {"none", "pair"}
    assert len(whole.artefact.state["learning_rates"]) == 2


def test_folds_with_different_penalties_say_so(encoder: str, tmp_path: Path) -> None:
    one, other = (
        fit("perception", data(12), encoder=encoder, penalty=penalty, **SHORT) for penalty in ("pair", "none")
    )
    assert "|gp:pair/4+none/4|" in join_folds([one, other]).signature
    assert "|gp:pair/4|" in join_folds([one, one]).signature
    # Many values are hashed to limit the signature's length.
    seeds = [replace(one.artefact, seed=seed) for seed in (1, 2, 3)]
    many = join_folds([Perception(one.entry, artefact, {}) for artefact in seeds])
    assert re.search(r"\|seed:3@[0-9a-f]{8}\|", many.signature)


def test_paper_profile_applies_the_penalty_at_every_step(encoder: str) -> None:
    found = plan("perception", data(12), dev=data(5, seed=4), encoder=encoder, profile="paper", **SHORT)
    assert found.steps == 2 * 2  # two systems, two steps each
    with pytest.raises(InvalidOption, match="penalty"):
        plan("perception", data(12), encoder=encoder, penalty="choose")


def test_dry_check_counts_steps(encoder: str) -> None:
    given = {name: value for name, value in QUICK.items() if name != "penalty"}
    plain = plan("perception", data(12), encoder=encoder, **given)
    assert plan("perception", data(12), encoder=encoder, max_steps=1, **given).steps == 1
    assert plan("perception", data(12), encoder=encoder, stages="head", **given).steps == 0
    assert plan("perception", data(12), encoder=encoder, **{**given, "penalty": "auto"}).steps == 2 * plain.steps


def test_same_seed_same_weights_with_the_penalty(encoder: str) -> None:
    def weights(seed: int) -> torch.Tensor:
        found = fit("perception", data(8), encoder=encoder, epochs=1, batch_size=8, seed=seed, penalty="interpolate")
        return torch.cat([value.flatten().double() for value in found.artefact.network.state_dict().values()])

    one, two, other = weights(1), weights(1), weights(2)
    assert torch.equal(one, two)
    assert not torch.equal(one, other)


def test_cross_fitted_systems_are_scored_by_unexposed_discriminators(encoder: str, tmp_path: Path) -> None:
    fitted = cross_fit("perception", data(12), folds=2, folder=tmp_path, encoder=encoder, **QUICK)
    members = [Perception(one.entry, one.artefact, FEW) for one in fitted.members]
    found = CrossFitted(fitted.entry, members, FEW)
    records = of(data(12).outputs_with_context(), "near")
    values, weights = np.empty(len(records)), np.empty(len(records))
    for place, record in enumerate(records):
        (member,) = (member for member in members if record.group not in member.trained_on)
        value, weight = member.system_weights([record])
        values[place], weights[place] = value[0], weight[0]
    assert found.system_score(records) == pytest.approx(float(values @ weights / weights.sum()), abs=1e-6)
    # A text that neither model saw counts once, although both read it.
    stranger = Record("no", ("you like tea",), ("i like you",), system="near", group="new")
    both = [member.system_weights([stranger]) for member in members]
    values = np.append(values, np.mean([value[0] for value, _ in both]))
    weights = np.append(weights, np.mean([weight[0] for _, weight in both]))
    wanted = float(values @ weights / weights.sum())
    assert found.system_score([*records, stranger]) == pytest.approx(wanted, abs=1e-6)


def test_texts_equal_to_a_reference_teach_nothing() -> None:
    whole = data(3)
    same = tuple(
        replace(output, text=" you like tea ") if output.system == "near" else output for output in whole.outputs
    )
    found = learnable(replace(whole, outputs=same))
    assert all("you like tea" not in record.references for record in found.records if record.system == "near")
    alone = tuple(replace(item, references=("you like tea",)) for item in whole.items)
    found = learnable(replace(whole, outputs=same, items=alone))
    assert found.n_same == 3
    assert found.systems == ["far"]


def test_robustness_by_kind(trained: Perception) -> None:
    original = Record("", tuple(REFERENCES), ("the dog ran",))
    kinds = {"MGE": [replace(original, text="no")], "HWE": [replace(original, text="cat sat on the mat")], "HWEBQ": []}
    rows = {row.kind: row for row in robustness(trained, kinds)}
    assert rows["MGE"].score < rows["HWE"].score
    assert rows["HWEBQ"].n == 0
    assert np.isnan(rows["HWEBQ"].score)
    # Jaccard with "a b": 1/3, 0, 0 -> the first of the smallest.
    assert least_overlapping("a b", ["a c", "d", "e"]) == 1


def test_kinds_share_one_scale_where_scores_depend_on_the_call() -> None:
    """Perplexity learns from the references in the call: those of all kinds."""
    perplexity = load("perplexity")
    kinds = {
        kind: [Record(text, (f"the cat {n}",), item=f"{kind}{n}") for n, text in enumerate(texts)]
        for kind, texts in (("MGE", ["no no", "tea"]), ("none", []), ("HWE", ["the cat sat", "the cat"]))
    }
    told: list[int] = []
    rows = robustness(perplexity, kinds, progress=told.append)
    values = perplexity.evaluate([*kinds["MGE"], *kinds["HWE"]]).values
    assert [row.mean for row in rows if row.n] == pytest.approx([values[:2].mean(), values[2:].mean()])
    assert told[-1] == 4


def test_encoder_that_cannot_be_reloaded_is_refused_by_the_check(encoder: str, tmp_path: Path) -> None:
    other = copy_as_another_kind(encoder, tmp_path)
    with pytest.raises(EncoderError, match="'big_bird'"):
        plan("perception", data(), encoder=other)


def test_invalid_input_is_named_before_training(encoder: str) -> None:
    with pytest.raises(TrainingDataError, match="no outputs"):
        plan("perception", data(outputs=()), encoder=encoder)
    bare = tuple(replace(item, references=()) for item in data().items)
    with pytest.raises(TrainingDataError, match="add references"):
        plan("perception", data(items=bare), encoder=encoder)
    with pytest.raises(TrainingDataError, match="it needs 8"):
        plan("perception", data(2), encoder=encoder)
    with pytest.raises(TrainingDataError, match="fewer than 8 texts"):
        plan("perception", data(5), encoder=encoder, models="per_system")
    with pytest.raises(InvalidOption, match="numbers above 0"):
        plan("perception", data(), encoder=encoder, learning_rates="1e-5,x")
    with pytest.raises(InvalidOption, match="up to 1"):
        plan("perception", data(), encoder=encoder, learning_rates="1e-5,30")
    with pytest.raises(InvalidOption, match="must be one of both, text"):
        plan("perception", data(), encoder=encoder, inputs="context")
    several = {"encoder": encoder, "learning_rates": "1e-5,1e-4"}
    with pytest.raises(TrainingDataError, match=r"give a dev part$"):
        plan("perception", data(8), **several)
    # Once, it was detected after the other systems had been trained.
    near = replace(data(4, seed=4), outputs=tuple(row for row in data(4, seed=4).outputs if row.system == "near"))
    with pytest.raises(TrainingDataError, match="give a dev part with texts of far"):
        plan("perception", data(), dev=near, models="per_system", **several)
    assert plan("perception", data(), dev=near, **several).steps > 0
    assert plan("perception", data(), **several).steps > 0  # a tenth of its ten groups
    found = plan("perception", data(), encoder=encoder, profile="paper")
    assert found.examples == {"texts": 20, "systems": 2}
    assert any("fewer than 100 texts" in note for note in found.notes)
