"""A project gives the same results on SQLite and PostgreSQL: case-insensitive search in every script, sort orders of
names and optional steps, and values inside `meta`."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.db import connection
from django.test import Client

from annotation.models import Item, Output, Reference, ReferenceSet, System
from annotation.selectors.items import ItemFilter, find_items, get_item_view
from annotation.selectors.search import get_item_page
from annotation.services.campaigns import create_campaign
from annotation.services.campaigns_preview import get_item_texts
from annotation.services.campaigns_units import _texts, select_items
from annotation.services.texts import prepare_search
from evalapp.common.sqlite_lookups import upper
from evalapp.names import natural_key
from tests.cast import Cast, make_cast
from tests.taking import take_in

ROOT = Path(__file__).resolve().parents[3]
#: Key -> text. Keys are in natural order on both databases.
TEXTS = {
    "-y": "Привет, мир", "10": "édith piaf", "2": "GRÜSSE aus Köln", "B": "straße", "Z": "ΟΔΥΣΣΕΎΣ", "_x": "ſtart",
    "a": "İstanbul", "b": "50% off_now", "z": 'she said "Ça va"', "É": "日本語", "é": "😀 smile", "щ": "a\\b\nc",
}  # fmt: skip
#: Search -> keys found in turns, outputs and keys; worked out by hand from the texts above.
SEARCHES: dict[str, list[str]] = {
    "привет": ["-y"], "ПРИВЕТ, МИР": ["-y"], "Édith": ["10"], "ÉDITH": ["10"], "grüsse": ["2"], "GRÜSSE": ["2"],
    "köln": ["2"], "KÖLN": ["2"], "STRAßE": ["B"], "strasse": [], "οδυσσεύσ": ["Z"], "istanbul": [], "İSTANBUL": ["a"],
    "50%": ["b"], "f_n": ["b"], "ça": ["z"], '"Ça': ["z"], "日本": ["É"], "😀": ["é"], "a\\b": ["щ"], "b\nc": ["щ"],
    "piaf": ["10"], "PIAF": ["10"],
}  # fmt: skip


def fill(cast: Cast, through_upload: bool) -> None:
    """Creates the rows through models and through an upload, which writes JSON differently."""
    if through_upload:
        items = [{"id": key, "context": [text], "references": ["r"], "meta": {"n": 1}} for key, text in TEXTS.items()]
        outputs = [{"item": key, "system": "s", "text": text} for key, text in TEXTS.items()]
        take_in(cast.project, {"items.jsonl": items, "outputs.jsonl": outputs})
        return
    system = System.objects.create(project=cast.project, name="s")
    for key, text in TEXTS.items():
        item = Item.objects.create(project=cast.project, key=key, context=[text], source=None, group=key)
        Output.objects.create(project=cast.project, item=item, system=system, text=text)


def keys(rows: Any) -> list[str]:
    return [row.key for row in rows]


def search_everywhere(cast: Cast) -> None:
    for words, expected in SEARCHES.items():
        for scope in ("context", "output"):
            wanted = ItemFilter(q=words, scope=scope)
            assert keys(find_items(cast.project, wanted).order_by("order_key")) == expected, (words, scope)
            assert keys(get_item_page(cast.project, wanted).rows) == expected, (words, scope)
        plan = {"name": "n", "kind": "likert", "aspects": ["a"], "items": {"search": words}}
        campaign = create_campaign(project=cast.project, user=cast.researcher, plan={**plan, "slug": "s"})
        found = sorted(keys(select_items(campaign)))
        assert found == sorted({*expected, *(key for key in TEXTS if upper(words) in upper(key))}), words
        campaign.delete()
    for part, expected in {"É": ["É", "é"], "é": ["É", "é"], "Щ": ["щ"], "A": ["a"], "-Y": ["-y"]}.items():
        assert keys(find_items(cast.project, ItemFilter(q=part, scope="id")).order_by("order_key")) == expected, part


def orders(cast: Cast) -> None:
    """Names are in natural order and a missing step comes first, on pages, in plans and in the API."""
    project = cast.project
    item = Item.objects.create(project=project, key="i", context=["c"], group="i")
    for name in sorted(TEXTS):
        system = System.objects.create(project=project, name=name)
        for step in (None, 200, 100) if name == "B" else (None,):
            Output.objects.create(project=project, item=item, system=system, step=step, text=f"{name} {step}")
        named = ReferenceSet.objects.create(project=project, name=f"s{name}")
        Reference.objects.create(set=named, item=item, text="t", position=0)
    names = sorted(TEXTS, key=natural_key)
    wanted = [(name, step) for name in names for step in ((None, 100, 200) if name == "B" else (None,))]
    view = get_item_view(item)
    assert [(row.output.system.name, row.output.step) for row in view.outputs] == wanted
    assert [name for name, _ in view.references] == sorted((f"s{name}" for name in names), key=natural_key)
    campaign = create_campaign(
        project=project, user=cast.researcher, plan={"name": "n", "kind": "likert", "aspects": ["a"]}
    )
    assert [(row.system.name, row.step) for row in get_item_texts(campaign, item)[0]] == wanted
    in_order_of_rows = sorted(wanted, key=lambda pair: (pair[0], pair[1] or 0))
    numbers = {row.pk: row.name for row in System.objects.filter(project=project)}
    assert [(numbers[row.system], row.step) for row in _texts(campaign)] == in_order_of_rows
    client = Client()
    client.force_login(cast.researcher)
    rows = client.get("/api/v1/projects/alpha/systems/").json()["results"]
    assert [row["name"] for row in rows] == names


def filter_meta(cast: Cast) -> None:
    """`key=value` on the page matches the value as JSON writes it, whatever its type."""
    values = {"text": "food", "whole": 3, "real": 0.5, "yes": True, "no": False, "none": None, "list": [1, "a"]}
    Item.objects.create(project=cast.project, key="m", context=["c"], group="m", meta=values)
    for asked, found in {
        "text=food": 1, "text=Food": 0, "whole=3": 1, "real=0.5": 1, "yes=true": 1, "yes=1": 0, "no=false": 1,
        "no=0": 0, "none=null": 1, "text=null": 0, "absent=1": 0, "absent=null": 0,
    }.items():  # fmt: skip
        assert find_items(cast.project, ItemFilter(meta=asked)).count() == found, (connection.vendor, asked)


@pytest.mark.django_db
@pytest.mark.parametrize("through_upload", [False, True])
def test_searches_on_sqlite(cast, through_upload):
    fill(cast, through_upload)
    search_everywhere(cast)
    prepare_search(project=cast.project)
    search_everywhere(cast)


@pytest.mark.parametrize("through_upload", [False, True])
def test_searches_on_postgres(postgres_db, through_upload):
    cast = make_cast()
    fill(cast, through_upload)
    search_everywhere(cast)
    prepare_search(project=cast.project)
    search_everywhere(cast)


@pytest.mark.django_db
def test_orders_and_meta_on_sqlite(cast):
    orders(cast)
    filter_meta(cast)


def test_orders_and_meta_on_postgres(postgres_db):
    cast = make_cast()
    orders(cast)
    filter_meta(cast)


def test_capitals_are_mapped_letter_by_letter():
    """Unicode 15.0, UnicodeData.txt (simple uppercase mapping): ß has none, ŉ has none, ǆ becomes Ǆ."""
    for text, capitals in {"straße": "STRAßE", "ŉ": "ŉ", "ǆ": "Ǆ", "ﬁ": "ﬁ", "привет": "ПРИВЕТ"}.items():
        assert upper(text) == capitals
    assert upper(r"[\"\u043f\u0440\"]") == r"[\"ПР\"]"
    assert upper(r"\ud83d\ude00 \ud83d") == r"😀 \UD83D"
    assert upper(None) is None


#: Nullable columns in text sort order: why they contain no null.
WITHOUT_NULLS = {
    "closed_at": "only of tasks that are closed", "scored_at": "only of sets that are scored",
    "finished_at": "only of runs and uploads that have ended", "revision": "only of parts that are in the index",
    "position": "null in the audit alone, where rows without one are left out",
    "number": "null in faults of uploads alone, which are not sorted by it",
    "output": "null in ratings of dialogues alone; sorted are ratings of outputs",
    "system": "null in dialogues alone; sorted are outputs",
}  # fmt: skip


def test_sorting_nullable_columns_states_null_order():
    """PostgreSQL sorts nulls last, SQLite first: `F(name).asc(nulls_first=True)` makes it explicit."""
    ours = ("accounts", "common", "annotation", "retrieval", "scoring")
    models = [model for model in apps.get_models() if model._meta.app_label in ours]
    fields = [field for model in models for field in model._meta.concrete_fields]
    nullable = {field.name for field in fields if field.null}
    assert "step" in nullable
    found = set()
    for room in ("evalapp", "annotation", "retrieval", "scoring"):
        for path in (ROOT / room).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "order_by":
                    names = [str(part.value) for part in node.args if isinstance(part, ast.Constant)]
                    found |= {(path.name, name) for name in names if name.lstrip("-").split("__")[-1] in nullable}
    assert {(path, name) for path, name in found if name.lstrip("-").split("__")[-1] not in WITHOUT_NULLS} == set()
