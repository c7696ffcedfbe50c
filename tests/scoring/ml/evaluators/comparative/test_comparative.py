"""The comparative evaluator as a whole: training, verdicts, scores, ratings, saving, options, refusals."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch

from scoring.ml import (
    ArtefactError,
    EncoderError,
    InvalidOption,
    ScoringError,
    TrainingDataError,
    TrainingProgress,
    fit,
    load,
    plan,
)
from scoring.ml.encoders.source import find_encoder
from scoring.ml.evaluators.comparative import training
from scoring.ml.evaluators.comparative.evaluator import Comparative
from scoring.ml.evaluators.comparative.material import Material
from scoring.ml.evaluators.comparative.network import ComparativeNetwork
from scoring.ml.evaluators.comparative.training import count_readings_after
from scoring.ml.evaluators.comparative.verdicts import Verdicts
from scoring.ml.training import finetune as finetune_module
from scoring.ml.training.fit import make_job
from scoring.ml.types import Dataset, Output, Rating, Record
from tests.scoring.ml.evaluators.comparative.data import make
from tests.scoring.ml.tiny import tiny_encoder

JOINT = {"features": "joint", "stages": "best"}
FAST = {
    "epochs": 1, "learning_rate": 3e-3, "pairs_per_epoch": 32, "batch_size": 8, "max_steps": 3, "references": 4,
    **JOINT,
}  # fmt: skip


@pytest.fixture(scope="module")
def encoder(tmp_path_factory) -> str:
    return tiny_encoder("bert", tmp_path_factory.mktemp("encoder"), dropout=0.1)


@pytest.fixture(scope="module")
def trained(encoder) -> Comparative:
    return fit(
        "comparative", make(), dev=make(6, 9, prefix="d"), encoder=encoder, epochs=4, learning_rate=3e-3,
        human_learning_rate=2e-3, pairs_per_epoch=96, human_epochs=10, **JOINT,
    )  # fmt: skip


def quick(encoder: str, data=None, **options) -> Comparative:
    return fit("comparative", make(6) if data is None else data, encoder=encoder, **{**FAST, **options})


@pytest.fixture(scope="module")
def plain(encoder) -> Comparative:
    """An evaluator trained for three steps per phase with only this option."""
    return quick(encoder)


@pytest.fixture(scope="module")
def people_and_machines(encoder) -> Comparative:
    """One trained only on strong pairs."""
    return quick(encoder, strong="yes", human="no", weak="no")


#: Using the likeliest class, with ties as half a win and as in the paper.
VERDICT = {"outcome": "verdict"}
PAPERS = {"outcome": "verdict", "tie_rule": "paper"}


def weights(evaluator: Comparative) -> dict[str, torch.Tensor]:
    return evaluator.artefact.network.state_dict()


def same(a: Comparative, b: Comparative) -> bool:
    return all(torch.equal(x, y) for x, y in zip(weights(a).values(), weights(b).values(), strict=True))


def again(evaluator: Comparative, **options) -> Comparative:
    return Comparative(evaluator.entry, evaluator.artefact, options)


def test_learns_the_better_text(trained):
    """Fewer "no" is better in these data; unseen items."""
    unseen = {(r.item, r.system): r for r in make(12, 20, steps=False, prefix="u").outputs_with_context()}
    a = [record for (_, system), record in unseen.items() if system == "m1"]
    b = [record for (_, system), record in unseen.items() if system == "m2"]
    assert trained.compare(a, b).mean() > 0.8
    assert trained.record.metrics["accuracy"] > 0.6
    assert trained.score(a).mean() > trained.score(b).mean() + 20
    phases = [row["phase"] for row in trained.record.log]
    assert phases == sorted(phases, reverse=True)
    assert set(phases) == {"supervised", "human"}


def test_swapping_mirrors_the_verdict(trained):
    records = make(6, 11).outputs_with_context()
    a, b = records[::2], records[1::2]
    one, two = trained.judge(a, b), trained.judge(b, a)
    np.testing.assert_array_equal(one.signs, -two.signs)
    np.testing.assert_allclose(one.probabilities, two.probabilities[:, ::-1], atol=1e-6)
    np.testing.assert_allclose(one.probabilities.sum(axis=1), 1, atol=1e-6)
    assert 0 <= one.swap_consistency <= 1
    single = again(trained, symmetric=False).judge(a, b)
    assert single.swap_consistency is None
    assert not np.allclose(single.probabilities, one.probabilities)


def test_blank_texts_lose_and_two_are_tied(trained):
    full, blank = Record("yes yes", context=("tea",)), Record("  ", context=("tea",))
    found = trained.judge([full, blank, blank], [blank, full, blank])
    assert found.signs.tolist() == [1, -1, 0]
    # Nothing was read, so there is no swap consistency, and nan is not JSON.
    assert found.swap_consistency is None
    assert trained.score([blank]).tolist() == [0.0]
    with pytest.raises(InvalidOption, match="found 1 and 2"):
        trained.compare([full], [full, full])
    assert trained.compare([], []).tolist() == []


def test_scores_are_points_against_fixed_references(trained):
    trained = again(trained, outcome="verdict")
    records = make(4, 5).outputs_with_context()
    scores = trained.score(records)
    references = list(trained.references)
    assert len(references) == 50
    points = [sum((0, 1, 3)[v + 1] for v in trained.compare([r] * 50, references)) for r in records[:4]]
    np.testing.assert_allclose(scores[:4], points)
    assert scores.min() >= 0
    assert scores.max() <= 150
    np.testing.assert_allclose(again(trained, points="share", outcome="verdict").score(records), scores / 150)
    few = again(trained, n_references=7, outcome="verdict")
    assert few.score(records[:1])[0] == pytest.approx(
        150 / 21 * sum((0, 1, 3)[v + 1] for v in trained.compare([records[0]] * 7, references[:7]))
    )
    assert few.signature != trained.signature


@pytest.mark.parametrize("outcome", ["verdict", "expected"])
def test_order_batch_and_call_length_do_not_matter(trained, outcome):
    records = make(4, 6).outputs_with_context()
    few = again(trained, n_references=6, outcome=outcome)
    scores = few.score(records)
    # Probabilities equal those of single precision, whatever else is in the batch.
    near = {"rtol": 1e-7} if outcome == "verdict" else {"rtol": 1e-5, "atol": 1e-3}
    np.testing.assert_allclose(few.score(records[::-1]), scores[::-1], **near)
    np.testing.assert_allclose([few.score([record])[0] for record in records[:5]], scores[:5], **near)
    small = again(trained, n_references=6, batch_tokens=64, outcome=outcome)
    np.testing.assert_allclose(small.score(records), scores, **near)
    a, b = records[:10], records[10:20]
    np.testing.assert_allclose(
        trained.judge(a, b).probabilities[3], trained.judge(a[3:4], b[3:4]).probabilities[0], atol=1e-5
    )


def test_progress_counts_up(trained):
    seen: list[tuple[int, int]] = []
    records = make(4, 5).outputs_with_context()
    trained.score(records, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1][0] == seen[-1][1]
    assert seen == sorted(seen)


def test_skill_of_single_texts(trained):
    records = make(4, 5).outputs_with_context()
    skill = again(trained, by="skill")
    values = skill.score(records)
    np.testing.assert_array_equal(values, skill.score(records))
    assert np.corrcoef(values, trained.score(records))[0, 1] > 0.5
    assert skill.depends_on_batch
    assert not trained.depends_on_batch
    others = {again(trained, by="skill", **o).signature for o in ({"plays": 99}, {"seed": 1}, VERDICT, PAPERS)}
    assert len(others | {skill.signature}) == 5
    assert not np.array_equal(again(trained, by="skill", plays=99).score(records), values)
    assert not np.array_equal(again(trained, by="skill", seed=1).score(records), values)
    alone = skill.evaluate(records[:1])
    assert np.isnan(alone.values).all()
    assert alone.reasons == ("there is no other text to play against",)
    # Two games involve at most four of the texts: a text that never played has no rating.
    few = again(trained, by="skill", plays=2).evaluate(records)
    assert len(records) - 4 <= np.isnan(few.values).sum() < len(records)
    assert {reason for reason, value in zip(few.reasons, few.values, strict=True) if np.isnan(value)} == {
        "none of 2 games came to it: take more plays"
    }
    assert not any(reason for reason, value in zip(few.reasons, few.values, strict=True) if not np.isnan(value))
    np.testing.assert_allclose(skill.score(records[::-1])[::-1], values)


def test_wins_over_four_others_by_hand(trained, monkeypatch):
    """Longer texts win. Of six texts of a context the longest beats its four others, the shortest none; of two texts of
    another context a win counts four times; a text alone has no score."""

    def judge(self, a, b, *, progress=None):
        signs = np.sign([len(x.text) - len(y.text) for x, y in zip(a, b, strict=True)]).astype(np.int8)
        met.append([(x.text, y.text) for x, y in zip(a, b, strict=True)])
        return Verdicts(signs, np.eye(3)[signs + 1] * 0.5 + 0.1, None, np.zeros(len(a), dtype=np.bool_))

    monkeypatch.setattr(Comparative, "judge", judge)
    met: list[list[tuple[str, str]]] = []
    records = [Record("x" * n, context=("six",)) for n in range(1, 7)]
    records += [Record("x", context=("two",)), Record("xx", context=("two",)), Record("x", context=("one",))]
    four = again(trained, by="others", **VERDICT)
    found = four.evaluate(records)
    assert (found.values[0], found.values[5], *found.values[6:8]) == (1, 5, 1, 5)
    assert found.reasons[8] == "there is no other text of its context to compare it with"
    assert np.isnan(found.values[8])
    assert [len([pair for pair in met[0] if pair[0] == text]) for text in ("x", "xxx")] == [4 + 1, 4]
    assert four.scale == (1.0, 5.0)
    assert four.score([Record("")]) == [1.0]
    np.testing.assert_array_equal(four.score(records[::-1])[::-1], found.values)
    # p(better) is .6 for a win and .1 for a loss.
    assert again(trained, by="others").score(records)[[0, 5]] == pytest.approx([1 + 4 * 0.1, 1 + 4 * 0.6])
    signatures = {again(trained, by="others", **o).signature for o in ({}, {"seed": 1}, VERDICT)}
    assert len(signatures | {trained.signature, again(trained, by="skill").signature}) == 5
    assert four.depends_on_batch


def test_only_texts_that_are_too_long_count_as_truncated_in_skill(trained):
    records = make(3, 4).outputs_with_context()
    records[5] = replace(records[5], text=records[5].text + " long" * 800)
    found = again(trained, by="skill").evaluate(records)
    assert found.n_truncated == again(trained, by="references").evaluate(records).n_truncated == 1


def test_tie_rule_matters_where_there_are_ties(trained, monkeypatch):
    def judge(self, a, b, *, progress=None):
        signs = (np.arange(len(a)) % 3 - 1).astype(np.int8)
        return Verdicts(signs, np.zeros((len(a), 3)), None, np.zeros(len(a), dtype=np.bool_))

    monkeypatch.setattr(Comparative, "judge", judge)
    records = make(2, 5).outputs_with_context()
    half, paper = (again(trained, by="skill", **rule).score(records) for rule in (VERDICT, PAPERS))
    assert not np.allclose(half, paper)


def test_expected_outcomes_by_hand(trained, monkeypatch):
    """Ties are always the likeliest class, so verdicts give no order; 3 p(better) + p(tie) points, p(better) + p(tie) /
    2 per game."""
    records = make(2, 5).outputs_with_context()
    lean = {record.text: 0.02 * place for place, record in enumerate(records)}

    def judge(self, a, b, *, progress=None):
        ours, theirs = (np.array([lean.get(record.text, 0.1) for record in side]) for side in (a, b))
        better, worse = 0.2 + (ours - theirs) / 4, 0.2 + (theirs - ours) / 4
        rows = np.stack([worse, 1 - better - worse, better], axis=1)
        return Verdicts(np.zeros(len(a), dtype=np.int8), rows, None, np.zeros(len(a), dtype=np.bool_))

    monkeypatch.setattr(Comparative, "judge", judge)
    assert len(set(again(trained, **VERDICT).score(records).tolist())) == 1
    expected = []
    for record in records:
        # None of the references is among these texts.
        better, tie = 0.2 + (lean[record.text] - 0.1) / 4, 0.6
        expected.append(50 * (3 * better + tie))
    np.testing.assert_allclose(trained.score(records), expected)
    np.testing.assert_allclose(again(trained, points="share").score(records), np.array(expected) / 150)
    assert trained.score(records).max() <= 150
    # Skill of texts and of systems: the mean lean of every system differs.
    by_skill, tied = (again(trained, by="skill", plays=3000, **o).score(records) for o in ({}, VERDICT))
    assert np.corrcoef(by_skill, list(lean.values()))[0, 1] > 0.9
    assert len(set(tied.round(9).tolist())) == 1
    of = {f"s{k}": [replace(records[k], item="one"), replace(records[k], item="two")] for k in range(4)}
    table = trained.verdict_table(of)
    assert set(table.verdicts.tolist()) == {0}
    np.testing.assert_allclose(table.scores[:2], 0.5 - 0.02 / 4)
    assert trained.rank(of, seeds=3).order == ("s3", "s2", "s1", "s0")
    verdicts = again(trained, **VERDICT)
    assert verdicts.verdict_table(of).scores is None
    assert set(verdicts.rank(of, seeds=3).ratings.std(axis=1).round(9).tolist()) == {0.0}


def test_expected_outcome_is_reversed_with_its_texts(trained):
    records = make(6, 11).outputs_with_context()
    a, b = records[::2], records[1::2]
    ours, theirs = trained.counted(trained.judge(a, b)), trained.counted(trained.judge(b, a))
    np.testing.assert_allclose(theirs, 1 - ours, atol=1e-6)
    probabilities = trained.judge(a, b).probabilities
    np.testing.assert_allclose(ours, probabilities[:, 2] + probabilities[:, 1] / 2, atol=1e-6)
    # Verdicts are unchanged, and so are blank texts.
    np.testing.assert_array_equal(trained.compare(a, b), again(trained, **VERDICT).compare(a, b))
    full, blank = Record("yes yes", context=("tea",)), Record("  ", context=("tea",))
    assert trained.counted(trained.judge([full, blank, blank, full], [blank, full, blank, full])).tolist() == [
        1.0, 0.0, 0.5, 0.5
    ]  # fmt: skip


def test_tie_rule_needs_ties(trained):
    with pytest.raises(InvalidOption, match=r"tie_rule.*outcome=verdict"):
        again(trained, tie_rule="paper")
    with pytest.raises(InvalidOption, match=r"tie_rule.*outcome=verdict"):
        again(before(trained), tie_rule="half", outcome="expected")
    with pytest.raises(InvalidOption, match="must be one of verdict, expected"):
        again(trained, outcome="mean")
    assert again(before(trained), tie_rule="paper").tie_rule == "paper"
    expected, verdict = (again(trained, by="skill", outcome=name).signature for name in ("expected", "verdict"))
    assert "|by:skill|outcome:expected|plays:50n|" in expected
    assert "|by:skill|tie:half|plays:50n|" in verdict


def before(evaluator: Comparative) -> Comparative:
    """The settings as stored in a folder saved before outcomes were recorded."""
    state = {name: value for name, value in evaluator.artefact.state.items() if name != "outcome"}
    return Comparative(evaluator.entry, replace(evaluator.artefact, state=state))


def test_evaluators_saved_before_outcomes_are_unchanged(trained, tmp_path):
    """Its signature is in databases, and its fixtures hold scores from verdicts."""
    records = make(4, 5).outputs_with_context()
    saved = before(again(trained, **VERDICT).with_fixtures(records))
    saved.save_pretrained(tmp_path / "old")
    assert "outcome" not in json.loads((tmp_path / "old" / "evaluator.json").read_text(encoding="utf-8"))["state"]
    old = load(tmp_path / "old")  # and passes its fixtures
    references = list(old.references)
    points = [sum((0, 1, 3)[v + 1] for v in old.compare([r] * 50, references)) for r in records[:4]]
    np.testing.assert_allclose(old.score(records)[:4], points)
    fields = old.signature.split("|")
    assert [field.split(":")[0] for field in fields[fields.index("form:shared") :]] == [
        "form", "sym", "by", "refs", "points", "dt", "v"
    ]  # fmt: skip
    assert old.rank(systems(), seeds=2, max_games=500).signature.startswith("method:glicko2|tie:half|")
    # On request, the other method gives another score.
    asked = load(tmp_path / "old", outcome="expected")
    assert asked.signature == trained.signature != old.signature
    np.testing.assert_allclose(asked.score(records), trained.score(records), atol=1e-3)


def test_unknown_outcome_is_refused(trained):
    state = {**trained.artefact.state, "outcome": ["median"]}
    with pytest.raises(ArtefactError, match=r"outcome: \['median'\].* verdict, expected"):
        Comparative(trained.entry, replace(trained.artefact, state=state))


def test_one_way_reading_randomises_the_position(trained, monkeypatch):
    """A network that always prefers the first text once made "a" the better system by its name, and a text by its
    row."""

    def judge(self, a, b, *, progress=None):
        row = np.tile([0.0, 0.0, 1.0], (len(a), 1))
        return Verdicts(np.ones(len(a), dtype=np.int8), row, None, np.zeros(len(a), dtype=np.bool_))

    monkeypatch.setattr(Comparative, "judge", judge)
    one_way = again(trained, symmetric=False)
    table = one_way.verdict_table({"a": systems(40)["m1-None"], "b": systems(40)["m2-None"]})
    assert set(table.verdicts.tolist()) == {-1, 1}
    assert abs(int(table.verdicts.sum())) < 20
    records = make(20, 5).outputs_with_context()
    ratings = again(trained, symmetric=False, by="skill").score(records)
    assert abs(np.corrcoef(np.argsort(np.argsort([repr((r.text, r.context)) for r in records])), ratings)[0, 1]) < 0.3


def systems(n_items: int = 8) -> dict[str, list[Record]]:
    found: dict[str, list[Record]] = {}
    for record in make(n_items, 21).outputs_with_context():
        found.setdefault(f"{record.system}-{record.step}", []).append(record)
    return found


def test_systems_by_skill(trained):
    found = trained.rank(systems(), seeds=10, max_games=4000)
    order = found.order
    assert set(order[:2]) == {"m1-None", "ngram-1000"}
    assert set(order[3:]) == {"m2-None", "ngram-100", "ngram-400"}
    assert found.tie is None
    for options, rule in ((VERDICT, "half"), (PAPERS, "paper")):
        assert again(trained, **options).rank(systems(), seeds=2, max_games=500).tie == rule


def test_verdict_table_uses_shared_items(trained):
    two = {"x": systems()["m1-None"][:5], "y": systems()["m2-None"][3:]}
    table = trained.verdict_table(two)
    assert (table.systems, len(table)) == (("x", "y"), 2)
    np.testing.assert_array_equal(table.verdicts, trained.compare(two["x"][3:5], two["y"][:2]))
    assert len(trained.verdict_table(systems(), max_items=3)) == 15 * 3
    # Among the items of the two, only i3 and i4 can be compared.
    assert len(trained.verdict_table(two, max_items=2)) == 2
    with pytest.raises(InvalidOption, match="at least two systems"):
        trained.rank({"x": two["x"]})
    with pytest.raises(InvalidOption, match="for the same item"):
        trained.rank({"x": two["x"][:2], "y": two["y"][3:]})
    with pytest.raises(InvalidOption, match="two texts for item"):
        trained.rank({"x": two["x"] * 2, "y": two["y"]})
    with pytest.raises(InvalidOption, match=r"rank\(\) takes the records of each system by its name"):
        trained.rank(two["x"])
    with pytest.raises(ScoringError, match=r"compare\(\) takes a list of records, found str at place 0"):
        trained.compare(["a"], ["b"])


def test_saved_and_loaded(trained, tmp_path):
    records = make(3, 8).outputs_with_context()
    trained.save_pretrained(tmp_path / "out")
    loaded = load(tmp_path / "out")
    np.testing.assert_allclose(loaded.score(records), trained.score(records), atol=1e-6)
    probabilities = [e.judge(records[:9], records[9:]).probabilities for e in (loaded, trained)]
    np.testing.assert_allclose(*probabilities, atol=1e-6)
    assert loaded.signature == trained.signature
    assert load(tmp_path / "out", by="skill").option_text("by") == "skill"
    assert "compared pairs" in (tmp_path / "out" / "card.md").read_text(encoding="utf-8")


def test_one_different_verdict_does_not_reject_a_folder(trained):
    """A score counts verdicts: rounding on another machine may change a borderline one, 3 of 150 points."""
    old = before(again(trained, **VERDICT).with_fixtures(make(4, 5).outputs_with_context()))
    (fixture, *rest) = old.artefact.fixtures
    for points, refused in ((3.0, False), (7.0, True)):
        moved = replace(fixture, score=fixture.score + (points if fixture.score < 75 else -points))
        other = Comparative(old.entry, old.artefact.with_fixtures([moved, *rest]))
        if refused:
            with pytest.raises(ArtefactError, match="fixture 1 scores"):
                other.verify()
        else:
            other.verify()


def test_same_seed_gives_the_same_weights(encoder, plain):
    again, other = quick(encoder, seed=plain.artefact.seed), quick(encoder, seed=2)
    assert same(plain, again)
    assert plain.references == again.references
    assert not same(plain, other)


@pytest.mark.parametrize("stop_at", [("supervised", 2), ("human", 1)])
def test_interrupted_training_ends_with_the_same_weights(encoder, plain, tmp_path, monkeypatch, stop_at):
    monkeypatch.setattr(finetune_module, "CHECKPOINT_SECONDS", 0.0)

    class Stop(Exception):
        pass

    def interrupt(progress: TrainingProgress) -> None:
        if (progress.phase, progress.done) == stop_at:
            raise Stop

    with pytest.raises(Stop):
        quick(encoder, folder=tmp_path, progress=interrupt)
    seen: list[tuple[str, int]] = []
    resumed = quick(encoder, folder=tmp_path, progress=lambda p: seen.append((p.phase, p.done)))
    assert seen[0] == stop_at
    assert same(plain, resumed)


@pytest.mark.parametrize("pooling", ["cls", "mean", "sides"])
def test_gradient_reaches_the_encoder_and_the_heads(encoder, pooling):
    before = weights(quick(encoder, human="no", pooling=pooling, learning_rate=0.0))
    after = weights(quick(encoder, human="no", pooling=pooling))
    assert before.keys() == after.keys()
    moved = {name for name, value in after.items() if not torch.equal(value, before[name])}
    assert {"classifier.weight", "encoder.embeddings.word_embeddings.weight"} <= moved
    assert "encoder.encoder.layer.1.output.dense.weight" in moved
    # BERT's own pooler initialises the dense layer and does not block the gradient.
    assert ("dense.weight" in moved) == (pooling == "cls")
    assert not any(name.startswith("encoder.pooler") for name in moved)


def test_card_reads_rated_texts_and_compared_pairs(encoder):
    """Ten rated texts of each of six outputs with each of two references, in both orders; each of ten compared pairs;
    a calibration reads the held-out human pairs once more. Read alone, a text or reference is half of a pair."""

    def count(calibrate=False, features="joint", **more):
        options = {"encoder": encoder, "references": 2, "calibrate": calibrate, "features": features}
        job = make_job("comparative", make(), {**options, "aspect": "fluency"}, dev=make(10, prefix="d", **more))
        return count_readings_after(job, Material(job))

    assert count(comparisons=False) == 2 * 10 * 6 * 2
    assert count(ratings=False) == 2 * 10
    assert count() == 2 * (10 * 6 * 2 + 10)
    assert count(ratings=False, calibrate=True) == 2 * (10 + 10)
    assert count(features="separate") == (10 * 6 + 2) / 2 + 10


def test_default_reads_each_text_alone_and_fits_the_head_to_both_sides(encoder):
    """No steps, so it takes seconds; and a pair has one verdict, whichever text is first."""
    evaluator = fit("comparative", make(6), encoder=encoder, references=4)
    assert plan("comparative", make(6), encoder=encoder).steps == 0
    assert "|features:separate|" in evaluator.signature
    records = make(6, 11).outputs_with_context()
    a, b = records[::2], records[1::2]
    assert evaluator.judge(a, b).swap_consistency == 1
    one, two = (again(evaluator, symmetric=False).judge(*sides).probabilities for sides in ((a, b), (b, a)))
    np.testing.assert_allclose(one, two[:, ::-1], atol=1e-4)


def test_plan_names_the_training_pairs(encoder):
    found = plan("comparative", make(), encoder=encoder, **JOINT)
    assert found.examples["texts of people"] == 20
    assert found.examples["texts of machines"] == 60
    assert found.examples["pairs of checkpoints"] == 6
    assert found.examples["pairs drawn for an epoch"] == 320
    assert found.examples["compared pairs"] == 10
    assert found.seconds is not None
    assert found.seconds > 0
    # 3 epochs of 320 pairs and 2 of the judged ones, 32 at a time.
    judged = found.examples["compared pairs"] + found.examples["pairs from ratings"]
    assert found.steps == 3 * 10 + 2 * -(-judged // 32)
    alone = plan("comparative", make(references=False, steps=False), encoder=encoder, epochs=5, **JOINT)
    assert "texts of people" not in alone.examples
    judged = sum(alone.examples.values())
    assert alone.steps == 5 * -(-judged // 32)


SOURCES = {"strong": "no", "weak": "no", "human": "no"}


@pytest.mark.parametrize("source", ["strong", "weak", "human"])
def test_each_source_alone(encoder, people_and_machines, source):
    evaluator = people_and_machines if source == "strong" else quick(encoder, **{**SOURCES, source: "yes"})
    said = {"strong": "texts of people", "weak": "pairs of checkpoints", "human": "compared pairs"}
    assert said.pop(source) in evaluator.record.examples
    assert not set(said.values()) & set(evaluator.record.examples)
    assert evaluator.aspects == (("fluency",) if source == "human" else ())


def test_without_ties_there_are_no_tied_verdicts(encoder):
    evaluator = quick(encoder, tie=False)
    records = make(4, 5).outputs_with_context()
    found = evaluator.judge(records[:12], records[12:])
    assert found.probabilities[:, 1].max() < 1e-6
    assert (found.signs != 0).all()


def test_without_comparison_it_equals_the_adversarial_evaluator(encoder):
    evaluator = fit("comparative", make(), dev=make(4, 9, prefix="d"), encoder=encoder, comparison=False,
                    epochs=6, learning_rate=3e-3, pairs_per_epoch=160, **JOINT)  # fmt: skip
    people = [Record(text, context=i.context) for i in make(4, 5).items for text in i.references]
    machines = [r for r in make(4, 5).outputs_with_context() if r.system == "m2"]
    assert evaluator.score(people).mean() > evaluator.score(machines).mean()
    assert evaluator.compare(people[:4], machines).mean() > 0
    shared = again(evaluator, points="share")
    np.testing.assert_allclose(shared.score(people) * 150, evaluator.score(people))
    # Two scales, two signatures.
    assert shared.signature != evaluator.signature
    with pytest.raises(TrainingDataError, match="human and machine texts only"):
        plan("comparative", make(), encoder=encoder, comparison=False, human="yes")


def test_without_pretraining_the_encoder_is_random(encoder):
    one = quick(encoder, pretrained=False, learning_rate=0.0, human_learning_rate=0.0)
    two = quick(encoder, learning_rate=0.0, human_learning_rate=0.0)
    name = "encoder.embeddings.word_embeddings.weight"
    assert not torch.equal(weights(one)[name], weights(two)[name])
    loaded = Comparative.network_class.from_source(
        two.artefact.encoder, {"pooling": "cls", "tie": True, "single": False}
    )
    assert torch.equal(weights(two)[name], loaded.state_dict()[name])


def test_profiles(encoder, plain):
    entry = plain.entry
    paper, ours = entry.train_defaults("paper"), entry.train_defaults("recommended")
    differing = {name for name in paper if paper[name] != ours[name]}
    assert differing == {
        "form", "rating_pairs", "max_length", "words", "restarts", "learning_rate", "pooling", "calibrate", "stages",
        "features",
    }  # fmt: skip
    evaluator = quick(encoder, profile="paper", restarts=0)
    assert (evaluator.symmetric, evaluator.tie_rule, evaluator.reader.form) == (False, "paper", "own")
    assert (evaluator.outcome, evaluator.artefact.state["outcome"]) == ("verdict", "verdict")
    assert "form:own|sym:no|by:references|refs:" in evaluator.signature
    assert "outcome" not in evaluator.signature
    assert evaluator.grain == pytest.approx(150 / len(evaluator.references))
    assert (plain.symmetric, plain.tie_rule, plain.reader.form) == (True, "half", "shared")
    assert (plain.outcome, plain.artefact.state["outcome"], plain.grain) == ("expected", "expected", 0.0)
    assert "|by:references|outcome:expected|refs:" in plain.signature
    # Each profile can use either method.
    assert again(evaluator, outcome="expected").outcome == "expected"
    assert again(plain, **PAPERS).tie_rule == "paper"


def test_baselines_read_only_one_part(encoder):
    records = make(4, 5).outputs_with_context()
    elsewhere = [replace(record, context=("ran on",)) for record in records]
    other_text = [replace(record, text="tea tea") for record in records]
    text, context = quick(encoder, inputs="text"), quick(encoder, inputs="context")
    np.testing.assert_allclose(text.score(records), text.score(elsewhere))
    np.testing.assert_allclose(context.score(records), context.score(other_text))
    assert "inputs:text" in text.signature


def test_other_options_take_effect(encoder):
    drawn = quick(encoder, human="no")
    for options in ({"pooling": "mean"}, {"smoothing": 0.4}, {"margin": 0.8},
                    {"curriculum": False}, {"same_context": 0.0}, {"form": "own"}, {"words": 1}):  # fmt: skip
        assert not same(drawn, quick(encoder, human="no", **options)), options
    # 26 judged pairs are four steps: two epochs end before the tenth step.
    few = {"max_steps": 10, "human_pairs": 20}
    base = quick(encoder, **few)
    for options in ({"tau": 3.0}, {"human_epochs": 3}, {"human_learning_rate": 1e-3}):
        assert not same(base, quick(encoder, **few, **options)), options
    assert len(base.references) == 4
    limited = plan("comparative", make(), encoder=encoder, human_pairs=20)
    assert limited.examples["pairs from ratings"] <= 20
    assert plan("comparative", make(), encoder=encoder, rating_pairs="all").examples["pairs from ratings"] > 1500
    assert plan("comparative", make(), encoder=encoder, ratings="rank").examples["pairs from ratings"] > 0


def test_collapsed_first_epoch_restarts(encoder, monkeypatch, tmp_path):
    monkeypatch.setattr(training, "COLLAPSE", 1.0)
    options = {**FAST, "restarts": 2, "human": "no", "stages": "together"}
    evaluator = fit("comparative", make(6), dev=make(4, 9, prefix="d"), encoder=encoder, folder=tmp_path, **options)
    assert any("learned nothing 2 times" in note for note in evaluator.record.notes)
    assert {path.name for path in tmp_path.iterdir() if path.is_dir()} == {"supervised-3"}
    monkeypatch.setattr(training, "COLLAPSE", -1.0)
    calm = fit("comparative", make(6), dev=make(4, 9, prefix="d"), encoder=encoder, **options)
    assert calm.record.notes == ()
    assert not same(evaluator, calm)


def blank(data: Dataset, *systems: str) -> Dataset:
    """The outputs of the systems, or of all, without text; all blank texts are spelled differently."""
    return replace(
        data,
        outputs=tuple(
            replace(row, text=" " * (number % 3)) if not systems or row.system in systems else row
            for number, row in enumerate(data.outputs)
        ),
    )


NOT_ENOUGH = make(6)


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        (replace(NOT_ENOUGH, outputs=(), ratings=(), comparisons=()), {}, "nothing to learn from"),
        (make(6, steps=False), {"weak": "yes"}, "no output has a step"),
        (make(6), {"weak": "yes", "margin": 0.95}, "95% of its training apart"),
        (make(6, references=False), {"strong": "yes"}, "found 0 of people and 36 of machines"),
        (make(6, ratings=False, comparisons=False), {"human": "yes"}, "no ratings or comparisons"),
        (
            make(6, comparisons=False),
            {"human": "yes", "tau": 10.0, "rating_pairs": "context"},
            "tied with this tau: lower tau, at tau=0 66 are decided",
        ),
        (make(3, ratings=False, references=False, steps=False), {}, "3 pairs of fluency that people judged"),
        (make(3, ratings=False, comparisons=False), {}, "3 items with texts are too few to learn from without people"),
        (blank(make(6)), {}, "all 36 outputs are empty: upload outputs with a text"),
        (
            replace(NOT_ENOUGH, ratings=(*NOT_ENOUGH.ratings, Rating("r", "fluency", float("nan"), "i0", "m1"))),
            {},
            "1 ratings of fluency are not numbers",
        ),
        (
            replace(NOT_ENOUGH, ratings=(*NOT_ENOUGH.ratings, Rating("r", "taste", 1.0, "i0", "m1"))),
            {},
            "say which aspect",
        ),
    ],
)
def test_missing_input_is_reported_before_training(encoder, data, options, message):
    with pytest.raises(TrainingDataError, match=message):
        plan("comparative", data, encoder=encoder, **options)


def test_empty_outputs_are_in_no_pair_and_counted(encoder):
    """Once, blank texts spelled differently counted as different texts; if all were blank, it learned from them."""
    found = plan("comparative", blank(make(6), "m1"), encoder=encoder)
    assert "6 outputs are empty: left out" in found.notes
    # Every verdict is between m1 and m2; of each item's ratings, those of m2 and four steps of ngram remain.
    assert "compared pairs" not in found.examples
    whole = plan("comparative", make(6), encoder=encoder)
    assert whole.examples["pairs from ratings"] > found.examples["pairs from ratings"] >= 6 * 10 - 10
    assert not any("empty" in note for note in whole.notes)
    few = {"weak": "no", "strong": "no"}
    with pytest.raises(TrainingDataError, match=r"6 .*empty"):
        plan("comparative", blank(make(6, steps=False, ratings=False), "m1"), encoder=encoder, **few)


@pytest.mark.parametrize("tau", [None, 0.0])
def test_lower_tau_is_not_suggested_if_everything_is_tied(encoder, tau):
    """Once, it always suggested to lower tau, even at tau=0."""
    data = make(6, comparisons=False)
    alike = replace(data, ratings=tuple(replace(row, value=3.0) for row in data.ratings))
    with pytest.raises(TrainingDataError, match=r"tied.* tau ") as refused:
        plan("comparative", alike, encoder=encoder, tau=tau)
    assert "lower tau" not in str(refused.value)
    assert "human=no" in str(refused.value)
    with pytest.raises(TrainingDataError, match="tie=no"):
        plan("comparative", alike, encoder=encoder, tau=tau, tie=False, strong="no", weak="no")


def test_encoder_that_cannot_be_reloaded_is_refused_before_training(encoder, tmp_path):
    """Once, it was fully trained and saved, and refused when loaded."""
    folder = shutil.copytree(encoder, tmp_path / "other")
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    (folder / "config.json").write_text(json.dumps({**config, "model_type": "big_bird"}), encoding="utf-8")
    with pytest.raises(EncoderError, match="'big_bird'"):
        plan("comparative", make(6), encoder=str(folder))
    with pytest.raises(EncoderError, match="'big_bird'"):
        ComparativeNetwork.from_source(find_encoder(str(folder)), {"pooling": "cls", "tie": True, "single": False})


def test_encoder_that_does_not_end_its_texts_is_refused_before_training(encoder, tmp_path):
    folder = shutil.copytree(encoder, tmp_path / "other")
    tokenizer = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    (folder / "tokenizer.json").write_text(json.dumps({**tokenizer, "post_processor": None}), encoding="utf-8")
    config = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
    plain = {**config, "tokenizer_class": "PreTrainedTokenizerFast"}  # its own class would restore the markers
    (folder / "tokenizer_config.json").write_text(json.dumps(plain), encoding="utf-8")
    with pytest.raises(EncoderError, match=r"pooling=mean .*pooling=cls"):
        plan("comparative", make(6), encoder=str(folder), **JOINT)
    assert plan("comparative", make(6), encoder=str(folder), pooling="mean", **JOINT).steps > 0


@pytest.mark.parametrize("pooling", ["cls", "mean", "sides"])
def test_verdicts_are_the_same_after_loading(encoder, tmp_path, pooling):
    evaluator = quick(encoder, pooling=pooling)
    evaluator.save_pretrained(tmp_path / "saved")
    records = make(4, 5).outputs_with_context()
    ours, theirs = (one.judge(records, records[::-1]) for one in (evaluator, load(tmp_path / "saved")))
    np.testing.assert_array_equal(ours.probabilities, theirs.probabilities)


def test_smoothing_leaves_something_to_learn(encoder):
    with pytest.raises(InvalidOption, match="must be less than 1"):
        plan("comparative", make(6), encoder=encoder, smoothing=1.5)
    with pytest.raises(InvalidOption, match="must be at most 1"):
        plan("comparative", make(6), encoder=encoder, same_context=80)


def test_one_system_needs_pairs_across_contexts(encoder):
    data = make(9, comparisons=False, references=False, steps=False)
    data = replace(data, outputs=tuple(o for o in data.outputs if o.system == "m1"),
                   ratings=tuple(r for r in data.ratings if r.system == "m1"))  # fmt: skip
    with pytest.raises(TrainingDataError, match=r"rating_pairs .*rater .*all"):
        plan("comparative", data, encoder=encoder, rating_pairs="context")
    varied = tuple(replace(r, value=float(n % 5)) for n, r in enumerate(data.ratings))
    found = plan("comparative", replace(data, ratings=varied), encoder=encoder, rating_pairs="rater")
    assert found.examples["pairs from ratings"] > 8


def test_identical_outputs_are_counted_and_excluded(encoder):
    data = make(6)
    same_text = tuple(replace(o, text="cat sat") if o.system in ("m1", "m2") else o for o in data.outputs)
    found = plan("comparative", replace(data, outputs=same_text), encoder=encoder)
    assert any("identical texts" in note for note in found.notes)
    long = replace(data, outputs=(*data.outputs, Output("i0", "long", "tea " * 10_000)))
    assert plan("comparative", long, encoder=encoder).examples["texts of machines"] == 37


@pytest.mark.parametrize("family", ["roberta", "distilbert", "deberta-v2", "modernbert"])
def test_every_family_of_encoders(tiny_family, family):
    evaluator = quick(tiny_family(family), human="no", max_steps=2)
    records = make(2, 5).outputs_with_context()
    scores = evaluator.score(records)
    assert np.isfinite(scores).all()
    np.testing.assert_allclose(evaluator.score(records[:1]), scores[:1])
