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

pytestmark = [pytest.mark.django_db, pytest.mark.slow, pytest.mark.usefixtures("few_draws")]

NASTY = (
    "", "0", "-1", "999999999999999999999999", "1e400", "NaN", "true", "\x00", "'; DROP TABLE annotation_item; --",
    "../../etc/passwd", "%F0%9F", "ä" * 3000, "{{7*7}}", "<script>alert(1)</script>", "W10", "WzAsMV0", "WzAsIngiXQ",
    "WzAsbnVsbF0", "WzAse31d", "W1tb" * 700,
)  # fmt: skip
#: Values that each page gets for each parameter it reads; several pages that share a parameter get all values together.
EACH = 3
#: Parameters of pages with tables.
SHAPES = (AgreementQuery, AspectsQuery, EnhancedQuery, EvaluatorsQuery, SlicesQuery)
OF_TABLES = sorted({field.name for shape in SHAPES for field in fields(shape)})


@pytest.fixture
def reads(monkeypatch):
    """`reads(client, path)`: the names of the parameters that the view reads; None if it iterates over all."""
    names = set()

    def noting(method, whole=False):
        plain = getattr(QueryDict, method)

        def noted(self, *words, **more):
            names.add(None if whole else words[0])
            return plain(self, *words, **more)

        monkeypatch.setattr(QueryDict, method, noted)

    for method in ("__getitem__", "__contains__", "get", "getlist"):
        noting(method)
    for method in ("__iter__", "items", "dict"):
        noting(method, whole=True)

    def read(client, path):
        names.clear()
        # A request for something unknown may be refused before any parameter is read.
        for given in ({"nothing-knows-this": "1"}, {}):
            assert client.get(path, given).status_code < 500, path
        return names - {"nothing-knows-this"}

    return read


def combinations(places, *further):
    """All tried (place, parameter, value) combinations, from the parameters each place reads. `further`: parameters for
    places that iterate over all."""
    found_by = {place: {*names, *further} if None in names else names for place, names in places.items()}
    for name in sorted(set().union(*found_by.values()) - {None}):
        found = [place for place, names in found_by.items() if name in names]
        for number in range(max(len(NASTY), EACH * len(found))):
            yield found[number % len(found)], name, NASTY[(number + number // len(NASTY)) % len(NASTY)]


@pytest.fixture
def clients(cast):
    found = {None: Client()}
    for user in (cast.owner, cast.researcher, cast.annotator, cast.viewer, cast.stranger):
        found[user] = Client(raise_request_exception=False)
        found[user].force_login(user)
    return found


def test_no_parameter_breaks_a_page(cast, clients, reads):
    places = {}
    for pages in make_world(cast).pages.values():
        user, path = pages[0]
        place = (clients[user], path.partition("?")[0])
        places[place] = reads(*place)
    assert {"cursor", "q", "aspect", "method", "set", "part"} <= set().union(*places.values())
    broken = []
    for (client, path), parameter, value in combinations(places, *OF_TABLES):
        answer = client.get(path, {parameter: value})
        if answer.status_code >= 500:
            broken.append(f"{path}?{parameter}={value[:40]!r}: {answer.status_code}")
    assert not broken, "\n".join(broken)


def test_no_parameter_breaks_an_api_list(cast, clients, reads):
    make_unusual_texts(cast)
    client = clients[cast.stranger]
    rows = ("items", "systems", "outputs", "references", "ratings", "comparisons", "dialogues", "uploads", "runs",
            "scores", "campaigns", "exports", "evaluators", "leaderboards/systems",
            "leaderboards/evaluators")  # fmt: skip
    places = {path: reads(client, path) for path in (f"/api/v1/projects/{cast.foreign.slug}/{name}/" for name in rows)}
    assert {"cursor", "limit", "by", "method"} <= set().union(*places.values())
    broken = []
    for path, parameter, value in combinations(places, "item", "system", "aspect", "key", "group", "set", "evaluator"):
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
    page = client.get(f"/my/{campaign.pk}/").content.decode()
    public = page.split('data-id="')[1].split('"')[0]
    submission = page.split('name="submission" value="')[1].split('"')[0]
    answer = {"submission": submission, "answer.naturalness": "4", "answer.relevance": "3"}
    for _ in range(3):
        assert client.post(f"/my/{campaign.pk}/{public}/", answer).status_code == 302
    assert Judgement.objects.filter(campaign=campaign).count() == 1


def test_foreign_projects_are_invisible(cast, clients):
    """Every page of the project, requested by the owner of another one, and anonymously."""
    world = make_world(cast)
    seen = []
    for pages in world.pages.values():
        for _, path in pages:
            if "/projects/" not in path or path.startswith("/projects/new/"):
                continue
            if clients[cast.stranger].get(path).status_code != 404:
                seen.append(path)
            assert clients[None].get(path).status_code == 302
            # Own project in the address, foreign rows after it.
            other = path.replace(f"/projects/{cast.project.slug}/", f"/projects/{cast.foreign.slug}/")
            answer = clients[cast.stranger].get(other)
            if "sys-alpha" in answer.content.decode() or answer.status_code >= 500:
                seen.append(other)
    assert seen == []
