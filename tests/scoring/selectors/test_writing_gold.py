"""Gold reliability during writing: by hand on three outputs, in rounds by annotator, and where it is unavailable."""

from __future__ import annotations

import pytest
from scipy.stats import pearsonr

from annotation.models import Aspect, Item, Output, Rating, System
from evalapp.common.errors import NotAllowed
from scoring.ml import load
from scoring.ml.base import Query
from scoring.models import Evaluator
from scoring.selectors.writing_gold import choose_metric, gold_growth
from tests.pages import read_page
from tests.writing import fill_ports, open_task_view, send, start_writing

pytestmark = pytest.mark.django_db
TEXTS = ("We walk by the lake today.", "We sit by the fire.", "Fish are blue.")
RATINGS = ((5, 4), (3, 2), (1, 1))


@pytest.fixture
def campaign(cast, monkeypatch):
    fill_ports(monkeypatch)
    return start_writing(cast, items=2, options={"arms": ["control"]})


def rate(cast, item):
    aspect, _ = Aspect.objects.get_or_create(project=cast.project, name="quality", defaults={"low": 1, "high": 5})
    for place, (text, values) in enumerate(zip(TEXTS, RATINGS, strict=True)):
        system, _ = System.objects.get_or_create(project=cast.project, name=f"s{place}")
        output = Output.objects.create(project=cast.project, item=item, system=system, text=text)
        for rater, value in enumerate(values):
            Rating.objects.create(project=cast.project, output=output, aspect=aspect, rater=f"r{rater}", value=value)


def test_metric_with_the_references_of_each_round_against_human_scores(cast, campaign):
    view = open_task_view(cast.annotator, campaign)
    rate(cast, view.task.unit.item)
    for text in ("We walk by the lake.", "Fish are green."):
        send(cast.annotator, view, text)
    found = gold_growth(user=cast.viewer, campaign=campaign)
    references = (view.references[0].text, "We walk by the lake.", "Fish are green.")
    (matrix,) = load("bleu-star").all_pairs([Query(TEXTS, references)])
    expected = [pearsonr(matrix[:, :size].max(axis=1), [4.5, 2.5, 1.0]).statistic for size in (1, 2, 3)]
    points = found.by_arm["control"]
    assert [point.round for point in points] == [0, 1, 2]
    assert [point.mean for point in points] == pytest.approx(expected, abs=1e-9)
    assert (found.aspect, found.n_items, found.n_left_out, found.by_person) == ("quality", 1, 0, {})
    assert found.signature.startswith("bleu-star|")
    assert (found.metric, found.why) == ("bleu-star", "because ream-1 has no known metric")


def test_metric_is_the_one_the_evaluator_was_trained_for(cast, campaign):
    view = open_task_view(cast.annotator, campaign)
    rate(cast, view.task.unit.item)
    send(cast.annotator, view, "We walk by the lake.")
    trained = Evaluator.objects.create(
        project=cast.project, slug="ream-1", name="ream", kind="trained", options={"metric": "token-f1"}
    )
    found = gold_growth(user=cast.viewer, campaign=campaign)
    (matrix,) = load("token-f1").all_pairs([Query(TEXTS, (view.references[0].text, "We walk by the lake."))])
    expected = pearsonr(matrix.max(axis=1), [4.5, 2.5, 1.0]).statistic
    assert found.by_arm["control"][-1].mean == pytest.approx(expected, abs=1e-9)
    assert (found.metric, found.why) == ("token-f1", "the metric of ream-1")
    assert found.signature.startswith("token-f1|")
    trained.options = {"metric": "bertscore"}
    trained.save()
    found = gold_growth(user=cast.viewer, campaign=campaign)
    assert (found.metric, found.why) == (
        "bleu-star", "because the metric of ream-1, bertscore, is too slow"
    )  # fmt: skip
    campaign.evaluator = ""
    assert choose_metric(campaign) == ("bleu-star", "because the campaign has no evaluator")


def test_without_ratings_or_permission(cast, campaign):
    view = open_task_view(cast.annotator, campaign)
    send(cast.annotator, view, "A text.")
    found = gold_growth(user=cast.researcher, campaign=campaign)
    assert (found.aspect, found.by_arm, found.n_left_out) == ("", {}, 1)
    rate(cast, Item.objects.exclude(pk=view.task.unit.item_id).get())
    assert gold_growth(user=cast.researcher, campaign=campaign).by_arm == {}
    with pytest.raises(NotAllowed):
        gold_growth(user=cast.annotator, campaign=campaign)


def test_page_and_its_fragment(cast, campaign, client):
    client.force_login(cast.viewer)
    path = f"/projects/alpha/references/writing/{campaign.pk}/gold/"
    assert 'data-without="references"' in read_page(client.get(path))
    view = open_task_view(cast.annotator, campaign)
    rate(cast, view.task.unit.item)
    send(cast.annotator, view, "We walk by the lake.")
    part = read_page(client.get(path, headers={"HX-Request": "true"}))
    assert "<svg" in part
    assert "<html" not in part
    words = "Over 1 item: the correlation (Pearson) of bleu-star, because ream-1 has no known metric, with"
    page = read_page(client.get(path))
    assert words in page
    assert "badge simulated" not in page
    Rating.objects.filter(rater="r0").update(simulated=True)
    assert "badge simulated" in read_page(client.get(path))
    assert client.get(f"/projects/alpha-foreign/references/writing/{campaign.pk}/gold/").status_code == 404
