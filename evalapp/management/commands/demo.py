"""`evalapp demo`: fill the demonstration project with texts, outputs of small systems, simulated judgements,
campaigns and scores. Existing parts are skipped, so that a repetition takes seconds."""

import io
import json
import secrets
import tempfile
import time
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import redis
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import transaction
from django.utils.text import slugify

from evalapp import demo
from evalapp.accounts.models import Membership, Project, User
from evalapp.accounts.roles import Role
from evalapp.accounts.services import add_member, create_project, delete_project, update_project
from evalapp.common import audit, commands
from evalapp.common.errors import BadInput
from evalapp.common.models import AuditEvent, Run
from evalapp.common.queue import queue_has_worker
from evalapp.layout import find_program

SLUG = "demo"
PEOPLE = ((Role.OWNER, "owner"), (Role.RESEARCHER, "researcher"), (Role.ANNOTATOR, "annotator"))
#: Evaluators that take seconds, for the first leaderboards.
QUICK = ("length", "overlap", "random", "token-f1", "bleu-star", "chrf", "rouge-l")
EVALUATORS = (*QUICK, "bertscore", "maude-base")
#: Commands and options of the tables that pages show first, computed in advance.
TABLES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("systems", {}), ("meta", {}), ("agreement", {}), ("agreement", {"aspect": "naturalness"}),
    ("meta", {"aspects": True}), ("meta", {"slices": ""}), ("meta", {"matrix": True}),
    ("meta", {"pairs": True}),
)  # fmt: skip
#: Evaluators that the worker trains and applies: short trainings on small data, cross-fitted, the quickest first, and
#: the rival `adem` last.
TRAININGS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("ridge", {"folds": 5}),
    ("ream", {"aspect": "naturalness", "options": [("sizes", "1,2,3"), ("epochs", "10"), ("foreign", "5")]}),
    ("shared-bert", {"folds": 2, "options": [("epochs", "2"), ("max_references", "1")]}),
    ("comparative", {"aspect": "naturalness", "folds": 2, "options": [("stages", "head"), ("references", "4")]}),
    ("perception", {"folds": 2, "options": [("stages", "head")]}),
    ("adem", {"aspect": "naturalness"}),
)
#: Seconds to wait for a worker of `up`.
PATIENCE = 20.0
#: Seconds to wait for the quick evaluators before tables are computed.
PATIENCE_FOR_SCORES = 180.0


