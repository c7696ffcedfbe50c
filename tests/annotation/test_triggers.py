"""The database maintains `Item.judged` on every insert and delete of ratings and comparisons, also concurrently."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection, connections
from django.db.models import Exists, OuterRef, Q

from annotation.models import Aspect, Comparison, Item, Judgement, Output, Rating
from annotation.services.judging import get_next_assignment
from annotation.services.undo import undo_upload
from annotation.services.uploads import lock_promotion
from annotation.triggers import drop_triggers, ensure_triggers, fill, stand
from tests.annotation.services.judging_helpers import open_for, send
from tests.cast import make_cast
from tests.factories import make_items, make_outputs, make_ratings
from tests.taking import COMPARISONS, RATINGS, WHOLE, take_in


def judged() -> set[str]:
    return set(Item.objects.filter(judged=True).values_list("key", flat=True))


def truth() -> set[str]:
    rated = Exists(Rating.objects.filter(output__item=OuterRef("pk")))
    compared = Exists(Comparison.objects.filter(output_a__item=OuterRef("pk")))
    return set(Item.objects.filter(rated | compared).values_list("key", flat=True))


def imports_and_undo(cast) -> None:
    base = {name: WHOLE[name] for name in ("dataset.json", "items.jsonl", "outputs.jsonl")}
    take_in(cast.project, base)
    assert judged() == set()
    first = take_in(cast.project, {"ratings.jsonl": RATINGS[:1]})
    assert judged() == {"i1"}
    second = take_in(cast.project, {"comparisons.jsonl": COMPARISONS, "ratings.jsonl": RATINGS[1:]})
    assert judged() == {"i1", "i2"}
    take_in(cast.project, {"ratings.jsonl": [{**RATINGS[0], "value": 1}]}, replace=True)
    assert judged() == {"i1", "i2"}
    undo_upload(upload=second, user=cast.owner)
    assert judged() == {"i1"} == truth()
    third = take_in(cast.project, {"comparisons.jsonl": COMPARISONS})
    assert first.pk < third.pk
    Rating.objects.all().delete()
    assert judged() == {"i1"} == truth()  # it still has a comparison
    undo_upload(upload=third, user=cast.owner)
    assert judged() == set() == truth()


def many_at_once(cast) -> None:
    """More rows in a single statement than the branch for small statements handles; two raters for the same item; part
    of the rows removed again."""
    items = make_items(cast.project, 40)
    outputs = make_outputs(cast.project, items)
    aspect = Aspect.objects.create(project=cast.project, name="quality", low=1, high=5)
    Rating.objects.bulk_create(
        Rating(project=cast.project, output=output, aspect=aspect, rater=rater, value=3)
        for output in outputs[:30]
        for rater in ("a", "b")
    )
    assert judged() == {item.key for item in items[:30]} == truth()
    Rating.objects.filter(rater="a", output__in=outputs[:20]).delete()
    assert judged() == {item.key for item in items[:30]}
    Rating.objects.filter(output__in=outputs[:25]).delete()
    assert judged() == {item.key for item in items[25:30]} == truth()


def judging_counts(cast) -> None:
    campaign = open_for(cast, items=3)
    turn = get_next_assignment(user=cast.annotator, campaign_id=campaign.pk)
    assert judged() == set()
    send(cast.annotator, campaign, turn.shown.public)
    unit = Judgement.objects.get().assignment.unit
    assert judged() == {unit.item.key} == truth()


@pytest.mark.django_db
@pytest.mark.parametrize("scenario", [imports_and_undo, many_at_once, judging_counts])
def test_sqlite_maintains_judged(cast, scenario):
    scenario(cast)


@pytest.mark.parametrize("scenario", [imports_and_undo, many_at_once, judging_counts])
def test_postgres_maintains_judged(postgres_db, scenario):
    scenario(make_cast())


@pytest.mark.django_db
def test_comparisons_count_for_their_item(cast):
    campaign = open_for(cast, "pairwise", items=2)
    turn = get_next_assignment(user=cast.annotator, campaign_id=campaign.pk)
    send(cast.annotator, campaign, turn.shown.public)
    assert len(judged()) == 1
    assert judged() == truth()


def test_concurrent_judgements_of_one_item_keep_it_judged(postgres_db):
    """16 ratings for the same item from 8 connections, then all are removed while others rate: the flag stays
    correct."""
    cast = make_cast()
    (item,) = make_items(cast.project, 1)
    output = make_outputs(cast.project, [item], ("s",))[0]
    aspect = Aspect.objects.create(project=cast.project, name="quality", low=1, high=5)
    begin = threading.Barrier(9)

    def rate(number: int) -> None:
        try:
            begin.wait(10)
            for k in range(4):
                Rating.objects.create(
                    project=cast.project, output=output, aspect=aspect, rater=f"{number}-{k}", value=3
                )
        finally:
            connections.close_all()

    def remove() -> None:
        try:
            begin.wait(10)
            for _ in range(6):
                with lock_promotion(cast.project, None, alone=True):
                    Rating.objects.filter(project=cast.project)._raw_delete("default")
        finally:
            connections.close_all()

    with ThreadPoolExecutor(9) as pool:
        waiting = [pool.submit(rate, number) for number in range(8)] + [pool.submit(remove)]
        for one in waiting:
            one.result(60)
    item.refresh_from_db()
    assert item.judged == Rating.objects.exists()
    Rating.objects.all().delete()
    item.refresh_from_db()
    assert not item.judged


@pytest.mark.django_db
def test_migrations_restore_lost_triggers(cast):
    """SQLite rebuilds a table for some changes and drops the triggers of the old one."""
    drop_triggers(connection)
    assert not stand(connection)
    make_ratings(cast.project, make_outputs(cast.project, make_items(cast.project, 2), ("s",)))
    assert judged() == set()
    fill(connection)
    ensure_triggers(connection)
    assert stand(connection)
    assert judged() == {"i000", "i001"} == truth()
    Rating.objects.filter(Q(output__item__key="i000")).delete()
    assert judged() == {"i001"}
    assert Output.objects.count() == 2
