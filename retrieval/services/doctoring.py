"""Checks of `evalapp doctor` for corpora: missing indexes, and the content of Elasticsearch."""

from evalapp.ops.checks import MISSING, OK, OPTIONAL, Check

from ..index.errors import RetrievalError
from ..models import Corpus, OutboxRow
from ..selectors.corpora import describe_condition
from . import elastic
from .handles import open_embedded
from .places import index_path

OUTBOX = "corpora outbox"


def check_server() -> list[Check]:
    """The Elasticsearch server: access, version, health."""
    if not elastic.is_used():
        return [Check("elasticsearch", OPTIONAL, "ELASTICSEARCH_URL is not set; the built-in index is used")]
    health = elastic.health()
    if health.ok:
        return [Check("elasticsearch", OK, health.message)]
    way_out = "Start it or correct its settings, or unset ELASTICSEARCH_URL to use the built-in index."
    return [Check("elasticsearch", MISSING, health.message, way_out)]


def checks() -> list[Check]:
    """A line for all corpora in order, and one for each corpus with a problem."""
    rows = list(Corpus.objects.select_related("project", "home", "run").order_by("name", "pk"))
    if not rows:
        return [Check("corpora", OPTIONAL, "none; candidates for references need one")]
    # Ask once, because each request to a silent server waits for its timeout.
    away = "" if not elastic.is_used() or (health := elastic.health()).ok else health.message
    faults = [fault for corpus in rows if (fault := _check(corpus, away)) is not None]
    behind = OutboxRow.objects.count()
    if behind:
        oldest = OutboxRow.objects.order_by("created_at")[0]
        why = f": {oldest.error}" if oldest.error else ""
        way_out = "A worker sends them when the server answers; or run `evalapp reindex SLUG`."
        faults.append(Check(OUTBOX, MISSING, f"{behind} changes are not sent to Elasticsearch yet{why}", way_out))
    ready = len(rows) - sum(fault.name != OUTBOX for fault in faults)
    pairs = sum(corpus.count for corpus in rows)
    return [Check("corpora", OK, f"{ready} of {len(rows)} ready, {pairs:,} pairs"), *faults]


def _check(corpus: Corpus, away: str) -> Check | None:
    place = corpus.project or corpus.home
    name = f"corpus {place.slug if place else '-'}/{corpus.name}"
    way_out = f"Run `evalapp reindex {place.slug if place else '-'} --corpus {corpus.name}`."
    if corpus.is_waiting:
        return Check(name, OPTIONAL, describe_condition(corpus))
    if corpus.state != Corpus.State.READY:
        return Check(name, MISSING, describe_condition(corpus), way_out)
    try:
        index = open_embedded(corpus)
    except RetrievalError as error:
        return Check(name, MISSING, str(error), way_out)
    count = index.count
    index.close()
    if count != corpus.count:
        return Check(name, MISSING, f"{count:,} pairs in the index, {corpus.count:,} expected", way_out)
    return _check_elastic(corpus, name, way_out, away) or _check_unicode(corpus, name, way_out)


def _check_unicode(corpus: Corpus, name: str, way_out: str) -> Check | None:
    """After an update of Python: new characters do not count as letters in indexes built before."""
    from ..index.embedded import read_manifest
    from ..index.tokens import explain_unicode

    note = explain_unicode(read_manifest(index_path(corpus.pk)).get("unicode", ""))
    return Check(name, OPTIONAL, note, way_out) if note else None


def _check_elastic(corpus: Corpus, name: str, way_out: str, away: str) -> Check | None:
    """`away`: the problem of the server, if it has one."""
    from ..index.tokens import explain_unicode

    if not elastic.is_used():
        return None
    if corpus.elastic_revision < corpus.embedded_revision:
        return Check(name, MISSING, "Elasticsearch does not have the newest pairs yet", way_out)
    if away:
        return Check(name, MISSING, away, "Start Elasticsearch; the built-in index answers meanwhile.")
    try:
        state = elastic.read_state(corpus)
    except RetrievalError as error:
        return Check(name, MISSING, str(error), f"{way_out} The built-in index answers meanwhile.")
    if state.count != corpus.count:
        return Check(name, MISSING, f"{state.count:,} pairs in Elasticsearch, {corpus.count:,} expected", way_out)
    note = explain_unicode(state.unicode)
    return Check(name, OPTIONAL, f"Elasticsearch: {note}", way_out) if note else None
