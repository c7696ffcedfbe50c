"""The worker's answers to requests about reference sets, in this process; and its memory."""

from __future__ import annotations

import json
import shutil

import pytest

from scoring.live import answering
from scoring.live.answering import WarmModels, execute
from scoring.ml.cross_fitted import CrossFitted
from scoring.ml.encoders.source import find_encoder
from scoring.ml.types import Record
from tests.scoring.ml.evaluators.comparative.data import untrained as untrained_judge
from tests.scoring.ml.evaluators.ream.untrained import untrained
from tests.scoring.ml.tiny import save_model, tiny_encoder

ITEM = {"context": ["you like"], "source": None, "key": "i1", "group": ""}


@pytest.fixture
def encoder(tmp_path) -> str:
    return tiny_encoder("bert", tmp_path / "encoder", layers=1)


@pytest.fixture
def folder(tmp_path, settings, monkeypatch, encoder):
    settings.ARTEFACTS_DIR = tmp_path
    monkeypatch.setattr(answering, "_models", [WarmModels(2)])
    untrained(find_encoder(encoder)).save_pretrained(tmp_path / "1" / "rater")
    return tmp_path / "1" / "rater"


def ask(kind: str, **rest):
    request = {"kind": kind, "source": {"folder": "1/rater", "slug": "rater"}, "options": {}, "item": ITEM, **rest}
    return execute(json.loads(json.dumps(request)), lambda: None)


def test_written_set_and_its_check_get_one_number(folder, encoder):
    texts = ["cat sat", "the dog"]
    found = ask("writing", references=texts, text="no tea", candidates=["i ran", "i ran", " "])
    expected = untrained(find_encoder(encoder))
    assert found["now"] == pytest.approx(expected.reliability(("you like",), texts), abs=1e-5)
    assert found["candidates"] == [
        pytest.approx(expected.reliability(("you like",), [*texts, "i ran"]), abs=1e-5),
        found["candidates"][0],
        None,
    ]
    assert (found["left"], found["notes"], found["signature"]) == (0, [], expected.signature)
    checked = ask("sets", sets=[texts, [*texts, "no tea"], []])
    assert checked == {"signature": expected.signature, "values": [found["now"], found["with_text"], None]}


def test_candidates_get_a_share_of_the_time(folder, monkeypatch):
    monkeypatch.setattr(answering, "TURN_SECONDS", 0.0)
    found = ask("writing", references=["cat"], text="tea", candidates=["cat", *"abcdef"])
    assert found["with_text"] is not None
    assert (found["candidates"][0], found["left"]) == (found["now"], 2)
    assert [value is None for value in found["candidates"][1:]] == [False] * 4 + [True] * 2


def test_changed_encoder_is_reported_and_not_reloaded_at_every_key(folder, encoder, monkeypatch):
    save_model("bert", find_encoder(encoder).folder, 100, layers=1, positions=64, seed=8)
    loads: list[int] = []
    request = {"references": ["cat"], "text": "", "candidates": []}
    for _ in range(3):
        found = execute(
            {"kind": "writing", "source": {"folder": "1/rater", "slug": "rater"}, "item": ITEM, **request},
            lambda: loads.append(1),
        )
        assert found["error"] == "unavailable"
        assert "weights" in found["detail"]
    assert loads == [1]


def test_other_evaluators_than_ream_are_refused(folder):
    found = execute({"kind": "sets", "source": {"name": "length"}, "item": ITEM, "sets": [["a"]]}, lambda: None)
    assert found["error"] == "bad-input"
    assert found["detail"].startswith("length ")


def test_training_item_in_another_group_is_not_new(folder, encoder):
    source = {"folder": "1/seen", "slug": "seen"}
    untrained(find_encoder(encoder), groups=("g1",), items=("i1",)).save_pretrained(folder.parent / "seen")
    notes = []
    for is_own in (True, False):  # another item has this name elsewhere
        item = {**ITEM, "group": "new", "is_own": is_own}
        notes.append(ask("writing", source=source, item=item, references=["cat sat"])["notes"])
    # And an unseen item that is now in its group.
    for beside in (["i1"], ["i3"]):
        item = {**ITEM, "key": "i2", "group": "new", "is_own": True, "beside": beside}
        notes.append(ask("writing", source=source, item=item, references=["cat sat"])["notes"])
    learned = "the evaluator learned from this item, so its rating is not independent"
    assert notes == [[learned], [], [learned], []]


