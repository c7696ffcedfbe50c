"""All four evaluators through the common framework: train, interrupt, continue, save, load, refuse."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from scoring.ml import InvalidOption, TrainingDataError, fit, load, plan
from scoring.ml.cross_fitted import CrossFitted
from scoring.ml.encoders import kept
from scoring.ml.evaluators.unreferenced.conversations import collect_conversations, reply_records
from scoring.ml.evaluators.unreferenced.dialogues import score_dialogues
from scoring.ml.evaluators.unreferenced.ruber import Ruber
from scoring.ml.evaluators.unreferenced.samples import Replies
from scoring.ml.evaluators.unreferenced.training import Epochs
from scoring.ml.training.fit import make_job
from scoring.ml.training.job import TrainingProgress
from scoring.ml.types import Dataset, Dialogue, Item, Record
from tests.scoring.ml.evaluators.unreferenced.conftest import SMALL

CONTEXT = ("you like tea", "no i ran")


def weights(evaluator: Any) -> dict[str, torch.Tensor]:
    return dict(evaluator.artefact.network.state_dict())


def same(a: Any, b: Any) -> bool:
    return all(torch.equal(x, y) for x, y in zip(weights(a).values(), weights(b).values(), strict=True))


class Stop(Exception):
    pass


#: The evaluators that most tests only apply.
GIVEN: dict[str, Any] = {"epochs": 2, "learning_rate": 0.01, "batch_size": 32}


@pytest.fixture(scope="module")
def trained(encoder: str, dialogues: Dataset) -> dict[str, Any]:
    return {name: fit(name, dialogues, encoder=encoder, **GIVEN, **sizes) for name, sizes in SMALL.items()}


def test_batch_and_order_change_nothing(trained: dict[str, Any], name: str, dialogues: Dataset) -> None:
    evaluator = trained[name]
    records = reply_records(collect_conversations(dialogues, True))[:40]
    values = evaluator.score(records)
    assert len(set(values.round(6))) > 20
    assert ((values > 0) & (values < 1)).all()
    np.testing.assert_allclose(evaluator.score(records[::-1])[::-1], values, atol=1e-5)
    for record, value in list(zip(records, values, strict=True))[::9]:
        assert evaluator.score([record])[0] == pytest.approx(value, abs=1e-5)


def test_saved_and_loaded_scores_the_same(trained: dict[str, Any], name: str, tmp_path: Path) -> None:
    evaluator = trained[name]
    evaluator.save_pretrained(tmp_path / "out")
    loaded = load(tmp_path / "out")
    records = [Record("cat sat", context=CONTEXT), Record("i like tea", context=("yes",))]
    np.testing.assert_allclose(loaded.score(records), evaluator.score(records), atol=1e-6)
    assert loaded.signature == evaluator.signature
    # A data set of dialogues has no outputs: the fixtures are true replies of the held-out part.
    assert len(loaded.artefact.fixtures) == 10
    card = (tmp_path / "out" / "card.md").read_text(encoding="utf-8")
    assert "not trained on human judgements" in card
    assert "Neither a generator nor own_outputs" in card


def test_missing_context_is_undefined_and_empty_text_is_worst(trained: dict[str, Any], name: str) -> None:
    evaluator = trained[name]
    records = [
        Record("cat sat"),
        Record(" ", context=CONTEXT),
        Record("cat sat", context=(" ", "your persona: i row")),
        Record("cat", context=(), source="you like tea"),
        Record("cat  SAT", context=CONTEXT),
        Record("cat sat", context=CONTEXT, item="other"),
    ]
    values = evaluator.score(records)
    assert np.isnan(values[[0, 2]]).all()
    assert "no context" in evaluator.details.reasons[0]
    assert values[1] == 0
    assert evaluator.details.n_empty == 1
    assert values[4] == pytest.approx(values[5], abs=1e-6)


def test_long_texts_are_truncated_and_counted(trained: dict[str, Any], name: str) -> None:
    evaluator = trained[name]
    long = "tea " * 10_000
    for record in (Record(long, context=CONTEXT), Record("cat", context=(long, "yes"))):
        assert 0 < evaluator.score([record])[0] < 1
        assert evaluator.details.n_truncated == 1


def test_flat_context_keeps_its_newest_turns(trained: dict[str, Any], name: str) -> None:
    if name == "maude":
        pytest.skip("reads each turn by itself")
    evaluator = trained[name]
    old = Record("cat", context=("tea " * 500, "yes you ran"))
    older = Record("cat", context=("dog " * 300, "tea " * 500, "yes you ran"))
    newer = Record("cat", context=("tea " * 500, "no mat no"))
    a, b, c = evaluator.score([old, older, newer])
    assert a == pytest.approx(b, abs=1e-6)
    assert abs(a - c) > 1e-6


def test_same_seed_gives_the_same_weights_and_another_one_others(
    trained: dict[str, Any], encoder: str, dialogues: Dataset, name: str, small: dict[str, int]
) -> None:
    shuffled = replace(dialogues, dialogues=dialogues.dialogues[::-1])
    seed = trained[name].artefact.seed
    again, other = (
        fit(name, data, encoder=encoder, seed=number, **GIVEN, **small)
        for data, number in ((shuffled, seed), (dialogues, seed + 1))
    )
    assert same(trained[name], again)
    assert not same(trained[name], other)


@pytest.fixture(scope="module")
def uncut(encoder: str, dialogues: Dataset) -> Any:
    """The next test's training without interruption, in the same blocks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kept, "CPU_BLOCK", 32)
        return fit("maude", dialogues, encoder=encoder, epochs=3, batch_size=32, **SMALL["maude"])


