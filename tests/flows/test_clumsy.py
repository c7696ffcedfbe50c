"""Clumsy and malicious input makes no page fail and reveals nothing of other projects."""

from __future__ import annotations

import json
from dataclasses import fields

import pytest
from django.http import QueryDict
from django.test import Client

from annotation.models import Judgement
from scoring.boards.agreement.query import AgreementQuery
from scoring.boards.aspects.query import AspectsQuery
from scoring.boards.metrics.query import EvaluatorsQuery
from scoring.boards.references.query import EnhancedQuery
from scoring.boards.slices.query import SlicesQuery
from tests.browser.world import make_unusual_texts, make_world
from tests.judging import open_rating
from tests.remembered import make_once

pytestmark = [pytest.mark.django_db, pytest.mark.slow, pytest.mark.usefixtures("few_draws")]

NASTY = (
    "", "0", "-1", "999999999999999999999999", "1e400", "NaN", "true", "\x00", "'; DROP TABLE annotation_item; --",
    "../../etc/passwd", "%F0%9F", "ä" * 3000, "{{7*7}}", "<script>alert(1)</script>", "W10", "WzAsMV0", "WzAsIngiXQ",
    "WzAsbnVsbF0", "WzAse31d", "W1tb" * 700,
)  # fmt: skip
#: Number of values tried on each page for each parameter it reads; all pages with a parameter together get all values.
VALUES_PER_PAGE = 3
#: The parameters of pages with leaderboards.
QUERIES = (AgreementQuery, AspectsQuery, EnhancedQuery, EvaluatorsQuery, SlicesQuery)
LEADERBOARD_PARAMETERS = sorted({field.name for query in QUERIES for field in fields(query)})


@pytest.fixture
def find_parameters(monkeypatch):
    """`find_parameters(client, path)`: the names of the parameters that the view reads; with None if it iterates over
    all."""
    names = set()

    def record(method, iterates=False):
        original = getattr(QueryDict, method)

        def recording(self, *args, **kwargs):
            names.add(None if iterates else args[0])
            return original(self, *args, **kwargs)

        monkeypatch.setattr(QueryDict, method, recording)

    for method in ("__getitem__", "__contains__", "get", "getlist"):
        record(method)
    for method in ("__iter__", "items", "dict"):
        record(method, iterates=True)

    def find(client, path):
        names.clear()
        # A request with an unknown parameter may be rejected before any parameter is read.
        for params in ({"unknown-parameter": "1"}, {}):
            assert client.get(path, params).status_code < 500, path
        return names - {"unknown-parameter"}

    return find


