"""Checkpoints: curves of human scores and evaluators over training steps, and the step each would choose."""

from __future__ import annotations

import pytest
from django.urls import reverse

from annotation.models import Aspect, Output, Rating, System
from scoring.selectors.steps import best_steps, make_lines
from tests.factories import make_items
from tests.pages import read_page

pytestmark = pytest.mark.django_db


def place(name, *rest):
    return reverse(f"scoring:{name}", args=["alpha", *rest])


@pytest.fixture
def trained(cast, score):
    """One system at steps 10, 20, 30, rated 2, 5, 3, with texts that grow."""
    system = System.objects.create(project=cast.project, name="net")
    aspect = Aspect.objects.create(project=cast.project, name="quality", low=1, high=5)
    for number, item in enumerate(make_items(cast.project, 5)):
        for step, value in ((10, 2), (20, 5), (30, 3)):
            text = "word " * (step // 5 + number)
            output = Output.objects.create(project=cast.project, item=item, system=system, step=step, text=text)
            wobble = number % 2 if value < 5 else 0
            Rating.objects.create(project=cast.project, output=output, aspect=aspect, rater="r", value=value + wobble)
    score(cast.project, "length")
    return cast


def test_curves_of_human_scores_and_evaluators(trained, client):
    client.force_login(trained.viewer)
    shown = read_page(client.get(place("steps")))
    assert "Human ratings: " in shown
    assert "<h2>length</h2>" in shown
    # The human maximum is 5 at step 20; the length baseline would choose 30, rated 3.4.
    rows = [row for row in shown.split("<tr>") if "<td>people</td>" in row or "<td>length</td>" in row]
    assert [("20" in row, "5.000" in row) for row in rows[:1]] == [(True, True)]
    assert '<td class="num">30</td>' in rows[1]
    assert "3.400" in rows[1]
    # The human mean there has its interval and n, and so has the evaluator's.
    assert rows[1].count(" to ") == 2
    assert rows[1].count("n 5<") == 2
    svg = client.get(place("steps-svg", "length"))
    assert svg.headers["Content-Type"].startswith("image/svg+xml")
    assert "at step 10" in svg.content.decode()
    assert client.get(place("steps-pdf", "people")).content.startswith(b"%PDF-")
    assert client.get(place("steps-svg", "chrf")).status_code == 404
    assert reverse("scoring:steps", args=["alpha"]) in read_page(client.get(place("systems")))


def test_simulated_ratings_are_marked_next_to_curve_and_choice(trained, client):
    Rating.objects.filter(value=5).update(simulated=True)
    client.force_login(trained.viewer)
    assert read_page(client.get(place("steps"))).count("badge simulated") == 2


def test_without_checkpoints_the_page_explains_how_to_get_some(cast, client):
    client.force_login(cast.viewer)
    assert "No checkpoints yet." in read_page(client.get(place("steps")))


def test_earliest_of_equal_steps_is_chosen():
    def row(step, value):
        return {"system": "a", "step": step, "value": value, "low": None, "high": None, "n": 3}

    people = make_lines({"rows": [row(3, 0.5), row(1, 0.2), row(2, 0.5), row(None, 0.9), row(4, None)]})
    assert [point["x"] for point in people[0]["points"]] == [1, 2, 3]
    found = best_steps({"people": people, "chrf": make_lines({"rows": [row(1, 0.9), row(9, 0.1)]})})
    told = [(best.panel, best.step, best.n, best.people and best.people["value"]) for best in found]
    assert told == [("people", 2, 3, 0.5), ("chrf", 1, 3, 0.2)]
