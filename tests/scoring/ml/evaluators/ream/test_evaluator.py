"""`ream` as a whole on tiny random encoders."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from scoring.ml import EncoderError, InvalidOption, ScoringError, TrainingDataError, fit, load, plan
from scoring.ml.base import Query
from scoring.ml.encoders.source import find_encoder
from scoring.ml.evaluators.ream.evaluator import Ream
from scoring.ml.evaluators.ream.trainer import ReamTraining
from scoring.ml.training.fit import make_job
from scoring.ml.types import Aspect, Dataset, Item, Output, Rating, Record
from tests.scoring.ml.evaluators.ream.untrained import untrained
from tests.scoring.ml.tiny import WORDS, copy_as_another_kind, tiny_encoder


def data(n_items: int = 12, seed: int = 3, n_references: int = 5, **changes: Any) -> Dataset:
    """Six systems; raters prefer words shared with the first reference. References with more of its words are more
    reliable."""
    rng = np.random.default_rng(seed)
    items, outputs, ratings = [], [], []
    for number in range(n_items):
        target = list(rng.choice(WORDS, 4, replace=False))
        references = [" ".join([*target[: 4 - k], *rng.choice(WORDS, k)]) for k in range(n_references)]
        items.append(
            Item(f"i{number}", (" ".join(rng.choice(WORDS, 2)),), references=tuple(references), group=f"g{number}")
        )
        for place in range(6):
            words = [*rng.choice(target, place % 4), *rng.choice(WORDS, 2)]
            outputs.append(Output(f"i{number}", f"s{place}", " ".join(words)))
            value = 1 + len(set(words) & set(target))
            ratings.append(Rating("r1", "overall", float(value), f"i{number}", f"s{place}"))
    whole = Dataset(
        "hand", aspects=(Aspect("overall", 1, 5),), items=tuple(items), outputs=tuple(outputs), ratings=tuple(ratings)
    )
    return replace(whole, **changes)


QUICK: dict[str, Any] = {
    "epochs": 3,
    "metric": "token-f1",
    "combinations": 4,
    "heads": 2,
    "foreign": 4,
    "batch_size": 16,
}


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return tiny_encoder("bert", tmp_path_factory.mktemp("encoder"), layers=3)


@pytest.fixture(scope="module")
def trained(encoder: str) -> Ream:
    found = fit("ream", data(16), dev=data(5, seed=4), encoder=encoder, **QUICK)
    assert isinstance(found, Ream)
    return found


def test_overfits_a_tiny_set(encoder: str) -> None:
    whole = data(3)
    given = {**QUICK, "epochs": 140, "contrast": 0.0, "learning_rate": 1e-2, "patience": None, "sizes": "1,2"}
    given |= {"shrink": False, "pairing": "joint", "pretrain": 0}
    found = fit("ream", whole, dev=whole, encoder=encoder, **given)
    assert found.record.log[-1]["loss"] < 0.1 * found.record.log[0]["loss"]
    assert found.record.metrics["mse"] < 0.5 * found.record.metrics["constant"]
    assert found.record.metrics["r2"] == pytest.approx(
        1 - found.record.metrics["mse"] / found.record.metrics["constant"]
    )


def test_reliability_ignores_order_repeats_and_blanks(trained: Ream) -> None:
    context, references = ("you like",), ["cat sat", "the dog", "no tea"]
    value = trained.reliability(context, references)
    assert -1 < value < 1
    assert trained.reliability(context, references[::-1]) == pytest.approx(value, abs=1e-6)
    assert trained.reliability(context, [*references, " ", "cat sat"]) == pytest.approx(value, abs=1e-6)
    assert trained.reliability(("no",), references) != pytest.approx(value, abs=1e-6)
    with pytest.raises(ScoringError, match="at least one reference"):
        trained.reliability(context, [" "])
    with pytest.raises(ScoringError, match="a list of texts, not one text"):
        trained.reliability(context, "its letters would be read")


def test_edge_lists_give_the_same(trained: Ream) -> None:
    other = Ream(trained.entry, trained.artefact, {"attention": "pyg"})
    query = Record("", context=("you like",))
    sets = [["cat sat"], ["cat sat", "the dog", "no tea"], ["no", "yes"]]
    np.testing.assert_allclose(other.reliabilities(query, sets), trained.reliabilities(query, sets), atol=1e-6)


def test_edited_reference_costs_one_pass(trained: Ream, monkeypatch: pytest.MonkeyPatch) -> None:
    context, references = ("i like you",), ["cat", "dog ran", "tea"]
    trained.reliability(context, references)
    seen: list[int] = []
    tokenizing = trained.pair_encoder.tokenizing
    encode = tokenizing.texts
    monkeypatch.setattr(tokenizing, "texts", lambda rows, **how: (seen.append(len(rows)), encode(rows, **how))[1])
    trained.reliability(context, [*references[:2], "tea no"])
    assert seen == [1]


def test_scores_are_the_metrics_over_the_kept_references(trained: Ream) -> None:
    records = data(3, seed=6).outputs_with_context()
    found = trained.evaluate(records)
    metric = load("token-f1")
    for record, value, n in zip(records, found.values, found.components["n_references"], strict=True):
        kept, reliability = trained._kept(record)
        assert n == len(kept) >= 1
        assert value == pytest.approx(metric.score([replace(record, references=tuple(kept))])[0])
        alone = [trained.reliability(record.context, [text]) for text in record.references]
        assert reliability >= max(alone) - 1e-6
    everything = Ream(trained.entry, trained.artefact, {"use": "all"})
    np.testing.assert_allclose(everything.score(records), metric.score(records))
    sizes = [len(set(record.references)) for record in records]
    assert everything.evaluate(records).components["n_references"].tolist() == sizes


def test_batch_and_order_do_not_matter(trained: Ream) -> None:
    records = data(4, seed=6).outputs_with_context()
    together = trained.evaluate(records)
    np.testing.assert_allclose(together.values, [trained.score([record])[0] for record in records], atol=1e-9)
    fresh = Ream(trained.entry, trained.artefact, {})
    backwards = fresh.evaluate(records[::-1])
    np.testing.assert_allclose(backwards.components["reliability"][::-1], together.components["reliability"], atol=1e-5)


def test_saved_and_loaded_it_scores_the_same(trained: Ream, tmp_path: Path) -> None:
    trained.save_pretrained(tmp_path / "out")
    loaded = load(tmp_path / "out")
    assert isinstance(loaded, Ream)
    records = data(3, seed=6).outputs_with_context()
    np.testing.assert_allclose(loaded.score(records), trained.score(records), atol=1e-6)
    assert loaded.reliability(("you",), ["no", "tea"]) == pytest.approx(
        trained.reliability(("you",), ["no", "tea"]), abs=1e-6
    )
    # The encoder is frozen, so it is not in the folder.
    assert (tmp_path / "out" / "model.safetensors").stat().st_size < 100_000
    assert "therefore noisy" in (tmp_path / "out" / "card.md").read_text(encoding="utf-8")


def test_selection_only_takes_references_judged_better(trained: Ream) -> None:
    items = data(3, seed=8).items
    candidates = [["cat sat on mat", "no", *item.references[1:], " "] for item in items]
    for greedy in (False, True):
        for found, item in zip(trained.annotate(items, candidates, greedy=greedy), items, strict=True):
            assert len(found.start) == 1
            assert found.start[0] in item.references
            scores = [step.before for step in found.trace if step.accepted] + [found.reliability]
            assert scores == sorted(scores)
            assert found.reliability == pytest.approx(trained.reliability(item.context, found.references), abs=1e-6)
    again = trained.annotate(items[1:2], candidates[1:2])
    assert again[0] == trained.annotate(items, candidates)[1]
    everything = trained.annotate(items, candidates, start="all", most=5)
    assert all(found.added == () for found in everything)
    with pytest.raises(ValueError, match="3 items but 1 lists"):
        trained.annotate(items, candidates[:1])


def test_first_fit_reads_only_what_it_needs_and_finds_the_same(trained: Ream) -> None:
    items = data(1, seed=8).items
    candidates = [[f"{one} {two}" for one in WORDS[:6] for two in WORDS[:6]]]
    trained.pair_encoder._cache.clear()
    found = trained.annotate(items, candidates, min_gain=-2.0)[0]
    assert len(found.references) == len(trained.pair_encoder._cache) == 10
    trained.annotate(items, candidates, greedy=True)
    assert len(trained.pair_encoder._cache) == 37
    for min_gain in (-2.0, 0.0):
        again = trained.annotate(items, candidates, min_gain=min_gain)[0]  # everything had been read
        trained.pair_encoder._cache.clear()
        fresh = trained.annotate(items, candidates, min_gain=min_gain)[0]
        assert fresh.references == again.references
        assert [step.candidate for step in fresh.trace] == [step.candidate for step in again.trace]
        assert [step.after for step in fresh.trace] == pytest.approx([step.after for step in again.trace], abs=1e-5)


def test_same_seed_same_weights_and_interrupted_training_continues(encoder: str, tmp_path: Path) -> None:
    def weights(found: Any) -> torch.Tensor:
        return torch.cat([value.flatten() for value in found.artefact.network.state_dict().values()])

    one = fit("ream", data(), dev=data(4, seed=4), encoder=encoder, **QUICK)
    other = fit("ream", data(), dev=data(4, seed=4), encoder=encoder, seed=2, **QUICK)
    assert not torch.equal(weights(one), weights(other))

    class Stop(Exception):
        pass

    def interrupt(progress: Any) -> None:
        if progress.phase == "training" and progress.done == 20:
            raise Stop

    given = {"dev": data(4, seed=4), "encoder": encoder, "folder": tmp_path, **QUICK}
    with pytest.raises(Stop):
        fit("ream", data(), progress=interrupt, **given)
    phases: list[str] = []
    resumed = fit("ream", data(), progress=lambda p: phases.append(p.phase), **given)
    assert torch.equal(weights(resumed), weights(one))
    # Prepared data are not prepared again.
    assert set(phases) - {"held-out scores"} == {"training"}


def test_tuned_encoder_changes_and_is_in_the_folder(encoder: str, tmp_path: Path) -> None:
    given = {**QUICK, "epochs": 2, "tune_encoder": True, "encoder_learning_rate": 1e-3, "pairing": "joint"}
    found = fit("ream", data(), dev=data(3, seed=4), encoder=encoder, **given)
    assert isinstance(found, Ream)
    fresh = load_encoder(found)
    own = {
        k.removeprefix("encoder."): v
        for k, v in found.artefact.network.state_dict().items()
        if k.startswith("encoder.")
    }
    assert any(not torch.equal(own[name], value) for name, value in fresh.items())
    found.save_pretrained(tmp_path / "out")
    loaded = load(tmp_path / "out")
    records = data(3, seed=6).outputs_with_context()
    np.testing.assert_allclose(
        loaded.evaluate(records).components["reliability"], found.evaluate(records).components["reliability"], atol=1e-5
    )
    with pytest.raises(InvalidOption, match="must be -1 where the encoder learns"):
        plan("ream", data(), encoder=encoder, **{**given, "layer": -2})


def load_encoder(found: Ream) -> dict[str, torch.Tensor]:
    from scoring.ml.encoders.loading import load_model

    assert found.artefact.encoder is not None
    return load_model(found.artefact.encoder).state_dict()


def test_options_take_effect(encoder: str) -> None:
    records = data(3, seed=6).outputs_with_context()
    blind = fit("ream", data(), encoder=encoder, inputs="text", **QUICK)
    deaf = fit("ream", data(), encoder=encoder, inputs="context", **QUICK)
    assert isinstance(blind, Ream)
    assert isinstance(deaf, Ream)
    assert blind.reliability(("no",), ["cat"]) == pytest.approx(blind.reliability(("yes tea",), ["cat"]), abs=1e-6)
    assert blind.reliability("no", ["cat"]) == blind.reliability(("no",), ["cat"])
    assert deaf.reliability("yes tea", ["cat"]) == deaf.reliability(("yes tea",), ["cat"])
    assert deaf.reliability(("no",), ["cat"]) == pytest.approx(deaf.reliability(("no",), ["dog ran"]), abs=1e-6)
    assert (len(blind.record.groups), len(blind.record.dev_groups), len(blind.trained_on)) == (11, 1, 12)
    plain = fit("ream", data(), encoder=encoder, **QUICK)
    for other in ({"layer": -2}, {"gold_margin": True}, {"negatives": "remove"}):
        changed = fit("ream", data(), encoder=encoder, **QUICK, **other)
        assert changed.signature != plain.signature
        assert not np.allclose(
            changed.evaluate(records).components["reliability"], plain.evaluate(records).components["reliability"]
        ), other
    paper = fit("ream", data(), encoder=encoder, profile="paper", **{**QUICK, "heads": 1})
    assert paper.settings["attention_kind"] == "gat"
    assert paper.settings["sizes"] == "3,5,7,10"
    assert paper.settings["layer"] == -2


def test_empty_text_gets_the_worst_value_of_the_metric(trained: Ream) -> None:
    def over(metric: str) -> Ream:
        return Ream(trained.entry, replace(trained.artefact, settings={**trained.settings, "metric": metric}))

    # A cosine may be -1; the rarity of a word depends on the call.
    assert over("embedding-average").score([Record(" ", ("cat",), ("dog",))])[0] == -1.0
    assert not over("embedding-average").depends_on_batch
    assert over("moverscore").depends_on_batch


def test_metric_reads_the_language_of_the_data(encoder: str, tmp_path: Path) -> None:
    """BLEU's words are separated by spaces; Chinese has none."""
    options = {**QUICK, "metric": "bleu-star"}
    learned = {}
    for lang in ("zh", ""):
        job = make_job("ream", data(3, lang=lang), {**options, "encoder": encoder}, folder=tmp_path)
        learned[lang] = ReamTraining(job, "overall").metric
    texts = (["你好吗"], ["你好啊"])
    assert learned["zh"].all_pairs([Query(*texts)])[0][0, 0] > 0 == learned[""].all_pairs([Query(*texts)])[0][0, 0]
    kept = untrained(find_encoder(encoder), metric="bleu-star")
    chinese = Ream(kept.entry, replace(kept.artefact, state={"lang": "zh"}))
    assert chinese.metric.signature == learned["zh"].signature != kept.metric.signature
    assert chinese.signature != kept.signature


