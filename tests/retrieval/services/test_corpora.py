"""Creating, sharing and deleting corpora, and the leftovers of a deleted project."""

from __future__ import annotations

import pytest

from evalapp.common.deletion import delete_with_contents
from evalapp.common.errors import BadInput, NotAllowed, NotThere, TooLarge
from evalapp.common.jobs import get_job
from evalapp.common.models import AuditEvent
from retrieval.models import Corpus, CorpusPart, OutboxRow
from retrieval.selectors.corpora import find_corpus, list_choices, may_change
from retrieval.services.corpora import add_file, add_rows, check_may_change, create_corpus, delete_corpus
from retrieval.services.places import get_folder
from tests.retrieval.corpora import execute, incoming, make_corpus

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("corpora_dir")]


@pytest.mark.parametrize(
    ("facts", "field"),
    [
        ({"name": "Talk"}, "name"),
        ({"name": "new"}, "name"),
        ({"name": "a/../b"}, "name"),
        ({"name": "talk", "language": "English, please"}, "language"),
        ({"name": "talk", "tokenizer": "bytes"}, "tokenizer"),
    ],
)
def test_name_language_and_tokenizer_are_validated(cast, facts, field):
    with pytest.raises(BadInput) as raised:
        create_corpus(project=cast.project, user=None, **facts)
    assert [fault.field for fault in raised.value.faults] == [field]


def test_names_are_unique_within_a_projects_view(cast):
    create_corpus(project=cast.project, user=None, name="talk")
    create_corpus(project=cast.foreign, user=None, name="talk")
    shared = create_corpus(project=cast.foreign, user=None, name="films", shared=True)
    for name in ("talk", "films"):
        with pytest.raises(BadInput, match="already"):
            create_corpus(project=cast.project, user=None, name=name)
    assert find_corpus(cast.project, "films") == shared
    with pytest.raises(NotThere):
        find_corpus(cast.project, "nothing")
    assert [name for name, _ in list_choices(project=cast.project)] == ["films", "talk"]
    assert "shared" in dict(list_choices(project=cast.project))["films"]


def test_permissions(cast):
    own = create_corpus(project=cast.project, user=None, name="own")
    shared = create_corpus(project=cast.project, user=None, name="shared", shared=True)
    foreign = create_corpus(project=cast.foreign, user=None, name="foreign")

    def seen(user) -> set[str]:
        return set(Corpus.objects.visible_to(user).values_list("name", flat=True))

    assert seen(cast.viewer) == {"own", "shared"}
    assert seen(cast.stranger) == {"foreign", "shared"}
    assert seen(cast.annotator) == set()
    assert [may_change(cast.researcher, row) for row in (own, shared, foreign)] == [True, False, False]
    assert [may_change(cast.owner, row) for row in (own, shared, foreign)] == [True, True, False]
    assert not may_change(cast.viewer, own)
    with pytest.raises(NotAllowed, match="shared"):
        check_may_change(cast.researcher, shared)
    with pytest.raises(NotAllowed):
        get_job("index").ask(project=cast.foreign, user=cast.stranger, params={"corpus": "shared"})


def test_deleting_leaves_no_files(cast, corpora_dir):
    corpus = make_corpus(cast.project)
    delete_corpus(corpus=corpus, user=cast.owner)
    from django.db import transaction

    assert not Corpus.objects.exists()
    assert not CorpusPart.objects.exists()
    assert not OutboxRow.objects.exists()  # Elasticsearch is not used
    assert AuditEvent.objects.filter(verb="corpus.deleted").exists()
    assert transaction.get_connection().in_atomic_block


@pytest.mark.django_db(transaction=True)
def test_files_are_deleted_with_the_corpus_and_the_project(cast, corpora_dir):
    first, second = make_corpus(cast.project, "first"), make_corpus(cast.project, "second")
    shared = make_corpus(cast.project, "shared", shared=True)
    delete_corpus(corpus=first, user=None)
    assert not get_folder(first.pk).exists()
    assert get_folder(second.pk).exists()
    delete_with_contents(project=cast.project, actor=cast.owner)
    assert [path.name for path in corpora_dir.iterdir()] == [str(shared.pk)]
    shared.refresh_from_db()
    assert (shared.home, shared.run, shared.state) == (None, None, "ready")


def test_refused_addition_leaves_nothing(cast, settings):
    corpus = create_corpus(project=cast.project, user=None, name="talk")
    with pytest.raises(BadInput, match="no dialogues"):
        add_rows(corpus=corpus, user=None, project=cast.project, kind="dialogues")
    settings.MAX_UPLOAD_BYTES = 10
    with pytest.raises(TooLarge):
        add_file(corpus=corpus, user=None, file=incoming(b"x" * 11))
    assert not corpus.parts.exists()
    assert not list(get_folder(corpus.pk).glob("received-*"))


def test_index_run_can_be_requested(cast):
    corpus = make_corpus(cast.project)
    run = get_job("index").ask(project=cast.project, user=cast.researcher, params={"corpus": "talk"})
    assert run.kind == "index"
    assert get_job("index").ask(project=cast.project, user=cast.researcher, params={"corpus": "talk"}) == run
    assert execute(corpus).result["pairs"] == 5
    with pytest.raises(BadInput, match="x is unknown"):
        get_job("index").ask(project=cast.project, user=cast.researcher, params={"corpus": "talk", "x": 1})