def make_requests(pages, *further):
    """Yield all tried (page, parameter, value) combinations from the parameters that each page reads. `further`:
    parameters for pages that iterate over all."""
    pages = {page: {*names, *further} if None in names else names for page, names in pages.items()}
    for name in sorted(set().union(*pages.values()) - {None}):
        readers = [page for page, names in pages.items() if name in names]
        for number in range(max(len(NASTY), VALUES_PER_PAGE * len(readers))):
            yield readers[number % len(readers)], name, NASTY[(number + number // len(NASTY)) % len(NASTY)]


@pytest.fixture
def clients(cast):
    clients = {None: Client()}
    for user in (cast.owner, cast.researcher, cast.annotator, cast.viewer, cast.stranger):
        clients[user] = Client(raise_request_exception=False)
        clients[user].force_login(user)
    return clients


def test_no_parameter_breaks_a_page(cast, clients, find_parameters):
    pages = {}
    for entries in make_once("world of pages", lambda: make_world(cast)).pages.values():
        user, path = entries[0]
        if user not in clients:  # a hired participant
            clients[user] = Client(raise_request_exception=False)
            clients[user].force_login(user)
        page = (clients[user], path.partition("?")[0])
        pages[page] = find_parameters(*page)
    assert {"cursor", "q", "aspect", "method", "set", "part"} <= set().union(*pages.values())
    broken = []
    for (client, path), parameter, value in make_requests(pages, *LEADERBOARD_PARAMETERS):
        answer = client.get(path, {parameter: value})
        if answer.status_code >= 500:
            broken.append(f"{path}?{parameter}={value[:40]!r}: {answer.status_code}")
    assert not broken, "\n".join(broken)


def test_no_parameter_breaks_an_api_list(cast, clients, find_parameters):
    make_unusual_texts(cast)
    client = clients[cast.stranger]
    rows = ("items", "systems", "outputs", "references", "ratings", "comparisons", "dialogues", "uploads", "runs",
            "scores", "campaigns", "exports", "evaluators", "leaderboards/systems",
            "leaderboards/evaluators")  # fmt: skip
    paths = [f"/api/v1/projects/{cast.foreign.slug}/{name}/" for name in rows]
    lists = {path: find_parameters(client, path) for path in paths}
    assert {"cursor", "limit", "by", "method"} <= set().union(*lists.values())
    broken = []
    for path, parameter, value in make_requests(lists, "item", "system", "aspect", "key", "group", "set", "evaluator"):
        answer = client.get(path, {parameter: value})
        if answer.status_code >= 500:
            broken.append(f"{path}?{parameter}={value[:40]!r}: {answer.status_code}")
    assert not broken, "\n".join(broken)


def test_no_body_breaks_the_api(cast, clients):
    campaign = open_rating(cast, items=2)
    client = clients[cast.annotator]
    public = client.post(f"/api/v1/campaigns/{campaign.pk}/next/").json()["id"]
    deep = "[" * 5000 + "]" * 5000
    bodies = ["", "null", "[]", '"x"', "{", deep, '{"answer": NaN}', '{"answer": {"naturalness": NaN}}',
              '{"answer": {"naturalness": 1e999}, "submission": "x"}', '{"answer": [1], "submission": 3}',
              json.dumps({"answer": {"naturalness": "\x00"}, "submission": "0" * 32, "note": "n" * 10_000}),
              '{"version": -1, "draft": {}}', '{"kind": "score", "evaluator": ["x"]}', '{"kind": {"a": 1}}',
              '{"kind": "score", "evaluator": "bleu-4", "options": {"lowercase": "maybe"}}',
              '{"kind": "score", "evaluator": "../../x"}', '{"reason": 7, "text": {}}']  # fmt: skip
    project = f"/api/v1/projects/{cast.project.slug}/"
    broken = []
    for body in bodies:
        for user, path, verb in (
            (cast.annotator, f"/api/v1/assignments/{public}/submit/", "post"),
            (cast.annotator, f"/api/v1/assignments/{public}/", "patch"),
            (cast.annotator, f"/api/v1/assignments/{public}/skip/", "post"),
            (cast.annotator, f"/api/v1/assignments/{public}/flag/", "post"),
            (cast.researcher, project + "runs/", "post"),
            (cast.researcher, project + "campaigns/", "post"),
            (cast.researcher, project + "exports/", "post"),
            (cast.owner, "/api/v1/projects/", "post"),
        ):
            answer = getattr(clients[user], verb)(path, body, content_type="application/json")
            if answer.status_code >= 500:
                broken.append(f"{verb} {path} {body[:60]!r}: {answer.status_code}")
    assert not broken, "\n".join(broken)


def test_form_sent_twice_is_stored_once(cast, clients):
    campaign = open_rating(cast, items=2)
    client = clients[cast.annotator]
    page = client.post(f"/my/{campaign.pk}/guidelines/", follow=True).content.decode()
    public = page.split('data-id="')[1].split('"')[0]
    submission = page.split('name="submission" value="')[1].split('"')[0]
    answer = {"submission": submission, "answer.naturalness": "4", "answer.relevance": "3"}
    for _ in range(3):
        assert client.post(f"/my/{campaign.pk}/{public}/", answer).status_code == 302
    assert Judgement.objects.filter(campaign=campaign).count() == 1


def test_foreign_projects_are_invisible(cast, clients):
    """Every page of a project, requested anonymously and by the owner of another project."""
    world = make_once("world of pages", lambda: make_world(cast))
    visible = []
    for pages in world.pages.values():
        for _, path in pages:
            if "/projects/" not in path or path.startswith("/projects/new/"):
                continue
            if clients[cast.stranger].get(path).status_code != 404:
                visible.append(path)
            assert clients[None].get(path).status_code == 302
            # The address with the own project, followed by rows of the other project.
            other = path.replace(f"/projects/{cast.project.slug}/", f"/projects/{cast.foreign.slug}/")
            answer = clients[cast.stranger].get(other)
            if "sys-alpha" in answer.content.decode() or answer.status_code >= 500:
                visible.append(other)
    assert visible == []
