"""A growing dialogue, whole dialogues, bins of context length, and the Delta table."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from scoring.ml import ScoringError, fit
from scoring.ml.evaluators.unreferenced.conversations import Conversation
from scoring.ml.evaluators.unreferenced.delta import delta_table
from scoring.ml.evaluators.unreferenced.dialogues import context_bins, score_dialogues, scored_turns
from scoring.ml.evaluators.unreferenced.tools import Tools
from scoring.ml.types import Dataset, Dialogue, Record
from tests.scoring.ml.evaluators.unreferenced.by_function import ByFunction
from tests.scoring.ml.evaluators.unreferenced.conftest import SMALL

TURNS = ("you like tea", "no i ran", " ", "the cat sat on the mat", "yes", "dog ran")


@pytest.fixture(scope="module", params=[{}, {"layers": 2}, {"bidirectional": True}, {"pad_attended": True}], ids=str)
def maude(request: pytest.FixtureRequest, encoder: str, dialogues: Dataset) -> Any:
    return fit("maude", dialogues, encoder=encoder, epochs=1, **{**SMALL["maude"], **request.param})


def test_scoring_turn_by_turn_equals_scoring_at_once(maude: Any) -> None:
    live = maude.open_dialogue(TURNS[:1])
    for place, turn in enumerate(TURNS[1:], start=1):
        values = live.score(["cat sat", "i like you", " "])
        records = [Record(text, context=TURNS[:place]) for text in ("cat sat", "i like you", " ")]
        np.testing.assert_allclose(values, maude.score(records), atol=1e-5)
        live.say(turn)
    assert live.turns == [turn for turn in TURNS if turn.strip()]


def test_new_turn_costs_one_utterance_and_one_step(maude: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    if maude.settings["bidirectional"] or maude.settings["pad_attended"]:
        pytest.skip("these read the whole context")
    live = maude.open_dialogue(TURNS)
    read: list[int] = []
    tokenize = maude.utterances.tokenize
    monkeypatch.setattr(maude.utterances, "tokenize", lambda texts: (read.append(len(texts)), tokenize(texts))[1])
    steps: list[int] = []
    maude.network.transition.register_forward_hook(lambda *given: steps.append(given[1][0].shape[1]))
    live.score(["one reply"])
    live.say("a turn")
    assert (read, steps) == ([1, 1], [1])


def test_dialogue_mean_uses_the_turns_of_the_model(maude: Any) -> None:
    live = maude.open_dialogue(TURNS[:1])
    with pytest.raises(ScoringError, match="nothing was said"):
        maude.open_dialogue().score(["hi"])
    assert np.isnan(live.mean)
    first = live.reply("no i ran")
    live.say("the cat")
    second = live.reply("yes")
    assert live.mean == pytest.approx((first + second) / 2)
    talk = Dialogue("d", ("you like tea", "no i ran", "the cat", "yes"), "bot", ("me", "bot", "me", "bot"))
    found = score_dialogues(maude, [talk, Dialogue("short", ("hi",))])
    assert found[0].turns == (1, 3)
    assert found[0].value == pytest.approx(live.mean, abs=1e-5)
    assert np.isnan(found[1].value)


def test_turns_that_count() -> None:
    talk = Dialogue("d", ("a", "b", " ", "c"), "bot", ("x", "bot", "bot", "x"))
    assert scored_turns(talk) == [1, 3]
    assert scored_turns(talk, "x") == [3]
    assert scored_turns(Dialogue("d", ("a", "b")), "x") == [1]


def distinct(record: Record) -> float:
    """The share of distinct words, so that repetition lowers the score."""
    return len(set(record.text.split())) / len(record.text.split())


def test_delta_table_has_mean_and_sd_of_differences() -> None:
    talk = [Conversation(f"c{n}", f"g{n}", ("hi there", f"a{n} b{n} c{n} d{n}")) for n in range(20)]
    tools = Tools(generate=lambda texts: ["same same"] * len(texts), back_translate=lambda texts: [*texts])
    rows = {row.kind: row for row in delta_table(ByFunction(distinct), talk, tools=tools)}
    assert list(rows) == [
        "ground_truth", "back_translation", "rand_utt", "model_false", "rand_model", "rand_back",
        "word_drop", "word_order", "word_repeat",
    ]  # fmt: skip
    assert (rows["back_translation"].mean, rows["back_translation"].sd) == (0, 0)
    assert (rows["model_false"].mean, rows["model_false"].sd, rows["model_false"].n) == (0.5, 0, 20)
    assert rows["model_false"].below == 1
    assert rows["rand_utt"].group == "semantic negative"
    # Four words repeated from the first leave one distinct word (1 - 1/4), from the second two (1 - 2/4).
    assert set(np.round([rows["word_repeat"].mean], 6)) <= set(np.round(np.linspace(0.5, 0.75, 21), 6))
    assert 0 < rows["word_repeat"].sd < 0.13
    assert rows["word_order"].mean == 0
    assert "model_false" not in {row.kind for row in delta_table(ByFunction(distinct), talk, n=5)}
    with pytest.raises(ValueError, match="two groups"):
        delta_table(ByFunction(distinct), talk[:1])


def test_random_replies_come_from_another_group_even_if_rare() -> None:
    """With 2,999 replies in one group and 1 in another, nearly all once got a reply from their own group."""
    talk = [Conversation(f"c{n}", "most", ("hi there", f"a{n} a{n}")) for n in range(2999)]
    talk.append(Conversation("one", "one", ("hi there", "x y")))
    rows = {row.kind: row for row in delta_table(ByFunction(distinct), talk, n=300)}
    # The own reply has one distinct word of two, the only one of another group two of two; another of its own has one.
    assert rows["rand_utt"].n == 300
    assert rows["rand_utt"].mean <= -0.5 + 2 / 300


def test_bins_of_context_length() -> None:
    records = [Record("x", context=("a",) * n) for n in (1, 1, 2, 3, 3, 4, 20)]
    values = [0.0, 1.0, 0.5, 0.1, 0.2, 0.3, float("nan")]
    rows = context_bins(records, values, [1, 2, 3, 3, 2, 1, 1])
    assert [(row.low, row.high, row.n) for row in rows] == [(1, 1, 2), (2, 2, 1), (3, 4, 3)]
    assert rows[0].mean == 0.5
    assert rows[0].sd == pytest.approx(np.sqrt(0.5))
    assert rows[2].spearman == pytest.approx(-1.0)
    assert rows[0].spearman is None
