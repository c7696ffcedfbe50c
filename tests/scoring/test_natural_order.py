"""Every list of items is in natural order of ids, on both databases: q2 comes before q10 on every page, in the API, in
exports and in searches (FAULTS F2). The same holds for lists of systems and dialogues."""

from __future__ import annotations

import ast
import csv
import io
import random
import re
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.db import IntegrityError, connection, transaction
from django.test import Client
from django.urls import reverse
from hypothesis import given
from hypothesis import strategies as st

from annotation.exporters import canonical
from annotation.models import Item, Output, Reference, ReferenceSet, System
from annotation.models.ordered import NaturalOrder
from annotation.selectors.items import ItemFilter, find_neighbours
from annotation.selectors.search import get_item_page
from annotation.services import texts
from annotation.services.campaigns import create_campaign, create_writing, open_campaign
from annotation.services.campaigns_preview import preview_assignment
from annotation.services.texts import prepare_search
from evalapp.common.pagination import WRONG_CURSOR, _encode
from evalapp.common.runner import execute_run
from evalapp.names import is_natural_key, natural_key
from scoring.forms.fields import list_reference_sets
from scoring.models import Evaluator, ScoreSet
from scoring.selectors.datasets import build_dataset
from scoring.selectors.exports import rows as exported_scores
from scoring.selectors.leaderboards import list_known
from scoring.selectors.reference_sets import compare_sets, difference_page, get_set, reference_rows
from scoring.selectors.reference_sets import item_page as page_of_set
from scoring.selectors.reports import reportable
from scoring.selectors.steps import choose_evaluators
from scoring.services.scores import apply_evaluator
from scoring.views.combining import combinable
from tests.cast import Cast, make_cast
from tests.taking import take_in

ROOT = Path(__file__).resolve().parents[2]
#: In natural order, sorted by hand: numbers by value, fewer leading zeros first, everything else by code point.
KEYS = [
    "9", "10", "Q3", "q", "q1", "q2", "q02", "q2b10", "q10", "q010", "q10a", "q-1", "x 1-2", "x 1-10", "x 2-1", "é1",
    "é10", "日2", "日10",
]  # fmt: skip
SYSTEMS = ["m1", "m2", "m10"]


def natural_parts(name: str) -> tuple[Any, ...]:
    """An independent definition of the order: alternating texts and numbers; then the leading zeros of each number,
    then the name."""
    parts = re.split(r"([0-9]+)", name)
    runs = parts[1::2]
    values = tuple(int(part) if place % 2 else part for place, part in enumerate(parts))
    return values, tuple(len(run) - len(str(int(run))) for run in runs), name


# ---- the key ------------------------------------------------------------------------------------------------


def test_keys_are_in_order():
    assert sorted(random.Random(4).sample(KEYS, len(KEYS)), key=natural_key) == KEYS
    assert sorted(KEYS, key=natural_parts) == KEYS


#: Short names from few letters often coincide; names in old data may contain control characters.
names = st.text(st.sampled_from("001129aab-_ é日😀\x01\x02\x03\x04\x7f"), max_size=12) | st.text(
    st.characters(exclude_characters="\0"), max_size=20
)


@given(st.lists(names, max_size=8))
def test_code_points_and_bytes_of_the_key_give_the_natural_order(found):
    expected = sorted(found, key=natural_parts)
    assert sorted(found, key=natural_key) == expected
    storable = [name for name in found if name.encode("utf-8", "ignore").decode() == name]
    as_bytes = sorted(storable, key=lambda name: natural_key(name).encode())
    assert as_bytes == sorted(storable, key=natural_parts)
    assert len({natural_key(name) for name in found}) == len(set(found))
    assert all(is_natural_key(natural_key(name)) for name in found)


def test_names_with_numbers_differ_from_their_keys():
    """So a cursor that an earlier version built from a name is refused instead of read as a position in this order."""
    assert [is_natural_key(name) for name in ("q10", "10", "é1a", "q", "", "q\x02")] == [
        False, False, False, True, True, False,
    ]  # fmt: skip


# ---- writing the key ----------------------------------------------------------------------------------------


def ordered_models() -> dict[type, NaturalOrder]:
    found = {}
    for model in apps.get_models():
        for field in model._meta.concrete_fields:
            if isinstance(field, NaturalOrder) and field.source:
                found[model] = field
    return found


def test_items_systems_and_dialogues_have_the_column():
    assert {model.__name__: field.source for model, field in ordered_models().items()} == {
        "Item": "key", "System": "name", "Dialogue": "key",
    }  # fmt: skip


