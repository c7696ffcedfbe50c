"""Rounds: the same candidate for a whole group, one set each, and no member ahead of the active ones."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

import pytest
from django.utils import timezone

from annotation.models import Reference, ReferenceSet, WritingCandidate, WritingTask
from annotation.selectors.writing_watch import watch
from annotation.services.writing_acts import finish_task, skip_task
from annotation.services.writing_answers import RoundConflict
from annotation.services.writing_attempts import drop_candidate
from annotation.services.writing_view import get_task_view
from evalapp.accounts.roles import Role
from evalapp.common.errors import BadInput
from tests.cast import join, person
from tests.writing import fill_ports, open_task_view, send, start_writing

pytestmark = pytest.mark.django_db
ROUNDS = {"mode": "rounds", "group_size": 2}


@pytest.fixture
def fake(monkeypatch):
    return fill_ports(monkeypatch)


@pytest.fixture
def people(cast):
    """Anna and three more annotators."""
    more = [person(name) for name in ("ben", "cleo", "dora")]
    for user in more:
        join(cast.project, user, Role.ANNOTATOR)
    return [cast.annotator, *more]


def improve(user, view):
    """Turns the round's candidate into a good one."""
    return send(user, view, f"A good thing in round {view.round}.", candidate=view.candidate.public)


def drop(user, view):
    current = get_task_view(user=user, public=view.public).candidate.public
    return drop_candidate(user=user, public=view.public, submission=uuid4(), candidate=current)


def test_group_sees_the_same_candidate_and_advances_together(cast, fake, people):
    anna, ben = people[:2]
    campaign = start_writing(cast, items=1, options=ROUNDS)
    first, other = open_task_view(anna, campaign), open_task_view(ben, campaign)
    assert first.candidate == other.candidate
    assert (first.rounds, first.round, first.shows_candidates, first.allows_own_text) == (3, 0, False, False)
    with pytest.raises(BadInput, match="Give the id of the candidate"):
        send(anna, first, "A good one.")
    after = improve(anna, first).view
    assert (after.state, after.waiting_for, after.candidate) == ("wait", 1, None)
    with pytest.raises(RoundConflict, match="still in the previous round"):
        send(anna, first, "A good one.")
    drop(ben, other)
    both = [get_task_view(user=user, public=view.public) for user, view in ((anna, first), (ben, other))]
    assert [view.state for view in both] == ["write", "write"]
    assert both[0].candidate == both[1].candidate != first.candidate
    with pytest.raises(RoundConflict, match="round has changed"):
        send(anna, first, "A good one.", candidate=first.candidate.public)


def test_every_annotator_grows_their_own_set_from_the_same_start(cast, fake, people):
    anna, ben = people[:2]
    campaign = start_writing(cast, items=1, references=2, options=ROUNDS)
    start = list(Reference.objects.filter(set__name="original").order_by("position").values_list("text", flat=True))
    views = [open_task_view(anna, campaign)]
    improve(anna, views[0])
    # References added after the opening are in no start set.
    original = ReferenceSet.objects.get(name="original")
    Reference.objects.create(set=original, item=views[0].task.item, position=2, text="Another one.")
    views.append(open_task_view(ben, campaign))
    names = ["more-replies-p-anna", "more-replies-p-ben"]
    sets = {row.name: row for row in ReferenceSet.objects.filter(name__in=names)}
    found = [Reference.objects.filter(set=sets[name]).order_by("position") for name in names]
    texts = [list(rows.values_list("text", flat=True)) for rows in found]
    assert texts[0][:2] == texts[1] == start
    assert len(texts[0]) == 3
    assert sets[names[0]].meta["annotator"] == "p-anna"
    assert get_task_view(user=ben, public=views[1].public).references[-1].text == start[-1]  # none of Anna's texts


def test_groups_have_arms_and_do_not_wait_for_each_other(cast, fake, people):
    campaign = start_writing(cast, items=1, options={**ROUNDS, "arms": ["scores", "control"]})
    views = [open_task_view(user, campaign) for user in people]
    arms = [view.task.arm for view in views]
    assert arms[0] == arms[1] != arms[2] == arms[3]
    assert len({view.candidate.text for view in views}) == 1  # the same candidates for both groups
    after = improve(people[0], views[0]).view
    assert after.waiting_for == 1
    improve(people[2], views[2])
    assert improve(people[3], views[3]).view.state == "write"