@pytest.mark.parametrize(("phase", "done"), [("encoding", 60), ("training", 7)])
def test_interrupted_training_ends_with_the_same_weights(
    encoder: str, dialogues: Dataset, uncut: Any, tmp_path: Path, phase: str, done: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "CPU_BLOCK", 32)
    arguments: dict[str, Any] = {"encoder": encoder, "epochs": 3, "batch_size": 32, **SMALL["maude"]}

    def interrupt(progress: TrainingProgress) -> None:
        if progress.phase == phase and progress.done >= done:
            raise Stop

    with pytest.raises(Stop):
        fit("maude", dialogues, folder=tmp_path, progress=interrupt, **arguments)
    seen: list[TrainingProgress] = []
    resumed = fit("maude", dialogues, folder=tmp_path, progress=seen.append, **arguments)
    assert same(uncut, resumed)
    encoded = [p.done for p in seen if p.phase == "encoding"]
    if phase == "training":
        assert not encoded  # every text had been encoded
        assert min(p.done for p in seen if p.phase == "training") > 4  # the first epoch had been saved
    else:
        assert min(encoded) > 32  # the first block had been saved
    assert {"breaking replies (train)", "training", "evaluating"} <= {p.phase for p in seen}


def test_learns_learnable_data(encoder: str, dialogues: Dataset) -> None:
    few = replace(dialogues, dialogues=dialogues.dialogues[:12])
    evaluator = fit(
        "maude", few, dev=few, encoder=encoder, epochs=60, learning_rate=0.01, batch_size=16, patience=None,
        cache_dtype="fp32", dropout=0.0, hidden=32, down=24, decoder=32,
    )  # fmt: skip
    log, metrics = evaluator.record.log, evaluator.record.metrics
    assert metrics["loss"] < 0.6 * log[0]["dev_loss"]
    assert metrics["below"] > 0.9
    assert metrics["true"] > 0.65
    assert metrics["false"] < 0.35