def test_epoch_is_selected_on_other_groups(encoder: str, tmp_path: Path) -> None:
    whole = data(24)
    paired = tuple(replace(item, group=f"g{number // 2}") for number, item in enumerate(whole.items))
    parts = []
    for given in (whole, replace(whole, items=paired), replace(whole, items=paired, outputs=whole.outputs[::-1])):
        job = make_job("ream", given, {**dict(QUICK), "encoder": encoder}, folder=tmp_path)
        found = ReamTraining(job, "overall")
        parts.append([{item.query.group for item in part} for part in (found.items, found.dev)])
        assert len(found.items) + len(found.dev) == 24
    for learned, held_out in parts:
        assert held_out
        assert not learned & held_out
    assert parts[1] == parts[2]


def test_the_four_figures_on_other_data(trained: Ream) -> None:
    whole = data(8, seed=9)
    found = trained.report(whole, sizes=(2, 3), per_size=2)
    # Five references have ten sets of each size.
    assert 0 < found.n <= 8 * 4
    assert found.r2 == pytest.approx(1 - found.mse / found.constant)
    assert set(found.accuracy) == {"remove", "add", "replace"}
    assert trained.report(whole, sizes=(2, 3), per_size=2) == found
    assert trained.report(whole, sizes=(2, 3), per_size=2, seed=5).mse != found.mse
    # The paper's test sizes, one set each; 10 to 40 cannot be filled.
    assert 0 < trained.report(whole).n <= 8 * 2
    with pytest.raises(ScoringError, match="no set of 20, 30 references has a reliability here"):
        trained.report(whole, sizes=(20, 30))
    with pytest.raises(ScoringError, match="people rated differently for overall"):
        trained.report(replace(whole, ratings=()))


