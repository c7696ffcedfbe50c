"""`shared-bert` as a whole on tiny random encoders."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from scoring.ml import EncoderError, InvalidOption, TrainingDataError, TrainingProgress, fit, load, plan
from scoring.ml.cross_fitted import CrossFitted
from scoring.ml.evaluators.shared_bert import evaluator as module
from scoring.ml.evaluators.shared_bert.evaluator import SharedBert
from scoring.ml.evaluators.shared_bert.instances import get_instances
from scoring.ml.evaluators.shared_bert.labels import label_outputs
from scoring.ml.evaluators.shared_bert.network import SharedBertNetwork, balanced_cross_entropy
from scoring.ml.training import finetune, timing
from scoring.ml.training.fit import make_job
from scoring.ml.types import Aspect, Dataset, Dialogue, Item, Output, Rating, Record
from tests.scoring.ml.tiny import tiny_encoder

GOOD, BAD = ["cat sat on mat", "you like tea", "the dog ran"], ["no", "tea tea", "yes yes no"]


def data(n_items: int = 12, seed: int = 3, **changes: Any) -> Dataset:
    """System `good` writes sentences, `bad` does not; naturalness follows that, quality the length of the item's id."""
    rng = np.random.default_rng(seed)
    items, outputs, ratings = [], [], []
    for number in range(n_items):
        item = f"i{number}"
        items.append(Item(item, references=("the cat sat", "you like the tea"), group=f"g{number}"))
        for system, texts, natural in (("good", GOOD, 6), ("bad", BAD, 2)):
            outputs.append(Output(item, system, str(rng.choice(texts))))
            for rater in ("r1", "r2"):
                ratings.append(Rating(rater, "naturalness", natural, item, system))
                ratings.append(Rating(rater, "quality", 1 + number % 6, item, system))
    whole = Dataset(
        "hand", aspects=(Aspect("naturalness", 1, 6), Aspect("quality", 1, 6)),
        items=tuple(items), outputs=tuple(outputs), ratings=tuple(ratings),
    )  # fmt: skip
    return replace(whole, **changes)


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return tiny_encoder("bert", tmp_path_factory.mktemp("encoder"))


@pytest.fixture(scope="module")
def trained(encoder: str) -> SharedBert:
    found = fit(
        "shared-bert", data(), dev=data(6, seed=4), encoder=encoder, epochs=12, learning_rate=3e-3, stages="together",
        nearest=False,
    )  # fmt: skip
    assert isinstance(found, SharedBert)
    return found


def test_worked_loss() -> None:
    # docs/explanation/evaluators/shared-bert.md#worked-numbers with beta .3535: (y=1, p=.8) (0, .8) (1, .3) (0, .3).
    logits = torch.logit(torch.tensor([[0.8], [0.8], [0.3], [0.3]]))
    labels = torch.tensor([[1.0], [0.0], [1.0], [0.0]])
    values = [balanced_cross_entropy(logits[i : i + 1], labels[i : i + 1], torch.tensor([[0.3535]])) for i in range(4)]
    assert [round(float(v), 6) for v in values] == [0.078881, 1.040502, 0.425604, 0.230590]
    whole = balanced_cross_entropy(logits, labels, torch.full((4, 1), 0.3535))
    assert float(whole) == pytest.approx(float(sum(values)) / 4)


def test_unknown_labels_do_not_enter_the_loss() -> None:
    logits = torch.tensor([[0.3, -0.2]], requires_grad=True)
    loss = balanced_cross_entropy(logits, torch.tensor([[1.0, float("nan")]]), torch.full((1, 2), 0.5))
    loss.backward()
    assert float(loss) == pytest.approx(
        float(balanced_cross_entropy(logits[:, :1], torch.ones(1, 1), torch.full((1, 1), 0.5)))
    )
    assert logits.grad is not None
    assert logits.grad[0, 1] == 0
    assert logits.grad[0, 0] != 0


def test_learns_learnable_data(trained: SharedBert) -> None:
    records = data(6, seed=4).outputs_with_context()
    natural = trained.score(records, aspect="naturalness")
    good = np.array([record.system == "good" for record in records])
    assert natural[good].min() > 0.5 > natural[~good].max()
    assert trained.record.metrics["macro_f1_naturalness"] == 1.0


