"""The demonstration project: texts written for it, outputs of systems that really answered, simulated judgements,
open campaigns and scores. What is there already is kept, so that a second time takes seconds."""

from __future__ import annotations

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

SLUG = "demo"
PEOPLE = ((Role.OWNER, "owner"), (Role.RESEARCHER, "researcher"), (Role.ANNOTATOR, "annotator"))
#: Those of seconds: the leaderboards of the first look stand on them.
QUICK = ("length", "overlap", "random", "token-f1", "bleu-star", "chrf", "rouge-l")
EVALUATORS = (*QUICK, "bertscore")
#: What the pages show first, as commands: computed before anybody opens a page that would leave them to a run.
TABLES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("systems", {}), ("meta", {}), ("agreement", {}), ("agreement", {"aspect": "naturalness"}),
    ("meta", {"aspects": True}), ("meta", {"slices": ""}), ("meta", {"matrix": True}),
    ("meta", {"pairs": True}),
)  # fmt: skip
#: What the worker then learns and applies: quick ones of small data, each group scored by a model that did not see it.
TRAININGS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("adem", {"aspect": "naturalness"}),
    ("ream", {"aspect": "naturalness", "settings_given": [("sizes", "1,2,3"), ("epochs", "10"), ("foreign", "5")]}),
    ("shared-bert", {"folds": 2, "settings_given": [("epochs", "2"), ("max_references", "1")]}),
)
#: How long `up` may need until its worker signs on.
PATIENCE = 20.0
#: How long the quick evaluators may take before tables are computed from what is there.
PATIENCE_FOR_SCORES = 180.0