def test_invalid_input_is_named_before_training(encoder: str, tmp_path: Path) -> None:
    whole = data()
    absent = (replace(whole.ratings[0], value=float("nan")), *whole.ratings[1:])
    with pytest.raises(TrainingDataError, match="1 ratings of overall"):
        plan("ream", data(ratings=absent), encoder=encoder)
    with pytest.raises(EncoderError, match="'big_bird'"):
        plan("ream", whole, encoder=copy_as_another_kind(encoder, tmp_path), tune_encoder=True, pairing="joint")
    with pytest.raises(TrainingDataError, match="12 queries with references are too few to learn from without ratings"):
        plan("ream", data(ratings=()), encoder=encoder)
    with pytest.raises(TrainingDataError, match="no ratings"):
        plan("ream", data(ratings=()), encoder=encoder, pretrain=0)
    with pytest.raises(InvalidOption, match="must be joint"):
        plan("ream", whole, encoder=encoder, tune_encoder=True)
    with pytest.raises(TrainingDataError, match="2 items have references"):
        plan("ream", data(2), encoder=encoder)
    with pytest.raises(TrainingDataError, match="only one reference"):
        plan("ream", data(n_references=1), encoder=encoder)
    same = tuple(replace(rating, value=3.0) for rating in whole.ratings)
    with pytest.raises(TrainingDataError, match="0 items have references"):
        plan("ream", data(ratings=same), encoder=encoder)
    for text in ("tea", " "):
        alike = tuple(replace(output, text=text) for output in whole.outputs)
        with pytest.raises(TrainingDataError, match="no metric tells them apart"):
            plan("ream", data(outputs=alike), encoder=encoder)
    with pytest.raises(InvalidOption, match="bleu-star, token-f1"):
        plan("ream", whole, encoder=encoder, metric="length")
    with pytest.raises(InvalidOption, match="whole numbers"):
        plan("ream", whole, encoder=encoder, sizes="1,x")
    with pytest.raises(InvalidOption, match="remove, add, replace"):
        plan("ream", whole, encoder=encoder, negatives="swap")
    with pytest.raises(InvalidOption, match="must divide"):
        plan("ream", whole, encoder=encoder, heads=5)
    with pytest.raises(TrainingDataError, match="no item has 7 references"):
        plan("ream", whole, encoder=encoder, sizes="7,10")
    strange = tuple(replace(output, text="mmm " * n) for n, output in enumerate(whole.outputs, start=1))
    with pytest.raises(TrainingDataError, match=r"token-f1 .*same score"):
        fit("ream", data(outputs=strange), encoder=encoder, **QUICK)
    found = plan("ream", whole, encoder=encoder, sizes="1,2", combinations=3, epochs=2, batch_size=10)
    assert found.examples["reference sets"] == 12 * (3 + 3)
    # Two epochs of sets, and five of the twelve queries.
    assert found.steps == -(-72 // 10) * 2 + 5 * -(-12 // 10)