def test_shapes_and_aspects(trained: SharedBert) -> None:
    records = data(2).outputs_with_context()
    assert trained.aspects == ("naturalness", "quality")
    both = trained.score(records)
    assert both.shape == (4, 2)
    np.testing.assert_array_equal(both[:, 0], trained.score(records, aspect="naturalness"))
    assert trained.evaluate(records).values.shape == (4,)
    np.testing.assert_allclose(trained.evaluate(records).values, both.mean(axis=1))
    with pytest.raises(InvalidOption, match="naturalness, quality"):
        trained.score(records, aspect="taste")


def test_batch_and_order_do_not_matter(trained: SharedBert) -> None:
    records = data(8, seed=8).outputs_with_context()
    together = trained.score(records)
    alone = np.concatenate([trained.score([record]) for record in records])
    np.testing.assert_allclose(together, alone, atol=1e-5)
    np.testing.assert_allclose(trained.score(records[::-1])[::-1], together, atol=1e-5)


def test_saved_and_loaded_it_scores_the_same(trained: SharedBert, tmp_path: Path) -> None:
    trained.save_pretrained(tmp_path / "out")
    loaded = load(tmp_path / "out")
    records = data().outputs_with_context()
    np.testing.assert_allclose(loaded.score(records), trained.score(records), atol=1e-6)
    chosen = load(tmp_path / "out", aspect="quality", references="max")
    assert chosen.score(records).shape == (len(records),)
    assert "of:quality" in chosen.signature
    assert "refs:max" in chosen.signature
    assert (chosen.score(records) >= trained.score(records, aspect="quality") - 1e-6).all()
    card = (tmp_path / "out" / "card.md").read_text(encoding="utf-8")
    assert "| shared-bert | naturalness |" in card


def test_folds_score_the_requested_aspect(trained: SharedBert) -> None:
    """Once, they returned the mean over all aspects, whatever the option."""
    one = SharedBert(trained.entry, trained.artefact, {"aspect": "quality"})
    records = data(3, seed=8).outputs_with_context()
    found = CrossFitted(trained.entry, [one, one], {"aspect": "quality"}).score(records)
    np.testing.assert_allclose(found, trained.score(records, aspect="quality"), atol=1e-6)


def test_folds_score_like_one_of_them(trained: SharedBert) -> None:
    """Once, they returned the mean over aspects in every aspect's column, and ignored `aspect`."""
    records = data(3, seed=8).outputs_with_context()
    folds = CrossFitted(trained.entry, [trained, trained])
    np.testing.assert_allclose(folds.score(records), trained.score(records), atol=1e-6)
    assert folds.score(records).shape == (len(records), 2)
    one = folds.score(records, aspect="quality")
    np.testing.assert_allclose(one, trained.score(records, aspect="quality"), atol=1e-6)
    with pytest.raises(InvalidOption, match="must be one of"):
        folds.score(records, aspect="wit")


def test_held_out_part_is_labelled_by_the_same_rule(encoder: str, tmp_path: Path) -> None:
    """Without a declared scale, the range of the training ratings is used; once, each part had its own."""
    part = data(3, seed=4)
    low = tuple(replace(row, value=2.0 + (row.value > 4)) for row in part.ratings)
    job = make_job(
        "shared-bert",
        data(aspects=()),
        {"encoder": encoder},
        dev=replace(part, aspects=(), ratings=low),
        folder=tmp_path,
    )
    train, dev, _ = get_instances(job)
    # Naturalness is 2 or 6 in training: good from ceil(2 + 2.8) = 5 on. Held out it is 2 or 3; 3 was good.
    assert train.labelled.thresholds[0] == dev.labelled.thresholds[0] == 5.0
    assert set(train.labelled.labels[:, 0]) == {0.0, 1.0}
    assert set(dev.labelled.labels[:, 0]) == {0.0}


def test_several_references_are_averaged(trained: SharedBert) -> None:
    one, two = Record("the dog ran", ("the cat sat",)), Record("the dog ran", ("you like the tea",))
    both = Record("the dog ran", ("the cat sat", "you like the tea"))
    np.testing.assert_allclose(trained.score([both]), (trained.score([one]) + trained.score([two])) / 2, atol=1e-6)


