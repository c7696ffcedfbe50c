"""Answers with missing members or members of another type raise a `ClientError` in every call."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import pytest

from evalapp.client import (
    ApiError,
    Assignment,
    Campaign,
    Client,
    Export,
    Project,
    Report,
    Run,
    UnexpectedAnswer,
    Upload,
)

RUN = {"id": 7, "project": "p", "kind": "train", "title": "T", "state": "queued", "attempt": 0}
UPLOAD = {"id": 3, "project": "p", "title": "items.jsonl", "state": "checking"}
EXPORT = {"id": 9, "format": "jsonl", "state": "succeeded"}
CAMPAIGN = {"id": 4, "project": "p", "slug": "c", "name": "C", "kind": "likert", "state": "open"}
ASSIGNMENT = {"id": "a", "context": [], "texts": [], "state": "open"}
REPORT = {"id": 8, "project": "p", "state": "open", "expires_at": "2030-01-01T00:00:00Z", "opens": 0}
WHOLE = {
    Run: RUN,
    Upload: UPLOAD,
    Export: EXPORT,
    Campaign: CAMPAIGN,
    Assignment: ASSIGNMENT,
    Project: {"slug": "p"},
    Report: REPORT,
}
#: No answer at all, and answers of other shapes.
HALF = [{}, [], ["x"], "x", 3, None, {"results": ["x"]}, {"files": 3}, {"scores": "x"}]


def client(body: object) -> Client:
    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(204) if body is None else httpx.Response(200, json=body)

    return Client("http://host", "t", transport=httpx.MockTransport(answer), retries=0)


CALLS: dict[str, Callable[[Client], object]] = {
    "project": lambda here: here.project("p"),
    "create_project": lambda here: here.create_project("p"),
    "projects": lambda here: list(here.projects()),
    "run": lambda here: here.run(7),
    "upload": lambda here: here.upload(3),
    "campaign": lambda here: here.campaign(4),
    "catalogue": lambda here: here.catalogue(),
    "score": lambda here: here.evaluator("e").score(["a"]),
    "reliability": lambda here: here.evaluator("e").reliability(["a"], ["b"]),
    "compare": lambda here: here.evaluator("e").judge([{"text": "a"}], [{"text": "b"}]),
    "train": lambda here: Project(here.session, "p").train("e"),
    "export": lambda here: Project(here.session, "p").export(wait=False),
    "upload_rows": lambda here: Project(here.session, "p").upload_rows("items", [{"id": "i"}]),
    "score_sets": lambda here: Project(here.session, "p").score_sets(),
    "items": lambda here: list(Project(here.session, "p").items()),
    "runs": lambda here: list(Project(here.session, "p").runs()),
    "leaderboard": lambda here: Project(here.session, "p").leaderboard(),
    "download_evaluator": lambda here: Project(here.session, "p").download_evaluator("e", "none"),
    "create_campaign": lambda here: Project(here.session, "p").create_campaign(name="C", kind="likert", aspects=["q"]),
    "create_report": lambda here: Project(here.session, "p").create_report(),
    "run.wait": lambda here: Run.from_wire(here.session, RUN).wait(),
    "run.cancel": lambda here: Run.from_wire(here.session, RUN).cancel(),
    "upload.wait": lambda here: Upload.from_wire(here.session, UPLOAD).wait(),
    "export.refresh": lambda here: Export.from_wire(here.session, EXPORT).refresh(),
    "campaign.open": lambda here: Campaign.from_wire(here.session, CAMPAIGN).open(),
    "campaign.flags": lambda here: list(Campaign.from_wire(here.session, CAMPAIGN).flags()),
    "submit": lambda here: Assignment.from_wire(here.session, ASSIGNMENT).submit({}),
    "save_draft": lambda here: Assignment.from_wire(here.session, ASSIGNMENT).save_draft({}),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
@pytest.mark.parametrize("body", HALF, ids=repr)
def test_incomplete_answer_is_unexpected(call, body, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UnexpectedAnswer):
        call(client(body))


@pytest.mark.parametrize("kind", WHOLE.keys(), ids=lambda kind: kind.__name__)
def test_row_without_a_member_names_it(kind):
    """Every `from_wire` of the client, and every member that it needs."""
    session, whole = client({}).session, WHOLE[kind]
    kind.from_wire(session, whole)
    for name in whole:
        with pytest.raises(UnexpectedAnswer, match=f"without '{name}' instead of an? {kind.__name__.lower()}"):
            kind.from_wire(session, {key: value for key, value in whole.items() if key != name})


def test_every_from_wire_is_tested():
    import evalapp.client

    made = {value for value in vars(evalapp.client).values() if hasattr(value, "from_wire")}
    # Parts of the other types, which treat missing members as empty.
    assert {kind.__name__ for kind in made - set(WHOLE)} == {"Fault", "Progress"}


def test_list_with_an_invalid_next_page():
    with pytest.raises(UnexpectedAnswer):
        list(client({"results": [], "next": 3}).projects())


def test_undefined_reliability_is_a_valid_answer():
    assert client({"reliability": 0.5}).evaluator("e").reliability(["a"], ["b"]) == 0.5
    value = client({"reliability": None}).evaluator("e").reliability(["a"], ["b"])
    assert value != value


@pytest.mark.parametrize("errors", [7, "abc", None, ["x", None, {"message": None, "line": "a"}]])
def test_error_lists_of_another_shape(errors):
    answer = httpx.Response(400, json={"title": 5, "errors": errors})
    with pytest.raises(ApiError, match="400 5"):
        Client("http://host", "t", transport=httpx.MockTransport(lambda request: answer)).run(7)