def same_keys() -> int:
    """Checks that every row of the models has the key of its name."""
    count = 0
    for model, field in ordered_models().items():
        for name, key in model._base_manager.values_list(field.source, field.attname):
            assert key == natural_key(name), (model, name)
            count += 1
    return count


def refuse_rows_without_it(project: Any) -> None:
    for model, field in ordered_models().items():
        columns = [f.column for f in model._meta.concrete_fields if not f.primary_key and f.column != field.column]
        first = model._base_manager.filter(project=project).values_list("pk", flat=True)[0]
        chosen = ", ".join("'new'" if name == field.source else f'"{name}"' for name in columns)
        listed = ", ".join(f'"{name}"' for name in columns)
        table = model._meta.db_table
        with pytest.raises(IntegrityError, match="order_key"), transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(f'INSERT INTO "{table}" ({listed}) SELECT {chosen} FROM "{table}" WHERE id = {first}')


# ---- every list ---------------------------------------------------------------------------------------------


def fill(cast: Cast) -> None:
    """Items, systems and dialogues uploaded in mixed order; two items and a system created through the models;
    scores."""
    shuffled = random.Random(7).sample(KEYS, len(KEYS))
    tables: dict[str, Any] = {
        "systems.jsonl": [{"id": name} for name in ("m10", "m2", "m1")],
        "items.jsonl": [{"id": key, "context": ["said", key], "references": ["r", "s"]} for key in shuffled[:-2]],
        "outputs.jsonl": [
            {"item": key, "system": name, "text": f"{key} text", "step": step}
            for key in shuffled[:-2]
            for name, step in (("m10", 10), ("m10", 9), ("m2", None), ("m1", None))
        ],
        "ratings.jsonl": [
            {"item": key, "system": "m2", "rater": "r1", "aspect": "quality", "value": 3} for key in shuffled[:-2]
        ],
        "comparisons.jsonl": [
            {"item": key, "system_a": "m2", "system_b": "m1", "rater": "r1", "aspect": "better", "verdict": "a"}
            for key in shuffled[:-2]
        ],
        "dialogues.jsonl": [{"id": key, "turns": ["a", "b"], "system": "m1"} for key in shuffled],
    }
    assert take_in(cast.project, tables).state == "done"
    original = ReferenceSet.objects.get(project=cast.project, name="original")
    for key in shuffled[-2:]:
        item = Item.objects.create(project=cast.project, key=key, context=["said", key], group=key)
        Reference.objects.create(set=original, item=item, position=0, text="r")
        for system in System.objects.filter(project=cast.project).order_by("pk"):
            Output.objects.create(project=cast.project, item=item, system=system, text=f"{key} text")
    other = ReferenceSet.objects.create(project=cast.project, name="other")
    for item in Item.objects.filter(project=cast.project).order_by("pk"):
        Reference.objects.create(set=other, item=item, position=0, text="t")
    run = execute_run(apply_evaluator(project=cast.project, evaluator="length", send=False).pk)
    assert run.state == "succeeded", run.error


def once(found: Any) -> list[str]:
    """Names in order of first appearance, without repetitions."""
    rows = list(found)
    names = list(dict.fromkeys(rows))
    assert len(names) == sum(1 for a, b in zip([None, *rows], rows, strict=False) if a != b), "not side by side"
    return names


def every_page(fetch: Any) -> list[str]:
    """Keys of all pages forwards; backwards they are the same."""
    pages, page = [], fetch("")
    pages.append([item.key for item in page.rows])
    while page.next:
        page = fetch(page.next)
        pages.append([item.key for item in page.rows])
    back = []
    while page.previous:
        page = fetch(page.previous)
        back.insert(0, [item.key for item in page.rows])
    assert back == pages[:-1]
    return [key for page in pages for key in page]


def ask_lists(cast: Cast) -> None:
    project = cast.project
    for size in (1, 3, 50):
        assert every_page(lambda cursor, n=size: get_item_page(project, ItemFilter(), cursor=cursor, size=n)) == KEYS
    filters = [
        ItemFilter(q="said"), ItemFilter(q="text", scope="output"), ItemFilter(q="q", scope="id"),
        ItemFilter(system="m2"), ItemFilter(rated="yes"), ItemFilter(rated="no"), ItemFilter(q="said", rated="yes"),
    ]  # fmt: skip
    for wanted in filters:
        found = every_page(lambda cursor, w=wanted: get_item_page(project, w, cursor=cursor, size=2))
        assert found == [key for key in KEYS if key in found], wanted
        assert len(found) > 1
    items = {item.key: item for item in Item.objects.filter(project=project)}
    numbers = [items[key].pk for key in KEYS]
    for place, key in enumerate(KEYS):
        after = numbers[place + 1] if place + 1 < len(KEYS) else None
        assert find_neighbours(items[key]) == (numbers[place - 1] if place else None, after)
    assert every_page(lambda cursor: page_of_set(get_set(project, "other").set, cursor=cursor)[0]) == KEYS
    found = compare_sets(project, "original", "other")
    assert every_page(lambda cursor: difference_page(found, cursor=cursor)[0]) == KEYS
    assert once(row["item"] for row in reference_rows(get_set(project, "other").set)) == KEYS


