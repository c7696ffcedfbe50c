"""Studies with hired participants for tests, and a participant who goes through one by the pages."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from django.test import Client

from annotation.models import Assignment, Campaign, Participant, Recruitment
from annotation.services.recruitments import create_recruitment
from tests.cast import Cast
from tests.judging import ONE_QUESTION, open_rating

CONSENT = "We store your **answers** under a pseudonym."
PRACTICE = [{"item": "i000", "system": "sys-alpha", "expected": {"naturalness": [5, 6]}, "why": "It is short."}]
CONTROLS = [{"item": "i001", "system": "sys-beta", "expected": {"naturalness": [1, 2]}}]


class Study:
    """A campaign with one question, and its link."""

    def __init__(self, cast: Cast, *, items: int = 6, plan: dict[str, Any] | None = None, **settings: Any) -> None:
        usual = {"aspects": ONE_QUESTION, "overlap": 3, "max_per_annotator": 3, "guidelines": ""}
        self.campaign: Campaign = open_rating(cast, items=items, **{**usual, **(plan or {})})
        raw = {"places": 5, "consent": CONSENT, **settings}
        self.cast = cast
        self.link: Recruitment
        self.link, self.secret = create_recruitment(campaign=self.campaign, user=cast.researcher, settings=raw)

    def get_address(self, external_id: str, **more: str) -> str:
        names = {self.link.plan.id_parameter: external_id, **more}
        return f"/participate/{self.secret}/?" + "&".join(f"{name}={value}" for name, value in names.items())

    def get_states(self) -> dict[str, str]:
        rows = Participant.objects.filter(recruitment=self.link).order_by("pk")
        return {row.external_id: str(row.state) for row in rows}


class Visitor:
    """A browser with a participant id."""

    def __init__(self, study: Study, external_id: str, client: Client | None = None) -> None:
        self.study, self.external_id, self.client = study, external_id, client or Client()

    @property
    def row(self) -> Participant:
        return Participant.objects.get(recruitment=self.study.link, external_id=self.external_id)

    def open(self, **more: str) -> Any:
        return self.client.get(self.study.get_address(self.external_id, **more), follow=True)

    def begin(self, answers: dict[str, str] | None = None, *, version: int = 1, **more: str) -> Any:
        body = {"do": "begin", "consent_version": version, **{f"q-{k}": v for k, v in (answers or {}).items()}}
        return self.client.post(self.study.get_address(self.external_id, **more), body, follow=True)

    def get_open(self) -> Assignment | None:
        rows = Assignment.objects.filter(annotator=self.row.user, state="open")
        return rows.order_by("order_number").first()

    def answer(self, value: int = 4, assignment: Assignment | None = None) -> Any:
        """Answer the open text by the form of the page, and follow to the next page."""
        row = assignment or self.get_open()
        assert row is not None, "there is no open text"
        body = {"submission": str(uuid4()), "answer.naturalness": str(value)}
        return self.client.post(f"/my/{self.study.campaign.pk}/{row.public}/", body, follow=True)

    def finish(self, value: int = 4) -> Any:
        """Begin and answer until no text is left."""
        response = self.begin()
        if not Participant.objects.filter(recruitment=self.study.link, external_id=self.external_id).exists():
            return response
        while self.get_open():
            response = self.answer(value)
            response = self.client.get(f"/my/{self.study.campaign.pk}/", follow=True)
        return response
