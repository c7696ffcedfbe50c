"""From data to a trained evaluator on the leaderboards, with a sixth of the demonstration: by commands for every
learned evaluator, and by pages without JavaScript, both with a real worker. The encoder is tiny and
training takes a few steps: the test covers the path, not the figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evalapp.accounts.models import Project
from evalapp.accounts.roles import Role
from evalapp.common.models import Run
from evalapp.common.queue import queue_has_worker, worker_name
from scoring.ml import catalogue
from scoring.ml.registry import get_entry
from scoring.models import Evaluator, ScoreSet
from tests.cast import PASSWORD, join, person
from tests.evalapp.common.conftest import Installation, file_database, installation, wait_until
from tests.flows.test_newcomer import sign_in
from tests.flows.visitor import Visitor
from tests.scoring.live_house import start
from tests.short_training import LEARNED, SHORT, SHORT_SCORING, command, encoder, fields, load, part, read, words

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("few_draws")]
__all__ = ["encoder", "file_database", "installation", "part"]

LEARNERS = [entry for entry in catalogue() if entry.learns]


@pytest.fixture
def workshop(installation: Installation, encoder: str, settings: Any, part: Path) -> None:
    """An installation with a worker, and a project with a researcher."""
    settings.ARTEFACTS_DIR = Path(installation.env["EVALAPP_DATA"]) / "artefacts"
    installation.env["ENCODERS"] = encoder
    start(installation, "work", "cpu,gpu")
    load(part, "length", "random")
    join(Project.objects.get(slug="demo"), person("rita"), Role.RESEARCHER)
    wait_until(lambda: queue_has_worker("gpu"), seconds=180)


@pytest.mark.server("redis")
def test_every_learned_evaluator_goes_from_training_to_the_leaderboards(
    workshop: None, encoder: str, part: Path
) -> None:
    outputs = len(read(part / "outputs.jsonl"))
    for entry in LEARNERS:
        slug = f"my-{entry.name}"
        arguments = [entry.name, "--project", "demo", "--encoder", encoder, "--folds", "1", "--name", slug]
        arguments += ["--aspect", "naturalness"] if entry.aspect == "one" else []
        trained = command("train", *arguments, *words(entry.train_options, SHORT))
        assert (trained["evaluator"], trained["state"]) == (slug, "succeeded"), trained
        scored = command("score", slug, "--project", "demo", *words(entry.options, SHORT_SCORING))
        assert scored["outputs"] == outputs, entry.name
        assert scored["undefined"] < outputs, entry.name
        # The dialogues of the demonstration are separate texts: an evaluator trained only on them has seen no item.
        assert (scored["in_training"] > 0) == ("dialogues" not in entry.train_needs), entry.name
        assert len(command("systems", "demo", "--by", slug)["rows"]) >= 7
    workers = set(Run.objects.filter(kind__in=["train", "score"], queue="gpu").values_list("worker", flat=True))
    assert len(workers) == 1, workers
    assert worker_name() not in workers
    board = command("meta", "demo", "--aspect", "naturalness")
    rows = {row["evaluator"]: row for row in board["rows"]}
    assert {f"my-{entry.name}" for entry in LEARNERS} <= set(rows)
    assert board["n_excluded"] > 0
    assert rows["length"]["whole"]["n"] > rows["length"]["n"] == board["n_outputs"]


@pytest.mark.server("redis")
def test_visitor_trains_applies_and_compares_all_five(workshop: None, encoder: str) -> None:
    visitor = sign_in("rita", PASSWORD)
    # The worker trains the others while the pages of an evaluator are checked.
    trainings = {name: _train(visitor, name, encoder) for name in LEARNED if name != "shared-bert"}
    _check_all_pages(visitor, encoder)
    scorings = []
    for name, run in trainings.items():
        _wait(run)
        options = fields(get_entry(name).options, SHORT_SCORING)
        visitor.go("/projects/demo/evaluators/").follow(f"my-{name}").follow("Apply").send("Apply", options)
        scorings.append(visitor.sees(f"Score with my-{name}") and Run.objects.filter(kind="score").latest("pk"))
    for run in scorings:
        _wait(run)
    names = [f"my-{name}" for name in trainings]
    _open_evaluation(visitor).sees(*names, "natural", "length", "trivial baseline")
    for name in names:
        visitor.go(f"/projects/demo/systems/?by={name}").sees(f"of {name}")
        assert len(visitor.table()) >= 7
    visitor.go("/projects/demo/evaluators/").follow("natural").follow("Delete").sees("cannot be undone").send("Delete")
    assert not Evaluator.objects.filter(slug="natural").exists()


def _train(visitor: Visitor, name: str, encoder: str) -> Run:
    """Check and start a training through the form; return its run."""
    entry = get_entry(name)
    values: dict[str, Any] = {"encoder": encoder, "name": f"my-{name}", "folds": 1, "apply": None}
    values |= fields(entry.train_options, SHORT) | ({"aspect": "naturalness"} if entry.aspect == "one" else {})
    visitor.go("/projects/demo/evaluators/").follow(f"Train {name}").send("Check", values)
    _wait(Run.objects.filter(kind="plan").latest("pk"))
    visitor.go(visitor.path.split("#")[0]).send("Train").sees(f"Train my-{name}")
    return Run.objects.filter(kind="train").latest("pk")


def _check_all_pages(visitor: Visitor, encoder: str) -> None:
    """Check all pages from the catalogue to the leaderboards for one evaluator."""
    visitor.go("/projects/demo/evaluators/")
    visitor.sees("Catalogue", "shared-bert").follow("Train shared-bert").sees("Training data", "Rarely needed")
    values = {"encoder": encoder, "folds": 2, "name": "natural", "option_epochs": 1, "option_max_steps": 6}
    values["apply"] = None
    visitor.send("Check", {**values, "name": "chrf"}, status=422).sees("is reserved")
    visitor.send("Check", values).sees("Checking in")
    _wait(Run.objects.filter(kind="plan").latest("pk"))
    visitor.go(visitor.path.split("#")[0]).has('//h2[@id="check-result"]').sees("Models", "Steps")
    visitor.send("Train").sees("Train natural", "Training curve")
    _wait(Run.objects.filter(kind="train").latest("pk"))
    visitor.go(visitor.path).sees("Done", "natural")
    visitor.follow("Training curve").sees("fold 2 of 2")
    visitor.go("/projects/demo/evaluators/").follow("natural").sees("Training").has("//*[@data-unapplied]")
    assert visitor.download("All files (tar)")[:8] == b"natural/"
    visitor.follow("Apply").send("Apply").sees("Score with natural")
    _wait(Run.objects.filter(kind="score").latest("pk"))
    assert ScoreSet.objects.filter(evaluator__slug="natural", scored_at__isnull=False).exists()
    visitor.go(visitor.path).follow("View result").sees("Scores by system", "shared-bert|")
    _open_evaluation(visitor).sees("natural", "length", "trivial baseline")
    visitor.go("/projects/demo/systems/?by=natural").has('//table[@data-by="natural"]')


def _open_evaluation(visitor: Visitor) -> Visitor:
    """Open the leaderboard of evaluators; if a run computes it, wait for the run."""
    page = "/projects/demo/evaluation/?aspect=naturalness"
    visitor.go(page)
    if visitor.tree.xpath('//*[@id="board-state"]'):
        _wait(Run.objects.filter(kind="rank").latest("pk"))
        visitor.go(page)
    return visitor


def _wait(run: Run) -> None:
    def has_ended() -> bool:
        run.refresh_from_db()
        return not run.is_active

    wait_until(has_ended, seconds=600)
    assert run.state == Run.State.SUCCEEDED, run.error