def ask_pages(cast: Cast) -> None:
    client = Client()
    client.force_login(cast.researcher)
    address = reverse("annotation:item-list", args=["alpha"])
    assert [item.key for item, _ in client.get(address).context["rows"]] == KEYS
    for old in (_encode([50], False), _encode(["q10"], False), _encode([5, 5], False)):
        for query in ("", "&q=said"):
            answer = client.get(f"{address}?cursor={old}{query}")
            assert answer.status_code == 400
            assert str(WRONG_CURSOR) in answer.content.decode()
    plan = {"name": "n", "kind": "likert", "aspects": ["quality"]}
    campaign = create_campaign(project=cast.project, user=cast.researcher, plan=plan)
    outputs = Output.objects.filter(project=cast.project).count()
    shown = [preview_assignment(campaign, number) for number in range(outputs + 1)]
    assert shown.pop() is None
    assert once(row["texts"][0].removesuffix(" text") for row in shown) == KEYS
    checks = client.get(reverse("annotation:campaign-checks", args=["alpha", campaign.pk]) + "?q=said")
    assert [item.key for item in checks.context["matches"]] == KEYS
    open_campaign(campaign=campaign, user=cast.researcher)
    address = reverse("annotation:campaign-units", args=["alpha", campaign.pk])
    units, page = [], client.get(address).context["page"]
    while True:
        units += page.rows
        if not page.next:
            break
        page = client.get(f"{address}?cursor={page.next}").context["page"]
    assert once(unit.item.key for unit in units) == KEYS
    assert len(units) == outputs
    written = create_writing(project=cast.project, user=cast.researcher, plan={
        "name": "w", "kind": "constraint", "options": {"constraint": "avoid-original-words"},
    })  # fmt: skip
    address = reverse("annotation:writing-preview", args=["alpha", written.pk])
    desks = [client.get(f"{address}?item={number}").context["view"] for number in range(len(KEYS))]
    assert [desk.context[1] for desk in desks] == KEYS
    scores = client.get(reverse("scoring:scores-csv", args=["alpha", "length"]))
    rows = list(csv.DictReader(io.StringIO(b"".join(scores.streaming_content).decode())))
    assert once(row["item"].lstrip("'") for row in rows) == KEYS
    assert [row["system"] for row in rows[:4]] == ["m1", "m2", "m10", "m10"]


def ask_api(cast: Cast) -> None:
    client = Client()
    client.force_login(cast.researcher)

    def rows(name: str) -> list[dict[str, Any]]:
        found, address = [], f"/api/v1/projects/alpha/{name}/?limit=3"
        while address:
            answer = client.get(address).json()
            found += answer["results"]
            address = answer["next"]
        return found

    assert [row["key"] for row in rows("items")] == KEYS
    assert [row["key"] for row in rows("dialogues")] == KEYS
    assert [row["name"] for row in rows("systems")] == SYSTEMS
    outputs = rows("outputs")
    assert once(row["item"] for row in outputs) == KEYS
    for key in KEYS:
        assert once(row["system"] for row in outputs if row["item"] == key) == SYSTEMS, key
    assert once(row["item"] for row in rows("references")) == KEYS
    for name in ("items", "dialogues", "systems"):
        old = client.get(f"/api/v1/projects/alpha/{name}/?cursor={_encode([3], False)}")
        assert (old.status_code, "Start again" in old.json()["detail"]) == (400, True)
    assert client.get(f"/api/v1/projects/alpha/outputs/?cursor={_encode([3], False)}").status_code == 400


