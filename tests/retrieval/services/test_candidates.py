"""Candidates for an item: turns, exclusions, free text, and one line wherever there are none."""

from __future__ import annotations

import pytest

from annotation.models import Dialogue, Item, Output, System
from annotation.services import hooks
from evalapp.accounts.models import Project
from retrieval.models import Corpus
from retrieval.services.candidates import get_context_text
from retrieval.services.corpora import add_file, add_rows, create_corpus
from retrieval.services.places import index_path
from tests.retrieval.corpora import PAIRS, as_jsonl, execute, incoming, make_corpus

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("corpora_dir")]


@pytest.fixture
def item(cast) -> Item:
    return Item.objects.create(
        project=cast.project, key="i", group="i", context=["Nice weather!", "Yes. Where are you going?"]
    )


def ask(item: Item, corpus: str = "talk", **asked):
    return hooks.find_candidates(project=item.project, corpus=corpus, item=item, **{"k": 10, **asked})


def test_context_is_compared_as_requested(cast, item):
    make_corpus(cast.project)
    last = ask(item, turns=1)
    # tokens: yes where are you going; 4 are shared with "where are you going": 4/5; with "where are you now" 3/6
    assert [(row.text, round(row.jaccard, 3)) for row in last.rows] == [
        ("To the lake.", 0.8), ("To the hills behind the station.", 0.8), ("At home.", 0.5),
        ("They always are.", 0.143),
    ]  # fmt: skip
    assert last.note == ""
    assert "Indeed." in [row.text for row in ask(item).rows]
    assert "Indeed." not in [row.text for row in last.rows]
    assert get_context_text(item, 0) == ""
    assert get_context_text(Item(context=[], source="name[Blue Spice]"), 1) == "name[Blue Spice]"


def test_existing_references_are_excluded(cast, item):
    make_corpus(cast.project, pairs=[*PAIRS, ("Where are you going?", "to  the LAKE.")])
    system = System.objects.create(project=cast.project, name="s")
    Output.objects.create(project=cast.project, item=item, system=system, text="At home.")
    rows = ask(item, turns=1, exclude=("They always are.",), k=3).rows
    assert [row.text for row in rows] == ["To the lake.", "To the hills behind the station."]
    assert [row.text for row in ask(item, text="are", exclude=("To the lake.",)).rows] == [
        "They always are.", "To the hills behind the station.",
    ]  # fmt: skip


def test_each_candidate_has_licence_and_source(cast, item):
    corpus = make_corpus(cast.project, licence="CC BY 4.0", source="daily talk")
    add = b'{"query": "Where are you going?", "response": "Out.", "licence": "CC0", "source": "a film"}\n'
    add_file(corpus=corpus, user=None, file=incoming(add), send=False)
    execute(corpus)
    sources = {row.text: row.source for row in ask(item, turns=1).rows}
    assert sources["To the lake."] == {"corpus": "talk", "row": 0, "licence": "CC BY 4.0", "origin": "daily talk"}
    assert sources["Out."] == {"corpus": "talk", "row": 5, "licence": "CC0", "origin": "a film"}


def test_rows_of_several_projects_have_their_own_licence_and_source(cast, item):
    Project.objects.filter(pk=cast.project.pk).update(licence="CC BY 4.0", source="daily talk")
    cast.project.refresh_from_db()
    others = [
        Project.objects.create(slug=name, name=name, licence=licence, source=source)
        for name, licence, source in (("beta", "CC0", "a film"), ("gamma", "", ""))
    ]
    corpus = create_corpus(project=cast.project, user=None, name="talk", shared=True, source="talk of people")
    for project in (cast.project, *others):
        Dialogue.objects.create(project=project, key="d", turns=["Where are you going?", f"To {project.slug}."])
        add_rows(corpus=corpus, user=None, project=project, kind="dialogues", send=False)
        execute(corpus)
    sources = {row.text: (row.source["licence"], row.source["origin"]) for row in ask(item, turns=1).rows}
    assert sources == {
        "To alpha.": ("CC BY 4.0", "talk of people"), "To beta.": ("CC0", "a film"),
        "To gamma.": ("not stated", "project gamma"),
    }  # fmt: skip


def test_one_line_explains_missing_candidates(cast, item):
    assert "no longer exists" in ask(item).note
    corpus = create_corpus(project=cast.project, user=None, name="talk")
    add_file(corpus=corpus, user=None, file=incoming(as_jsonl(PAIRS)), send=False)
    assert "waits for a worker" in ask(item).note
    reason = "the file was faulty"
    Corpus.objects.update(state="failed", error=reason)
    assert reason in ask(item).note
    Corpus.objects.all().delete()
    make_corpus(cast.project)
    unlike = Item.objects.create(project=cast.project, key="u", group="u", context=["Zzz!"])
    assert "shares a word" in ask(unlike).note
    assert "no context" in ask(unlike, turns=0).note
    assert "contains all these words" in ask(unlike, text="lake station").note
    assert all("\n" not in ask(unlike, text=text).note for text in ("", "lake station"))


def test_damaged_index_also_gives_a_note(cast, item):
    corpus = make_corpus(cast.project)
    (index_path(corpus.pk) / "manifest.json").write_text("{")
    assert "damaged" in ask(item).note


def test_open_index_follows_its_corpus(cast, item):
    corpus = make_corpus(cast.project)
    before = len(ask(item, turns=1).rows)
    add_file(corpus=corpus, user=None, file=incoming(as_jsonl([("Where are you?", "Here.")])), send=False)
    execute(corpus)
    assert len(ask(item, turns=1).rows) == before + 1


def test_search_continues_until_there_are_enough_different_responses(cast, item):
    often = [(f"how are you {n}", "Fine.") for n in range(120)]
    make_corpus(cast.project, pairs=[*often, ("how are you today my dear old friend", "Tired.")])
    assert [row.text for row in ask(item, text="how are", k=2).rows] == ["Fine.", "Tired."]
    assert [row.text for row in ask(item, text="how are", k=5).rows] == ["Fine.", "Tired."]
