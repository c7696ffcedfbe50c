"""Campaigns about outputs that scores select: alignment of a judge, and samples by expected error."""

from __future__ import annotations

import json
from collections import Counter
from io import StringIO
from uuid import uuid4

import numpy as np
import pytest
from django.core.management import call_command
from django.db.models import Avg, F
from django.urls import reverse

from annotation.models import Aspect, Campaign, Comparison, Item, Output, Rating, Unit
from annotation.services.campaigns import open_campaign
from annotation.services.judging import get_next_assignment, submit_answer
from evalapp.common import audit
from evalapp.common.errors import BadInput, Conflict
from evalapp.common.runner import execute_run
from evalapp.number_text import MINUS
from scoring.boards.recompute import recompute_folder
from scoring.models import Evaluator, Score, ScoreSet
from scoring.selectors.judge_split import LOOKED, Split, count_looks, get_split, iterate_looks
from scoring.selectors.judged_units import choose_examples
from scoring.selectors.telling_outputs import load_scored_outputs, make_history
from scoring.services.choosing import (
    AlignmentOptions,
    SampleOptions,
    create_alignment_campaign,
    create_sample_campaign,
    list_proposed,
)
from scoring.services.judges import JudgeOptions, start_judge
from scoring.views.choosing import SampleForm
from tests.factories import make_outputs, make_ratings

pytestmark = pytest.mark.django_db


@pytest.fixture
def project(scored):
    """The scored project, with 8 more rated items and 16 that nobody has rated; `length` has scored all outputs."""
    project = scored.project
    items = [Item(project=project, key=f"j{k:02d}", context=["Hello."], group=f"h{k:02d}") for k in range(24)]
    outputs = make_outputs(project, Item.objects.bulk_create(items), ("sys-a", "sys-b", "sys-c"))
    make_ratings(project, [output for output in outputs if output.item.key < "j08"])
    score_set = ScoreSet.objects.get(project=project, evaluator__slug="length")
    rows = [
        Score(score_set=score_set, output=output, value=float(k % 7), note="", input_hash="0" * 64)
        for k, output in enumerate(outputs)
    ]
    Score.objects.bulk_create(rows)
    return project


def judge(project, **rest):
    project.texts_may_leave = True
    project.save()
    run = execute_run(start_judge(project=project, options=JudgeOptions("fake", **rest), send=False).pk)
    assert run.state == "succeeded", run.error
    return Evaluator.objects.get(project=project, slug=run.params["slug"])


def answer_all(campaign, user, rate):
    """Answer every unit of an open campaign; returns the number of answers."""
    n = 0
    while (shown := get_next_assignment(user=user, campaign_id=campaign.pk).shown) is not None:
        unit = Unit.objects.select_related("output_a").get(pk=shown.unit_id)
        submit_answer(
            user=user, public=shown.public, submission=uuid4(), answer={"quality": rate(unit.output_a)}
        )  # fmt: skip
        n += 1
    return n


def test_proposed_outputs_are_of_the_development_part_and_disagree_most(project):
    rows = list_proposed(project, "length", AlignmentOptions(n=8))
    split = get_split(project)
    assert rows
    groups = dict(Item.objects.filter(project=project).values_list("key", "group"))
    assert not any(split.is_test(groups[row.item], row.item) for row in rows)
    rated = [row for row in rows if row.rating is not None]
    assert [row.error for row in rated] == sorted((row.error for row in rated), reverse=True)
    assert all(row.error == pytest.approx(abs(row.score - row.rating)) for row in rated)
    assert {row.reason for row in rows} == {"Disagreement with raters", "Expected error"}
    for kind in (rated, [row for row in rows if row.rating is None]):
        assert len({row.item for row in kind}) == len(kind)
    assert len(rows) <= 8


def test_ratings_of_the_test_part_do_not_change_the_proposal(project):
    options = AlignmentOptions(n=8)
    before = [row.as_dict() for row in list_proposed(project, "length", options)]
    split = get_split(project)
    held_out = [item.pk for item in Item.objects.filter(project=project) if split.is_test(item.group, item.key)]
    assert Rating.objects.filter(output__item__in=held_out).update(value=1)
    assert [row.as_dict() for row in list_proposed(project, "length", options)] == before


