"""A new metric is one module in `scoring/ml/baselines`: the catalogue, pages, API and commands find it there."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from django.core.management import call_command
from django.urls import reverse

from docs.generate import evaluators_page
from scoring.ml import Record, baselines, catalogue, load
from scoring.ml.metrics import list_metrics, pairwise_names
from scoring.models import ScoreSet

ADDED = Path(__file__).parent / "added_metric"
NAME = "word-jaccard"
#: By hand: {the, cat} and {the, cat, sat} share 2 of 3 words; {dogs, run} share none.
RECORDS = [Record("The cat", ("dogs run", "the cat sat")), Record("dogs run", ("the cat sat",)), Record("", ("a",))]


@pytest.fixture
def added(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The module is in the folder of the baselines."""
    monkeypatch.setattr(baselines, "__path__", [*baselines.__path__, str(ADDED)])
    list_metrics.cache_clear()
    catalogue.cache_clear()
    yield
    list_metrics.cache_clear()
    catalogue.cache_clear()


def test_without_the_module_there_is_no_such_metric() -> None:
    assert NAME not in {entry.name for entry in catalogue()}


@pytest.mark.usefixtures("added")
def test_the_library_finds_it(tmp_path: Path) -> None:
    names = [entry.name for entry in catalogue()]
    assert names.index("bleurt") < names.index(NAME) < names.index("comparative")
    assert NAME in pairwise_names()  # so that REAM# may learn the reliability of references for it
    metric = load(NAME)
    np.testing.assert_allclose(metric.score(RECORDS), [2 / 3, 0, 0])
    assert metric.signature == f"{NAME}|nrefs:var|tok:words|v:1"
    metric.save_pretrained(tmp_path)
    assert load(tmp_path).signature == metric.signature
    assert f"[`{NAME}`](#{NAME}) | baseline |" in evaluators_page()


@pytest.mark.django_db
@pytest.mark.usefixtures("added")
def test_pages_api_and_commands_find_it(scored, client) -> None:
    slug = scored.project.slug
    client.force_login(scored.owner)
    out = io.StringIO()
    call_command("evaluators", stdout=out)
    assert NAME in out.getvalue()
    assert NAME in {row["name"] for row in client.get(reverse("api-catalogue")).json()["results"]}
    assert NAME in client.get(reverse("scoring:evaluator-list", args=[slug])).content.decode()
    assert client.get(reverse("scoring:evaluator-apply", args=[slug, NAME])).status_code == 200
    call_command("score", NAME, "--project", slug, "--here", stdout=io.StringIO())
    stored = ScoreSet.objects.get(project=scored.project, evaluator__name=NAME)
    assert stored.signature.startswith(f"{NAME}|")
    card = client.get(reverse("scoring:evaluator", args=[slug, stored.evaluator.slug]))
    assert card.status_code == 200
    assert f"{NAME}|nrefs:var|tok:words" in card.content.decode()