def test_empty_texts_and_missing_references(trained: SharedBert) -> None:
    found = trained.evaluate([Record(" ", ("a",)), Record("the dog ran")])
    assert found.values[0] == 0.0
    assert np.isnan(found.values[1])
    assert found.reasons[1] == "no references"
    assert found.n_empty == 1


def test_rival_has_one_encoder_per_aspect(encoder: str, tmp_path: Path) -> None:
    rival = fit(
        "shared-bert", data(), dev=data(4, seed=4), encoder=encoder, epochs=2, shared=False, learning_rate=1e-3,
        pooling="pooler", stages="together",
    )  # fmt: skip
    network = rival.artefact.network
    assert isinstance(network, SharedBertNetwork)
    assert len(network.others) == 1
    first = dict(network.encoder.named_parameters())  # type: ignore[union-attr]
    other = dict(network.others[0].named_parameters())
    assert any(not torch.equal(first[name], other[name]) for name in first)
    rival.save_pretrained(tmp_path / "rival")
    records = data(3).outputs_with_context()
    np.testing.assert_allclose(load(tmp_path / "rival").score(records), rival.score(records), atol=1e-6)
    # Its record of the held-out part is computed without dropout.
    held_out = label_outputs(data(4, seed=4), ["naturalness", "quality"])
    p = rival.score(held_out.records)
    loss = -np.log(np.where(held_out.labels == 1, p, 1 - p)).mean(axis=0)
    said = [rival.record.metrics[f"loss_{aspect}"] for aspect in rival.aspects]
    np.testing.assert_allclose(said, loss, atol=1e-6)
    assert {row["aspect"] for row in rival.record.log} == {"naturalness", "quality"}