def test_ratings_of_the_test_part_do_not_change_the_chances_of_a_sample(project):
    def draw():
        plan = create_sample_campaign(project=project, evaluator="length", options=SampleOptions(n=12, batches=1)).plan
        return [(row["item"], row["system"], row["chance"]) for row in plan["outputs"]]

    before = draw()
    split = get_split(project)
    held_out = [item.pk for item in Item.objects.filter(project=project) if split.is_test(item.group, item.key)]
    assert Rating.objects.filter(output__item__in=held_out).update(value=1)
    assert draw() == before


@pytest.mark.parametrize("method", ["json", "reward"])
def test_rewards_are_compared_on_the_scale_of_the_raters(project, judge_server, method):
    row = judge(project, name="one")
    Evaluator.objects.filter(pk=row.pk).update(options={**row.options, "method": method})
    Score.objects.filter(score_set__evaluator=row).update(value=F("value") + 100)
    rated = [one for one in list_proposed(project, "one", AlignmentOptions(n=8)) if one.rating is not None]
    assert rated
    assert all((one.score < 20) == (method == "reward") for one in rated)


def test_the_history_has_the_looks_at_its_aspect_only(project, judge_server):
    """A look at another aspect counts, but its figures are not those of this history."""
    row = judge(project, name="one")
    for name in ("quality", "other"):
        figures = {"alpha_with": {"value": 0.5}, "aspect": name}
        audit.record(verb=LOOKED, project=project, actor=None, object="one", figures=figures)
    history = make_history(project, row, Aspect.objects.get(project=project, name="quality"))
    (version,) = history["versions"]
    assert ([look["aspect"] for look in version["test"]], history["looks"]) == (["quality"], 2)


def test_the_history_shows_a_judge_that_contradicts_people(project, judge_server, scored, client):
    """Here in the development part only. What the test part shows appears after a look at it."""
    row = judge(project, name="one")
    split = get_split(project)
    means = Rating.objects.filter(project=project).values("output", "output__item__group", "output__item__key")
    for output, group, item, mean in means.annotate(mean=Avg("value")).values_list(
        "output", "output__item__group", "output__item__key", "mean"
    ):
        value = mean if split.is_test(group, item) else 6 - mean
        Score.objects.filter(score_set__evaluator=row, output=output).update(value=value)
    client.force_login(scored.researcher)
    api, page = (reverse(name, args=[project.slug, "one"]) for name in ("api-evaluator-alignment", "scoring:alignment"))
    (version,) = client.get(api).json()["versions"]
    assert version["development"]["correlation"]["value"] == pytest.approx(-1)
    assert (version["development"]["decided"], version["test"]) == (None, [])
    text = client.get(page).content.decode()
    assert "Correlation with mean ratings (Spearman), development part" in text
    assert (f"{MINUS}1.000" in text, "<div>Spearman" in text) == (True, False)
    heads, cells = run("align", project.slug, "one").splitlines()[:2]
    assert ("Spearman, development" in heads, "-1.000" in cells) == (True, True)
    assert cells.rstrip().endswith("not shown")
    client.post(reverse("scoring:judge-report", args=[project.slug, "one"]))
    (version,) = client.get(api).json()["versions"]
    assert version["test"][0]["correlation"]["value"] == pytest.approx(1)
    assert "<div>Spearman" in client.get(page).content.decode()
    assert "not shown" not in run("align", project.slug, "one")


def test_the_history_of_comparing_judges_has_their_share_of_decided_pairs(project, judge_server, scored, client):
    """Without any rating. People prefer sys-a; the judge does in one pair of the development part and in the test
    part."""
    Rating.objects.filter(project=project).delete()
    aspect = Aspect.objects.get(project=project, name="quality")
    pairs = Output.objects.filter(project=project, item__key__startswith="j").select_related("item", "system")
    by_item = {}
    for output in pairs:
        by_item.setdefault(output.item, {})[output.system.name] = output
    for sides in by_item.values():
        Comparison.objects.create(
            project=project, output_a=sides["sys-a"], output_b=sides["sys-b"], aspect=aspect, rater="r1", verdict="a"
        )
    judge_server.rate = lambda prompt: "A"
    row = judge(project, name="pairs", template="pairs")
    split = get_split(project)
    development = [item for item in by_item if not split.is_test(item.group, item.key)]
    for item, sides in by_item.items():
        is_right = item not in development[1:]
        for system, value in (("sys-a", is_right), ("sys-b", not is_right)):
            Score.objects.filter(score_set__evaluator=row, output=sides[system]).update(value=float(value))
    client.force_login(scored.researcher)
    api, page = (
        reverse(name, args=[project.slug, "pairs"]) for name in ("api-evaluator-alignment", "scoring:alignment")
    )
    (version,) = client.get(api).json()["versions"]
    decided = version["development"]["decided"]
    assert (decided["value"], decided["n"]) == (pytest.approx(1 / len(development)), len(development))
    assert decided["low"] < decided["value"] < decided["high"]
    assert "Decided pairs ordered as by raters, development part" in client.get(page).content.decode()
    assert "decided pairs, test" in run("align", project.slug, "pairs")
    report = client.post(reverse("scoring:judge-report", args=[project.slug, "pairs"]))
    assert "Share of decided pairs" in report.content.decode()
    (version,) = client.get(api).json()["versions"]
    assert version["test"][0]["decided"]["value"] == 1
    assert version["test"][0]["decided"]["n"] == len(by_item) - len(development)


