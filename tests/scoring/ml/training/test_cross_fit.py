"""Cross-fitting: no model scores its training data."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from scoring.ml import InvalidOption, TrainingDataError, TrainingProgress, cross_fit, load
from scoring.ml.cross_fitted import CrossFitted
from scoring.ml.training.job import FitJob
from scoring.ml.training.record import hash_content
from scoring.ml.types import Dataset, Dialogue, Item, Record, training_names
from tests.scoring.ml.training.toy import Toy, toy_data
from tests.scoring.ml.training.toy_entry import ENTRY


def test_every_group_is_scored_by_the_model_that_did_not_see_it(tmp_path: Path) -> None:
    data = toy_data(10)
    seen: list[TrainingProgress] = []
    evaluator = cross_fit("toy", data, folds=3, folder=tmp_path / "work", epochs=2, frozen=True, progress=seen.append)
    assert {p.phase for p in seen} == {f"fold {n} of 3, training" for n in (1, 2, 3)}
    # 3 folds of 2 epochs of 3 batches.
    assert [p.done for p in seen] == list(range(1, 19))
    assert {p.total for p in seen} == {18}
    assert seen[-1].seconds_left == 0
    assert not evaluator.trained_on
    records = data.outputs_with_context()
    values = evaluator.score(records)
    for record, value in zip(records, values, strict=True):
        unseen = [member for member in evaluator.members if record.group not in member.trained_on]
        assert len(unseen) == 1
        assert value == pytest.approx(unseen[0].score([record])[0], abs=1e-6)
    stranger = Record("cat sat", item="new", group="new")
    mean = np.mean([member.score([stranger])[0] for member in evaluator.members])
    assert evaluator.score([stranger])[0] == pytest.approx(mean, abs=1e-6)
    evaluator.save_pretrained(tmp_path / "out")
    loaded = load(tmp_path / "out")
    np.testing.assert_allclose(loaded.score(records), values, atol=1e-6)
    assert loaded.signature == evaluator.signature
    assert "folds:3" in loaded.signature


def test_score_missing_in_its_fold_is_undefined_even_if_another_fold_has_it() -> None:
    """An evaluator with one model per system may lack one in a fold without training texts for it."""

    def member(group: str, system: str) -> Any:
        return SimpleNamespace(
            trained_on=frozenset({group}),
            undefined=lambda record: "" if record.system == system else f"no model for {record.system}",
            worst=-7.0,
            worst_component=lambda component: -3.0,
        )

    evaluator = CrossFitted(ENTRY, [member("g1", "b"), member("g2", "a")])
    assert (evaluator.worst, evaluator.worst_component("x")) == (-7.0, -3.0)
    assert evaluator.undefined(Record("tea", group="g1", system="b")) == "no model for b"
    assert evaluator.undefined(Record("tea", group="g2", system="b")) == ""


def test_folds_report_like_their_models(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once, a blank text got the catalogue's low end or 0, although a model may have a lower one; and texts that must
    be scored together were scored in parts."""
    one, two = (Toy(ENTRY, artefact=None) for _ in range(2))  # type: ignore[arg-type]
    monkeypatch.setattr(Toy, "worst", property(lambda self: -2.0 if self is two else -1.0))
    monkeypatch.setattr(Toy, "worst_component", lambda self, component: -3.0)
    monkeypatch.setattr(Toy, "depends_on_batch", property(lambda self: self is two))
    folds = CrossFitted(ENTRY, [one, two])
    assert (folds.worst, folds.worst_component("certainty"), folds.depends_on_batch) == (-2.0, -3.0, True)
    assert not CrossFitted(ENTRY, [one, one]).depends_on_batch


def test_finished_folds_are_not_trained_again(tmp_path: Path) -> None:
    arguments = {"folds": 2, "folder": tmp_path, "epochs": 1, "frozen": True}
    one = cross_fit("toy", toy_data(8), **arguments)
    two = cross_fit("toy", toy_data(8), progress=lambda p: pytest.fail("trained again"), **arguments)
    assert one.signature == two.signature
    with pytest.raises(InvalidOption, match="learning_rate: "):
        cross_fit("toy", toy_data(8), learning_rate=0.5, **arguments)


def test_too_few_groups_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TrainingDataError, match="5 folds"):
        cross_fit("toy", toy_data(4), folder=tmp_path)