def ask_exports(cast: Cast) -> None:
    tables: dict[str, list[dict[str, Any]]] = {}
    for table, row in (*canonical.rows(cast.project), *exported_scores(project=cast.project)):
        tables.setdefault(table, []).append(row)
    rated = [key for key in KEYS if key in {row["item"] for row in tables["ratings"]}]
    assert len(rated) == len(KEYS) - 2
    for table, name in (("items", "id"), ("dialogues", "id"), ("outputs", "item"), ("references", "item")):
        assert once(row[name] for row in tables[table]) == KEYS, table
    assert once(row["item"] for row in tables["scores"]) == KEYS
    for table in ("ratings", "comparisons"):
        assert once(row["item"] for row in tables[table]) == rated, table
    assert [row["id"] for row in tables["systems"]] == SYSTEMS
    first = [(row["system"], row["step"]) for row in tables["outputs"] if row["item"] == rated[0]]
    assert first == [("m1", None), ("m2", None), ("m10", 9), ("m10", 10)]
    data = build_dataset(cast.project)
    assert [row.id for row in data.items] == once(row.item for row in data.outputs) == KEYS
    assert [row.id for row in data.dialogues] == KEYS
    assert once(row.item for row in data.ratings) == once(row.item for row in data.comparisons) == rated


def ask_everything(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "BLOCK", 4)
    fill(cast)
    assert same_keys() == 2 * len(KEYS) + len(SYSTEMS)
    refuse_rows_without_it(cast.project)
    ask_lists(cast)
    assert prepare_search(project=cast.project) > 3
    ask_lists(cast)
    ask_pages(cast)
    ask_api(cast)
    ask_exports(cast)


@pytest.mark.django_db
def test_every_list_on_sqlite(cast, monkeypatch):
    ask_everything(cast, monkeypatch)


def test_every_list_on_postgres(postgres_db, monkeypatch):
    ask_everything(make_cast(), monkeypatch)


# ---- no other order -----------------------------------------------------------------------------------------


def test_no_query_sorts_by_a_name_that_has_a_natural_order():
    """A list sorted by `key` or by a system's `name` differs between databases and puts q10 before q2."""
    wrong = re.compile(r"-?(?:\w+__)?(?:key|system__name|system_a__name|system_b__name)$")
    found = []
    for room in ("evalapp", "annotation", "retrieval", "scoring"):
        for path in (ROOT / room).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if not isinstance(node, ast.Call) or getattr(node.func, "attr", "") != "order_by":
                    continue
                words = [str(part.value) for part in node.args if isinstance(part, ast.Constant)]
                found += [(path.relative_to(ROOT).as_posix(), word) for word in words if wrong.fullmatch(word)]
    assert found == []


#: Queries by name for something else: error messages, searches with a limit, projects, rows that are sorted later.
OTHER_LISTS = {
    "scoring/selectors/inputs.py", "scoring/selectors/project_search.py", "scoring/selectors/further.py",
    "retrieval/selectors/corpora.py",
    "evalapp/accounts/views/account.py",
}  # fmt: skip


def test_no_page_sorts_names_of_evaluators_sets_and_corpora_by_code_point():
    """Their models have no column for the natural order, so selectors sort the rows."""
    wrong = re.compile(r"-?(?:\w+__)?(?:name|slug)$")
    found = set()
    for room in ("evalapp", "annotation", "retrieval", "scoring"):
        for path in (ROOT / room).rglob("*.py"):
            place = path.relative_to(ROOT)
            if not {"views", "selectors", "forms"} & set(place.parts):
                continue
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "order_by":
                    words = [str(part.value) for part in node.args if isinstance(part, ast.Constant)]
                    found |= {place.as_posix() for word in words if wrong.fullmatch(word)}
    assert found == OTHER_LISTS


@pytest.mark.django_db
def test_lists_of_evaluators_and_sets_are_in_natural_order(cast, score):
    project = cast.project
    take_in(project, {
        "items.jsonl": [{"id": "i", "context": ["a"], "references": ["r"]}],
        "outputs.jsonl": [{"item": "i", "system": "m", "text": "t"}],
    })  # fmt: skip
    score(project, "length")
    first = ScoreSet.objects.get(project=project)
    names = ["e2", "e10"]
    for name in reversed(names):
        row = Evaluator.objects.create(
            project=project, slug=name, name="length", kind=Evaluator.Kind.TRAINED, state=first.evaluator.state
        )
        first.pk, first.evaluator = None, row
        first.save()
        ReferenceSet.objects.create(project=project, name=f"s{name[1:]}")

    def chosen(rows: Any) -> list[str]:
        return [row for row in rows if row in (*names, "s2", "s10")]

    known = list_known(project)
    assert chosen(known["by"]) == chosen(known["scored"]) == names
    assert chosen(known["references"]) == chosen(list_reference_sets(project)) == ["s2", "s10"]
    assert chosen(choose_evaluators(project, [], "original")[1]) == names
    assert once(chosen(row.evaluator.slug for row in combinable(project))) == names
    assert chosen(reportable(project)) == names