def test_a_table_over_all_groups_is_a_look(project, judge_server, scored, client):
    """Once for each kind of table, aspect and signature. Tables without people and without judges are none."""
    row = judge(project, name="one")
    run("systems", project.slug, "--by", "one")
    run("systems", project.slug, "--assist", "length")
    client.force_login(scored.researcher)
    client.get(reverse("scoring:evaluation-board", args=[project.slug, "matrix"]))
    assert count_looks(project, ["one", "length"]) == 0
    for _time in range(2):
        run("systems", project.slug, "--assist", "one")
        client.get(reverse("scoring:systems", args=[project.slug]), {"assist": "one", "target": "these-items"})
    assert [look.figures["table"] for look in iterate_looks(project, ["one"])] == ["systems"]
    client.get(reverse("scoring:evaluation", args=[project.slug]))
    history = make_history(project, row, Aspect.objects.get(project=project, name="quality"))
    assert [look["table"] for look in history["versions"][0]["test"]] == ["systems", "evaluators"]
    page = client.get(reverse("scoring:alignment", args=[project.slug, "one"])).content.decode()
    assert (page.count("in a table"), "was shown 2 times" in " ".join(page.split())) == (2, True)


def test_steps_from_0_on_are_in_order(project):
    """The order is part of the digest that tells whether a sample can go on."""
    outputs = Output.objects.filter(project=project, system__name="sys-a")
    for step, output in enumerate(outputs.filter(item__key="j00")):
        output.step = step
        output.save()
    score_set = ScoreSet.objects.get(project=project, evaluator__slug="length")
    old = outputs.get(item__key="j00")
    new = Output.objects.create(project=project, item=old.item, system=old.system, step=None, text="Early.")
    Score.objects.create(score_set=score_set, output=new, value=1.0, note="", input_hash="0" * 64)
    scored = load_scored_outputs(project, score_set, Aspect.objects.get(project=project, name="quality"))
    steps = [
        step
        for item, system, step in zip(scored.item, scored.system, scored.step, strict=True)
        if (item, system) == ("j00", "sys-a")
    ]
    assert steps == [None, 0]


def test_ratings_of_an_alignment_campaign_do_not_count_in_tables(project, scored):
    table = json.loads(run("systems", project.slug, "--json"))
    campaign = create_alignment_campaign(
        project=project, user=scored.researcher, evaluator="length", options=AlignmentOptions(n=6)
    )
    assert campaign.plan["chosen"]["reason"] == "alignment"
    open_campaign(campaign=campaign, user=scored.researcher, here=True)
    assert Unit.objects.filter(campaign=campaign, propensity=0).count() == len(campaign.plan["outputs"])
    n = answer_all(campaign, scored.annotator, lambda output: 1)
    assert n == len(campaign.plan["outputs"])
    assert Rating.objects.filter(project=project, meta__has_key="propensity").count() == n
    after = json.loads(run("systems", project.slug, "--json"))
    assert [row["value"] for row in after["rows"]] == [row["value"] for row in table["rows"]]
    assert f"{n} ratings of outputs that were chosen by their expected error are not counted." in after["counted"]