def test_moved_item_is_still_known_to_its_models() -> None:
    def model(*groups: str, items: tuple[str, ...]) -> Toy:
        record = SimpleNamespace(groups=groups, dev_groups=(), items=items)
        return Toy(ENTRY, artefact=SimpleNamespace(record=record))  # type: ignore[arg-type]

    one, two = model("g1", items=("a",)), model("g2", "item:c", items=("b",))
    folds = CrossFitted(ENTRY, [one, two])
    assert folds.trained_on == frozenset()
    folds.regroup({"a": "g2", "b": "g2", "c": "", "new": "g4"})
    # One of the two learned from g2, the other from an item that is there now: neither may score its items.
    assert (one.trained_on, two.trained_on) == ({"g1", "g2"}, {"g2", "item:c"})
    assert folds.trained_on == {"g2"}
    # Moved into a group, and moved out.
    folds.regroup({"a": "", "b": "g2", "c": "g3"})
    assert (one.trained_on, two.trained_on) == ({"g1", "item:a"}, {"g2", "item:c", "g3"})
    # It is called for every text, so it must not be rebuilt each time.
    assert two.trained_on is two.trained_on
    folds.regroup({})
    assert (one.trained_on, two.trained_on) == ({"g1"}, {"g2", "item:c"})
    assert two.trained_on is two.trained_on


def test_items_of_a_dialogue_follow_it_and_count_as_seen() -> None:
    """An item whose group is a dialogue's name was cut from it."""
    items = tuple(Item(f"d{n}-{turn}", ("tea",), group=f"d{n}") for n in range(10) for turn in range(2))
    dialogues = tuple(Dialogue(f"d{n}", ("tea", "no")) for n in range(12))
    for part in Dataset("talk", items=items, dialogues=dialogues).split(shares=(1.0, 1.0)):
        own = {item.group for item in part.items}
        assert own == {one.id for one in part.dialogues} - {"d10", "d11"}
    assert "dialogue:d3" in training_names("d3", "d3-0")
    assert training_names("", "i1") == ("item:i1",)


def test_item_moved_into_a_group_is_still_recognised() -> None:
    """Once, only the group was looked up, although the item was recorded when it had none."""
    assert training_names("g", "i1") == ("g", "dialogue:g", "item:i1")


def test_other_data_are_recognised_by_content_not_by_name() -> None:
    def model(*groups: str, contents: tuple[str, ...] = ()) -> Toy:
        record = SimpleNamespace(groups=groups, dev_groups=(), items=(), contents=contents)
        return Toy(ENTRY, artefact=SimpleNamespace(record=record))  # type: ignore[arg-type]

    tea, cake, wine = (hash_content((text,), None, "") for text in ("tea", "cake", "wine"))
    one, two, old = model("g1", contents=(tea,)), model("item:b", contents=(tea, wine)), model("g1", "item:b")
    folds = CrossFitted(ENTRY, [one, two])
    folds.recognise([("a", "g1", cake), ("b", "", cake), ("c", "g2", tea), ("d", "", wine), ("e", "g2", cake)])
    # Items in a shared group share content; equal names mean nothing.
    assert (one.trained_on, two.trained_on) == ({"g2"}, {"g2", "item:d"})
    assert folds.unseen(Record("x", item="d")) == (0,)
    assert folds.unseen(Record("x", item="b")) == (0, 1)
    # The same content twice: the training item is the one that kept its name.
    two.recognise([("a", "g1", tea), ("b", "g2", tea), ("d", "", wine), ("e", "", wine)])
    assert two.trained_on == {"g2", "item:d", "item:e"}
    # Saved before contents were recorded, so only names are available.
    old.recognise([("b", "g5", cake)])
    assert old.trained_on == {"g1", "item:b", "g5"}


@pytest.mark.parametrize(
    ("name", "options", "shares"),
    [
        ("shared-bert", {"stages": "head"}, (0.8, 0.0)),
        ("shared-bert", {"stages": "head", "beta": "grid"}, (0.7, 0.1)),
        ("shared-bert", {}, (0.7, 0.1)),
        ("ridge", {}, (0.8, 0.0)),
    ],
)
def test_part_is_held_out_only_where_it_chooses_something(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, options: dict[str, Any], shares: tuple[float, float]
) -> None:
    data = toy_data(40)
    jobs: list[FitJob] = []

    def note(job: FitJob) -> Any:
        jobs.append(job)
        raise StopIteration

    monkeypatch.setattr("scoring.ml.training.cross_fit.run_job", note)
    with pytest.raises(StopIteration):
        cross_fit(name, data, folds=5, folder=tmp_path, **options)
    assert jobs[0].dev is not None
    n_groups = len(set(data.name_groups().values()))
    counts = tuple(len(set(part.name_groups().values())) for part in (jobs[0].train, jobs[0].dev))
    assert counts == tuple(share * n_groups for share in shares)
