"""A search through text blocks finds the same rows as a search row by row: in every scope, on every page, forwards and
backwards, and after every change of the texts."""

from __future__ import annotations

import random

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from annotation.models import Item, Output, System, TextBlock
from annotation.selectors.items import ItemFilter, find_items
from annotation.selectors.search import get_item_page
from annotation.services import texts
from annotation.services.texts import forget_texts, prepare_search
from annotation.services.undo import undo_upload
from evalapp.common.models import Run
from evalapp.names import natural_key
from tests.cast import make_cast
from tests.taking import take_in

WORDS = [
    "tea",
    "Tee",
    "straße",
    "ÄRGER",
    'a "quote"',
    "50%",
    "under_score",
    "back\\slash",
    "line\nbreak",
    "İstanbul",
    "Привет",
    "Édith",
    "😀",
]
QUERIES = [
    "tea",
    "TEE",
    "straße",
    "ärger",
    'A "quote',
    "50%",
    "_",
    "\\",
    "k\nb",
    "nothing",
    "STRASSE",
    "İst",
    "a",
    "9",
    "привет",
    "ПРИВЕТ",
    "édith",
    "ÉDITH",
    "😀",
]


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(texts, "BLOCK", 4)


def fill(project, n: int = 30) -> None:
    draw = random.Random(13)
    systems = [System.objects.create(project=project, name=name) for name in ("s", "t")]
    for number in range(n):
        said = [" ".join(draw.sample(WORDS, 2)), f"turn {number}"]
        source = draw.choice([None, draw.choice(WORDS)])
        # Names whose order differs between databases and Python: capitals, hyphens and umlauts.
        key = f"{draw.choice(['a', 'B', 'ä', 'b-', 'b'])}{number:02d}"
        item = Item.objects.create(project=project, key=key, context=said, source=source, group=key)
        for system in systems[: draw.randrange(3)]:
            Output.objects.create(project=project, item=item, system=system, text=draw.choice(WORDS) + f" {number}")


def every_page(project, wanted: ItemFilter, size: int) -> list[str]:
    """Keys in order; paging backwards gives the same pages."""
    pages, cursor = [], ""
    while True:
        page = get_item_page(project, wanted, cursor=cursor, size=size)
        pages.append([item.key for item in page.rows])
        if page.next is None:
            break
        cursor = page.next
    back = []
    while page.previous is not None:
        page = get_item_page(project, wanted, cursor=page.previous, size=size)
        back.insert(0, [item.key for item in page.rows])
    assert back in (pages[:-1], [*pages[:-1], []])
    return [key for page in pages for key in page]


def compare(project) -> int:
    found = 0
    for scope in ("context", "output"):
        for query in QUERIES:
            wanted = ItemFilter(q=query, scope=scope)
            expected = sorted(find_items(project, wanted).values_list("key", flat=True), key=natural_key)
            size = 5 if len(query) > 2 else 50
            assert every_page(project, wanted, size) == expected, (scope, query)
            found += len(expected)
    return found


def scenario(cast) -> None:
    fill(cast.project)
    fill(cast.foreign, 10)
    before = compare(cast.project)  # without blocks
    assert prepare_search(project=cast.project) >= 7
    assert not TextBlock.objects.filter(contexts=None).exists()
    assert compare(cast.project) == before > 50
    # new items among the old, new outputs of old ones
    first = Item.objects.filter(project=cast.project).order_by("order_key").first()
    rows = {
        "items.jsonl": [{"id": f"a{n:02d}x", "context": ["tea for nine"], "references": []} for n in range(30)],
        "outputs.jsonl": [{"item": first.key, "system": "new", "text": "ärger with tea", "step": None}],
    }
    upload = take_in(cast.project, rows)
    assert TextBlock.objects.filter(contexts=None).exists()
    changed = compare(cast.project)
    assert changed > before
    prepare_search(project=cast.project)
    assert compare(cast.project) == changed
    # replaced
    again = take_in(cast.project, {"outputs.jsonl": [{**rows["outputs.jsonl"][0], "text": "50% off"}]}, replace=True)
    assert first.key in every_page(cast.project, ItemFilter(q="50% off", scope="output"), 50)
    prepare_search(project=cast.project)
    assert first.key in every_page(cast.project, ItemFilter(q="50% OFF", scope="output"), 50)
    # and restored
    undo_upload(upload=again, user=cast.owner)
    assert every_page(cast.project, ItemFilter(q="50% off", scope="output"), 50) == []
    prepare_search(project=cast.project)
    undo_upload(upload=upload, user=cast.owner)
    assert compare(cast.project) == before
    prepare_search(project=cast.project)
    assert compare(cast.project) == before


@pytest.mark.django_db
def test_sqlite_finds_the_same_rows(cast):
    scenario(cast)


def test_postgres_finds_the_same_rows(postgres_db):
    scenario(make_cast())


@pytest.mark.django_db
def test_search_needs_few_queries(cast):
    fill(cast.project)
    prepare_search(project=cast.project)
    for query in ("tea", "nothing", "a"):
        with CaptureQueriesContext(
            connection,
        ) as queries:
            get_item_page(cast.project, ItemFilter(q=query), size=50)
        assert len(queries) <= 4


@pytest.mark.django_db
def test_only_blocks_of_changed_items_are_rebuilt(cast):
    fill(cast.project)
    prepare_search(project=cast.project)
    key = Item.objects.filter(project=cast.project).order_by("order_key")[20].key
    forget_texts(project=cast.project, keys=[key])
    assert TextBlock.objects.filter(contexts=None).count() == 1
    assert prepare_search(project=cast.project) == 1
    forget_texts(project=cast.foreign)
    assert not TextBlock.objects.filter(contexts=None).exists()


@pytest.mark.django_db(transaction=True)
def test_only_large_projects_are_prepared_after_import(cast, monkeypatch):
    monkeypatch.setattr(texts, "LARGE", 5)
    few = [{"id": f"i{n}", "context": ["x"], "references": []} for n in range(5)]
    take_in(cast.project, {"items.jsonl": few})
    assert not Run.objects.filter(kind="search").exists()
    take_in(cast.project, {"items.jsonl": [{"id": "i9", "context": ["y"], "references": []}]})
    run = Run.objects.get(kind="search")
    from evalapp.common.runner import execute_run

    done = execute_run(run.pk)
    assert done is not None
    assert done.state == Run.State.SUCCEEDED
    assert TextBlock.objects.filter(project=cast.project).exclude(contexts=None).exists()