def test_profiles_differ_and_the_released_padding_changes_scores(encoder: str, dialogues: Dataset) -> None:
    evaluator = fit("maude", dialogues, profile="paper", encoder=encoder, epochs=1, **SMALL["maude"])
    settings = evaluator.settings
    assert (settings["layers"], settings["learning_rate"], settings["batch_size"]) == (2, 1e-4, 128)
    assert (settings["pooling"], settings["positive_weight"], settings["patience"]) == ("cls", 1.0, None)
    assert "profile:paper" in evaluator.signature
    assert "pad:attended" in evaluator.signature
    masked = type(evaluator)(evaluator.entry, replace(evaluator.artefact, settings={**settings, "pad_attended": False}))
    even = Record("cat sat", context=("you like tea", "no you ran"))
    uneven = Record("cat sat", context=("you like tea and the dog ran on the mat", "no"))
    assert evaluator.score([even])[0] == pytest.approx(masked.score([even])[0], abs=1e-6)
    assert abs(evaluator.score([uneven])[0] - masked.score([uneven])[0]) > 1e-6
    # A score still does not depend on its batch: only its own context is padded.
    together = evaluator.score([even, uneven])
    assert together[1] == pytest.approx(evaluator.score([uneven])[0], abs=1e-5)


@pytest.fixture(scope="module")
def plain(encoder: str, dialogues: Dataset) -> Any:
    """Without any of the next test's options."""
    return fit("maude", dialogues, encoder=encoder, epochs=1, batch_size=32, **SMALL["maude"])


@pytest.mark.parametrize(
    "options",
    [
        {"bidirectional": True},
        {"batches": "replies"},
        {"difference": "signed"},
        {"layers": 2},
        {"pooling": "cls"},
        {"negatives": "syntax"},
        {"negatives": "semantics"},
        {"loss": "hinge"},
        {"positive_weight": 1.0},
        {"variants": 2},
        {"keep_identical": True},
        {"inputs": "text"},
        {"inputs": "context"},
        {"cache_dtype": "fp32"},
        {"max_grad_norm": 0.01},
        {"lower_case": False, "max_length": 8},
        {"pool_zeros": True},
        {"dropout": 0.5},
    ],
    ids=str,
)
def test_each_option_takes_effect(encoder: str, dialogues: Dataset, plain: Any, options: dict[str, Any]) -> None:
    arguments: dict[str, Any] = {"epochs": 1, "batch_size": 32, "encoder": encoder, **SMALL["maude"]}
    changed = fit("maude", dialogues, **{**arguments, **options})
    before, after = weights(plain), weights(changed)
    records = [Record("CAT SAT on the mat", context=CONTEXT), Record("CAT SAT on the mat", context=("yes",))]
    records.append(Record("no dog ran", context=CONTEXT))
    values = changed.score(records)
    if "max_length" in options:  # the dialogues are short and lower-case: only later texts differ
        long = [Record("the cat sat on the mat you like the tea", context=CONTEXT)]
        assert changed.score(long)[0] != pytest.approx(plain.score(long)[0], abs=1e-6)
        assert "case:mixed" in changed.signature
    else:
        assert before.keys() != after.keys() or not same(plain, changed)
    if options.get("inputs") == "text":
        assert values[0] == pytest.approx(values[1], abs=1e-7)
    if options.get("inputs") == "context":
        assert values[0] == pytest.approx(values[2], abs=1e-7)
        assert "inputs:context" in changed.signature
    if "negatives" in options:
        kinds = changed.artefact.state["negatives"]
        assert kinds == (
            ["rand_utt"] if options["negatives"] == "semantics" else ["word_drop", "word_order", "word_repeat"]
        )


