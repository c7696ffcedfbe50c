from __future__ import annotations

import pytest

from annotation.models import WritingAttempt
from annotation.selectors.writing import list_my_writing, make_writing_plan
from annotation.selectors.writing_watch import list_grown_sets, watch
from annotation.services.hooks import Candidate
from annotation.services.writing_acts import finish_task
from annotation.services.writing_candidates import remember_candidates
from evalapp.accounts.models import Membership
from evalapp.accounts.roles import Role
from evalapp.accounts.selectors import rater_names
from evalapp.accounts.services import remove_member
from evalapp.common.errors import NotAllowed, NotThere
from tests.cast import join, person
from tests.writing import draft_writing, fill_ports, open_task_view, send, start_writing

pytestmark = pytest.mark.django_db


@pytest.fixture
def fake(monkeypatch):
    return fill_ports(monkeypatch)


def test_figures_shares_and_growth_match_manual_values(cast, fake):
    campaign = start_writing(cast, items=2)
    view = open_task_view(cast.annotator, campaign)
    candidate = remember_candidates(task=view.task, rows=[Candidate("A good reply.", "Question?", 0.5)])[0]
    send(cast.annotator, view, "A good reply.", candidate=candidate, relevant=True, seconds=10)
    send(cast.annotator, view, "A plain one.", seconds=20)
    send(cast.annotator, view, "A good good one.", seconds=30)
    finish_task(user=cast.annotator, public=view.public)
    send(cast.annotator, open_task_view(cast.annotator, campaign), "My good one.", seconds=40)
    found = watch(user=cast.researcher, campaign=campaign)
    assert found.figures == {
        "people": 1, "items": 2, "items_done": 1, "open": 1, "references": 3, "attempts": 4,
        "seconds_per_reference": 100 / 3,
    }  # fmt: skip
    (row,) = found.people
    assert (row.name, row.accepted, row.edited, row.own_texts, row.as_they_are) == ("p-anna", 3, 1, 2, 1)
    assert row.shares == {"accepted": 0.75, "edited": 0.25, "dropped": 0.0}
    assert row.gain.value == pytest.approx(0.125)  # three texts with 0.125 each
    points = [(point.round, point.mean, point.n) for point in found.by_arm["scores"]]
    assert points == [(0, 0.0, 2), (1, 0.125, 2), (2, 0.1875, 2)]  # the finished set keeps its .125
    assert found.by_arm["scores"][2].low is None  # two items are too few for an interval
    assert found.by_person["p-anna"] == found.by_arm["scores"]


def test_former_members_keep_their_rater_names(cast, fake):
    campaign = start_writing(cast, items=1, options={"mode": "rounds"})
    view = open_task_view(cast.annotator, campaign)
    send(cast.annotator, view, "A good one.", candidate=view.candidate.public)
    remove_member(member=Membership.objects.get(project=cast.project, user=cast.annotator), actor=cast.owner)
    found = watch(user=cast.researcher, campaign=campaign)
    assert ([row.name for row in found.people], [*found.by_person]) == (["p-anna"], ["p-anna"])
    assert [row.person for row in list_grown_sets(campaign=campaign)] == ["p-anna"]
    assert rater_names(campaign.project_id)[cast.annotator.pk] == "p-anna"


def test_arms_are_compared_over_shared_items(cast, fake):
    other = person("otto")
    join(cast.project, other, Role.ANNOTATOR)
    campaign = start_writing(cast, items=2, options={"arms": ["scores", "control"]})
    for user in (cast.annotator, other):
        for _ in range(2):
            view = open_task_view(user, campaign)
            send(user, view, "A good one." if view.task.arm == "scores" else "A bad one.")
            finish_task(user=user, public=view.public)
    found = watch(user=cast.viewer, campaign=campaign)
    (row,) = found.comparisons
    assert (row.a, row.b, row.paired) == ("scores", "control", True)
    assert (row.difference.value, row.difference.has_interval, row.difference.n) == (0.25, False, 2)
    assert [line.accepted for line in found.arms] == [2, 2]
    assert found.wire()["comparisons"][0]["difference"]["value"] == 0.25


def test_arms_by_item_are_compared_unpaired(cast, fake):
    campaign = start_writing(cast, items=4, options={"arms": ["scores", "control"], "assign": "item"})
    for _ in range(4):
        view = open_task_view(cast.annotator, campaign)
        send(cast.annotator, view, "A good one." if view.task.arm == "scores" else "A plain one.")
        finish_task(user=cast.annotator, public=view.public)
    (row,) = watch(user=cast.owner, campaign=campaign).comparisons
    assert (row.paired, row.difference.value, row.difference.n) == (False, 0.125, 4)


def test_nothing_written_yet(cast, fake):
    campaign = draft_writing(cast)
    found = watch(user=cast.viewer, campaign=campaign)
    assert (found.figures["attempts"], found.by_arm, found.people) == (0, {}, [])
    assert found.arms[0].gain.note
    with pytest.raises(NotAllowed):
        watch(user=cast.annotator, campaign=campaign)
    with pytest.raises(NotThere):
        watch(user=cast.stranger, campaign=campaign)


def test_texts_without_scores_are_counted_but_not_averaged(cast, fake):
    campaign = start_writing(cast)
    view = open_task_view(cast.annotator, campaign)
    fake.down = True
    send(cast.annotator, view, "Unscored.", unscored=True)
    found = watch(user=cast.owner, campaign=campaign)
    assert (found.people[0].unscored, found.by_arm) == (1, {})
    assert WritingAttempt.objects.get().improved is None


def test_my_campaigns_and_the_plan(cast, fake):
    campaign = start_writing(cast)
    assert [row.goal for row in list_my_writing(user=cast.annotator)] == [2]
    assert list_my_writing(user=cast.viewer) == []
    assert make_writing_plan(campaign)["options"]["target"] == 10
