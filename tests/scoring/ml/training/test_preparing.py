"""Work before the first step can be cancelled through the progress report like the steps: it reports after a number of
rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from scoring.ml import TrainingProgress, fit, plan
from scoring.ml.encoders import tokenizing
from scoring.ml.evaluators.comparative import human
from scoring.ml.evaluators.perception import texts as perception
from scoring.ml.evaluators.shared_bert import instances as shared_bert
from scoring.ml.evaluators.shared_bert import labels
from scoring.ml.training import gold
from scoring.ml.training import job as jobs
from scoring.ml.types import Aspect, Comparison, Dataset, Item, Output, Rating, System
from tests.scoring.ml.tiny import tiny_encoder

ROWS = 8
#: A number of rows in a single stage, each counted up to four times: far from all rows.
MOST = 6 * ROWS
SAMPLE = 5 * 64
NAMES = ["shared-bert", "comparative", "perception", "ream"]
TOKENISED = ["shared-bert", "perception", "ream"]


class Stop(Exception):
    pass


def data(n_items: int = 60) -> Dataset:
    """Data with this number of groups; each item with two references and three systems rated by two people, and one
    verdict."""
    numbers = range(n_items)
    texts = {"a": "the cat sat", "b": "no tea", "c": "you ran"}
    return Dataset(
        "many",
        aspects=(Aspect("good", 1, 5),),
        systems=tuple(System(system) for system in texts),
        items=tuple(Item(f"i{n}", (f"tea {n}",), references=(f"dog {n} ran", f"cat {n} sat")) for n in numbers),
        outputs=tuple(Output(f"i{n}", system, f"{text} {n}") for n in numbers for system, text in texts.items()),
        ratings=tuple(
            Rating(rater, "good", float(1 + (n + k) % 5), f"i{n}", system)
            for n in numbers
            for k, system in enumerate(texts)
            for rater in ("r1", "r2")
        ),
        comparisons=tuple(Comparison(f"i{n}", "a", "b", "r1", "good", "a") for n in numbers),
    )


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return tiny_encoder("bert", tmp_path_factory.mktemp("encoder"))


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes reports so frequent that even these small data give many."""
    monkeypatch.setattr(jobs, "ROWS_BETWEEN", ROWS)
    monkeypatch.setattr(tokenizing, "_TEXTS_AT_A_TIME", ROWS)


class Work:
    """Counts the work between two reports, until the first step."""

    def __init__(self) -> None:
        self.now, self.longest, self.total, self.phases = 0, 0, 0, set[str]()

    def counted(self, found: Callable[..., Any], size: Callable[..., int] = lambda *given: 1) -> Callable[..., Any]:
        def count(*given: Any) -> Any:
            self.now += size(*given)
            self.total += size(*given)
            return found(*given)

        return count

    def report(self, progress: TrainingProgress) -> None:
        self.longest, self.now = max(self.longest, self.now), 0
        self.phases.add(progress.phase)
        if progress.loss is not None:
            raise Stop


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("name", NAMES)
def test_rows_are_processed_with_reports(name: str, encoder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once, with 8,000 items, a training cancelled before its first step continued for seven seconds."""
    work = Work()
    count_key = work.counted(gold.output_key)
    for module in (gold, human):
        monkeypatch.setattr(module, "output_key", count_key)
    monkeypatch.setattr(labels, "_level", work.counted(labels._level))
    monkeypatch.setattr(perception, "get_references", work.counted(perception.get_references))
    # The head alone takes no steps.
    stages = {"stages": "best"} if name == "comparative" else {}
    with pytest.raises(Stop):
        fit(name, data(), dev=part("dev"), encoder=encoder, progress=work.report, epochs=1, **stages)
    assert work.total >= 180
    assert work.longest <= MOST
    assert jobs.PREPARING in work.phases


def part(prefix: str) -> Dataset:
    """Other data of the same kind."""
    whole = data(30)
    return replace(
        whole,
        items=tuple(replace(row, id=prefix + row.id) for row in whole.items),
        outputs=tuple(replace(row, item=prefix + row.item) for row in whole.outputs),
        ratings=tuple(replace(row, item=f"{prefix}{row.item}") for row in whole.ratings),
        comparisons=tuple(replace(row, item=prefix + row.item) for row in whole.comparisons),
    )


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("name", TOKENISED)
def test_texts_are_read_with_reports(name: str, encoder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    work = Work()
    read = tokenizing.encode_texts
    monkeypatch.setattr(tokenizing, "encode_texts", work.counted(read, lambda backend, texts: len(texts)))
    with pytest.raises(Stop):
        fit(name, data(240), encoder=encoder, progress=work.report, epochs=1)
    # The dry check reads a sample at once: at most 64 texts, each with its context and two references in theirs.
    assert work.longest <= SAMPLE < work.total / 2


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("name", NAMES)
def test_dry_check_can_be_cancelled_by_its_report(name: str, encoder: str) -> None:
    told = 0

    def stop(progress: TrainingProgress) -> None:
        nonlocal told
        told += 1
        if told == 3:
            raise Stop

    with pytest.raises(Stop):
        plan(name, data(), encoder=encoder, progress=stop)
    assert told == 3


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("models", ["shared", "per_system"])
def test_nothing_is_prepared_once_the_steps_have_started(models: str, encoder: str, tmp_path: Path) -> None:
    """The progress bar counts work after the steps as the end of a training."""
    for name, options in (("perception", {"models": models, "penalty": "none"}), ("comparative", {}), ("ream", {})):
        phases: list[str] = []
        fit(
            name, data(), dev=part("dev"), encoder=encoder, folder=tmp_path / name, epochs=1,
            progress=lambda told, phases=phases: phases.append(told.phase), **options,
        )  # fmt: skip
        steps = [place for place, phase in enumerate(phases) if phase != jobs.PREPARING and " of " not in phase]
        assert max(place for place, phase in enumerate(phases) if phase == jobs.PREPARING) < steps[0], name


def test_check_and_training_label_the_data_once(encoder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Dataset] = []
    label = labels.label_outputs
    monkeypatch.setattr(
        shared_bert, "label_outputs", lambda found, *given, **more: calls.append(found) or label(found, *given, **more)
    )
    fit("shared-bert", data(20), encoder=encoder, epochs=1)
    # The whole, and the two parts into which it is split.
    assert len(calls) == 3