def test_ruber_by_reference_and_blended(trained: dict[str, Any], tmp_path: Path) -> None:
    evaluator = trained["ruber"]
    evaluator.save_pretrained(tmp_path)
    records = [
        Record("cat sat", references=("cat sat", "no"), context=CONTEXT),
        Record("the dog ran", references=("cat sat",), context=CONTEXT),
        Record("tea", references=("mat on tea",), context=CONTEXT),
        Record("tea", context=CONTEXT),
    ]
    referenced = load(tmp_path, form="referenced")
    values = referenced.score(records)
    assert values[0] == pytest.approx(1.0, abs=1e-6)
    assert values[0] > values[1]
    assert np.isnan(values[3])
    assert referenced.score([Record("tea", references=("tea",))])[0] == pytest.approx(1.0, abs=1e-6)
    own = evaluator.score(records)
    blended = load(tmp_path, form="blended", blend="arithmetic")
    assert blended.depends_on_batch
    found = blended.evaluate(records[:3])
    u, r = own[:3], values[:3]
    expected = ((u - u.min()) / np.ptp(u) + (r - r.min()) / np.ptp(r)) / 2
    np.testing.assert_allclose(found.values, expected, atol=1e-5)
    np.testing.assert_allclose(found.components["unreferenced"], u, atol=1e-5)
    assert "form:blended-arithmetic" in blended.signature
    with pytest.raises(InvalidOption, match="one of min"):
        load(tmp_path, form="blended", blend="mean")


def test_ruber_reads_a_reference_of_any_length(trained: dict[str, Any]) -> None:
    """Once, it was silently truncated to the encoder's limit."""
    whole = trained["ruber"]
    longest = whole.source.max_length()
    long = Record("cat " * 2 * longest + "tea", references=("cat tea",), context=CONTEXT)
    short = replace(long, text="cat tea")
    found = Ruber(whole.entry, whole.artefact, {**whole.options, "form": "referenced"}).evaluate([long, short])
    # The largest and smallest values come from the same two words.
    np.testing.assert_allclose(found.values, [1, 1], atol=1e-6)
    assert found.n_truncated == 0
    blended = Ruber(whole.entry, whole.artefact, {**whole.options, "form": "blended"}).evaluate([long, short])
    assert blended.truncated.tolist() == [True, False]
    np.testing.assert_allclose(blended.components["referenced"], [1, 1], atol=1e-6)


@pytest.mark.parametrize("profile", ["recommended", "paper"])
def test_options_unused_by_hinge_are_refused(encoder: str, dialogues: Dataset, profile: str) -> None:
    """Both had no effect."""
    plan("ruber", dialogues, encoder=encoder, profile=profile, loss="hinge")
    for option in ({"positive_weight": 3.0}, {"paraphrased": 0.5}):
        with pytest.raises(InvalidOption, match="loss=hinge"):
            plan("ruber", dialogues, encoder=encoder, profile=profile, loss="hinge", **option)


