"""Projects for tests that visit all pages: one with content on every page, and one with unusual texts. Created through
the services."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from itertools import combinations
from typing import Any
from uuid import uuid4

import numpy as np
from django.urls import URLPattern, URLResolver, get_resolver, reverse
from django.utils import timezone

from annotation.models import (
    Aspect,
    Campaign,
    Comparison,
    Item,
    Output,
    System,
    Upload,
    UploadFault,
    WrittenReference,
)
from annotation.services.campaigns import close_campaign, create_campaign, create_writing, open_campaign
from annotation.services.filters import create_filter
from annotation.services.judging import get_next_assignment, submit_answer
from annotation.services.judging_acts import flag_assignment
from annotation.services.participants import Applicant, Entry, join_study
from annotation.services.recruitments import ban_participant, create_recruitment
from annotation.services.table_uploads import receive_table
from annotation.services.uploads import Incoming
from annotation.services.writing_acts import flag_task
from annotation.services.writing_attempts import submit_attempt
from annotation.services.writing_handout import get_next_task
from evalapp.accounts.services import create_invitation, create_token
from evalapp.common.models import Run
from evalapp.common.runner import execute_run
from retrieval.services.corpora import add_file
from scoring.boards.agreement.query import AgreementQuery
from scoring.boards.aspects.query import AspectsQuery
from scoring.boards.data.project_judgements import get_units
from scoring.boards.matrix.query import MatrixQuery
from scoring.boards.metrics.query import EvaluatorsQuery
from scoring.boards.pairs.query import PairsQuery
from scoring.boards.slices.query import SlicesQuery
from scoring.boards.systems.games import Met, systems_by_games
from scoring.boards.systems.query import SystemsQuery
from scoring.models import CurvePoint
from scoring.selectors.game_texts import compare_with_people
from scoring.services.combining import CombineOptions, start_combination
from scoring.services.leaderboards import get_leaderboard
from scoring.services.reference_selection import NewSet, store_reference_sets
from scoring.services.scores import apply_evaluator
from scoring.services.shared_reports import create_report
from scoring.services.snapshots import take_snapshot
from tests.architecture.world import make_webhook
from tests.cast import Cast
from tests.factories import make_items, make_outputs, make_ratings
from tests.judging import PRACTICE, SCALES
from tests.retrieval.corpora import execute, incoming, make_corpus
from tests.scoring.study_results import make_study
from tests.scoring.training import make_trained

#: A sheet whose columns are not obvious: two ids, an aspect without a system, a word among the ratings.
SHEET = b"""id,item_id,prompt,GPT-4 reply,Llama reply,fluency
1,a,Any plans for the weekend?,I might walk to the lake.,I have plans.,4
2,b,Did you like the film?,"Yes, the ending surprised me.",It was a film.,good
"""
#: Routes that show no page: they accept only POST, send a file, or redirect.
ROUTES_WITHOUT_PAGE = {
    "accounts:oidc-start", "accounts:oidc-callback", "accounts:identity-confirm", "accounts:identity-disconnect",
    "accounts:logout", "accounts:token-revoke", "accounts:member-role", "accounts:member-remove",
    "accounts:invitation-revoke", "accounts:invitation-send", "accounts:password-reset-confirm",
    "accounts:own-data-file",
    "events:webhook-renew", "events:webhook-test", "events:webhook-delete", "events:delivery-repeat",
    "run-cancel", "run-retry", "health-live",
    "health-ready", "metrics", "annotation:judge-next", "annotation:judge-back", "annotation:judge-submit",
    "scoring:choose", "scoring:games", "scoring:annotate",
    "annotation:participants-ban", "annotation:participants-unban", "annotation:participants-file",
    "annotation:campaign-guidelines-preview", "annotation:campaign-estimate", "annotation:writing-estimate",
    "annotation:export-delete",
    "annotation:campaign-check-remove", "annotation:campaign-flag-resolve", "annotation:campaign-invitation-revoke",
    "annotation:write-back", "annotation:write-draft", "annotation:write-drop", "annotation:write-done",
    "annotation:writing-restore", "annotation:writing-flag-resolve",
    "annotation:writing-invitation-revoke", "annotation:upload-store", "annotation:upload-undo",
    "annotation:system-kind", "annotation:export-file", "annotation:upload-sample", "docs-image",
    "annotation:upload-mapping",
    "scoring:agreement-file", "scoring:rater-filter-move",
    "scoring:score-sentinels", "scoring:scores-csv", "scoring:distribution-svg", "scoring:systems-svg",
    "scoring:systems-file", "scoring:evaluation-svg", "scoring:evaluation-file", "scoring:scatter-svg",
    "scoring:systems-pdf", "scoring:evaluation-pdf", "scoring:scatter-pdf", "scoring:steps-svg", "scoring:steps-pdf",
    "scoring:evaluation-board-svg", "scoring:evaluation-board-pdf", "scoring:evaluation-board-file",
    "scoring:combine-again", "scoring:judge-answers", "scoring:snapshot-file",
    "scoring:snapshot-svg", "scoring:snapshot-pdf", "scoring:report-pdf", "scoring:report-revoke",
    "scoring:shared-report-pdf",
    "scoring:train-start", "scoring:evaluator-file", "scoring:evaluator-tar", "scoring:live-score",
    "scoring:study-start", "scoring:study-svg", "scoring:study-pdf", "scoring:study-file",
    "scoring:enhanced-file", "scoring:reference-set-file", "scoring:reliability-curves-svg", "retrieval:corpus-index",
    "scoring:reliability-curves-pdf", "scoring:distribution-pdf", "scoring:agreement-svg", "scoring:agreement-pdf",
    "scoring:enhanced-svg", "scoring:enhanced-pdf", "scoring:agreement-growth-svg", "scoring:agreement-growth-pdf",
    "retrieval:candidates",
}  # fmt: skip

UNUSUAL = (
    "مرحبا، كيف حالك اليوم؟ 123",
    "<script>alert('x')</script> & \"quotes\" {{ braces }} {% tag %}",
    "👩‍👩‍👧‍👦 zero\u200bwidth \u202eoverride\u202c Ǆ Z̷̲a̶̹l̵͙g̴̯o̶",
    "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft" * 3,
    "two\n\nparagraphs\twith\ttabs",
    "中文没有空格的很长的句子" * 20,
)


@dataclass
class World:
    cast: Cast
    #: Route name -> pairs of user and address.
    pages: dict[str, list[tuple[Any, str]]] = field(default_factory=dict)

    def add(self, user: Any, name: str, *arguments: Any, query: str = "") -> None:
        self.pages.setdefault(name, []).append((user, reverse(name, args=arguments) + query))


def get_page_routes() -> set[str]:
    """Return the names of all routes except those of the API."""
    names = set()

    def add_names(patterns: list[Any], namespace: str, prefix: str) -> None:
        for pattern in patterns:
            route = prefix + str(pattern.pattern)
            if route.startswith("api/"):
                continue
            if isinstance(pattern, URLResolver):
                inner = f"{namespace}{pattern.namespace}:" if pattern.namespace else namespace
                add_names(pattern.url_patterns, inner, route)
            elif isinstance(pattern, URLPattern) and pattern.name:
                names.add(namespace + pattern.name)

    add_names(get_resolver().url_patterns, "", "")
    return names


def make_world(cast: Cast) -> World:
    """Fill the first project so that every page has content, and list the pages."""
    world, project = World(cast), cast.project
    items = make_items(project, 60)
    outputs = make_outputs(project, items, ("sys-alpha", "sys-beta", "sys-gamma"))
    make_ratings(project, outputs)
    _make_comparisons(outputs)
    for name in ("length", "random", "token-f1"):
        execute_run(apply_evaluator(project=project, evaluator=name, send=False).pk)
    get_leaderboard(project=project, query=SystemsQuery(aspect="quality"))
    get_leaderboard(project=project, query=EvaluatorsQuery(aspect="quality"))
    judged, draft = _make_campaigns(cast)
    upload = _make_upload(cast)
    invitation = create_invitation(project=project, role="viewer", actor=cast.owner)[1]
    create_token(user=cast.researcher, name="training script", scopes=["read"], days=30)
    _add_people(world, invitation)
    _add_data(world, items[0], upload)
    _add_campaigns(world, judged, draft)
    _add_participants(world)
    _add_writing(world)
    _add_scoring(world)
    _add_references(world)
    _add_corpora(world)
    return world


def _make_campaigns(cast: Cast) -> tuple[Campaign, Campaign]:
    plan = {"name": "Replies", "kind": "likert", "aspects": SCALES, "guidelines": "Rate the **reply** only."}
    plan |= {"practice": PRACTICE, "items": {"sample": 5}}
    draft = create_campaign(project=cast.project, user=cast.researcher, plan={**plan, "slug": "draft"})
    judged = create_campaign(project=cast.project, user=cast.researcher, plan=plan)
    judged = open_campaign(campaign=judged, user=cast.researcher, here=True)
    for _ in range(4):
        public = get_next_assignment(user=cast.annotator, campaign_id=judged.pk).shown.public
        answer = {"naturalness": 4, "relevance": 3}
        flag_assignment(user=cast.annotator, public=public, reason="broken", text="ends early")
        submit_answer(user=cast.annotator, public=public, submission=uuid4(), answer=answer)
    closed = create_campaign(project=cast.project, user=cast.researcher, plan={**plan, "slug": "closed"})
    close_campaign(campaign=open_campaign(campaign=closed, user=cast.researcher, here=True), user=cast.researcher)
    return judged, draft


def _make_upload(cast: Cast) -> Upload:
    run = Run.objects.create(
        project=cast.project, kind="import", title="Import outputs.jsonl", queue="cpu", state="failed", attempt=1,
        input_hash="x" * 64, error="1 row is faulty.", started_at=timezone.now() - timedelta(seconds=9),
        finished_at=timezone.now(), created_by=cast.researcher,
    )  # fmt: skip
    upload = Upload.objects.create(
        project=cast.project, title="outputs.jsonl", state="failed", run=run, created_by=cast.researcher, fault_count=1,
        files=[{"name": "outputs.jsonl", "kind": "outputs", "bytes": 1200, "sha256": "ab" * 32, "stored": "000"}],
        counts={"outputs": {"rows": 2, "added": 0, "same": 0, "replaced": 0, "faulty": 1}},
    )  # fmt: skip
    UploadFault.objects.create(upload=upload, file="outputs.jsonl", line=2, field="item", message="There is no item.")
    Run.objects.create(
        project=cast.project, kind="export", title="Export", queue="cpu", state="running", attempt=1, done=30, total=90,
        unit="rows", rate=12.0, input_hash="y" * 64, started_at=timezone.now(), heartbeat=timezone.now(),
        created_by=cast.researcher, params={"format": "csv"},
    )  # fmt: skip
    return upload


def _add_people(world: World, invitation: str) -> None:
    cast, slug = world.cast, world.cast.project.slug
    for user in (None, cast.researcher, cast.annotator, cast.viewer):
        world.add(user, "home")
    for name in ("docs", "docs-errors", "docs-search"):
        world.add(None, name)
    world.add(None, "docs-search", query="?q=agreement")
    for name in ("how-to/annotate", "explanation/statistics/agreement", "results/rankings", "decisions/watchdog"):
        world.add(None, "docs-page", name)
    for query in ("", "?q=a"):
        world.add(cast.researcher, "project-search", slug, query=query)
    for name in ("login", "password-reset", "password-reset-sent", "display"):
        world.add(None, f"accounts:{name}")
    world.add(None, "accounts:invitation", invitation)
    world.add(None, "accounts:invitation", "not-a-secret")
    for name in ("account", "password", "token-list", "own-data"):
        world.add(cast.researcher, f"accounts:{name}")
    world.add(cast.owner, "accounts:project-create")
    for name in ("project-settings", "project-delete", "member-list", "invitation-create"):
        world.add(cast.owner, f"accounts:{name}", slug)
    for name in ("webhook-list", "webhook-new"):
        world.add(cast.owner, f"events:{name}", slug)
    world.add(cast.owner, "events:webhook", slug, make_webhook(cast.project, owner=cast.owner)["webhook"])


def _add_data(world: World, item: Item, upload: Upload) -> None:
    cast, slug = world.cast, world.cast.project.slug
    for user in (cast.researcher, cast.viewer):
        for name in ("project", "run-list", "annotation:item-list", "annotation:upload-list", "annotation:export-list"):
            world.add(user, name, slug)
    for run in Run.objects.filter(project=cast.project).order_by("kind", "-pk"):
        world.add(cast.researcher, "run", slug, run.pk)
    world.add(cast.researcher, "annotation:item-list", slug, query="?q=nothing+like+this")
    world.add(cast.researcher, "annotation:item-show", slug, item.pk)
    world.add(cast.researcher, "annotation:system-list", slug)
    world.add(cast.researcher, "annotation:upload-show", slug, upload.pk)
    table = receive_table(project=cast.project, user=cast.researcher, files=[Incoming("scores.csv", [SHEET])])
    world.add(cast.researcher, "annotation:upload-columns", slug, table.pk)


def _add_campaigns(world: World, judged: Campaign, draft: Campaign) -> None:
    cast, slug = world.cast, world.cast.project.slug
    for name in ("list", "new"):
        world.add(cast.researcher, f"annotation:campaign-{name}", slug)
    for campaign in (judged, draft):
        for name in ("", "-edit", "-preview", "-people"):
            world.add(cast.researcher, f"annotation:campaign{name}", slug, campaign.pk)
    for name in ("quality", "judgements", "units", "flags"):
        world.add(cast.researcher, f"annotation:campaign-{name}", slug, judged.pk)
    world.add(cast.researcher, "annotation:campaign-checks", slug, draft.pk, query="?item=i001")
    world.add(cast.researcher, "annotation:campaign-delete", slug, draft.pk)
    world.add(cast.researcher, "annotation:campaign-move", slug, judged.pk, "close")
    world.add(cast.annotator, "annotation:my-work")
    world.add(cast.annotator, "annotation:judge", judged.pk)
    get_next_assignment(user=cast.researcher, campaign_id=judged.pk)
    world.add(cast.researcher, "annotation:judge", judged.pk)  # has not done the practice texts yet
    for user in (cast.annotator, cast.owner):  # the owner has not begun
        world.add(user, "annotation:my-guidelines", judged.pk)
    for user in (cast.annotator, cast.owner):  # the owner has no answers
        world.add(user, "annotation:my-answers", judged.pk)
    public = get_next_assignment(user=cast.annotator, campaign_id=judged.pk).shown.public
    for name in ("one", "skip", "flag"):
        world.add(cast.annotator, f"annotation:judge-{name}", judged.pk, public)


def _add_participants(world: World) -> None:
    """A campaign with hired participants: one has passed, one is working."""
    cast, slug = world.cast, world.cast.project.slug
    plan = {
        "name": "Replies",
        "slug": "hired",
        "kind": "likert",
        "aspects": SCALES[:1],
        "items": {"sample": 2},
        "max_per_annotator": 1,
    }
    campaign = create_campaign(project=cast.project, user=cast.researcher, plan=plan)
    campaign = open_campaign(campaign=campaign, user=cast.researcher, here=True)
    settings = {
        "label": "Prolific, May", "places": 5, "platform": "prolific", "pay": 2.5, "bonus": 0.5, "currency": "GBP",
        "consent": "We store your **answers** under a pseudonym.\n\n" + "You can stop at any time. " * 20,
        "contact": "study@example.org",
        "outcomes": {"passed": {"code": "C-PASSED", "address": "https://platform.example/?cc={code}"}},
        "questions": [
            {"name": "age", "question": "How old are you?", "kind": "number", "low": 18, "high": 99},
            {"name": "english", "question": "Is English your first language?", "kind": "choice",
             "choices": ["yes", "no"]},
            {"name": "remarks", "question": "Anything we should know?", "kind": "text", "required": False},
        ],
    }  # fmt: skip
    link, secret = create_recruitment(campaign=campaign, user=cast.researcher, settings=settings)
    people = []
    for name in ("5f2a-passed", "5f2a-working"):
        entry = Entry(1, {"age": "30", "english": "yes"})
        people.append(join_study(recruitment=link, applicant=Applicant(name, {}, name), entry=entry))
    done, working = people
    shown = get_next_assignment(user=done.user, campaign_id=campaign.pk).shown
    submit_answer(
        user=done.user, public=shown.public, submission=uuid4(), answer={"naturalness": 4}, then="next", seconds=9
    )
    ban_participant(project=cast.project, user=cast.researcher, external_id="5f2a-banned", reason="Copied answers.")
    world.add(None, "annotation:study", secret)
    world.add(None, "annotation:study", secret, query="?PROLIFIC_PID=5f2a-new")
    for person in people:
        world.add(person.user, "annotation:my-participation")
        world.add(person.user, "annotation:my-participation-withdraw")
    for name in ("", "-new"):
        world.add(cast.researcher, f"annotation:participants{name}", slug, campaign.pk)
    for name in ("link", "edit"):
        world.add(cast.researcher, f"annotation:participants-{name}", slug, campaign.pk, link.pk)
    world.add(cast.researcher, "annotation:participant-withdraw", slug, campaign.pk, link.pk, working.pk)


def _add_writing(world: World) -> None:
    cast, slug = world.cast, world.cast.project.slug
    plan = {"name": "More replies", "guidelines": "Be *kind*.", "options": {"arms": ["control"], "target": 9}}
    draft = create_writing(user=cast.researcher, project=cast.project, plan={**plan, "slug": "writing-draft"})
    written = open_campaign(
        user=cast.researcher, campaign=create_writing(user=cast.researcher, project=cast.project, plan=plan)
    )
    public = get_next_task(user=cast.annotator, campaign_id=written.pk).public
    for text in ("I would rather stay.", "Not today, thank you."):
        submit_attempt(user=cast.annotator, public=public, submission=uuid4(), text=text, seconds=21.5)
    better = {"constraint": "better-than-original", "instruction": "Write a better reply."}
    plan = {"name": "Better ones", "kind": "constraint", "options": better}
    compared = open_campaign(
        user=cast.researcher, campaign=create_writing(user=cast.researcher, project=cast.project, plan=plan)
    )
    other = get_next_task(user=cast.researcher, campaign_id=compared.pk).public
    submit_attempt(user=cast.researcher, public=other, submission=uuid4(), text="A better reply altogether.")
    world.add(cast.researcher, "annotation:writing-new", slug)
    for campaign in (written, draft, compared):
        for name in ("", "-edit", "-preview", "-people"):
            world.add(cast.researcher, f"annotation:writing{name}", slug, campaign.pk)
    flag_task(user=cast.annotator, public=public, reason="other", text=UNUSUAL[3])
    for name in ("references", "attempts", "flags"):
        world.add(cast.researcher, f"annotation:writing-{name}", slug, written.pk)
    world.add(cast.researcher, "scoring:writing-gold", slug, written.pk)
    reference = WrittenReference.objects.filter(campaign=written).first()
    world.add(cast.researcher, "annotation:writing-withdraw", slug, written.pk, reference.pk)
    world.add(cast.researcher, "annotation:writing-delete", slug, draft.pk)
    world.add(cast.researcher, "annotation:writing-move", slug, written.pk, "close")
    for campaign in (written, compared):
        world.add(cast.annotator, "annotation:write", campaign.pk)
    for user in (cast.annotator, cast.owner):  # the owner has not begun
        for name in ("guidelines", "texts"):
            world.add(user, f"annotation:write-{name}", written.pk)
    world.add(cast.annotator, "annotation:write-confirm", compared.pk)
    for name in ("one", "skip", "flag"):
        world.add(cast.annotator, f"annotation:write-{name}", written.pk, public)


def _make_comparisons(outputs: list[Output]) -> None:
    """Create comparisons of the systems on the first items by two raters, and a metadata key that splits the items."""
    by_item: dict[int, list[Output]] = {}
    for output in outputs:
        by_item.setdefault(output.item_id, []).append(output)
    aspect = Aspect.objects.get(project=outputs[0].project, name="quality")
    verdicts = ("a", "b", "tie", "a", "both_bad")
    rows = [
        Comparison(
            project=aspect.project, aspect=aspect, output_a=a, output_b=b, rater=f"c{rater}",
            verdict=verdicts[(index + rater + a.system_id) % len(verdicts)],
        )
        for index, texts in enumerate(list(by_item.values())[:12]) for a, b in combinations(texts, 2)
        for rater in range(2)
    ]  # fmt: skip
    Comparison.objects.bulk_create(rows)
    for index, item in enumerate(Item.objects.filter(pk__in=by_item).order_by("pk")):
        Item.objects.filter(pk=item.pk).update(meta={"domain": "food" if index % 2 else "travel"})


def _add_scoring(world: World) -> None:
    cast, slug = world.cast, world.cast.project.slug
    create_filter(project=cast.project, user=cast.researcher, name="hasty", raters=["r1"], reason="<b>2 s</b> each")
    for page in ("agreement", "agreement-raters", "agreement-calibration"):
        world.add(cast.researcher, f"scoring:{page}", slug)
        world.add(cast.researcher, f"scoring:{page}", slug, query="?aspect=quality&judged=ratings&filter=hasty")
    world.add(cast.researcher, "scoring:agreement-power", slug)
    world.add(cast.researcher, "scoring:agreement-power", slug, query="?test=williams&effect=0.4,0.3,0.5")
    world.add(cast.researcher, "scoring:evaluator-list", slug)
    world.add(cast.researcher, "scoring:evaluator-apply", slug, "bertscore")
    world.add(cast.researcher, "scoring:score-selected", slug, query="?evaluators=length&evaluators=chrf")
    world.add(cast.researcher, "scoring:evaluator", slug, "token-f1")
    world.add(cast.researcher, "scoring:scores-delete", slug, "token-f1")
    world.add(cast.researcher, "scoring:train", slug, "comparative")
    options = CombineOptions(("random", "length"), method="stacked", name="both")
    combined = execute_run(start_combination(project=cast.project, options=options, send=False).pk)
    assert combined is not None
    assert combined.state == "succeeded", combined.error
    world.add(cast.researcher, "scoring:evaluator", slug, "both")
    world.add(cast.researcher, "scoring:combine", slug)
    world.add(cast.researcher, "scoring:judge", slug)
    world.add(cast.researcher, "scoring:judge-report", slug, "length")
    world.add(cast.researcher, "scoring:alignment", slug, "length")
    world.add(cast.researcher, "scoring:sample", slug, "length")
    world.add(cast.researcher, "scoring:judge-template", slug)
    world.add(cast.researcher, "scoring:evaluator-upload", slug)
    world.add(cast.researcher, "scoring:evaluator-upload", slug, query="?folds=3")
    trained = make_trained(cast.project, "trained-one")
    world.add(cast.researcher, "scoring:evaluator", slug, trained.slug)
    world.add(cast.researcher, "scoring:evaluator-delete", slug, trained.slug)
    training = Run.objects.create(
        project=cast.project, kind="train", title="Train another", queue="gpu", state="running", attempt=1, done=30,
        total=90, unit="steps", rate=2.0, input_hash="z" * 64, started_at=timezone.now(), heartbeat=timezone.now(),
        params={"evaluator": "maude", "profile": "paper", "slug": "another"}, created_by=cast.researcher,
    )  # fmt: skip
    points = [CurvePoint(run=training, series="training", step=step, loss=1 / step) for step in range(1, 31)]
    CurvePoint.objects.bulk_create(points)
    world.add(cast.researcher, "scoring:training-curve", slug, training.pk)
    world.add(cast.researcher, "run", slug, training.pk)
    world.add(cast.researcher, "scoring:systems", slug)
    world.add(cast.researcher, "scoring:systems", slug, query="?by=token-f1")
    world.add(cast.researcher, "scoring:systems", slug, query="?method=win-rate")
    world.add(cast.researcher, "scoring:systems", slug, query="?method=davidson")
    world.add(cast.researcher, "scoring:systems", slug, query="?method=davidson&covariates=side%2Blength")
    _make_games_run(cast)
    world.add(cast.researcher, "scoring:systems", slug, query="?by=comparer&method=glicko2")
    world.add(cast.researcher, "scoring:systems", slug, query="?by=comparer&method=glicko2&systems=machine")
    for people in ("win-rate", "davidson"):
        world.add(cast.researcher, "scoring:evaluation", slug, query=f"?people={people}")
    world.add(cast.researcher, "scoring:agreement", slug, query="?ratings=rank")
    world.add(cast.researcher, "scoring:robustness", slug)
    study = make_study(cast.project)
    world.add(cast.researcher, "scoring:study-list", slug, query=f"?run={study.pk}")
    world.add(cast.researcher, "scoring:study", slug, study.pk)
    world.add(cast.researcher, "scoring:steps", slug)
    world.add(cast.researcher, "scoring:evaluation", slug)
    world.add(cast.researcher, "scoring:evaluation", slug, query="?level=system")
    for kind in ("pairs", "aspects", "slices", "matrix"):
        world.add(cast.researcher, "scoring:evaluation-board", slug, kind)
    world.add(cast.researcher, "scoring:evaluation", slug, query="?plot=token-f1")
    boards = (
        AgreementQuery(), SlicesQuery(), AspectsQuery(), MatrixQuery(), PairsQuery(), SystemsQuery(), EvaluatorsQuery(),
    )  # fmt: skip
    for query in boards:
        row = take_snapshot(project=cast.project, user=cast.researcher, query=query, note="A note.")
        world.add(cast.researcher, "scoring:snapshot", slug, row.slug)
    for name in ("snapshots", "snapshots-compare"):
        world.add(cast.researcher, f"scoring:{name}", slug)
    world.add(cast.researcher, "scoring:snapshot-delete", slug, row.slug)
    report, secret = create_report(
        project=cast.project, user=cast.owner, aspect="quality", raters=True, texts=True, label="Reviewers"
    )
    world.add(cast.owner, "scoring:report-list", slug)
    world.add(cast.owner, "scoring:report-create", slug)
    world.add(cast.viewer, "scoring:report", slug, report.pk)
    world.add(None, "scoring:shared-report", secret)
    world.add(None, "scoring:shared-report", "not-a-secret")
    world.add(cast.researcher, "scoring:item-scores", slug, Item.objects.filter(project=cast.project).first().pk)


def _make_games_run(cast: Cast) -> None:
    """Create a finished run of games with invented verdicts, to avoid training a judge."""
    judge = make_trained(cast.project, "comparer", "comparative")
    units = get_units(cast.project)
    systems = [units.code(pk, None) for pk in System.objects.filter(project=cast.project).values_list("pk", flat=True)]
    rows = [(a, b, item) for a, b in combinations(sorted(systems), 2) for item in range(12)]
    first, second, item = (np.array(column) for column in zip(*rows, strict=True))
    games = Met(
        units, first, second, (first + item) % 3 - 1, [f"i{k:03d}" for k in item], [f"g{k:03d}" for k in item],
        [k < 2 for k in item], swap_consistency=0.96,
    )  # fmt: skip
    table = systems_by_games(
        games, {"by": "comparer", "systems": "all", "ratings": "", "items": 12}, tie="half", seeds=5, seed=13,
        evaluator={"slug": "comparer", "signature": judge.signature, "aspect": ""},
    )  # fmt: skip
    table["extras"]["people"] = compare_with_people(cast.project, table)
    result = {
        "judge": judge.pk,
        "table": {"project": cast.project.slug, "lang": "", "stamp": "outdated", **table},
    }
    params = {"evaluator": "comparer", "systems": "all", "references": ""}
    Run.objects.create(
        project=cast.project, kind="games", title="Games by comparer", queue="gpu", state="succeeded", attempt=1,
        input_hash="y" * 64, started_at=timezone.now(), finished_at=timezone.now(), params=params, result=result,
        created_by=cast.researcher,
    )  # fmt: skip


def _add_corpora(world: World) -> None:
    cast, slug = world.cast, world.cast.project.slug
    corpus = make_corpus(cast.project, "daily-talk", licence="CC0 1.0", source="written for this test")
    add_file(corpus=corpus, user=cast.researcher, file=incoming(b'{"query": "x"}\n', "more.jsonl"), send=False)
    execute(corpus)  # refused: its page shows the faulty row
    for user in (cast.researcher, cast.viewer):
        world.add(user, "retrieval:corpus-list", slug)
        world.add(user, "retrieval:corpus", slug, corpus.name, query="?q=where+are+you+going")
    world.add(cast.owner, "retrieval:corpus-new", slug)
    world.add(cast.researcher, "retrieval:corpus-add", slug, corpus.name)
    world.add(cast.researcher, "retrieval:corpus-delete", slug, corpus.name)


def _add_references(world: World) -> None:
    """Add a reference set chosen by an evaluator with its trace, scores with this set, and reliability curves."""
    cast, slug = world.cast, world.cast.project.slug
    make_trained(cast.project, "judge", "ream")
    item = Item.objects.filter(project=cast.project).first()
    step = {
        "candidate": "Another answer.", "before": 0.31, "after": 0.37, "accepted": True, "evaluator": "judge",
        "source": {"kind": "withheld"},
    }  # fmt: skip
    gained = {"gain": 0.06, "after": 0.37, "evaluator": "judge", "source": {"kind": "withheld"}}
    counts = {"items": 1, "n_references": 2, "added": 1, "looked_at": 1, "mean_before": 0.31, "mean_after": 0.37}
    meta = {
        "kind": "selected", "evaluator": "judge", "metrics": ["bleu-star"], "signatures": ["ream|seed:13"], "max": 10,
        "references": "original", "start": "one", "candidates": "withheld", "counts": counts, "notes": ["A remark."],
    }  # fmt: skip
    chosen = [(item.pk, 0, "The first answer.", {}), (item.pk, 1, "Another answer.", gained)]
    new = NewSet("chosen", meta, chosen, [(item.pk, 0.31, 0.37, True, [step])])
    store_reference_sets(project=cast.project, sets=[new])
    execute_run(apply_evaluator(project=cast.project, evaluator="token-f1", references="chosen", send=False).pk)
    line = {
        "name": "gold",
        "points": [{"x": k, "value": k / 20, "low": 0.0, "high": k / 10, "n": 9} for k in (1, 2, 3)],
    }
    result = {
        "evaluator": "judge", "metric": "bleu-star", "other": "", "n_items": 9, "n_groups": 9, "n_left_out": 2,
        "references": "original", "seed": 13,
        "panels": {"size": {"axes": ["references", "reliability"], "lines": [line]}},
        "table": [{"size": 1, "n": 9, "gold": 0.1, "predicted": 0.2, "mse": 0.02, "constant": 0.03, "r2": 0.33}],
    }  # fmt: skip
    Run.objects.create(
        project=cast.project, kind="reliability", title="Reliability curves of judge", queue="gpu", state="succeeded",
        attempt=1, input_hash="r" * 64, finished_at=timezone.now(), params={}, result=result,
        created_by=cast.researcher,
    )  # fmt: skip
    for name in ("reference-sets", "select-references", "reference-sets-merge", "enhanced", "reliability-curves"):
        world.add(cast.researcher, f"scoring:{name}", slug)
    world.add(cast.researcher, "scoring:reference-sets-compare", slug, query="?first=chosen&second=original")
    for name in ("chosen", "original"):
        world.add(cast.researcher, "scoring:reference-set", slug, name)
        world.add(cast.researcher, "scoring:reference-set-delete", slug, name)


def get_navigation_urls(slug: str) -> list[str]:
    """Return the addresses in the navigation of a project."""
    names = ("project", "annotation:item-list", "annotation:upload-list", "annotation:campaign-list",
             "annotation:campaign-new", "annotation:system-list", "retrieval:corpus-list", "scoring:evaluator-list",
             "scoring:systems", "scoring:evaluation", "annotation:export-list", "run-list",
             "accounts:member-list")  # fmt: skip
    return [reverse(name, args=[slug]) for name in names]


def make_unusual_texts(cast: Cast) -> list[str]:
    """Put unusual texts into every text field of a project; return the addresses of its pages."""
    project = cast.foreign
    items = make_items(project, len(UNUSUAL))
    for item, text in zip(items, UNUSUAL, strict=True):
        item.context, item.key, item.group = [text, text], f"{item.key}-{text[:60]}", text[:60]
        item.meta = {text[:40]: text}
        item.save()
    outputs = make_outputs(project, items, (UNUSUAL[0], UNUSUAL[1], UNUSUAL[3][:100]))
    for number, output in enumerate(outputs):
        output.text = UNUSUAL[number % len(UNUSUAL)] if number % 7 else ""
    Output.objects.bulk_update(outputs, ["text"])
    make_ratings(project, outputs, aspect=UNUSUAL[1])
    execute_run(apply_evaluator(project=project, evaluator="length", send=False).pk)
    aspects = [{"name": "quality", "question": UNUSUAL[3], "low": 1, "high": 5, "labels": {"1": UNUSUAL[0]}}]
    plan = {"name": UNUSUAL[1], "kind": "likert", "aspects": aspects, "guidelines": UNUSUAL[1] + "\n\n" + UNUSUAL[3]}
    campaign = create_campaign(project=project, user=cast.stranger, plan=plan)
    campaign = open_campaign(campaign=campaign, user=cast.stranger, here=True)
    corpus = make_corpus(project, "strange", zip(UNUSUAL, reversed(UNUSUAL), strict=True), source=UNUSUAL[3])
    urls = [reverse("annotation:item-show", args=[project.slug, item.pk]) for item in items]
    for name in ("campaign", "campaign-units", "campaign-preview", "campaign-edit"):
        urls.append(reverse(f"annotation:{name}", args=[project.slug, campaign.pk]))
    get_next_assignment(user=cast.stranger, campaign_id=campaign.pk)
    urls.append(reverse("annotation:judge", args=[campaign.pk]))
    plan = {"name": UNUSUAL[1], "slug": "strange", "guidelines": UNUSUAL[3], "options": {"arms": ["control"]}}
    writing = create_writing(user=cast.stranger, project=project, plan=plan)
    writing = open_campaign(user=cast.stranger, campaign=writing)
    public = get_next_task(user=cast.stranger, campaign_id=writing.pk).public
    for text in UNUSUAL[:4]:
        submit_attempt(user=cast.stranger, public=public, submission=uuid4(), text=text)
    urls.append(reverse("annotation:write", args=[writing.pk]))
    urls.append(reverse("annotation:writing", args=[project.slug, writing.pk]))
    urls.append(reverse("annotation:writing-references", args=[project.slug, writing.pk]))
    urls.append(reverse("retrieval:corpus", args=[project.slug, corpus.name]) + "?q=quotes+paragraphs+tabs")
    urls.append(reverse("scoring:evaluator", args=[project.slug, "length"]))
    return [*get_navigation_urls(project.slug), *urls]