def test_two_texts_are_compared_by_a_comparative_evaluator(folder, encoder):
    judges = [untrained_judge(find_encoder(encoder), seed) for seed in (1, 2)]
    whole = CrossFitted(judges[0].entry, judges)
    pairs = [
        {"a": "cat", "b": "the dog", "context": ["you like"]},
        {"a": "the dog", "b": "cat", "context": ["you like"]},
    ]
    pairs += [{"a": "cat", "b": " "}, {"a": "cat", "b": "cat " * 200}]
    found = answering.compare_pairs(whole, pairs)
    a, b = [Record(pair["a"], context=("you like",)) for pair in pairs[:2]], [Record("the dog", context=("you like",))]
    each = [judge.judge(a[:1], b).probabilities[0] for judge in judges]
    mean = (each[0] + each[1]) / 2
    assert found["probabilities"][0] == pytest.approx(
        dict(zip(("worse", "tie", "better"), mean, strict=True)), abs=1e-6
    )
    # When read in both orders, a verdict is reversed with the texts.
    assert found["verdicts"][0] == -found["verdicts"][1]
    assert found["verdicts"][2] == 1
    assert 0 <= found["swap_consistency"] <= 1
    assert found["notes"] == ["1 of 4 pairs exceeded the length limit and were truncated."]
    assert found["signature"] == whole.signature
    noted = answering.compare_pairs(whole, [{"a": "cat", "b": "วันนี้", "context": ["วันนี้ cat"]}])["notes"]
    assert [note.partition(" have words")[0] for note in noted] == ["2 of 3 different texts"]
    refused = execute({"kind": "compare", "source": {"name": "length"}, "pairs": pairs}, lambda: None)
    assert refused["error"] == "bad-input"
    assert refused["detail"].startswith("length ")


def test_least_recently_used_model_is_dropped_with_its_cache(folder):
    models = WarmModels(1)
    first = models.get_writing({"folder": "1/rater", "slug": "rater"}, {}, lambda: None)
    assert models.get_writing({"folder": "1/rater", "slug": "rater"}, {}, lambda: None) is first
    models.get({"name": "length"}, {}, lambda: None)
    assert len(models.kept) == 1
    assert models.get_writing({"folder": "1/rater", "slug": "rater"}, {}, lambda: None) is not first


def test_missing_or_damaged_evaluator_is_reported_without_its_path(folder, tmp_path):
    (folder / "config.json").write_text("[]")
    damaged = ask("sets", sets=[["cat"]])
    assert damaged["error"] == "unavailable"
    assert "rater" in damaged["detail"]
    assert "config.json" in damaged["detail"]
    shutil.rmtree(folder)
    gone = ask("sets", sets=[["cat"]])
    assert gone["error"] == "unavailable"
    assert "rater" in gone["detail"]
    assert "folder is missing" in gone["detail"]
    assert str(tmp_path) not in damaged["detail"] + gone["detail"]


def test_models_of_all_folds_answer_and_say_so(encoder):
    raters = [untrained(find_encoder(encoder)), untrained(find_encoder(encoder))]
    pairs = [{"text": text, "references": ["the cat sat", "a dog"], "context": ["you like"]} for text in ("cat", "dog")]
    found = answering.score_pairs(CrossFitted(raters[0].entry, raters), pairs)
    assert found["notes"][0] == "Each score is the mean over the models of all 2 folds."
    alone = answering.score_pairs(raters[0], pairs)
    assert None not in alone["scores"]
    assert found["scores"] == pytest.approx(alone["scores"])
    assert not any("folds" in note for note in alone["notes"])
