from __future__ import annotations

import json
from collections import Counter
from itertools import combinations

import pytest

from annotation.models import Aspect, Campaign, Item, Output, Rating, Slot, System, Unit
from annotation.selectors.campaigns import make_campaign_plan
from annotation.selectors.run_results import campaign_gone
from annotation.services import campaigns as services
from annotation.services import judging_plans
from evalapp.accounts.models import Project
from evalapp.common.errors import BadInput, Conflict
from evalapp.common.models import AuditEvent, Run
from evalapp.common.runner import execute_run
from tests.factories import make_items, make_outputs
from tests.taking import ITEMS, OUTPUTS, STORED_OTHERWISE, list_errors, list_named, take_in, written

SYSTEMS = ("sys-a", "sys-b", "sys-c")


def plan(**changes):
    return {"name": "Naturalness", "kind": "likert", "aspects": [{"name": "natural", "low": 1, "high": 6}], **changes}


@pytest.fixture
def project(cast):
    make_outputs(cast.project, make_items(cast.project, 6), SYSTEMS)
    return cast.project


def make(project, cast, **changes):
    return services.create_campaign(project=project, user=cast.researcher, plan=plan(**changes))


def opened(project, cast, **changes):
    return services.open_campaign(campaign=make(project, cast, **changes), user=cast.researcher)


def test_rating_campaign_has_one_unit_per_output_and_k_slots(project, cast):
    campaign = opened(project, cast, overlap=3)
    assert campaign.state == Campaign.State.OPEN
    assert campaign.unit_count == 18
    units = campaign.units.values_list("pk", flat=True)
    assert Counter(campaign.slots.values_list("unit", flat=True)) == dict.fromkeys(units, 3)
    assert set(campaign.slots.values_list("number", flat=True)) == {0, 1, 2}
    assert not campaign.slots.filter(swapped=True).exists()
    verbs = list(AuditEvent.objects.filter(project=project).order_by("pk").values_list("verb", flat=True))
    assert verbs == ["campaign.created", "campaign.opened"]


def test_item_samples_are_fixed_by_the_seed(project, cast):
    first = opened(project, cast, items={"sample": 2}, slug="one")
    second = opened(project, cast, items={"sample": 2}, slug="two")
    chosen = [set(row.units.values_list("item", flat=True)) for row in (first, second)]
    assert len(chosen[0]) == 2
    assert chosen[0] == chosen[1]
    assert first.unit_count == 6


def test_items_by_key_group_search_and_meta(project, cast):
    Item.objects.filter(key="i003").update(meta={"domain": "hotel", "isnull": "x"})
    counts = {
        "keys": opened(project, cast, slug="k", items={"keys": ["i001", "i002"]}).unit_count,
        "groups": opened(project, cast, slug="g", items={"groups": ["g004"]}).unit_count,
        "search": opened(project, cast, slug="s", items={"search": "number 5"}).unit_count,
        "meta": opened(project, cast, slug="m", items={"domain": "hotel"}).unit_count,
        "lookup": opened(project, cast, slug="l", items={"isnull": "x"}).unit_count,
    }
    assert counts == {"keys": 6, "groups": 3, "search": 3, "meta": 3, "lookup": 3}


def test_item_search_covers_visible_text(project, cast):
    Item.objects.filter(key="i003").update(context=['He said "go on".', "Two\nlines"])
    assert opened(project, cast, slug="q", items={"search": 'said "go on"'}).unit_count == 3
    assert opened(project, cast, slug="n", items={"search": "two\nlines"}).unit_count == 3


def test_systems_and_steps_can_be_chosen(project, cast):
    trained = System.objects.create(project=project, name="trained")
    item = Item.objects.first()
    for step in (10, 20, 30):
        Output.objects.create(project=project, item=item, system=trained, step=step, text=f"at {step}")
    assert opened(project, cast, slug="all", systems=["trained"]).unit_count == 3
    last = opened(project, cast, slug="last", systems=["trained"], steps="last")
    assert [unit.output_a.step for unit in last.units.all()] == [30]
    one = opened(project, cast, slug="one", systems=[{"system": "trained", "step": 20}, "sys-a"])
    assert one.unit_count == 1 + 6


