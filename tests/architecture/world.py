"""Two projects with one of everything in each: Olga's and Sam's. `World.part` finds the values of an address."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from django.test import override_settings

from annotation.models import Assignment, ItemFlag, Upload, WritingCampaign, WrittenReference
from annotation.services import campaigns, exports, judging
from annotation.services.campaigns import create_writing, open_campaign
from annotation.services.filters import create_filter
from annotation.services.judging_acts import flag_assignment
from annotation.services.participants import Applicant, Entry, join_study
from annotation.services.recruitments import ban_participant, create_recruitment
from annotation.services.writing_acts import flag_task
from annotation.services.writing_attempts import submit_attempt
from annotation.services.writing_handout import get_next_task
from evalapp.accounts.models import Identity, Invitation, Membership, Project, User
from evalapp.accounts.roles import Role
from evalapp.accounts.services import create_invitation, create_token
from evalapp.common.models import Run
from evalapp.common.runner import execute_run
from evalapp.events.models import Delivery
from evalapp.events.services.webhooks import create_webhook, send_test
from scoring.boards.systems.query import SystemsQuery
from scoring.models import ScoreSet
from scoring.services.scores import apply_evaluator
from scoring.services.shared_reports import create_report
from scoring.services.snapshots import take_snapshot
from tests.cast import Cast, join, make_cast, person
from tests.factories import make_items, make_outputs, make_ratings
from tests.retrieval.corpora import make_corpus
from tests.scoring.study_results import make_study
from tests.scoring.training import make_trained

PLAN = {
    "slug": "plan",
    "name": "Plan",
    "kind": "likert",
    "aspects": [{"name": "quality", "question": "How good?", "low": 1, "high": 5}],
    "overlap": 3,
}


@dataclass
class Side:
    """One of everything in one project."""

    project: Project
    values: dict[str, Any]


@dataclass
class World:
    cast: Cast
    own: Side
    foreign: Side
    #: Role -> the cookie of a signed-in session; filled by tests that act as a browser.
    sessions: dict[str, str] = field(default_factory=dict)

    def user(self, role: str) -> User | None:
        if role == "participant":
            return User.objects.get(pk=self.own.values["participant user"])
        return None if role == "anonymous" else getattr(self.cast, role)

    def part(self, side: Side, name: str, value: Any) -> Any:
        """`slug` is the project's; a value that names an object of the world becomes that object's; other values
        stay."""
        if name == "slug":
            return side.project.slug
        return side.values.get(value, value) if isinstance(value, str) else value


def make_side(project: Project, *, owner: User, annotator: User, other: User) -> Side:
    items = make_items(project, 4)
    outputs = make_outputs(project, items)
    make_ratings(project, outputs)
    for name in ("token-f1", "length"):
        run = execute_run(apply_evaluator(project=project, evaluator=name, send=False).pk)
        assert run is not None
        assert run.state == Run.State.SUCCEEDED
    export = execute_run(exports.request_export(project=project, user=owner).pk)
    assert export is not None
    assert export.state == Run.State.SUCCEEDED, export.error
    campaign = campaigns.create_campaign(project=project, user=owner, plan=PLAN)
    campaign = campaigns.open_campaign(campaign=campaign, user=owner, here=True)
    judging.get_next_assignment(user=annotator, campaign_id=campaign.pk)
    assignment = Assignment.objects.get(campaign=campaign, annotator=annotator)
    flag_assignment(user=annotator, public=assignment.public, reason=ItemFlag.Reason.choices[0][0], text="broken")
    invitation, secret = create_invitation(project=project, role=Role.VIEWER, actor=owner)
    link, _ = create_invitation(project=project, role=Role.ANNOTATOR, actor=owner, landing=f"/my/{campaign.pk}/")
    mailed, _ = create_invitation(project=project, role=Role.VIEWER, actor=owner)
    Invitation.objects.filter(pk=mailed.pk).update(email=f"nova@{project.slug}.example.org")
    identity = Identity.objects.create(user=annotator, issuer="https://uni.example.org", subject=project.slug)
    token, _ = create_token(user=annotator, name="t", scopes=["read"])
    waiting = Run.objects.create(project=project, kind="score", title="Waiting", input_hash=f"waiting-{project.pk}")
    check = Run.objects.create(
        project=project, kind="plan", title="Check", state=Run.State.FAILED, input_hash=f"check-{project.pk}",
        params={"evaluator": "maude"},
    )  # fmt: skip
    study = make_study(project)
    study_check = Run.objects.create(
        project=project, kind="study-plan", title="Check of a study", state=Run.State.SUCCEEDED,
        input_hash=f"study-check-{project.pk}", params={"study": "seeds", "evaluators": ["shared-bert"]},
    )  # fmt: skip
    trained = make_trained(project, f"trained-{project.slug}")
    snapshot = take_snapshot(project=project, user=owner, query=SystemsQuery(), slug=f"kept-{project.slug}")
    report, report_secret = create_report(project=project, user=owner)
    left_out = create_filter(
        project=project, user=owner, name=f"hasty-{project.slug}", raters=["r1"], reason="2 s each"
    )
    upload = Upload.objects.create(
        project=project, title="Upload", created_by=owner, options={"mapping": {"shape": "long"}}
    )
    corpus = make_corpus(project, f"corpus-{project.slug}")
    writing = make_writing(project, owner=owner, corpus=corpus.name)
    view = get_next_task(user=annotator, campaign_id=writing.pk)
    sent = "My own reference."
    submit_attempt(user=annotator, public=view.public, submission=uuid4(), text=sent, unscored=True)
    written = WrittenReference.objects.get(campaign=writing)
    flagged = flag_task(user=annotator, public=view.public, reason="broken", text="no sense")
    landing = f"/my/writing/{writing.pk}/"
    hired = make_hired(project, owner=owner)
    writing_link, _ = create_invitation(project=project, role=Role.ANNOTATOR, actor=owner, landing=landing)
    return Side(
        project,
        {
            "run": waiting.pk,
            "study": study.pk,
            "study check": study_check.pk,
            "export": export.pk,
            "upload": upload.pk,
            "item": items[0].pk,
            "system": outputs[0].system_id,
            "campaign": campaign.pk,
            "assignment": assignment.public,
            "flag": ItemFlag.objects.get(campaign=campaign).pk,
            "invitation": invitation.pk,
            "mailed invitation": mailed.pk,
            "campaign link": link.pk,
            "secret": secret,
            "token": token.pk,
            "identity": identity.pk,
            "provider": "uni",
            "member": Membership.objects.get(project=project, user=other).pk,
            "evaluator": "length",
            "score set": ScoreSet.objects.get(project=project, evaluator__slug="length").pk,
            "trained": trained.slug,
            "snapshot": snapshot.slug,
            "report": report.pk,
            "report secret": report_secret,
            "filter": left_out.name,
            "check": check.pk,
            "corpus": corpus.name,
            "writing campaign": writing.pk,
            "writing task": view.public,
            "writing flag": flagged.pk,
            "written": written.pk,
            "written public": written.public,
            "writing link": writing_link.pk,
            **hired,
            **make_webhook(project, owner=owner),
        },
    )


def make_webhook(project: Project, *, owner: User) -> dict[str, Any]:
    """A webhook with a delivery that was given up."""
    with override_settings(WEBHOOK_HOSTS=frozenset({"hooks.example.org"})):
        webhook, _ = create_webhook(
            project=project, actor=owner, name="lab", url="https://hooks.example.org/in", events=["run.failed"]
        )
    delivery = send_test(webhook=webhook, actor=owner)
    Delivery.objects.filter(pk=delivery.pk).update(state=Delivery.State.FAILED, problem=Delivery.Problem.HOST)
    return {"webhook": webhook.pk, "delivery": delivery.pk}


def make_hired(project: Project, *, owner: User) -> dict[str, Any]:
    """A campaign with a link for hired participants, a participant, and a ban."""
    plan = {**PLAN, "slug": "hired", "name": "Hired"}
    campaign = campaigns.create_campaign(project=project, user=owner, plan=plan)
    campaign = campaigns.open_campaign(campaign=campaign, user=owner, here=True)
    settings = {"places": 3, "outcomes": {"passed": {"code": "C1"}}, "meta_parameters": ["SESSION_ID"]}
    link, secret = create_recruitment(campaign=campaign, user=owner, settings=settings)
    person = join_study(
        recruitment=link, applicant=Applicant("p-1", {"SESSION_ID": "s"}, "browser"), entry=Entry(0, {})
    )
    ban = ban_participant(project=project, user=owner, external_id="p-2", reason="copies answers")
    return {
        "hired campaign": campaign.pk, "hired link": link.pk, "hired secret": secret, "participant": person.pk,
        "participant user": person.user_id, "ban": ban.pk,
    }  # fmt: skip


def make_writing(project: Project, *, owner: User, corpus: str) -> WritingCampaign:
    """An open campaign of reference writing."""
    rater = make_trained(project, f"rater-{project.slug}", "ream")
    plan = {"name": "Writing", "corpus": corpus, "evaluator": rater.slug, "options": {"arms": ["scores"]}}
    return open_campaign(user=owner, campaign=create_writing(user=owner, project=project, plan=plan))


def make_world() -> World:
    cast = make_cast()
    fred, flora = person("fred"), person("flora")
    join(cast.foreign, fred, Role.ANNOTATOR)
    join(cast.foreign, flora, Role.VIEWER)
    own = make_side(cast.project, owner=cast.owner, annotator=cast.annotator, other=cast.viewer)
    foreign = make_side(cast.foreign, owner=cast.stranger, annotator=fred, other=flora)
    return World(cast, own, foreign)
