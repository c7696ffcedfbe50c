"""The effects of `shared-bert`'s options, observed at the inputs of its network and optimiser."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from scoring.ml import InvalidOption, fit, load
from scoring.ml.evaluators.shared_bert.evaluator import _Trainer
from scoring.ml.evaluators.shared_bert.instances import Instances, get_instances
from scoring.ml.evaluators.shared_bert.network import SharedBertNetwork
from scoring.ml.training.fit import make_job
from scoring.ml.types import Aspect, Dataset, Item, Output, Rating, Record
from tests.scoring.ml.tiny import tiny_encoder
from tests.scoring.ml.training.steps import steps_taken

Given = list[tuple[dict[str, torch.Tensor], torch.Tensor]]
WORDS = ["cat", "dog", "sat", "on", "mat", "tea", "you", "like", "ran", "the"]


def data(n_items: int, n_references: int = 2) -> Dataset:
    """Two outputs per item, a good and a bad one, and distinct references."""
    items, outputs, ratings = [], [], []
    for number in range(n_items):
        name, word = f"i{number}", WORDS[number % 10]
        references = tuple(f"{word} {other} {n}" for n, other in enumerate((WORDS * 9)[:n_references]))
        items.append(Item(name, references=references, group=f"g{number}"))
        for system, text, value in (("good", f"yes {word}", 6), ("bad", f"no {word}", 2)):
            outputs.append(Output(name, system, text))
            ratings.append(Rating("r", "naturalness", value, name, system))
            # A third is good.
            ratings.append(Rating("r", "quality", 6 if number % 3 == 0 else 1, name, system))
    return Dataset(
        "hand", aspects=(Aspect("naturalness", 1, 6), Aspect("quality", 1, 6)), items=tuple(items),
        outputs=tuple(outputs), ratings=tuple(ratings),
    )  # fmt: skip


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return tiny_encoder("bert", tmp_path_factory.mktemp("encoder"))


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> Given:
    """The inputs of the network at each training step, and its logits."""
    found: Given = []
    forward = SharedBertNetwork.forward

    def told(self: SharedBertNetwork, **inputs: torch.Tensor) -> dict[str, torch.Tensor]:
        answer = forward(self, **inputs)
        if self.training:
            found.append((inputs, answer["logits"].detach().double()))
        return answer

    monkeypatch.setattr(SharedBertNetwork, "forward", told)
    return found


def test_loss_weights_good_instances_by_the_beta_of_their_aspect(encoder: str, given: Given) -> None:
    """Reddy 2022, equation 1: - beta y log p - (1 - beta) (1 - y) log(1 - p), mean over outputs and aspects."""
    found = fit(
        "shared-bert",
        data(4),
        encoder=encoder,
        epochs=1,
        batch_size=16,
        beta="0.9,0.2",
        max_references=None,
        nearest=False,
        stages="together",
    )
    ((inputs, logits),) = given
    y, p = inputs["labels"].double().numpy(), torch.sigmoid(logits).numpy()
    beta = np.array([0.9, 0.2])
    assert y.shape == (16, 2)
    loss = -(beta * y * np.log(p) + (1 - beta) * (1 - y) * np.log(1 - p)).mean()
    assert found.record.log[0]["loss"] == pytest.approx(loss, rel=1e-5)


def test_beta_of_a_training_is_the_share_of_bad_instances(encoder: str, given: Given) -> None:
    """For naturalness every other output is good, for quality those of two of six items."""
    fit("shared-bert", data(6), encoder=encoder, epochs=1, max_steps=1, batch_size=4, labels="binary")
    ((inputs, _),) = given
    np.testing.assert_allclose(inputs["beta"].numpy(), np.tile([1 / 2, 2 / 3], (4, 1)), rtol=1e-6)
    assert set(inputs["labels"].unique().tolist()) == {0.0, 1.0}


def test_grades_are_shares_of_the_scale(encoder: str, given: Given) -> None:
    """6 and 2 on a scale from 1 to 6 are 1 and 1 / 5; beta is 1 - their mean."""
    fit("shared-bert", data(6), encoder=encoder, epochs=1, max_steps=1, batch_size=4, aspects="naturalness")
    ((inputs, _),) = given
    assert inputs["labels"].unique().tolist() == pytest.approx([0.2, 1.0])
    np.testing.assert_allclose(inputs["beta"].numpy(), 0.4, rtol=1e-6)


def read(inputs: dict[str, torch.Tensor]) -> list[tuple[int, ...]]:
    """The rows of a batch without their padding."""
    rows = zip(inputs["input_ids"].tolist(), inputs["attention_mask"].tolist(), strict=True)
    return [tuple(token for token, real in zip(*row, strict=True) if real) for row in rows]


def test_references_are_drawn_again_in_each_epoch(encoder: str, given: Given) -> None:
    """Eight outputs with ten references each, two of them used per epoch, which is one batch."""
    fit(
        "shared-bert", data(4, 10), encoder=encoder, epochs=6, max_references=2, batch_size=64, aspects="naturalness",
        features="joint",
    )  # fmt: skip
    epochs = [read(inputs) for inputs, _ in given]
    assert [len(rows) for rows in epochs] == [16] * 6
    separator = 3
    met: dict[tuple[int, ...], set[tuple[int, ...]]] = {}
    for rows in epochs:
        own: dict[tuple[int, ...], set[tuple[int, ...]]] = {}
        for row in rows:
            at = row.index(separator)
            own.setdefault(row[:at], set()).add(row[at:])
        # Two different ones per output.
        assert [len(references) for references in own.values()] == [2] * 8
        for output, references in own.items():
            met.setdefault(output, set()).update(references)
    assert len({tuple(sorted(rows)) for rows in epochs}) == 6
    # Twelve draws of ten cover about seven; a fixed draw would cover two.
    assert min(len(references) for references in met.values()) >= 4


def pairs(part: Instances) -> set[tuple[int, str]]:
    return set(zip(part.outputs.tolist(), part.references, strict=True))


@pytest.mark.parametrize("seed", [13, 14])
def test_row_split_has_no_pair_in_two_parts(encoder: str, tmp_path: Path, seed: int) -> None:
    """Reddy 2022: 80, 10 and 10 per cent of the pairs of an output and a reference."""
    options = {"split": "row", "aspects": "naturalness"}
    job = make_job("shared-bert", data(10, 3), {**options, "encoder": encoder}, seed=seed, folder=tmp_path)
    parts = [pairs(part) for part in get_instances(job)]
    assert [len(part) for part in parts] == [48, 6, 6]
    assert len(set.union(*parts)) == 60


@pytest.mark.parametrize(
    ("more", "shares", "decays"),
    [
        # Plain Adam at one rate; AdamW with a tenth of the steps for warm-up, then down to zero.
        ({"profile": "paper", "beta": "share", "split": "group"}, [1.0] * 10, {0.0}),
        ({"learning_rate": 3e-4}, [0, 1, *(n / 9 for n in range(8, 0, -1))], {0.0, 0.01}),
    ],
    ids=["paper", "recommended"],
)
def test_optimiser_of_each_profile(encoder: str, more: dict[str, Any], shares: list[float], decays: set[float]) -> None:
    with steps_taken() as steps:
        fit("shared-bert", data(6), dev=data(2), encoder=encoder, epochs=5, batch_size=12, nearest=False, **more)
    assert [step.rate for step in steps] == pytest.approx([3e-4 * share for share in shares])
    assert {decay for step in steps for decay in step.decays} == decays


def test_outputs_are_compared_with_their_nearest_reference(encoder: str, given: Given) -> None:
    """Both outputs of an item are among its references, and nothing is nearer than the same text."""
    whole = data(8)
    texts = {item.id: tuple(one.text for one in whole.outputs if one.item == item.id) for item in whole.items}
    items = tuple(replace(item, references=(*item.references, *texts[item.id])) for item in whole.items)
    options: dict[str, Any] = {"encoder": encoder, "epochs": 1, "batch_size": 4, "stages": "both"}
    found = fit("shared-bert", replace(whole, items=items), **options)
    assert len(given) == 4
    assert found.record.examples["pairs of output and reference"] == 16
    for inputs, _ in given:
        assert torch.equal(inputs["places"][:, 0], inputs["places"][:, 1])
    given.clear()
    fit("shared-bert", replace(whole, items=items), nearest=False, max_references=None, **options)
    assert len(given) == 16
    assert not all(torch.equal(inputs["places"][:, 0], inputs["places"][:, 1]) for inputs, _ in given)


def test_scores_are_those_of_the_nearest_reference(encoder: str, tmp_path: Path) -> None:
    found = fit("shared-bert", data(8), encoder=encoder, stages="head", shared=False, aspects="naturalness")
    found.save_pretrained(tmp_path / "out")
    references = ("cat sat on", "yes dog", "mat tea you like")
    several = [Record("yes dog", references), Record("yes dog", references[::-1])]
    alone = [Record("yes dog", (reference,)) for reference in references]
    each = found.score(alone)
    assert len(set(each.ravel())) == 3
    np.testing.assert_allclose(found.score(several), each[[1, 1]], atol=1e-6)
    assert "refs:nearest" in found.signature
    for rule, value in (("nearest", each[1]), ("mean", each.mean(axis=0)), ("max", each.max(axis=0))):
        np.testing.assert_allclose(load(tmp_path / "out", references=rule).score(several)[0], value, atol=1e-6)


def test_processes_of_a_training_do_not_share_a_file_of_vectors(encoder: str, tmp_path: Path) -> None:
    """Each would write it at the same moment."""
    vectors = []
    for processes in (1, 2):
        folder = tmp_path / str(processes)
        job = make_job("shared-bert", data(4), {"encoder": encoder, "processes": processes}, folder=folder)
        trainer = _Trainer(job, *get_instances(job)[:2])
        trainer.keep_nearest()
        assert trainer.vectors is not None
        assert (folder / "texts").is_dir() == (processes == 1)
        vectors.append(trainer.vectors)
    torch.testing.assert_close(*vectors)


def test_joint_texts_have_no_nearest_reference(encoder: str, tmp_path: Path) -> None:
    options: dict[str, Any] = {"encoder": encoder, "features": "joint", "epochs": 1, "max_steps": 1}
    fit("shared-bert", data(8), **options).save_pretrained(tmp_path / "out")
    assert "refs:mean" in load(tmp_path / "out").signature
    with pytest.raises(InvalidOption, match="train with features=separate"):
        load(tmp_path / "out", references="nearest").score([Record("yes dog", ("no", "tea"))])