def test_pairs_are_balanced_over_systems_and_sides(project, cast):
    campaign = opened(project, cast, kind="pairwise", aspects=["better"], pairs=9, overlap=2)
    assert campaign.unit_count == 9
    pairs = Counter()
    left = Counter()
    for slot in Slot.objects.filter(campaign=campaign).select_related("unit__output_a", "unit__output_b"):
        first, second = slot.unit.output_a.system_id, slot.unit.output_b.system_id
        assert slot.unit.output_a.item_id == slot.unit.output_b.item_id == slot.unit.item_id
        pairs[frozenset((first, second))] += 1
        left[second if slot.swapped else first] += 1
    assert set(pairs.values()) == {6}
    assert len(pairs) == len(list(combinations(SYSTEMS, 2)))
    assert set(left.values()) == {6}


def test_turing_units_pair_an_output_with_a_reference_of_its_item(project, cast):
    campaign = opened(project, cast, kind="turing", aspects=["human"])
    assert campaign.unit_count == 18
    for unit in campaign.units.select_related("reference"):
        assert unit.output_b is None
        assert unit.reference.item_id == unit.item_id
    assert abs(2 * campaign.slots.filter(swapped=True).count() - 18) <= 3


def test_practice_and_control_items_are_not_judged_as_normal_units(project, cast):
    check = {"item": "i000", "system": "sys-a", "expected": {"natural": [1, 2]}, "why": "Because."}
    campaign = opened(project, cast, practice=[check], controls=[{**check, "item": "i001"}])
    assert (campaign.unit_count, campaign.practice_count, campaign.control_count) == (16, 1, 1)
    assert campaign.slots.count() == 16


def test_unknown_names_are_reported_by_field(project, cast):
    with pytest.raises(BadInput) as caught:
        make(project, cast, systems=["sys-a", "nobody"])
    assert [fault.field for fault in caught.value.faults] == ["systems"]
    with pytest.raises(BadInput) as caught:
        make(project, cast, practice=[{"item": "i9", "system": "sys-a", "expected": {"natural": 1}},
                                      {"item": "i001", "system": "x", "expected": {"natural": 1}}])  # fmt: skip
    assert [fault.field for fault in caught.value.faults] == ["practice[0].item", "practice[1].system"]
    assert not Campaign.objects.exists()


def test_scale_must_match_the_project(project, cast):
    aspect = Aspect.objects.create(project=project, name="natural", low=1, high=5)
    output = Output.objects.filter(project=project).first()
    Rating.objects.create(project=project, output=output, aspect=aspect, rater="r", value=2)
    with pytest.raises(BadInput, match="rated from 1 to 5"):
        make(project, cast)


def test_draft_scale_can_be_corrected_while_unused(project, cast):
    campaign = make(project, cast)
    right = {"aspects": [{"name": "natural", "low": 1, "high": 7}]}
    services.update_campaign(campaign=campaign, user=cast.researcher, changes=right)
    assert Aspect.objects.get(name="natural").high == campaign.aspects.get().high == 7
    with pytest.raises(BadInput, match="rated from 1 to 7"):  # the first draft defines it
        make(project, cast, slug="second")


def test_comparison_aspect_gets_its_scale(project, cast):
    Aspect.objects.create(project=project, name="natural")
    make(project, cast)
    assert Aspect.objects.get(name="natural").high == 6


def test_plan_is_returned_unchanged(project, cast):
    given = plan(
        slug="mine",
        overlap=2,
        systems=["sys-a", "sys-b"],
        guidelines="# Look",
        practice=[{"item": "i000", "system": "sys-a", "expected": {"natural": [1, 2]}, "why": "Because."}],
        items={"sample": 3},
    )
    campaign = services.create_campaign(project=project, user=cast.researcher, plan=given)
    found = make_campaign_plan(campaign)
    again = services.create_campaign(project=project, user=cast.researcher, plan={**found, "slug": "copy"})
    assert {**make_campaign_plan(again), "slug": "mine"} == found
    assert found["systems"] == ["sys-a", "sys-b"]
    assert found["practice"][0]["why"] == "Because."


