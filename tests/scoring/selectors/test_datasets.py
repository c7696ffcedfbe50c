"""A project as a dataset: equal to the library's reading of a dump, and restricted on request."""

from __future__ import annotations

import io
import json
from pathlib import Path
from uuid import uuid4

import pytest
from django.core.management import call_command

from annotation.models import Item, Output, Rating, Reference, ReferenceSet
from annotation.services.judging import get_next_assignment, submit_answer
from evalapp.accounts.models import Project
from evalapp.common.errors import BadInput, NotThere
from scoring.ml import read_dataset
from scoring.ml.training.record import data_hash
from scoring.selectors.datasets import UPLOADED, DataChoice, build_dataset, check_choice, rater_names
from tests.factories import make_ratings
from tests.judging import open_rating

pytestmark = pytest.mark.django_db

HEADER = {
    "name": "Small talk",
    "task": "dialogue",
    "lang": "en",
    "aspects": [{"name": "fluency", "min": 1, "max": 5}, {"name": "better"}],
    "licence": "CC0",
}
ROWS: dict[str, list[dict]] = {
    "systems": [{"id": "b", "kind": "machine", "meta": {"z": 1, "a": [2.0]}}, {"id": "h", "kind": "human"}],
    "items": [
        {"id": "i2", "context": ["Hello?", "Yes."], "references": ["Fine.", "Well."], "group": "g"},
        {"id": "i10", "source": "name[x]", "references": [], "meta": {"k": {"b": 1, "a": 2}}},
        {"id": "i1", "context": ["Ä?"], "references": ["One"], "group": "g"},
    ],
    "outputs": [
        {"item": "i2", "system": "b", "text": "So so", "step": 900},
        {"item": "i2", "system": "b", "text": "So", "step": 30, "meta": {"t": 0.5}},
        {"item": "i1", "system": "h", "text": "Good."},
        {"item": "i1", "system": "a", "text": ""},
        {"item": "i10", "system": "a", "text": "A pub."},
        {"item": "i1", "system": "b", "text": "Bad.", "step": 30},
    ],
    "dialogues": [
        {"id": "d2", "turns": ["Hi", "Ho"], "speakers": ["x", "y"], "system": "b"},
        {"id": "d1", "turns": ["Tea?"]},
    ],
    "ratings": [
        {"item": "i2", "system": "b", "step": 900, "rater": "r2", "aspect": "fluency", "value": 3},
        {"item": "i2", "system": "b", "step": 30, "rater": "r2", "aspect": "fluency", "value": 2.5, "simulated": True},
        {"item": "i1", "system": "h", "rater": "r1", "aspect": "fluency", "value": 5},
        {"dialogue": "d2", "rater": "r1", "aspect": "fluency", "value": 4},
    ],
    "comparisons": [
        {
            "item": "i1",
            "system_a": "h",
            "system_b": "b",
            "step_b": 30,
            "rater": "r2",
            "aspect": "better",
            "verdict": "a",
        },
        {"item": "i1", "system_a": "a", "system_b": "h", "rater": "r1", "aspect": "better", "verdict": "tie"},
        {
            "item": "i2",
            "system_a": "b",
            "step_a": 30,
            "system_b": {"reference": 1},
            "rater": "r1",
            "aspect": "better",
            "verdict": "b",
        },
    ],
}


@pytest.fixture
def project(tmp_path: Path, cast) -> Project:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "dataset.json").write_text(json.dumps(HEADER), encoding="utf-8")
    for name, rows in ROWS.items():
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    call_command("load", str(folder), project="small", owner="olga", verbosity=0, stderr=io.StringIO())
    return Project.objects.get(slug="small")


def test_equals_the_librarys_reading_of_a_dump(project, tmp_path):
    call_command("dump", "small", str(tmp_path / "out"), verbosity=0, stderr=io.StringIO(), stdout=io.StringIO())
    expected = read_dataset(tmp_path / "out")
    found = build_dataset(project)
    assert found == expected
    assert data_hash(found) == data_hash(expected)
    assert len(found.ratings) == 4
    assert len(found.comparisons) == 3
    assert [item.id for item in found.items] == ["i1", "i2", "i10"]  # in natural order, like an export


def test_systems_raters_and_references_restrict_it(project):
    found = build_dataset(project, DataChoice(systems=("b", "h")), dialogues=False)
    assert {row.system for row in found.outputs} == {"b", "h"}
    assert {(row.system_a, row.system_b) for row in found.comparisons} == {("h", "b"), ("b", None)}
    assert found.dialogues == ()
    assert len(found.ratings) == 3
    of_one = build_dataset(project, DataChoice(raters=("r1",)))
    assert {row.rater for row in (*of_one.ratings, *of_one.comparisons)} == {"r1"}
    assert len(of_one.ratings) == 2
    better = ReferenceSet.objects.create(project=project, name="better")
    item = Item.objects.get(project=project, key="i2")
    Reference.objects.create(set=better, item=item, position=0, text="Splendid.")
    other = build_dataset(project, DataChoice(references="better"))
    assert {row.id: row.references for row in other.items} == {"i1": (), "i10": (), "i2": ("Splendid.",)}
    # A verdict against the second original reference is meaningless for another set.
    assert all(row.reference_b is None for row in other.comparisons)


def test_campaigns_restrict_judgements(cast):
    campaign = open_rating(cast, items=2)
    make_ratings(cast.project, list(Output.objects.all()[:1]))
    public = get_next_assignment(user=cast.annotator, campaign_id=campaign.pk).shown.public
    answer = {"naturalness": 4, "relevance": 3}
    submit_answer(user=cast.annotator, public=public, submission=uuid4(), answer=answer)
    everything = build_dataset(cast.project)
    judged = build_dataset(cast.project, DataChoice(campaigns=(campaign.slug,)))
    uploaded = build_dataset(cast.project, DataChoice(campaigns=(UPLOADED,)))
    assert {(row.aspect, row.value) for row in judged.ratings} == {("naturalness", 4.0), ("relevance", 3.0)}
    assert [row.aspect for row in uploaded.ratings] == ["quality", "quality"]
    both = build_dataset(cast.project, DataChoice(campaigns=(UPLOADED, campaign.slug)))
    assert data_hash(both) == data_hash(everything)
    assert len(everything.ratings) == Rating.objects.count() == 4


def test_unknown_names_are_errors(project):
    check_choice(project, DataChoice(campaigns=(UPLOADED,), raters=("r1",), systems=("a",)))
    assert rater_names(project) == ["r1", "r2"]
    with pytest.raises(BadInput, match="no system “c”") as caught:
        check_choice(project, DataChoice(systems=("a", "c"), raters=("nobody",)))
    assert {fault.field for fault in caught.value.faults} == {"systems", "raters"}
    with pytest.raises(NotThere, match="no reference set"):
        check_choice(project, DataChoice(references="other"))