def test_held_out_loss_counts_like_the_loss(
    encoder: str, dialogues: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With hinge and the paper's weight 1, a batch also counted by its true replies."""
    given = {"loss": "hinge", **SMALL["maude"]}
    job = make_job("maude", dialogues, {**given, "encoder": encoder}, profile="paper", folder=tmp_path)
    replies = Replies(
        np.zeros((2, 4), dtype=np.int64),
        np.array([[1, 1, 1, 0], [1, 0, 0, 1]], dtype=np.float32),
        np.array([1, 0, 0, 0], dtype=np.float32),
    )
    epochs = object.__new__(Epochs)
    epochs.job = job
    assert [epochs._counted(replies, np.array([row])) for row in (0, 1)] == [2, 1]
    epochs.job = replace(job, options={**job.options, "loss": "nce"})
    assert [epochs._counted(replies, np.array([row])) for row in (0, 1)] == [3, 2]


def test_folds_blend_on_one_scale(trained: dict[str, Any]) -> None:
    """As if one model had scored them all: here both folds have the same model."""
    whole = Ruber(trained["ruber"].entry, trained["ruber"].artefact, {"form": "blended"})
    artefact = whole.artefact
    folds = [
        Ruber(whole.entry, replace(artefact, record=replace(artefact.record, groups=(group,))), whole.options)
        for group in ("g1", "g2")
    ]
    texts = ("cat sat", "the dog", "you like tea", "no", "dog ran")
    records = [
        Record(text, ("cat sat on", "tea"), ("you like cat",), group=f"g{1 + number % 2}")
        for number, text in enumerate(texts)
    ]
    found = CrossFitted(whole.entry, folds, whole.options)
    assert found.depends_on_batch
    np.testing.assert_allclose(found.score(records), whole.score(records), atol=1e-6)


def test_dialogue_is_scored_by_the_fold_that_did_not_see_it(trained: dict[str, Any]) -> None:
    whole = trained["bert-nli"]
    other = scaled(whole, 0.5)
    folds = [
        type(whole)(whole.entry, replace(artefact, record=replace(artefact.record, groups=(group,), dev_groups=())))
        for artefact, group in ((whole.artefact, "dialogue:a"), (other, "dialogue:b"))
    ]
    found = CrossFitted(whole.entry, folds)
    talks = [Dialogue("a", ("you like tea", "no i ran")), Dialogue("b", ("you like tea", "no i ran"))]
    values = [score.value for score in score_dialogues(found, talks)]
    alone = [score_dialogues(fold, talks[:1])[0].value for fold in folds]
    assert values == pytest.approx(alone[::-1], abs=1e-6)
    assert abs(alone[0] - alone[1]) > 1e-4


def scaled(evaluator: Any, factor: float) -> Any:
    """Its artefact with all weights multiplied by a factor."""
    network = copy.deepcopy(evaluator.artefact.network)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.mul_(factor)
    return replace(evaluator.artefact, network=network)


def test_references_are_used_where_there_are_no_dialogues(encoder: str) -> None:
    items = tuple(
        Item(f"i{n}", context=(f"cat {'dog ' * n}", "tea"), references=(f"sat {'on ' * n}", "yes"), group=f"g{n}")
        for n in range(14)
    )
    evaluator = fit("maude", Dataset("items", items=items), encoder=encoder, epochs=1, **SMALL["maude"])
    assert evaluator.trained_on == {f"g{n}" for n in range(14)}
    assert len(evaluator.record.dev_groups) == 2


def test_missing_input_is_reported_before_training(dialogues: Dataset, encoder: str, tmp_path: Path) -> None:
    with pytest.raises(TrainingDataError, match="two turns"):
        plan("maude", Dataset("empty", items=(Item("i", references=("a",)),)), encoder=encoder)
    with pytest.raises(TrainingDataError, match=r"3 conversations .*too few"):
        fit("maude", replace(dialogues, dialogues=dialogues.dialogues[:3]), encoder=encoder)
    alike = tuple(Dialogue(f"d{n}", ("hi", "yes")) for n in range(20))
    with pytest.raises(TrainingDataError, match="1 different replies"):
        plan("ruber", Dataset("alike", dialogues=alike), encoder=encoder)
    with pytest.raises(InvalidOption, match="name both folders"):
        plan("maude", dialogues, encoder=encoder, translator=str(tmp_path))
    with pytest.raises(InvalidOption, match="no folder of a transformers model"):
        plan("maude", dialogues, encoder=encoder, generator=str(tmp_path / "none"))
    with pytest.raises(InvalidOption, match="needs a paraphraser, or translator"):
        plan("maude", dialogues, encoder=encoder, paraphrased=0.5)
    with pytest.raises(InvalidOption, match="one of"):
        plan("maude", dialogues, encoder=encoder, negatives="some")


def test_dry_check_counts_and_estimates(dialogues: Dataset, encoder: str, name: str) -> None:
    found = plan(name, dialogues, encoder=encoder, epochs=3, batch_size=10)
    assert found.examples["conversations"] == 27
    n = found.examples["true replies"]
    assert found.steps == 3 * -(-n // 10)
    assert found.seconds is not None
    assert found.seconds > 0
    assert any("held out" in note for note in found.notes)
    twice = replace(dialogues, dialogues=(*dialogues.dialogues, Dialogue("copy", dialogues.dialogues[0].turns)))
    assert any("repeat another" in note for note in plan(name, twice, encoder=encoder, seed=3).notes)
