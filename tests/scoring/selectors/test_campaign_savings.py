"""The sentence on the quality page of a campaign: what an evaluator saves, and how many judgements separate systems."""

from __future__ import annotations

import re
from uuid import uuid4

import numpy as np
import pytest
from django.core.cache import cache
from django.urls import reverse
from django.utils import timezone

from annotation.models import CampaignMember, Item, Rating, Unit
from annotation.services.campaigns import create_campaign, open_campaign
from annotation.services.judging import get_next_assignment, submit_answer
from evalapp.stats.assisted.means import AssistedOptions, estimate_means, find_saved
from scoring.models import Evaluator, Score, ScoreSet
from scoring.selectors import campaign_savings
from scoring.selectors.campaign_savings import describe_savings
from scoring.selectors.judge_split import get_split
from tests.factories import make_outputs

pytestmark = pytest.mark.django_db


@pytest.fixture
def campaign(cast):
    """160 outputs of two systems, whose scores by `judge` nearly tell the ratings; 60 were rated."""
    cache.clear()  # other tests give the same numbers to other judgements
    items = [Item(project=cast.project, key=f"i{k:02d}", context=["Hello."], group=f"g{k:02d}") for k in range(80)]
    outputs = make_outputs(cast.project, Item.objects.bulk_create(items), ("sys-a", "sys-b"))
    rng = np.random.default_rng(1)
    value = dict(zip([output.pk for output in outputs], rng.uniform(1, 7, size=len(outputs)), strict=True))
    for name, scores in (("judge", value), ("noise", {pk: float(rng.normal()) for pk in value})):
        row = Evaluator.objects.create(project=cast.project, slug=name, name=name)
        score_set = ScoreSet.objects.create(project=cast.project, evaluator=row, scored_at=cast.project.created_at)
        Score.objects.bulk_create(
            Score(score_set=score_set, output_id=pk, value=score, note="", input_hash="0" * 64)
            for pk, score in scores.items()
        )
    plan = {
        "name": "Quality", "kind": "likert", "aspects": [{"name": "quality", "low": 1, "high": 7}],
        "items": {"sample": 30, "seed": 1},
    }  # fmt: skip
    campaign = create_campaign(project=cast.project, user=cast.researcher, plan=plan)
    campaign = open_campaign(campaign=campaign, user=cast.researcher, here=True)
    noise = dict(zip(value, rng.normal(size=len(value)), strict=True))
    while (shown := get_next_assignment(user=cast.annotator, campaign_id=campaign.pk).shown) is not None:
        output = Unit.objects.get(pk=shown.unit_id).output_a_id
        answer = {"quality": int(np.clip(round(value[output] + noise[output]), 1, 7))}
        submit_answer(user=cast.annotator, public=shown.public, submission=uuid4(), answer=answer)
    return campaign


def test_sentence_has_the_share_and_both_numbers_of_judgements(campaign, cast, client):
    (text,) = describe_savings(campaign=campaign)
    ratings = dict(Rating.objects.filter(project=cast.project).values_list("output", "value"))
    scored = Score.objects.filter(score_set__evaluator__slug="judge").order_by("output").select_related("output__item")
    columns = (
        [ratings.get(row.output_id, np.nan) for row in scored], [row.value for row in scored],
        [row.output.item.group for row in scored], [row.output.system_id for row in scored],
    )  # fmt: skip
    means, alone = estimate_means(*columns), estimate_means(*columns, options=AssistedOptions(weight=0.0))
    assert f"quality: judge saves about {100 * find_saved(means):.0f} % of the judgements." in text
    contrast = np.array([1.0, -1.0])
    expected = [
        int(np.ceil(60 * (1.959964**2 * contrast @ one.covariance @ contrast / (contrast @ means.value) ** 2 - 1)))
        for one in (means, alone)
    ]
    found = re.search(r"you need about ([\d,]+) more judgements with it, without about ([\d,]+)", text)
    assert [int(number.replace(",", "")) for number in found.groups()] == expected
    assert expected[0] < expected[1]
    client.force_login(cast.researcher)
    page = client.get(reverse("annotation:campaign-quality", args=[cast.project.slug, campaign.pk])).content.decode()
    assert text in page


def test_ratings_of_the_test_part_do_not_change_what_a_judge_saves(campaign, cast):
    """The numbers of judgements count those of both parts."""
    ScoreSet.objects.filter(evaluator__slug="noise").delete()
    Evaluator.objects.filter(slug="judge").update(kind=Evaluator.Kind.JUDGE)
    (text,) = describe_savings(campaign=campaign)
    split = get_split(cast.project)
    ratings = Rating.objects.filter(project=cast.project).select_related("output__item")
    held_out = [row.pk for row in ratings if split.is_test(row.output.item.group, row.output.item.key)]
    assert 20 < len(held_out) < 40
    Rating.objects.filter(pk__in=held_out).update(value=1)
    cache.clear()
    assert describe_savings(campaign=campaign) == [text]
    scored = Score.objects.filter(score_set__evaluator__slug="judge").order_by("output").select_related("output__item")
    known = {row.output_id: row.value for row in ratings if row.pk not in held_out}
    means = estimate_means(
        [known.get(row.output_id, np.nan) for row in scored], [row.value for row in scored],
        [row.output.item.group for row in scored], [row.output.system_id for row in scored],
    )  # fmt: skip
    assert f"judge saves about {100 * find_saved(means):.0f} %" in text
    contrast = np.array([1.0, -1.0])
    squared = contrast @ means.covariance @ contrast / (contrast @ means.value) ** 2
    expected = int(np.ceil(len(known) * 1.959964**2 * squared - 60))
    assert f"you need about {expected:,} more judgements with it" in text


def test_without_help_the_sentence_says_so(campaign, cast):
    ScoreSet.objects.filter(evaluator__slug="judge").update(n_in_training=3)
    (text,) = describe_savings(campaign=campaign)
    assert text.startswith("quality: no evaluator saves judgements here; the best is noise (")
    ScoreSet.objects.all().delete()
    assert describe_savings(campaign=campaign) == []


def test_sentences_are_renewed_with_every_fiftieth_judgement_and_new_scores(campaign, cast, monkeypatch):
    cache.clear()
    described: list[str] = []
    original = campaign_savings.describe_aspect
    monkeypatch.setattr(
        campaign_savings, "describe_aspect", lambda *given: (described.append(given[1].name), original(*given))[1]
    )
    member = CampaignMember.objects.filter(campaign=campaign)
    for done, times in ((60, 1), (61, 1), (99, 1), (100, 2), (149, 2)):
        member.update(done=done)
        describe_savings(campaign=campaign)
        assert len(described) == times, done
    ScoreSet.objects.filter(evaluator__slug="judge").update(scored_at=timezone.now())
    describe_savings(campaign=campaign)
    assert len(described) == 3


def test_each_aspect_of_an_evaluator_has_its_own_scores(campaign):
    row = Evaluator.objects.get(slug="judge")
    own = ScoreSet.objects.get(evaluator=row)
    ScoreSet.objects.filter(pk=own.pk).update(aspect="quality")
    ScoreSet.objects.create(
        project=campaign.project, evaluator=row, aspect="politeness", signature="later", scored_at=timezone.now()
    )
    (text,) = describe_savings(campaign=campaign)
    assert text.startswith("quality: judge saves about")