def test_two_campaigns_cannot_share_a_name(project, cast):
    make(project, cast)
    with pytest.raises(Conflict):
        make(project, cast)


def test_a_draft_can_be_changed_in_any_part(project, cast):
    campaign = make(project, cast)
    changed = services.update_campaign(
        campaign=campaign, user=cast.researcher, changes={"overlap": 2, "aspects": ["other"], "name": "New"}
    )
    assert (changed.overlap, changed.name, changed.slug) == (2, "New", "naturalness")
    assert [row.aspect.name for row in changed.aspects.all()] == ["other"]
    assert changed.revision == campaign.revision + 1


@pytest.mark.parametrize("is_open", [False, True])
def test_changing_one_option_keeps_the_others(project, cast, is_open):
    options = {"control_rate": 0.3, "adaptive": True, "adaptive_floor": 0.5}
    make_it = opened if is_open else make
    campaign = make_it(project, cast, kind="pairwise", aspects=["better"], pairs=4, options=options)
    changes = {"options": {"allow_skip": False}}
    changed = services.update_campaign(campaign=campaign, user=cast.researcher, changes=changes)
    assert changed.options == {**campaign.options, "allow_skip": False}
    assert {name: changed.options[name] for name in options} == options


def test_questions_are_fixed_once_open(project, cast):
    campaign = opened(project, cast)
    with pytest.raises(BadInput) as caught:
        services.update_campaign(campaign=campaign, user=cast.researcher, changes={"overlap": 2, "name": "x"})
    assert [fault.field for fault in caught.value.faults] == ["overlap"]
    changed = services.update_campaign(
        campaign=campaign, user=cast.researcher, changes={"guidelines": "Now clearer", "max_per_annotator": 5}
    )
    assert (changed.guidelines, changed.max_per_annotator) == ("Now clearer", 5)
    assert changed.units.count() == 18


def test_state_transitions(project, cast):
    campaign = opened(project, cast)
    with pytest.raises(Conflict):
        services.open_campaign(campaign=campaign, user=cast.researcher)
    with pytest.raises(Conflict):
        services.resume_campaign(campaign=campaign, user=cast.researcher)
    assert services.pause_campaign(campaign=campaign, user=cast.researcher).state == "paused"
    assert services.resume_campaign(campaign=campaign, user=cast.researcher).state == "open"
    closed = services.close_campaign(campaign=campaign, user=cast.researcher)
    assert closed.state == "closed"
    assert closed.closed_at is not None
    with pytest.raises(Conflict):
        services.pause_campaign(campaign=campaign, user=cast.researcher)


def test_empty_selection_is_reported_before_anything_is_created(project, cast):
    campaign = make(project, cast, items={"keys": ["unknown"]})
    with pytest.raises(BadInput, match="nothing to judge"):
        services.open_campaign(campaign=campaign, user=cast.researcher)
    campaign.refresh_from_db()
    assert campaign.state == Campaign.State.DRAFT
    assert not Unit.objects.exists()


def test_large_campaign_is_opened_by_a_worker(project, cast, client, monkeypatch):
    monkeypatch.setattr(judging_plans, "HERE_AT_MOST", 5)
    campaign = make(project, cast)
    waiting = services.open_campaign(campaign=campaign, user=cast.researcher, send=False)
    assert waiting.state == Campaign.State.DRAFT
    run = Run.objects.get(kind="open_campaign")
    assert waiting.opening == run
    assert services.open_campaign(campaign=campaign, user=cast.researcher, send=False).opening == run
    ended = execute_run(run.pk)
    assert ended is not None
    page = f"/projects/{project.slug}/campaigns/{campaign.pk}/"
    assert ended.result == {"campaign": campaign.pk, "units": 18, "slots": 18, "url": page}
    assert ended.state == Run.State.SUCCEEDED
    client.force_login(cast.researcher)
    assert client.get(page).status_code == 200
    assert campaign_gone(ended) == ""
    campaign.refresh_from_db()
    assert campaign.state == Campaign.State.OPEN
    # Repeating the work after a lost worker changes nothing.
    judging_plans.make_units(campaign_id=campaign.pk)
    assert campaign.units.count() == 18
    services.delete_campaign(campaign=campaign, user=cast.researcher)
    assert campaign_gone(ended) == "This campaign was deleted."


