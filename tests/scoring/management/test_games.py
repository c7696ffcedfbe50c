"""Systems ranked by games decided by a trained evaluator: by command, API and page, and impossible requests."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.core.management import CommandError, call_command
from django.urls import reverse
from rest_framework.test import APIClient

from annotation.models import Aspect, Item, Output, Rating, System
from evalapp.common.errors import BadInput, NotThere
from evalapp.common.jobs import get_job
from evalapp.common.models import Run
from evalapp.common.queue import retry_run
from evalapp.common.runner import RunCancelled, RunContext, execute_run
from scoring.boards.data.columns import LEFT_OUT as IN_THE_STATISTICS
from scoring.ml import load
from scoring.ml.cross_fitted import join_folds
from scoring.ml.encoders.source import find_encoder
from scoring.models import Evaluator, Leaderboard, Snapshot
from scoring.selectors.datasets import build_dataset
from scoring.selectors.games import LEFT_OUT
from scoring.selectors.training import artefact_folder
from scoring.services.reports import GamesOptions, start_games
from scoring.services.scores import apply_evaluator
from tests.factories import make_items, make_outputs
from tests.pages import read_page
from tests.scoring.ml.evaluators.comparative.data import untrained
from tests.scoring.ml.tiny import tiny_encoder
from tests.scoring.training import make_trained

pytestmark = pytest.mark.django_db
SYSTEMS = ("sys-a", "sys-b", "sys-c", "sys-d", "sys-e")
WORDS = {"sys-a": "yes the cat", "sys-b": "no dog ran", "sys-c": "tea", "sys-d": "i like you", "sys-e": "mat on mat"}
#: Seeds of random networks that distinguish these systems.
DECIDED = (3, 5)
ASKED = ("--seeds", "3", "--items", "6")


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return find_encoder(tiny_encoder("bert", tmp_path_factory.mktemp("encoder")))


@pytest.fixture
def filled(cast, settings, tmp_path):
    """Eight items, each its own group, with outputs of five systems, the last a reference; people rate them, and
    simulated raters in reverse."""
    settings.ARTEFACTS_DIR = tmp_path / "artefacts"
    outputs = make_outputs(cast.project, make_items(cast.project, 8), SYSTEMS)
    for output in outputs:
        output.text = f"{WORDS[output.system.name]} {output.item.key}"
    Output.objects.bulk_update(outputs, ["text"])
    System.objects.filter(name="sys-e").update(kind="reference")
    aspect = Aspect.objects.create(project=cast.project, name="quality", low=1, high=5)
    place = {name: number for number, name in enumerate(SYSTEMS)}
    Rating.objects.bulk_create(
        Rating(
            project=cast.project, output=output, aspect=aspect, rater=rater, simulated=rater == "model",
            value=1 + (4 - place[output.system.name] if rater == "model" else place[output.system.name]),
        )
        for output in outputs for rater in ("anna", "model")
    )  # fmt: skip
    return cast


def make_judge(project, source, slug="judge", folds=((0,), (1,)), outcome="") -> Evaluator:
    """An untrained comparative evaluator whose models each claim the items with these numbers as training data."""
    row = make_trained(project, slug, "comparative")
    members = [
        untrained(source, seed, *(f"g{n:03d}" for n in seen), outcome=outcome)
        for seed, seen in zip(DECIDED, folds, strict=False)
    ]
    found = members[0] if len(members) == 1 else join_folds(members)
    found.save_pretrained(artefact_folder(row))
    row.signature = found.signature
    row.save(update_fields=["signature"])
    return row


@pytest.fixture
def judged(filled, source):
    make_judge(filled.project, source)
    return filled


@contextmanager
def refused(kind: type[Exception], text: str) -> Iterator[None]:
    """Checks that the call is refused with this message."""
    with pytest.raises(kind) as caught:
        yield
    assert text in str(caught.value)


def command(name: str, *words: str) -> str:
    out = io.StringIO()
    call_command(name, "alpha", *words, stdout=out, stderr=io.StringIO())
    return out.getvalue()


def play(*words: str) -> dict:
    return json.loads(command("games", *ASKED, *words, "--here", "--json"))


def test_table_equals_the_library(judged):
    assert {name: set(kinds) for name, kinds in LEFT_OUT.items()} == IN_THE_STATISTICS
    found = play()
    table = found["table"]
    judge = load(artefact_folder(Evaluator.objects.get()))
    texts: dict[str, list] = {}
    for record in build_dataset(judged.project).outputs_with_context():
        texts.setdefault(record.system, []).append(record)
    same = judge.rank(texts, seeds=3, max_items=6)
    rows = {row["label"]: row for row in table["rows"]}
    assert [row["label"] for row in table["rows"]] == list(same.order)
    for system in same.systems:
        row = rows[system.system]
        assert row["value"] == pytest.approx(system.estimate.value)
        assert row["sd"] == pytest.approx(system.sd)
        assert (row["n"], row["n_ratings"]) == (6, 24)
        assert sum(row["shares"].values()) == pytest.approx(1)
    assert table["extras"]["converged"] == same.converged
    verdicts = judge.encounters(texts, max_items=6).verdicts
    assert table["extras"]["swap_consistency"] == verdicts.swap_consistency
    assert table["signature"].startswith(
        "method:glicko2|tie:half|tau:0.5|window:50|seeds:3|seed:13|items:6|ranks:firth|conf:0.95|by:"
    )
    assert table["evaluator"]["signature"] == judge.signature
    # Neither model saw any group, so every pair was judged by a model not trained on it.
    assert (table["evaluator"]["n_in_training"], table["n_simulated"]) == (0, 0)
    shown = command("systems", "--by", "judge", "--method", "glicko2")
    assert table["signature"] in shown
    assert "win / tie / loss %" in shown
    assert shown == command("games", *ASKED, "--here")
    assert json.loads(command("systems", "--by", "judge", "--method", "glicko2", "--json"))["rows"] == table["rows"]
    # Only the run is stored.
    assert not Leaderboard.objects.exists()


def test_people_are_not_mistaken_for_simulated_raters(judged):
    people, simulated = play()["table"]["extras"]["people"]
    assert (people["simulated"], simulated["simulated"]) == (False, True)
    assert (people["aspect"], people["judged_by"], people["n_systems"], people["n_judgements"]) == (
        "quality", "ratings", 5, 40
    )  # fmt: skip
    # The simulated ones say the reverse.
    assert simulated["spearman"]["value"] == pytest.approx(-people["spearman"]["value"])
    shown = command("systems", "--by", "judge", "--method", "glicko2")
    of_people, of_simulated = (line for line in shown.splitlines() if "(quality, ratings)" in line)
    assert ("simulated" in of_people, "simulated" in of_simulated) == (False, True)
    assert "Spearman" in of_people
    Rating.objects.filter(simulated=False).delete()
    assert [row["simulated"] for row in play("--seed", "3")["table"]["extras"]["people"]] == [True]


def test_options_of_games_and_of_the_evaluator(judged):
    found = play("--systems", "machine", "--set", "tie_rule=paper", "--seed", "7", "--items", "4")
    table = found["table"]
    assert {row["label"] for row in table["rows"]} == set(SYSTEMS[:4])
    assert (table["n_items"], table["extras"]["verdicts"]) == (4, 24)
    assert "|tie:paper|" in table["signature"]
    assert "seed:7|items:4|" in table["signature"]
    assert table["signature"].endswith("|by:judge|systems:machine")
    assert found["url"] == "/projects/alpha/systems/?by=judge&method=glicko2&systems=machine"
    # The table of all systems is a different one.
    with refused(CommandError, "judge has not compared these systems yet"):
        command("systems", "--by", "judge", "--method", "glicko2")
    assert "sys-e" not in command("systems", "--by", "judge", "--method", "glicko2", "--systems", "machine")
    # Expected scores of games, from an evaluator trained before this was an option.
    expected = play("--set", "outcome=expected")["table"]
    assert "|outcome:expected|" in expected["signature"]
    assert "|outcome:expected|" in expected["evaluator"]["signature"]
    with refused(CommandError, "tie_rule needs outcome=verdict"):
        play("--set", "outcome=expected", "--set", "tie_rule=paper")
    # Both symmetric readings, or one.
    one_way = play("--set", "symmetric=no")["table"]
    assert one_way["extras"]["swap_consistency"] is None


def test_games_use_expected_scores_if_the_evaluator_does(filled, source):
    """The displayed shares remain those of verdicts."""
    make_judge(filled.project, source, outcome="expected")
    found = play()["table"]
    judge = load(artefact_folder(Evaluator.objects.get()))
    texts: dict[str, list] = {}
    for record in build_dataset(filled.project).outputs_with_context():
        texts.setdefault(record.system, []).append(record)
    same = judge.rank(texts, seeds=3, max_items=6)
    assert same.tie is None
    assert [row["value"] for row in found["rows"]] == [system.estimate.value for system in same.systems]
    assert found["signature"].startswith("method:glicko2|outcome:expected|tau:0.5|window:50|seeds:3|seed:13|items:6|")
    assert any("The outcome of a game is its expectation" in line for line in found["findings"])
    by_verdict = play("--set", "outcome=verdict")["table"]
    assert "|tie:half|" in by_verdict["signature"]
    shares = ({row["label"]: row["shares"] for row in table["rows"]} for table in (found, by_verdict))
    assert next(shares) == next(shares)
    values = [{row["label"]: row["value"] for row in table["rows"]} for table in (found, by_verdict)]
    assert values[0] != values[1]
    assert play("--set", "outcome=verdict", "--set", "tie_rule=paper")["table"]["signature"].count("tie:paper") == 1
    # Reported before anything is queued.
    runs = Run.objects.count()
    with refused(BadInput, "judge: tie_rule needs outcome=verdict"):
        start_games(project=filled.project, options=GamesOptions(options={"tie_rule": "paper"}))
    with refused(BadInput, "tie_rule needs outcome=verdict"):
        apply_evaluator(project=filled.project, evaluator="judge", options={"by": "skill", "tie_rule": "paper"})
    with refused(CommandError, "tie_rule needs outcome=verdict"):
        play("--set", "tie_rule=paper")
    assert Run.objects.count() == runs


def test_training_items_are_marked(filled, source):
    make_judge(filled.project, source, "single", folds=((0, 1, 2),))
    found = play("--items", "8")["table"]
    # Three of the eight items, ten pairs of systems.
    assert found["evaluator"]["n_in_training"] == 30
    assert any("30 verdicts are on items in its training data" in line for line in found["findings"])


def test_checkpoints_play_separately_and_unmatched_ones_are_named(judged):
    system = System.objects.get(name="sys-a")
    for item in Item.objects.all():
        for step in (10, 20):
            Output.objects.create(project=judged.project, item=item, system=system, step=step, text=f"cat {step}")
    late = System.objects.create(project=judged.project, name="late")
    alone = Item.objects.create(project=judged.project, key="z-alone", context=["Hello?"], group="z")
    Output.objects.create(project=judged.project, item=alone, system=late, text="tea")
    table = play("--items", "3")["table"]
    assert {row["label"] for row in table["rows"]} == {*SYSTEMS, "sys-a @ 10", "sys-a @ 20"}
    assert "Systems without an output for these items: late." in table["findings"]


def test_impossible_requests_are_explained(filled, source, score):
    def ask(**params):
        return get_job("games").ask(project=filled.project, user=None, params=params)

    with refused(BadInput, "no trained evaluator that compares texts. Train one: evalapp train"):
        ask()
    with refused(BadInput, "comparative must be trained before it can compare. Train one"):
        ask(evaluator="comparative")
    judge = make_judge(filled.project, source)
    score(filled.project, "length")
    with refused(BadInput, "length scores single texts and cannot compare. Choose from: judge."):
        ask(evaluator="length")
    with refused(NotThere, "no evaluator “nothing”"):
        ask(evaluator="nothing")
    with refused(BadInput, "items must be a whole number"):
        ask(items="4")
    with refused(BadInput, "pace is unknown"):
        ask(pace=1)
    with refused(BadInput, "items must be a whole number from 1 to 5000. seeds must be a whole number from 1 to 1000"):
        ask(items=0, seeds=1001)
    with refused(BadInput, "systems must be one of all, no-reference, machine"):
        ask(systems="men")
    with refused(BadInput, "must be one of half, paper"):
        ask(options={"tie_rule": "none"})
    run = ask()
    assert (run.pk, run.queue, run.params["evaluator"]) == (ask(evaluator="judge").pk, "gpu", "judge")
    assert ask(seeds=7).pk != run.pk
    with refused(CommandError, f"judge is comparing these systems in run {run.pk}"):
        command("systems", "--by", "judge", "--method", "glicko2")
    with refused(CommandError, "length scores single texts and cannot compare"):
        command("systems", "--by", "length", "--method", "glicko2")
    Evaluator.objects.filter(pk=judge.pk).update(state="damaged", damage="model.safetensors is gone")
    with refused(BadInput, "judge cannot be used: model.safetensors is gone"):
        ask()
    Evaluator.objects.filter(pk=judge.pk).update(state="ready")
    items = dict(zip(SYSTEMS, Item.objects.order_by("key"), strict=False))
    for name, item in items.items():
        Output.objects.filter(system__name=name).exclude(item=item).delete()
    with pytest.raises(BadInput, match="No two systems of alpha have outputs for the same item"):
        ask(systems="machine")
    Output.objects.exclude(system__name="sys-a").delete()
    with refused(BadInput, "alpha has 1"):
        ask()
    Output.objects.all().delete()
    with refused(BadInput, "alpha has 0"):
        ask()


def test_too_many_pairs_for_one_run(judged, monkeypatch):
    monkeypatch.setattr("scoring.selectors.game_texts.MOST_VERDICTS", 59)
    with refused(CommandError, "at most 59 pairs of texts, not 60"):
        play()


def test_cancelled_games_are_repeated_with_the_same_result(judged, monkeypatch):
    phases: list[str] = []
    original = RunContext.progress

    def stop_at_first(self, done, total=None, unit="rows", phase=""):
        phases.append(phase)
        if phases.count("comparing") == 1 and phase == "comparing":
            raise RunCancelled
        original(self, done, total, unit, phase)

    monkeypatch.setattr(RunContext, "progress", stop_at_first)
    options = GamesOptions("judge", seeds=3, items=6)
    run = execute_run(start_games(project=judged.project, options=options, send=False).pk)
    assert (run.state, run.result, phases) == ("cancelled", None, ["reading", "loading", "comparing"])
    retry_run(run=run)
    run = execute_run(run.pk)
    assert run.state == "succeeded", run.error
    assert list(dict.fromkeys(phases)) == ["reading", "loading", "comparing", "playing", "reading human judgements"]
    assert (run.done, run.total, run.unit) == (60, 60, "pairs of texts")
    assert play()["table"]["rows"] == run.result["table"]["rows"]


def test_verdicts_of_a_deleted_evaluator_are_not_reused(judged, source):
    play()
    Evaluator.objects.filter(slug="judge").delete()
    make_judge(judged.project, source, folds=((2,), (3,)))
    with refused(CommandError, "judge has not compared these systems yet"):
        command("systems", "--by", "judge", "--method", "glicko2")


def test_api_requests_and_reads_games(judged):
    api = APIClient()
    api.force_authenticate(judged.researcher)
    table = "/api/v1/projects/alpha/leaderboards/systems/?by=judge&method=glicko2"
    missing = api.get(table)
    assert missing.status_code == 400
    assert "evalapp games alpha --by judge" in missing.json()["detail"]
    options = {"kind": "games", "evaluator": "judge", "items": 6, "seeds": 3}
    asked = api.post("/api/v1/projects/alpha/runs/", options, format="json")
    assert (asked.status_code, asked.json()["queue"]) == (202, "gpu")
    waiting = api.get(table)
    assert (waiting.status_code, waiting.json()["run"]) == (202, asked.json()["id"])
    execute_run(asked.json()["id"])
    found = api.get(table).json()
    assert (found["method"], found["by"], found["is_current"], found["run"]) == ("glicko2", "judge", True, None)
    assert all(row["sd"] >= 0 for row in found["rows"])
    assert found["extras"]["people"][0]["n_systems"] == 5
    wrong = api.post("/api/v1/projects/alpha/runs/", {"kind": "games", "seeds": "x", "pace": 1}, format="json")
    assert wrong.status_code == 400
    assert {fault["field"] for fault in wrong.json()["errors"]} == {"seeds", "pace"}
    judged.project.ratings.all().delete()
    assert api.get(table).json()["is_current"] is False
    board = {"board": "systems", "query": {"by": "judge", "method": "glicko2"}}
    kept = api.post("/api/v1/projects/alpha/snapshots/", board, format="json")
    assert kept.status_code == 201, kept.content
    assert [row["value"] for row in Snapshot.objects.get().table["rows"]] == [row["value"] for row in found["rows"]]
    viewer = APIClient()
    viewer.force_authenticate(judged.viewer)
    assert viewer.get(table).status_code == 200
    assert viewer.post("/api/v1/projects/alpha/runs/", options, format="json").status_code == 403


def test_page_requests_and_shows_games(judged, score, client, django_assert_max_num_queries):
    score(judged.project, "length")
    page, door = (
        reverse("scoring:systems", args=["alpha"]) + "?by=judge&method=glicko2",
        reverse("scoring:games", args=["alpha"]),
    )
    client.force_login(judged.researcher)
    text = read_page(client.get(page))
    assert "No games yet." in text
    assert '<option value="glicko2" selected>Glicko-2 (games)</option>' in text
    # Its scores are another table; an evaluator with only scores has no other.
    assert "no complete scores" in read_page(client.get(page.removesuffix("&method=glicko2")))
    other = read_page(client.get(page.replace("judge", "length")))
    assert 'data-by="length"' in other
    assert "Glicko-2 (games)" not in other
    given = {"by": "judge", "systems": "all", "references": "original", "items": "6", "seeds": "3", "seed": "13"}
    faulty = client.post(door, {**given, "items": "0"})
    assert faulty.status_code == 422
    assert 'value="0"' in read_page(faulty)
    sent = client.post(door, {**given, "counts": "paper"})
    run = Run.objects.get(kind="games")
    assert sent.headers["Location"] == reverse("run", args=["alpha", run.pk])
    assert (run.params["options"]["outcome"], run.params["options"]["tie_rule"]) == ("verdict", "paper")
    assert f"run {run.pk}</a> (waiting" in read_page(client.get(page))
    assert execute_run(run.pk).state == "succeeded"
    with django_assert_max_num_queries(15):
        shown = read_page(client.get(page))
    assert 'data-method="glicko2" data-by="judge"' in shown
    assert "|tie:paper|" in shown
    assert 'id="human-ranking"' in shown
    assert "Recalculate" in shown
    assert "have changed since" not in shown
    rows = list(csv.DictReader(io.StringIO(client.get(_file("csv")).content.decode())))
    assert [row["system"] for row in rows] == [row["system"] for row in run_table()["rows"]]
    assert float(rows[0]["sd"]) == pytest.approx(run_table()["rows"][0]["sd"])
    assert run_table()["evaluator"]["signature"] in read_page(client.get(_file("tex")))
    assert client.get(reverse("scoring:systems-svg", args=["alpha"]) + "?by=judge&method=glicko2").status_code == 200
    refused = client.post(door, {**given, "by": "length"})
    assert refused.status_code == 422
    assert re.search(r"errorlist nonfield[^>]*> ?<li>length ", read_page(refused))
    assert client.post(door, {}).status_code == 400
    evaluator = read_page(client.get(reverse("scoring:evaluator", args=["alpha", "judge"])))
    assert "?by=judge&amp;method=glicko2" in evaluator
    Rating.objects.create(
        project=judged.project, output=Output.objects.first(), aspect=Aspect.objects.get(), rater="late", value=3
    )
    assert "have changed since" in read_page(client.get(page))
    client.force_login(judged.viewer)
    seen = read_page(client.get(page))
    assert 'data-method="glicko2" data-by="judge"' in seen
    assert "Recalculate" not in seen
    assert client.post(door, given).status_code == 403


def _file(ending: str) -> str:
    return reverse("scoring:systems-file", args=["alpha", ending]) + "?by=judge&method=glicko2"


def run_table() -> dict:
    return Run.objects.get(kind="games").result["table"]


def test_from_training_to_games_by_command(filled, tmp_path, settings):
    """With a really trained evaluator; each group is judged by the model that did not see it."""
    folder = tiny_encoder("bert", tmp_path / "tiny")
    settings.ENCODERS = [folder]
    short = ("--set", "epochs=1", "--set", "human_epochs=1", "--set", "pairs_per_epoch=16", "--set", "human_pairs=16")
    out = io.StringIO()
    call_command(
        "train", "comparative", "--project", "alpha", "--encoder", folder, "--folds", "2", "--name", "learned", *short,
        "--here", "--json", stdout=out, stderr=io.StringIO(),
    )  # fmt: skip
    assert json.loads(out.getvalue())["evaluator"] == "learned"
    table = play()["table"]
    assert {row["label"] for row in table["rows"]} == set(SYSTEMS)
    assert table["evaluator"]["n_in_training"] == 0
    assert "folds:2" in table["evaluator"]["signature"]
    text = command("systems", "--by", "learned", "--method", "glicko2")
    assert "Systems of alpha by learned (glicko2)" in text
    assert "of 3 simulations" in text