class Command(commands.Command):
    help = "Fill the demonstration project: data, people, campaigns, scores. Starts nothing."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--reset", action="store_true", help="Delete it first, and give new passwords")
        parser.add_argument("--data", type=Path, metavar="FOLDER", help="An interchange folder of your own instead")

    def work(self, *, reset: bool, data: Path | None, **_: Any) -> dict[str, Any]:
        slug = SLUG if data is None else self._slug_of(data)
        self._refuse_others(slug)
        passwords = self._people(reset)
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
        self._join(project)
        loaded = self._load(project, data)
        if data is None:
            self._campaigns(project)
            self._writing(project)
        runs = self._put_to_work(project, own_data=data is not None)
        return {"project": slug, "loaded": loaded, "passwords": passwords, "runs": runs}

    def _slug_of(self, folder: Path) -> str:
        if not folder.is_dir():
            raise commands.WrongUsage(f"{folder} is no folder. DATA and --data take one in the interchange format.")
        return slugify(folder.resolve().name)[:63].strip("-") or "data"

    def _refuse_others(self, slug: str) -> None:
        """Accounts and projects that are only called so: nobody acts in their name, joins, fills or deletes."""
        for user in User.objects.filter(username__in=[name for _, name in PEOPLE]):
            if not self._is_ours(user):
                raise BadInput(
                    f"There is a user “{user.username}” who is not of the demonstration; nothing was changed. "
                    "Take another data folder: EVALAPP_DATA=FOLDER."
                )
        project = Project.objects.select_related("created_by").filter(slug=slug).first()
        if project is None or AuditEvent.objects.filter(project=project, verb__startswith="demo.").exists():
            return
        maker = project.created_by
        if slug != SLUG or maker is None or not self._is_ours(maker):  # else one begun by an earlier version
            raise BadInput(
                f"There is a project “{slug}” that is not of the demonstration; nothing was changed. "
                "Rename the folder of your data, or take another data folder: EVALAPP_DATA=FOLDER."
            )

    def _people(self, reset: bool) -> dict[str, str]:
        """New passwords, by user name; they are printed and kept nowhere."""
        made = {}
        there = {user.username: user for user in User.objects.filter(username__in=[name for _, name in PEOPLE])}
        for _, name in PEOPLE:
            user = there.get(name)
            if user is not None and not reset:
                continue
            user = user or User(username=name, preferences={"demo": True})
            made[name] = secrets.token_urlsafe(9)
            user.set_password(made[name])
            user.save()
            audit.record(verb="account.created", actor=user, object=name, demo=True)
            # At once: whoever interrupts the filling has them all the same.
            self.say(f"sign in as {name} with the password {made[name]}")
        return made

    def _is_ours(self, user: User) -> bool:
        return bool(user.preferences.get("demo"))

    def _join(self, project: Project) -> None:
        for role, name in PEOPLE:
            user = User.objects.get(username=name)
            if not Membership.objects.filter(project=project, user=user).exists():
                add_member(project=project, user=user, role=role, actor=project.created_by)

    def _load(self, project: Project, data: Path | None) -> bool:
        """False when the data are there already."""
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
            project.refresh_from_db()  # the data brought their own description
            update_project(project=project, actor=project.created_by, name="Demonstration")
        audit.record(verb="demo.loaded", project=project, object=project.slug)
        return True

    def _campaigns(self, project: Project) -> None:
        plans = Path(demo.__file__).parent / "campaigns.json"
        made = {"slugs": sorted(row["slug"] for row in json.loads(plans.read_text(encoding="utf-8")))}
        if AuditEvent.objects.filter(project=project, verb="demo.campaigns", detail=made).exists():
            return
        self.say("opening the campaigns")
        self._call("campaign", project.slug, str(plans), open=True, by="researcher")
        audit.record(verb="demo.campaigns", project=project, object=project.slug, **made)

    def _writing(self, project: Project) -> None:
        """A corpus of the dialogues, two open campaigns of reference writing, and one as a draft: it shows scores of
        `ream`, which the worker has yet to train."""
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

    def _put_to_work(self, project: Project, *, own_data: bool) -> list[int]:
        """Queue what was not asked for yet. Where no worker comes, score here; trainings would keep people waiting."""
        asked = Run.objects.filter(project=project, kind__in=["score", "train"])
        known = set(asked.exclude(state__in=["failed", "cancelled"]).values_list("params__evaluator", flat=True))
        scores = [name for name in EVALUATORS if name not in known]
        trainings = [] if own_data else [(name, more) for name, more in TRAININGS if name not in known]
        if not scores and not trainings:
            return []
        detach = self._worker_comes()
        quick = [name for name in scores if name in QUICK]
        numbers = self._score(project, quick, detach=detach)
        if quick and not own_data:
            self._compute_tables(project, numbers)
        numbers += self._score(project, [name for name in scores if name not in QUICK], detach=detach)
        for name, more in trainings if detach else ():
            self.say(f"{name}: training queued")
            told = self._call("train", name, project=project.slug, apply=True, detach=True, verbosity=0, **more)
            numbers.append(told["run"])
        return numbers

    def _score(self, project: Project, names: list[str], *, detach: bool) -> list[int]:
        """The runs. What one's own data have nothing for, as references, is left out and says why."""
        runs = []
        for name in names:
            self.say(f"{name}: {'queued' if detach else 'scoring here, no worker is running'}")
            try:
                told = self._call("score", name, project=project.slug, **{"detach" if detach else "here": True})
            except CommandError as error:
                self.say(f"{name}: left out. {error}")
            else:
                runs.append(int(told["run"]))
        return runs

    def _compute_tables(self, project: Project, runs: list[int]) -> None:
        """The tables of the pages, from these runs' scores. One that fails is left to its page, which tells why."""
        until = time.monotonic() + PATIENCE_FOR_SCORES
        while Run.objects.filter(pk__in=runs, state__in=Run.ACTIVE).exists() and time.monotonic() < until:
            time.sleep(0.5)
        self.say("computing the leaderboards")
        for name, options in TABLES:
            try:
                self._call(name, project.slug, **options)
            except CommandError as error:
                self.say(f"{name}: {error}")

    def _worker_comes(self) -> bool:
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
        """Rooms downstream are known by the names of their commands only."""
        answer = io.StringIO()
        call_command(name, *arguments, json=True, stdout=answer, stderr=self.stderr, **options)
        return json.loads(answer.getvalue())

    def show(self, result: dict[str, Any]) -> None:
        words = "is filled" if result["loaded"] else "is there already and was kept"
        self.stdout.write(f"The project “{result['project']}” {words}.")
        if result["runs"]:
            self.stdout.write(f"At work: {len(result['runs'])} runs; see: manage.py runs {result['project']}")
        for name, password in result["passwords"].items():
            self.stdout.write(f"  {name:<12} password (kept nowhere): {password}")
        if not result["passwords"]:
            self.stdout.write("Passwords are kept. A new one: manage.py changepassword researcher")
            self.stdout.write("All anew, data too: manage.py demo --reset")