def test_absent_member_is_skipped_and_loses_nothing(cast, fake, people):
    anna, ben = people[:2]
    campaign = start_writing(cast, items=1, options=ROUNDS)
    first, other = open_task_view(anna, campaign), open_task_view(ben, campaign)
    assert improve(anna, first).view.state == "wait"
    WritingTask.objects.filter(public=other.public).update(lease_until=timezone.now() - timedelta(seconds=1))
    second = get_task_view(user=anna, public=first.public)
    assert (second.state, second.round) == ("write", 1)
    improve(anna, second)
    back = get_task_view(user=ben, public=other.public)  # returns: the lease is renewed, and he is at his place
    assert (back.state, back.round, back.candidate) == ("write", 0, other.candidate)
    assert get_task_view(user=anna, public=first.public).state == "write"  # members who are behind are not waited for
    assert improve(ben, back).view.state == "write"


def test_item_ends_with_its_candidates_or_its_target(cast, fake, people):
    anna, ben = people[:2]
    campaign = start_writing(cast, items=2, options={**ROUNDS, "target": 3})
    anna_first, ben_first = open_task_view(anna, campaign), open_task_view(ben, campaign)
    assert anna_first.task.unit_id == ben_first.task.unit_id
    for _ in range(2):
        improve(anna, get_task_view(user=anna, public=anna_first.public))
        drop(ben, ben_first)
    ended = get_task_view(user=anna, public=anna_first.public)
    assert (ended.state, ended.task.why) == ("done", "full")
    assert open_task_view(anna, campaign).state == "wait"  # all start the next item together
    last = drop(ben, ben_first)
    assert (last.view.state, last.view.task.why) == ("done", "empty")
    assert open_task_view(anna, campaign).candidate == open_task_view(ben, campaign).candidate is not None


def test_nobody_waits_for_members_who_end_or_skip_an_item(cast, fake, people):
    anna, ben = people[:2]
    campaign = start_writing(cast, items=1, options=ROUNDS)
    first, other = open_task_view(anna, campaign), open_task_view(ben, campaign)
    improve(anna, first)
    skip_task(user=ben, public=other.public)
    assert get_task_view(user=anna, public=first.public).state == "write"
    assert finish_task(user=anna, public=first.public).state == "done"


def test_without_a_corpus_the_page_explains_and_retries(cast, fake, people):
    campaign = start_writing(cast, items=1, options=ROUNDS)
    fake.no_candidates = True
    view = open_task_view(cast.annotator, campaign)
    assert (view.candidate, view.note) == (None, "The corpus is being built.")
    with pytest.raises(RoundConflict):
        send(cast.annotator, view, "A good one.")
    fake.no_candidates = False
    assert get_task_view(user=cast.annotator, public=view.public).candidate is not None
    assert WritingCandidate.objects.filter(task=None).count() == 3


def test_watch_page_counts_by_round(cast, fake, people):
    anna, ben = people[:2]
    campaign = start_writing(cast, items=1, options=ROUNDS)
    views = [open_task_view(user, campaign) for user in (anna, ben)]
    improve(anna, views[0])
    drop(ben, views[1])
    drop(anna, views[0])
    improve(ben, get_task_view(user=ben, public=views[1].public))
    found = watch(user=cast.researcher, campaign=campaign)
    growth = {name: [(point.round, point.mean) for point in points] for name, points in found.by_person.items()}
    # Anna's text came in the first round; Ben, who discarded that candidate, added his in the second.
    assert growth == {"p-anna": [(0, 0.0), (1, 0.125)], "p-ben": [(0, 0.0), (1, 0.0), (2, 0.125)]}
    assert [(point.round, point.mean, point.n) for point in found.by_arm["scores"]] == [
        (0, 0.0, 2), (1, 0.0625, 2), (2, 0.125, 2),
    ]  # fmt: skip