class Command(commands.Command):
    help = "Fill the demonstration project with data, users, campaigns and scores. Starts no server."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--reset", action="store_true", help="Delete the project first, and set new passwords")
        parser.add_argument("--data", type=Path, metavar="FOLDER", help="Load your own interchange folder instead")

    def work(self, *, reset: bool, data: Path | None, **_: Any) -> dict[str, Any]:
        slug = SLUG if data is None else self._make_slug(data)
        self._check_names(slug)
        passwords = self._create_users(reset)
        owner = User.objects.get(username="owner")
        project = Project.objects.filter(slug=slug).first()
        if project is not None and reset:
            self.say(f"deleting {slug}")
            delete_project(project=project, actor=owner, confirmation=slug)
            project = None
        if project is None:
            with transaction.atomic():
                project = create_project(slug=slug, owner=owner)
                audit.record(verb="demo.made", project=project, actor=owner, object=slug)
        self._add_members(project)
        loaded = self._load(project, data)
        if data is None:
            self._open_campaigns(project)
            self._prepare_writing(project)
        runs = self._start_runs(project, own_data=data is not None)
        return {"project": slug, "loaded": loaded, "passwords": passwords, "runs": runs}

    def _make_slug(self, folder: Path) -> str:
        if not folder.is_dir():
            raise commands.WrongUsage(f"{folder} is not a folder. DATA and --data need an interchange folder.")
        return slugify(folder.resolve().name)[:63].strip("-") or "data"

    def _check_names(self, slug: str) -> None:
        """Refuse to use accounts and projects of the same names that do not belong to the demonstration."""
        for user in User.objects.filter(username__in=[name for _, name in PEOPLE]):
            if not self._is_demo_user(user):
                raise BadInput(
                    f"The user “{user.username}” does not belong to the demonstration; nothing was changed. "
                    "Use another data folder: EVALAPP_DATA=FOLDER."
                )
        project = Project.objects.select_related("created_by").filter(slug=slug).first()
        if project is None or AuditEvent.objects.filter(project=project, verb__startswith="demo.").exists():
            return
        creator = project.created_by
        # An earlier version may have created the demonstration without an audit entry.
        if slug != SLUG or creator is None or not self._is_demo_user(creator):
            raise BadInput(
                f"The project “{slug}” does not belong to the demonstration; nothing was changed. "
                "Rename the folder of your data, or use another data folder: EVALAPP_DATA=FOLDER."
            )

    def _create_users(self, reset: bool) -> dict[str, str]:
        """Return user name -> new password. Passwords are only printed."""
        passwords = {}
        users = {user.username: user for user in User.objects.filter(username__in=[name for _, name in PEOPLE])}
        for _, name in PEOPLE:
            user = users.get(name)
            if user is not None and not reset:
                continue
            user = user or User(username=name, preferences={"demo": True})
            passwords[name] = secrets.token_urlsafe(9)
            user.set_password(passwords[name])
            user.save()
            audit.record(verb="account.created", actor=user, object=name, demo=True)
            # Printed at once, in case the command is interrupted.
            self.say(f"sign in as {name} with the password {passwords[name]}")
        return passwords

    def _is_demo_user(self, user: User) -> bool:
        return bool(user.preferences.get("demo"))

    def _add_members(self, project: Project) -> None:
        for role, name in PEOPLE:
            user = User.objects.get(username=name)
            if not Membership.objects.filter(project=project, user=user).exists():
                add_member(project=project, user=user, role=role, actor=project.created_by)

    def _load(self, project: Project, data: Path | None) -> bool:
        """Load the data. Returns False if they have been loaded already."""
        if AuditEvent.objects.filter(project=project, verb="demo.loaded").exists():
            return False
        if data is not None:
            self._call("load", str(data), project=project.slug)
        else:
            from evalapp.demo.build import build

            with tempfile.TemporaryDirectory(prefix="evalapp-demo-") as name:
                self.say("writing the demonstration data")
                build(Path(name))
                self.say("loading them")
                self._call("load", name, project=project.slug)
            project.refresh_from_db()  # the data contain a description
            update_project(project=project, actor=project.created_by, name="Demonstration")
        audit.record(verb="demo.loaded", project=project, object=project.slug)
        return True

    def _open_campaigns(self, project: Project) -> None:
        plans = Path(demo.__file__).parent / "campaigns.json"
        detail = {"slugs": sorted(row["slug"] for row in json.loads(plans.read_text(encoding="utf-8")))}
        if AuditEvent.objects.filter(project=project, verb="demo.campaigns", detail=detail).exists():
            return
        self.say("opening the campaigns")
        self._call("campaign", project.slug, str(plans), open=True, by="researcher")
        audit.record(verb="demo.campaigns", project=project, object=project.slug, **detail)

    def _prepare_writing(self, project: Project) -> None:
        """Create a corpus of the dialogues, two open writing campaigns, and a draft of one that shows scores of `ream`,
        which the worker trains later."""
        if AuditEvent.objects.filter(project=project, verb="demo.writing").exists():
            return
        self.say("preparing reference writing")
        self._call(
            "corpus", "add", "replies", project=project.slug, derive="corpus", here=True,
            licence="Apache-2.0", source="dialogues written for the demonstration",
        )  # fmt: skip
        from evalapp.demo.texts import WRITING, WRITING_SCORED

        self._call("campaign", project.slug, str(WRITING), open=True, by="researcher")
        self._call("campaign", project.slug, str(WRITING_SCORED), by="researcher")
        audit.record(verb="demo.writing", project=project, object=project.slug)

    def _start_runs(self, project: Project, *, own_data: bool) -> list[int]:
        """Queue missing scores and trainings; return the ids of the runs. Without a worker, only score, in this
        process."""
        runs = Run.objects.filter(project=project, kind__in=["score", "train"])
        known = set(runs.exclude(state__in=["failed", "cancelled"]).values_list("params__evaluator", flat=True))
        scores = [name for name in EVALUATORS if name not in known]
        trainings = [] if own_data else [(name, more) for name, more in TRAININGS if name not in known]
        if not scores and not trainings:
            return []
        detach = self._wait_for_worker()
        quick = [name for name in scores if name in QUICK]
        numbers = self._score(project, quick, detach=detach)
        if quick and not own_data:
            self._compute_tables(project, numbers)
        numbers += self._score(project, [name for name in scores if name not in QUICK], detach=detach)
        for name, more in trainings if detach else ():
            self.say(f"{name}: training queued")
            result = self._call("train", name, "--project", project.slug, apply=True, detach=True, verbosity=0, **more)
            numbers.append(result["run"])
        return numbers

    def _score(self, project: Project, names: list[str], *, detach: bool) -> list[int]:
        """Start scoring; return the ids of the runs. Evaluators that the data do not support are skipped."""
        runs = []
        for name in names:
            self.say(f"{name}: {'queued' if detach else 'scoring here, no worker is running'}")
            try:
                result = self._call("score", name, project=project.slug, **{"detach" if detach else "here": True})
            except CommandError as error:
                self.say(f"{name}: skipped. {error}")
            else:
                runs.append(int(result["run"]))
        return runs

    def _compute_tables(self, project: Project, runs: list[int]) -> None:
        """Compute the tables of the pages after these runs. The page of a table that fails shows the reason."""
        until = time.monotonic() + PATIENCE_FOR_SCORES
        while Run.objects.filter(pk__in=runs, state__in=Run.ACTIVE).exists() and time.monotonic() < until:
            time.sleep(0.5)
        self.say("computing the leaderboards")
        for name, options in TABLES:
            try:
                self._call(name, project.slug, **options)
            except CommandError as error:
                self.say(f"{name}: {error}")

    def _wait_for_worker(self) -> bool:
        try:
            redis.Redis.from_url(settings.REDIS_URL, socket_connect_timeout=1, socket_timeout=1).ping()
        except redis.RedisError:
            return queue_has_worker("cpu")
        until = time.monotonic() + PATIENCE
        while not queue_has_worker("cpu"):
            if time.monotonic() > until:
                return False
            time.sleep(0.5)
        return True

    def _call(self, name: str, *arguments: str, **options: Any) -> dict[str, Any]:
        """Run a command of another app, which this app does not import; return its JSON."""
        output = io.StringIO()
        call_command(name, *arguments, json=True, stdout=output, stderr=self.stderr, **options)
        return json.loads(output.getvalue())

    def show(self, result: dict[str, Any]) -> None:
        state = "has been filled" if result["loaded"] else "was filled before; its data are unchanged"
        self.stdout.write(f"The project “{result['project']}” {state}.")
        if result["runs"]:
            self.stdout.write(f"Started {len(result['runs'])} runs; see: {find_program()} runs {result['project']}")
        for name, password in result["passwords"].items():
            self.stdout.write(f"  {name:<12} password (shown once): {password}")
        if not result["passwords"]:
            self.stdout.write(f"Passwords are unchanged. Set a new one: {find_program()} changepassword researcher")
            self.stdout.write("Start again with new data and passwords: evalapp demo --reset")