def test_batches_draw_from_their_own_part_and_store_chances(project, scored):
    options = SampleOptions(n=12, batches=2)
    first = create_sample_campaign(project=project, user=scored.researcher, evaluator="length", options=options)
    open_campaign(campaign=first, user=scored.researcher, here=True)
    stored = dict(Unit.objects.filter(campaign=first).values_list("output_a__item__key", "propensity"))
    assert all(0 < chance <= 1 for chance in stored.values())
    assert not Rating.objects.filter(output__in=first.units.values("output_a")).exists()
    answer_all(first, scored.annotator, lambda output: 1 + output.pk % 5)
    second = create_sample_campaign(
        project=project, user=scored.researcher, evaluator="length", options=SampleOptions(n=12, after=first.slug)
    )
    assert (second.plan["chosen"]["batch"], second.slug) == (2, f"{first.slug}-batch-2")

    def names(campaign):
        return {(row["item"], row["system"]) for row in campaign.plan["outputs"]}

    assert not names(first) & names(second)
    with pytest.raises(BadInput, match="All batches"):
        create_sample_campaign(project=project, evaluator="length", options=SampleOptions(after=second.slug))
    with pytest.raises(BadInput, match="expected error of length"):
        create_sample_campaign(project=project, evaluator="random", options=SampleOptions(after=first.slug))
    forms = [SampleForm(project=project, evaluator=name) for name in ("length", "random")]
    assert [len(form.fields["after"].choices) for form in forms] == [3, 1]


def test_a_sample_for_the_first_systems_has_more_outputs_of_them(project, scored):
    """sys-a and sys-b get nearly the same answers, sys-c much lower ones."""
    options = SampleOptions(n=18, batches=2, goal="first")
    first = create_sample_campaign(project=project, user=scored.researcher, evaluator="length", options=options)
    open_campaign(campaign=first, user=scored.researcher, here=True)
    Rating.objects.filter(project=project).delete()
    answer_all(first, scored.annotator, lambda output: 1 + output.pk % 2 + 3 * (output.system.name != "sys-c"))
    second = create_sample_campaign(
        project=project, user=scored.researcher, evaluator="length", options=SampleOptions(n=18, after=first.slug)
    )
    later = Counter(row["system"] for row in second.plan["outputs"])
    assert second.plan["chosen"]["goal"] == "first"
    assert later["sys-c"] < 6 < later["sys-a"]


def test_a_changed_project_begins_a_new_sample(project):
    first = create_sample_campaign(project=project, evaluator="length", options=SampleOptions(n=6))
    Score.objects.filter(score_set__evaluator__slug="length", score_set__project=project).order_by("-pk")[0].delete()
    with pytest.raises(Conflict, match="Begin a new sample"):
        create_sample_campaign(project=project, evaluator="length", options=SampleOptions(after=first.slug))


def test_chosen_judgements_are_weighted_and_recompute(project, scored, tmp_path):
    campaign = create_sample_campaign(
        project=project, user=scored.researcher, evaluator="length", options=SampleOptions(n=15, batches=1)
    )
    open_campaign(campaign=campaign, user=scored.researcher, here=True)
    answer_all(campaign, scored.annotator, lambda output: 1 + output.pk % 5)
    table = json.loads(run("systems", project.slug, "--assist", "length", "--json"))
    assert any("weighted by 1 / chance" in line for line in table["counted"])
    chances = {
        unit.output_a_id: unit.propensity for unit in Unit.objects.filter(campaign=campaign)
    }  # fmt: skip
    (row,) = [row for row in table["rows"] if row["label"] == "sys-a"]
    rated = Rating.objects.filter(project=project, output__system__name="sys-a", aspect__name="quality")
    values: dict[int, list[float]] = {}
    for output, value in rated.values_list("output", "value"):
        values.setdefault(output, []).append(value)
    weight = {output: 1 / chances[output] for output in values if output in chances}
    scale = len(weight) / sum(weight.values())
    expected = np.average(
        [np.mean(own) for own in values.values()], weights=[scale * weight[o] if o in weight else 1 for o in values]
    )
    assert row["assisted"]["human"]["value"] == pytest.approx(expected)
    these = json.loads(run("systems", project.slug, "--assist", "length", "--target", "these-items", "--json"))
    assert "A chosen sample has estimates for items like these only." in these["counted"]
    run("dump", project.slug, str(tmp_path / "out"))
    outcomes = recompute_folder(tmp_path / "out")
    assert all(outcome.is_equal for outcome in outcomes), [str(one.differences or one.problem) for one in outcomes]
    assert any(outcome.exported.get("assist") == "length" for outcome in outcomes)


def test_examples_are_never_of_the_test_part(project, judge_server):
    row = judge(project, name="one", examples=2)
    split = get_split(project)
    assert row.options["split"] == split.key == f"judge-test:{project.slug}"
    assert sum(row.record["groups"].values()) == 32
    for seed in range(20):
        chosen = choose_examples(project, {**row.options, "seed": seed})
        assert not any(split.is_test(one["group"], one["item"]) for one in chosen)