def test_second_campaign_on_the_same_units_keeps_raters_apart(project, cast):
    first = opened(project, cast, slug="one")
    second = opened(project, cast, slug="two")
    assert first.rater_suffix == ""
    assert second.rater_suffix == f"@{second.pk}"


def test_only_unjudged_campaigns_can_be_deleted(project, cast):
    campaign = opened(project, cast)
    services.delete_campaign(campaign=campaign, user=cast.researcher)
    assert not Campaign.objects.exists()
    assert not Slot.objects.exists()


def test_plan_states_a_scale_observed_from_ratings(cast):
    """CSV files without dataset.json: values 2 and 5 were seen, people will rate from 1 to 5."""
    ratings = "item,system,rater,aspect,value\ni1,s,r,natural,2\ni2,s,r,natural,5\n"
    files = {"items.jsonl": ITEMS, "outputs.jsonl": OUTPUTS, "ratings.csv": ratings.encode()}
    assert take_in(cast.project, files).state == "done"

    def scaled(low, high, name):
        return make(cast.project, cast, name=name, aspects=[{"name": "natural", "low": low, "high": high}])

    with pytest.raises(BadInput, match=r"from 2 to 5 .* Use a scale that includes these ratings"):
        scaled(3, 5, "Narrow")
    scaled(0, 9, "Given up").delete()
    scaled(1, 5, "Stated")
    aspect = Aspect.objects.get(name="natural")
    assert (aspect.low, aspect.high) == (1, 5)
    with pytest.raises(BadInput, match=r"from 1 to 5 .* Use the same scale"):
        scaled(1, 7, "Another")
    # From now on, uploads no longer widen it and no dataset.json changes it.
    more = take_in(cast.project, {"ratings.csv": ratings.replace(",r,", ",q,").replace("5\n", "6\n").encode()})
    assert list_named(more) == [("ratings.csv:3", "value", {"6", "1", "5"})]
    told = take_in(cast.project, {"dataset.json": {"aspects": [{"name": "natural", "min": 0, "max": 9}]}})
    assert list_named(told) == [("dataset.json", "aspects", {"natural", "1", "5"})]


def test_stated_scale_stays_in_a_project_without_its_campaign(cast, tmp_path):
    """Once, dump and load turned it back into an observed scale, which uploads widened and plans changed."""
    ratings = "item,system,rater,aspect,value\ni1,s,r,natural,2\ni2,s,r,natural,5\n"
    take_in(cast.project, {"items.jsonl": ITEMS, "outputs.jsonl": OUTPUTS, "ratings.csv": ratings.encode()})
    before = written(cast.project, tmp_path / "before")["dataset.json"]
    make(cast.project, cast, aspects=[{"name": "natural", "low": 1, "high": 5}])
    dumped = written(cast.project, tmp_path / "dump")
    assert json.loads(dumped["dataset.json"])["aspects"] == [
        {"name": "natural", "min": 1, "max": 5, "observed": True, "stated": True}
    ]
    # Loading again changes nothing; the earlier dump has the narrower range.
    assert take_in(cast.project, {"dataset.json": dumped["dataset.json"]}).state == "done"
    assert written(cast.project, tmp_path / "again") == dumped
    twin = Project.objects.create(slug="twin", name="twin")
    assert take_in(twin, dumped).state == "done"
    assert written(twin, tmp_path / "twin") == dumped
    more = ratings.replace(",r,", ",q,").replace("5\n", "6\n").encode()
    wider = take_in(twin, {"ratings.csv": more})
    assert list_named(wider) == [("ratings.csv:3", "value", {"6", "1", "5"})]
    assert STORED_OTHERWISE in list_errors(take_in(twin, {"dataset.json": before}))[0]
    with pytest.raises(BadInput, match=r"from 1 to 5 .* Use the same scale"):
        make(twin, cast, aspects=[{"name": "natural", "low": 1, "high": 7}])
    assert make(twin, cast, aspects=[{"name": "natural", "low": 1, "high": 5}]).pk
