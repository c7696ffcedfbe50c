"""Files of other tools, from the file through the import to stored rows, and for each kind to the table that people
want: a leaderboard of systems, or comparisons."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from annotation.mapping import open_table, propose_mapping
from annotation.models import Comparison, Item, Output, Rating, Upload
from evalapp.accounts.models import Project
from scoring.boards.systems.query import SystemsQuery
from scoring.services.leaderboards import get_leaderboard
from tests.annotation.mapping.formats import FILES, FORMATS
from tests.taking import list_errors, take_in

pytestmark = pytest.mark.django_db


def import_file(project: Project, name: str, stated: dict[str, Any] | None = None) -> Upload:
    """Import a test file with the proposed mapping and what the file does not tell."""
    mapping = {**propose_mapping(open_table(FILES / name)).mapping.as_json(), **(stated or {})}
    upload = take_in(project, {Path(name).name: (FILES / name).read_bytes()}, mapping=mapping)
    assert upload.state == "done", list_errors(upload)
    return upload


def rank_systems(project: Project, aspect: str) -> list[str]:
    """The systems of the leaderboard, best first."""
    board = get_leaderboard(project=project, query=SystemsQuery(aspect=aspect))
    return [row["system"] for row in board.table["rows"]]


MT_BENCH = ["mt_bench/question.jsonl", "mt_bench/model_answer/gpt-4.jsonl", "mt_bench/model_answer/llama-13b.jsonl"]
#: Files that other files have to precede, because these have the items and outputs.
BEFORE = {
    "mt_bench/model_answer/gpt-4.jsonl": MT_BENCH[:1],
    "mt_bench/model_judgment/gpt-4_single.jsonl": MT_BENCH,
    "mt_bench/model_judgment/gpt-4_pair.jsonl": MT_BENCH,
}
SURVEYS = {"google_forms.csv", "qualtrics.csv", "limesurvey.csv"}


@pytest.mark.parametrize("name", sorted(set(FORMATS) - SURVEYS))
def test_file_becomes_stored_rows(cast, name):
    for before in BEFORE.get(name, ()):
        import_file(cast.project, before)
    stored = count_rows()
    _preset, stated, numbers = FORMATS[name]
    import_file(cast.project, name, stated)
    assert tuple(after - before for after, before in zip(count_rows(), stored, strict=True)) == numbers


def count_rows() -> list[int]:
    return [model.objects.count() for model in (Item, Output, Rating, Comparison)]


@pytest.mark.parametrize(
    ("name", "outputs"),
    [
        # Names of questions in a survey are those of its author: item, system and aspect are their parts.
        ("google_forms.csv", [("1", "GPT-4"), ("1", "Llama 3 8B"), ("2", "GPT-4"), ("2", "Llama 3 8B")]),
        ("qualtrics.csv", [("w0", "gpt4"), ("w0", "llama"), ("w1", "gpt4"), ("w1", "llama")]),
        ("limesurvey.csv", [("w0", "gpt4"), ("w0", "llama"), ("w1", "gpt4"), ("w1", "llama")]),
    ],
)
def test_survey_rates_outputs_that_are_there(cast, name, outputs):
    rows = [{"item": item, "system": system, "text": "A reply."} for item, system in outputs]
    items = [{"id": item} for item in sorted({item for item, _system in outputs})]
    take_in(cast.project, {"items.jsonl": items, "outputs.jsonl": rows})
    import_file(cast.project, name)
    assert Rating.objects.count() == FORMATS[name][2][2]
    ranked = rank_systems(cast.project, "Fluency" if name == "google_forms.csv" else "fluency")
    assert [system.lower()[:3] for system in ranked] == ["gpt", "lla"]


@pytest.mark.parametrize(
    ("files", "aspect", "ranked"),
    [
        ([*MT_BENCH, "mt_bench/model_judgment/gpt-4_single.jsonl"], "score", ["gpt-4", "llama-13b"]),
        (["mturk.csv"], "fluency", ["GPT-4", "Llama 3 8B"]),
        (["label_studio_rating.json"], "fluency", ["GPT-4", "Llama 3 8B"]),
        (["long.csv"], "fluency", ["GPT-4", "Llama 3 8B"]),
        (["argilla.json"], "fluency", ["GPT-4", "Llama 3 8B"]),
        (["usr.json"], "Overall", ["Original Ground Truth", "Nucleus Decoding (p = 0.3)"]),
    ],
    ids=["mt-bench", "mturk", "label-studio", "long", "argilla", "usr"],
)
def test_from_file_to_leaderboard(cast, files, aspect, ranked):
    for name in files:
        import_file(cast.project, name)
    assert rank_systems(cast.project, aspect) == ranked


def test_judgements_by_a_model_are_marked(cast):
    import_file(cast.project, "alpaca_annotations.json")
    assert set(Comparison.objects.values_list("simulated", flat=True)) == {True}
    import_file(cast.project, "arena_battles.json")
    assert Comparison.objects.filter(simulated=False).count() == 4