@pytest.mark.parametrize(
    ("options", "phase"),
    [
        ({}, "training"),
        ({"shared": False}, "training quality"),
        # There are eleven models per aspect; results of earlier ones are read from their folders.
        ({"beta": "grid", "epochs": 1, "aspects": "naturalness"}, "beta naturalness 0.90"),
    ],
    ids=["shared", "separate", "grid"],
)
def test_interrupted_training_ends_with_the_same_weights(
    options: dict[str, Any], phase: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(finetune, "CHECKPOINT_SECONDS", 0.0)
    arguments: dict[str, Any] = {
        "dev": data(6, seed=4), "encoder": tiny_encoder("bert", tmp_path / "encoder", dropout=0.1),
        "learning_rate": 1e-3, "epochs": 2, "batch_size": 16, **options,
    }  # fmt: skip

    class Stop(Exception):
        pass

    def interrupt(told: TrainingProgress) -> None:
        if (told.phase, told.done) == (phase, 2):
            raise Stop

    whole = fit("shared-bert", data(), **arguments)
    with pytest.raises(Stop):
        fit("shared-bert", data(), folder=tmp_path / "work", progress=interrupt, **arguments)
    seen: list[tuple[str, int]] = []
    resumed = fit(
        "shared-bert", data(), folder=tmp_path / "work",
        progress=lambda told: seen.append((told.phase, told.done)), **arguments,
    )  # fmt: skip
    # The previous step was saved.
    assert next(one for one in seen if one[0] != "encoding") == (phase, 2)
    assert resumed.artefact.state == whole.artefact.state
    assert resumed.record.metrics == whole.record.metrics
    weights = whole.artefact.network.state_dict()
    assert all(torch.equal(value, weights[name]) for name, value in resumed.artefact.network.state_dict().items())


def test_same_seed_same_weights(encoder: str) -> None:
    def weights(seed: int) -> torch.Tensor:
        found = fit("shared-bert", data(), encoder=encoder, epochs=1, seed=seed, stages="both")
        return torch.cat([value.flatten() for value in found.artefact.network.state_dict().values()])

    one, two, other = weights(1), weights(1), weights(2)
    assert torch.equal(one, two)
    assert not torch.equal(one, other)


def test_grid_selects_beta_on_the_held_out_part(encoder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # docs/explanation/evaluators/shared-bert.md#loss.
    assert module.BETA_GRID == (0.75, 0.8, 0.85, 0.9, 0.95, 1, 1.05, 1.1, 1.15, 1.2, 1.25)
    given = {"encoder": encoder, "epochs": 1, "beta": "grid", "aspects": "naturalness", "labels": "binary"}
    # A step for each of the eleven and one for the final model; with each reference two.
    assert plan("shared-bert", data(6), dev=data(4, seed=4), **given).steps == 12
    assert plan("shared-bert", data(6), dev=data(4, seed=4), nearest=False, **given).steps == 24
    monkeypatch.setattr(module, "BETA_GRID", (0.75, 1.0, 1.25))
    finetune, tried = module._Trainer._finetune, []

    def told(self: Any, places: Any, betas: Any, phase: str) -> Any:
        network, found = finetune(self, places, betas, phase)
        tried.extend(betas)
        figure = {0.375: 0.5, 0.5: 0.9, 0.625: 0.7}[round(betas[0], 3)]
        assert "macro_f1" in found.metrics
        return network, replace(found, metrics={**found.metrics, "macro_f1": figure})

    monkeypatch.setattr(module._Trainer, "_finetune", told)
    found = fit("shared-bert", data(6), dev=data(4, seed=4), max_steps=1, **given)
    share = 0.5
    assert tried == pytest.approx([0.75 * share, share, 1.25 * share, share])
    assert found.artefact.state["betas"] == pytest.approx([share])
    assert found.aspects == ("naturalness",)


def test_beta_nearest_to_the_share_wins_ties() -> None:
    assert module.best_factor([0.5] * 11) == 1.0
    assert module.best_factor([0.7, *[0.5] * 8, 0.7, 0.6]) == 1.2
    assert module.best_factor([0.7, *[0.5] * 9, 0.7]) == 0.75
    assert module.best_factor([*[0.5] * 10, 0.9]) == 1.25


def test_beta_by_hand(encoder: str) -> None:
    found = fit("shared-bert", data(6), encoder=encoder, epochs=1, max_steps=1, beta="0.3,0.2")
    assert found.artefact.state["betas"] == [0.3, 0.2]
    with pytest.raises(InvalidOption, match="2 numbers between 0 and 1"):
        fit("shared-bert", data(6), encoder=encoder, epochs=1, beta="0.3,0.2,0.1")


def test_row_split_leaks_and_group_split_does_not(encoder: str) -> None:
    by_row = fit("shared-bert", data(), encoder=encoder, epochs=1, split="row")
    assert "test_macro_f1" in by_row.record.metrics
    # By rows, as in the paper, the unit is a classified row: a tenth of 8 outputs with 10 references each.
    many = tuple(replace(item, references=tuple(f"{word} the" for word in "abcdefghij")) for item in data(4).items)
    options = {"epochs": 1, "split": "row", "aspects": "naturalness"}
    rows = fit("shared-bert", data(4, items=many), encoder=encoder, **options).record
    assert (rows.metrics["n_naturalness"], rows.metrics["test_n_naturalness"]) == (8, 8)
    assert any("held-out outputs are also in the training part" in note for note in rows.notes)
    by_group = fit("shared-bert", data(), encoder=encoder, epochs=1, split="group")
    assert "test_macro_f1" not in by_group.record.metrics
    assert by_group.record.metrics
    assert not any("are also in the training part" in note for note in by_group.record.notes)
    assert by_group.record.dev_groups
    assert not set(by_group.record.dev_groups) & set(by_group.record.groups)
    assert by_group.trained_on == {f"g{number}" for number in range(12)}


def test_context_is_read_on_request(encoder: str) -> None:
    """An item without a context can be scored, too."""
    items = tuple(
        replace(item, context=("you sat", f"cat {'dog' if n % 2 else 'tea'}")) for n, item in enumerate(data().items)
    )
    found = fit("shared-bert", data(items=items), encoder=encoder, stages="head", context=True)
    assert found.artefact.network.texts == 3
    records = data(3, items=items[:3]).outputs_with_context()
    scores = found.score(records)
    other = found.score([replace(record, context=("on mat",)) for record in records])
    assert np.abs(scores - other).min() > 1e-5
    assert np.isfinite(found.score([replace(record, context=()) for record in records])).all()
    bare = fit("shared-bert", data(items=items), encoder=encoder, stages="head")
    assert bare.artefact.network.texts == 2
    np.testing.assert_allclose(
        bare.score(records), bare.score([replace(record, context=()) for record in records]), atol=1e-6
    )


def test_inputs_follow_the_option(encoder: str) -> None:
    records = data(3).outputs_with_context()
    blind = fit("shared-bert", data(), encoder=encoder, epochs=1, inputs="text")
    changed = [replace(record, references=("no no no",)) for record in records]
    np.testing.assert_allclose(blind.score(records), blind.score(changed), atol=1e-6)
    deaf = fit("shared-bert", data(), encoder=encoder, epochs=1, inputs="reference")
    changed = [replace(record, text="no no no") for record in records]
    np.testing.assert_allclose(deaf.score(records), deaf.score(changed), atol=1e-6)
    assert "inputs:reference" in deaf.signature


def test_paper_profile_has_the_head_of_the_paper(encoder: str) -> None:
    found = fit("shared-bert", data(), dev=data(4, seed=4), encoder=encoder, profile="paper", epochs=1, beta="share")
    network = found.artefact.network
    assert isinstance(network, SharedBertNetwork)
    own = [p.numel() for name, p in network.named_parameters() if not name.startswith("encoder")]
    # Width x aspects weights and one bias each, nothing else beyond the encoder (Reddy 2022: 2304 = 768 x 3).
    assert sorted(own) == [2, 32 * 2]
    assert found.settings["learning_rate"] == 3e-4
    assert "profile:paper" in found.signature


def test_every_weight_of_the_network_learns(trained: SharedBert) -> None:
    fresh = SharedBertNetwork.from_source(trained.artefact.encoder, {"aspects": 2, "pooling": "mean", "shared": True})
    before = {name: p for name, p in fresh.named_parameters() if name.startswith("encoder") and "pooler" not in name}
    after = dict(trained.artefact.network.named_parameters())
    still = [name for name, value in before.items() if torch.equal(value, after[name])]
    # Rows of unused tokens and positions stay, but every matrix changes.
    assert still == []


@pytest.mark.parametrize("family", ["roberta", "distilbert", "deberta-v2", "modernbert", "chinese-bert"])
def test_any_family_of_encoders(family: str, tiny_family: Callable[[str], str], tmp_path: Path) -> None:
    found = fit("shared-bert", data(6), encoder=tiny_family(family), epochs=1, max_steps=1)
    found.save_pretrained(tmp_path / "out")
    records = data(3).outputs_with_context()
    np.testing.assert_allclose(load(tmp_path / "out").score(records), found.score(records), atol=1e-5)
    alone = np.concatenate([found.score([record]) for record in records])
    np.testing.assert_allclose(found.score(records), alone, atol=1e-5)


def test_invalid_input_is_named_before_training(encoder: str, tmp_path: Path) -> None:
    whole = data()
    with pytest.raises(TrainingDataError, match="no ratings"):
        plan("shared-bert", data(ratings=()), encoder=encoder)
    with pytest.raises(TrainingDataError, match=": naturalness, quality"):
        plan("shared-bert", whole, encoder=encoder, aspect="taste")
    bare = tuple(replace(item, references=()) for item in whole.items)
    with pytest.raises(TrainingDataError, match="none of the rated outputs has a reference: add references"):
        plan("shared-bert", data(items=bare), encoder=encoder)
    empty = tuple(replace(output, text=" ") for output in whole.outputs)
    with pytest.raises(TrainingDataError, match=r"24 .*empty"):
        plan("shared-bert", data(outputs=empty), encoder=encoder)
    with pytest.raises(TrainingDataError, match=r"12 .*empty .*12 .*reference"):
        plan("shared-bert", data(outputs=(*empty[:12], *whole.outputs[12:]), items=bare), encoder=encoder)
    of_dialogues = tuple(Rating("r1", "quality", n, dialogue=f"d{n}") for n in range(1, 7))
    dialogues = tuple(Dialogue(f"d{n}", ("cat sat", "you like tea")) for n in range(1, 7))
    with pytest.raises(TrainingDataError, match="no output is rated"):
        plan("shared-bert", data(ratings=of_dialogues, dialogues=dialogues), encoder=encoder)
    few = data(outputs=whole.outputs[::2], ratings=whole.ratings[::2][:1])
    with pytest.raises(TrainingDataError, match="all outputs are rated alike"):
        plan("shared-bert", few, encoder=encoder)
    with pytest.raises(TrainingDataError, match="it needs 2 of each"):
        plan("shared-bert", few, encoder=encoder, labels="binary")
    with pytest.raises(EncoderError, match="is neither a folder"):
        plan("shared-bert", whole, encoder=str(tmp_path / "nothing"))
    with pytest.raises(EncoderError, match="pooler"):
        plan("shared-bert", whole, encoder=tiny_encoder("distilbert", tmp_path / "d"), pooling="pooler")
    with pytest.raises(TrainingDataError, match="beta=grid"):
        plan("shared-bert", data(7), encoder=encoder, beta="grid")
    with pytest.raises(InvalidOption, match="or numbers between 0 and 1"):
        plan("shared-bert", whole, encoder=encoder, beta="0.3,2")
    absent = (replace(whole.ratings[0], value=float("nan")), *whole.ratings[1:])
    with pytest.raises(TrainingDataError, match="1 ratings of naturalness"):
        plan("shared-bert", data(ratings=absent), encoder=encoder)
    endless = (replace(whole.ratings[0], value=float("inf")), *whole.ratings[1:])
    with pytest.raises(TrainingDataError, match="1 ratings of naturalness"):
        plan("shared-bert", data(ratings=endless), encoder=encoder)


def test_empty_outputs_are_excluded_and_reported(encoder: str) -> None:
    whole = data()
    outputs = tuple(replace(output, text="" if output.item == "i0" else output.text) for output in whole.outputs)
    items = tuple(replace(item, references=() if item.id == "i1" else item.references) for item in whole.items)
    given = data(outputs=outputs, items=items)
    said = {"2 rated outputs are empty: left out", "2 rated outputs have no reference: left out"}
    assert said <= set(plan("shared-bert", given, dev=data(6, seed=4), encoder=encoder).notes)
    found = fit("shared-bert", given, dev=data(6, seed=4), encoder=encoder, epochs=1, max_steps=1)
    assert said <= set(found.record.notes)
    assert found.record.examples["rated outputs"] == len(
        {(output.item, output.text) for output in outputs if output.item not in ("i0", "i1")}
    )


def test_row_split_needs_data_without_a_held_out_part(encoder: str) -> None:
    """Pages and commands pass a held-out part of whole groups: a request for the paper's split must report this."""
    given = {"encoder": encoder, "split": "row"}
    assert any(note.startswith("split=row: the dev part consists of whole groups") for note in plan(
        "shared-bert", data(), dev=data(4, seed=4), **given).notes)  # fmt: skip
    assert not any(note.startswith("split=row") for note in plan("shared-bert", data(), **given).notes)


def test_plan_counts_and_estimates(encoder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "measure_steps", lambda *given: timing.Timing(1e-3, 0.5, 1e-3, 1.0, 1.0, math.inf))
    monkeypatch.setattr(timing, "recent", {})
    monkeypatch.setattr(timing, "REST", 0.0)
    given = {"encoder": encoder, "batch_size": 10, "max_references": 1, "stages": "together"}
    found = plan("shared-bert", data(), dev=data(4, seed=4), epochs=2, **given)
    assert found.examples["pairs with a reference"] == found.examples["rated outputs"]
    assert found.steps == -(-found.examples["rated outputs"] // 10) * 2
    longer = plan("shared-bert", data(), dev=data(4, seed=4), epochs=6, **given)
    assert found.seconds > 0
    assert longer.afterwards == found.afterwards > 0  # the held-out part is scored once, however long the training
    assert longer.seconds - longer.afterwards == pytest.approx(3 * (found.seconds - found.afterwards))


def test_estimate_counts_the_references_among_which_the_nearest_is_found(
    encoder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two more references of each output, then four more: twice the time, with equally long texts."""
    monkeypatch.setattr(timing, "measure_steps", lambda *given: timing.Timing(1e-3, 0.5, 1e-3, 1.0, 1.0, math.inf))
    monkeypatch.setattr(timing, "recent", {})
    whole = data()
    seconds = []
    for n in (1, 3, 5):
        items = tuple(
            replace(item, references=tuple(f"r{item.id}x{k}" for k in range(n)), group=item.id) for item in whole.items
        )
        one = replace(whole, items=items, outputs=tuple(row for row in whole.outputs if row.system == "good"))
        found = plan("shared-bert", one, dev=data(4, seed=4), encoder=encoder, stages="together", aspects="quality")
        assert found.examples["pairs with a reference"] == 12
        seconds.append(found.seconds)
    assert seconds[1] - seconds[0] > 0
    assert seconds[2] - seconds[0] == pytest.approx(2 * (seconds[1] - seconds[0]))