def test_a_recorded_split_stays(project, judge_server):
    row = judge(project, name="one")
    Evaluator.objects.filter(pk=row.pk).update(options={**row.options, "split": "imported"})
    assert get_split(project) == Split("imported")
    assert judge(project, name="two", template="criteria").options["split"] == "imported"


def test_alignment_from_the_report_to_a_new_version(project, scored, judge_server, client):
    """Report, campaign, judgements, a judge with examples from it, a look at the test part, the history."""
    judge(project, name="one")
    client.force_login(scored.researcher)
    shown_first = client.get(reverse("scoring:alignment", args=[project.slug, "one"]))
    page = shown_first.content.decode()
    assert f'<option value="{shown_first.context["aspect"]}" selected>' in page
    assert "not shown" in page
    assert "was shown 0 times" in " ".join(page.split())
    answer = client.post(reverse("scoring:alignment", args=[project.slug, "one"]), {"n": 10, "overlap": 1})
    campaign = Campaign.objects.get(project=project, slug="align-one-1")
    assert answer["Location"] == reverse("annotation:campaign", args=[project.slug, campaign.pk])
    open_campaign(campaign=campaign, user=scored.researcher, here=True)
    answer_all(campaign, scored.annotator, lambda output: 1 + output.pk % 5)
    start = client.get(f"{reverse('scoring:judge', args=[project.slug])}?from=one&examples_from=align-one-1")
    assert start.context["form"].initial["examples_from"] == "align-one-1"
    second = judge(project, name="two", examples=3, examples_from="align-one-1")
    listed = {(row["item"], row["system"]) for row in campaign.plan["outputs"]}
    assert {(row["item"], row["system"]) for row in second.record["examples"]} <= listed
    report = client.post(reverse("scoring:judge-report", args=[project.slug, "two"]))
    shown = report.context["report"]["alpha_with"]
    history = client.get(reverse("api-evaluator-alignment", args=[project.slug, "two"])).json()
    assert history["looks"] == 1
    newest, oldest = history["versions"]
    assert (newest["evaluator"], newest["examples"], newest["examples_from"]) == ("two", 3, "align-one-1")
    assert newest["test"][0]["alpha_with"]["value"] == pytest.approx(shown["value"])
    assert oldest["test"] == []
    assert oldest["development"]["n_outputs"] > 0
    # Reading the history is no look.
    again = client.get(reverse("api-evaluator-alignment", args=[project.slug, "one"])).json()
    assert again["looks"] == 1
    text = run("align", project.slug, "two", "--n", "4")
    assert "The test part was shown 1 times" in text
    assert "align-one-1" not in text
    assert "Campaign: align-two-1" in run("align", project.slug, "two", "--n", "4", "--create")


def test_campaigns_by_api_and_command(project, scored, client):
    client.force_login(scored.researcher)
    names = [project.slug, "length"]
    made = client.post(reverse("api-evaluator-sample", args=names), {"n": 9, "batches": 3}, "application/json")
    assert (made.status_code, made.json()["outputs"]) == (201, 9)
    assert made.json()["chosen"]["batches"] == 3
    made = client.post(reverse("api-evaluator-alignment", args=names), {"n": 5}, "application/json")
    assert (made.status_code, made.json()["chosen"]["reason"]) == (201, "alignment")
    wrong = client.post(reverse("api-evaluator-sample", args=names), {"n": 0}, "application/json")
    assert wrong.status_code == 400
    text = run("sample", project.slug, "length", "--n", "6", "--open")
    assert "6 outputs, batch 1 of 4" in text
    assert Campaign.objects.filter(project=project, state="open", plan__chosen__reason="sample").exists()
    page = client.post(reverse("scoring:sample", args=names), {"n": 6, "after": "sample-length-1"})
    assert page.status_code == 302
    page = client.get(reverse("scoring:sample", args=names)).content.decode()
    assert "sample-length-1-batch-2" in page


def test_scores_of_training_items_are_refused(project):
    ScoreSet.objects.filter(project=project, evaluator__slug="length").update(n_in_training=1)
    with pytest.raises(BadInput, match="training data"):
        create_sample_campaign(project=project, evaluator="length", options=SampleOptions())


def run(*arguments):
    out = StringIO()
    call_command(*arguments, stdout=out)
    return out.getvalue()
