"""Executes every block of the documentation, in page order, in a fresh folder, with the files that the page shows.
Blocks that cannot run here are listed with the reason; a line that is neither run nor listed fails."""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.core.management import call_command
from django.db import transaction

from annotation.models import Rating
from annotation.services.campaigns import create_campaign, open_campaign
from annotation.services.filters import create_filter
from annotation.services.judging import get_next_assignment, submit_answer
from evalapp.accounts.models import Project, User
from evalapp.accounts.roles import Role
from evalapp.accounts.services import create_project, create_token
from evalapp.common import run_commands
from evalapp.common.models import Run
from evalapp.common.runner import execute_run
from scoring.boards import recompute
from scoring.models import Evaluator, Score, ScoreSet
from tests.cast import join, person
from tests.docs.blocks import PAGES, ROOT, read_blocks
from tests.docs.test_worked_numbers import EXPLAINED

pytestmark = [pytest.mark.slow]

DOCKER, HOST = "needs Docker and its images", "is for the host of an installation (cron, systemd, git, a proxy)"
MAKE = "needs a whole installation; tests/services/test_run.py and the flows run the same commands"
ENCODER = "reads texts with a language model of 400 MB; the tests of tests/scoring run it with a small one"
GAMES = "needs a trained comparative: tests/scoring/management/test_games.py"
PAPERS = "computes for hours on public data sets that are not part of the repository"
#: Lines that no test runs: page -> beginnings of lines -> reason.
NOT_RUN: dict[str, dict[str, str]] = {
    "README.md": {"make ": MAKE},
    "CONTRIBUTING.md": {"make ": MAKE},
    "docs/how-to/install.md": {"": "tests/evalapp/test_installed.py"},
    "docs/tutorial/first-evaluation.md": {"make ": MAKE},
    "docs/how-to/back-up-and-move.md": {
        "docker ": DOCKER, "createdb ": HOST, "export ": HOST,
        "evalapp restore": "needs an empty installation: tests/evalapp/management/test_backup.py",
        "evalapp backup": "tests/evalapp/management/test_backup.py",
        "mkdir /tmp/trial": HOST, "EVALAPP_DATA=/tmp/trial": "a second installation: tests/faults/test_backup.py",
    },
    "docs/how-to/judge-fewer-outputs.md": {
        "evalapp sample": "needs outputs without ratings: tests/scoring/services/test_choosing.py"
    },
    "docs/operations/upgrade-and-rollback.md": {"": HOST},
    "docs/operations/proxy.md": {"": "tests/docs/test_proxy.py"},
    "docs/operations/sign-in-and-mail.md": {"": "tests/evalapp/accounts/views/test_identities.py"},
    "docs/how-to/webhooks.md": {"": "tests/evalapp/events/test_delivering.py"},
    "docs/how-to/choose-references.md": {"evalapp ": ENCODER},
    "docs/how-to/train-an-evaluator.md": {
        "evalapp ": ENCODER,
        "from sentence_transformers import": "needs a trained encoder: tests/scoring/ml/test_artefact.py",
        "curl -H \"Authorization: Bearer $TOKEN\" -F name=natural": "names files by “...”: tests/scoring/api",
        "curl -H \"Authorization: Bearer $TOKEN\" -H \"Content-Type": "needs a worker of the queue live",
    },
    "docs/how-to/score-and-rank.md": {
        "evalapp score bertscore": ENCODER, "evalapp systems weekend --by bertscore": ENCODER,
        "evalapp games": GAMES,
        "evalapp systems weekend --by judge": GAMES,
        "evalapp selection weekend --evaluator judge": "needs a trained evaluator: test_selection.py",
        "evalapp meta weekend --pairs --evaluators length random judge": GAMES,
        "report = project.create_report": "a client: tests/evalapp/client/test_reports.py",
    },
    "docs/how-to/hire-annotators.md": {
        "evalapp recruit weekend naturalness --participants": "names a link by its number: test_recruit.py",
    },
    "docs/how-to/judge-with-a-language-model.md": {"": "needs a language model: tests/scoring/pipelines/test_judge.py"},
    "docs/how-to/run-a-study.md": {"": "trains for minutes: tests/scoring/test_studies.py"},
    "docs/how-to/score-files.md": {
        "evalapp score -i one.txt two.txt -r ref.txt -m bertscore": ENCODER,
        "evalapp score -i one.txt two.txt -r ref.txt -m ./my-evaluator": "tests/scoring/ml/score_files",
    },
    "docs/how-to/upload-scores.md": {"project.upload_scores": "a client: tests/evalapp/client/test_client.py"},
    "docs/how-to/write-a-plugin.md": {"": "tests/evalapp/test_installed.py"},
    "docs/how-to/export-for-other-programs.md": {"project.download": "a client: tests/evalapp/client/test_client.py"},
    "docs/how-to/publish-an-export.md": {
        "from datasets import": "needs the package datasets",
        "evalapp dump weekend published": "tests/annotation/management/commands/test_push.py",
        "project.export": "a client: tests/evalapp/client/test_notebook.py",
    },
    "docs/results/README.md": {"python ": PAPERS},
    "docs/results/floors.md": {"evalapp ": PAPERS},
}  # fmt: skip
#: Pages whose Python has its own test: it needs a small encoder or a routed client, or its values are compared with the
#: page.
ELSEWHERE = {
    "docs/how-to/python-client.md": "tests/evalapp/client/test_how_to.py",
    "docs/how-to/score-dialogues.md": "tests/scoring/ml/test_how_to.py",
    "docs/reference/library.md": "tests/scoring/ml/test_how_to.py",
    **{f"docs/{page}": "tests/docs/test_worked_numbers.py" for page in EXPLAINED},
}
#: Blocks that are shown but not run: templates, diagrams.
SHOWN = {"templates/README.md": "html", "CONTRIBUTING.md": "", "docs/operations/proxy.md": ""}


#: A sentence about something identified by a number.
NUMBERED = re.compile(r"\b\d+ (?:has no|has undefined|is constant|gives the same).*")


def reason_for(page: str, line: str) -> str:
    return next((why for start, why in NOT_RUN.get(page, {}).items() if line.startswith(start)), "")


class Reader:
    """A person at a terminal in an empty folder who follows a page."""

    def __init__(self, page: str, folder: Path, address: str = "", token: str = "") -> None:
        self.page, self.folder, self.address, self.token = page, folder, address, token
        self.names: dict[str, Any] = {}
        self.settings: list[str] = []
        self.said: dict[str, str] = {}

    def follow(self) -> None:
        for block in read_blocks(self.page):
            if block.title:
                path = self.folder / block.title
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(block.text, encoding="utf-8")
            elif block.language == "python":
                if not reason_for(self.page, block.text):
                    exec(compile(block.text, f"{self.page}:{block.line}", "exec"), self.names)
            else:
                for line in block.commands():
                    if not reason_for(self.page, line):
                        self.said[line] = self.run(line)

    def run(self, line: str) -> str:
        if line.startswith("evalapp "):
            return self._command(shlex.split(line.removeprefix("evalapp ")))
        if line.startswith("python -m evalapp.stats.recompute "):
            assert recompute.main(shlex.split(line)[3:]) == 0, line
            return ""
        if line.startswith("curl ") or re.match(r"[A-Z]\w*=", line):
            return self._curl(line)
        raise AssertionError(f"{self.page} has a line that is neither run nor listed in NOT_RUN: {line}")

    def _command(self, words: list[str]) -> str:
        out, err = io.StringIO(), io.StringIO()
        call_command(*words, stdout=out, stderr=err)
        return out.getvalue() + err.getvalue()

    def _curl(self, line: str) -> str:
        if not line.startswith("curl "):
            self.settings.append(line)
            return ""
        line = line.replace("curl ", "curl -sS --fail-with-body ", 1)
        script = "\n".join(["set -e", *self.settings, line])
        script = re.sub(r"http://127\.0\.0\.1:8000|https://evalapp\.example\.org", self.address, script)
        env = {"PATH": os.environ["PATH"], "TOKEN": self.token}
        done = subprocess.run(
            ["bash", "-c", script], cwd=self.folder, env=env, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, f"{line}\n{done.stdout[:600]}\n{done.stderr[-600:]}"
        for run in Run.objects.filter(state=Run.State.QUEUED):
            execute_run(run.pk)
        return done.stdout


# ---- starting states of pages ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def weekend(django_db_setup: Any, django_db_blocker: Any, demo_files: Path) -> Iterator[None]:
    """A project *weekend* of the owner olga with the demonstration's rated and compared outputs."""
    with django_db_blocker.unblock(), transaction.atomic():
        olga = User.objects.create_user("olga", password="a-quiet-lake-13", is_superuser=True, is_staff=True)
        person("researcher")
        create_project(slug="weekend", owner=olga)
        call_command("load", str(demo_files), "--project", "weekend", stdout=io.StringIO(), stderr=io.StringIO())
        for name in ("length", "overlap", "random", "token-f1", "bleu-4", "chrf"):
            call_command("score", name, "--project", "weekend", "--here", stdout=io.StringIO(), stderr=io.StringIO())
        make_constant(Project.objects.get(slug="weekend"))
        yield
        transaction.set_rollback(True)


def make_constant(project: Project) -> None:
    """An evaluator without coefficients: commands must refer to it by name, not by number."""
    scored = ScoreSet.objects.get(project=project, evaluator__slug="length")
    rows = list(Score.objects.filter(score_set=scored))
    evaluator = Evaluator.objects.get(pk=scored.evaluator_id)
    evaluator.pk, evaluator.slug, evaluator.name, evaluator.kind = None, "constant", "token-f1", "metric"
    evaluator.save()
    scored.pk, scored.evaluator, scored.signature = None, evaluator, "constant|v:0"
    scored.save()
    for row in rows:
        row.pk, row.score_set, row.value = None, scored, 1.0
    Score.objects.bulk_create(rows)


@pytest.fixture
def here(weekend: None, tmp_path: Path, monkeypatch: Any, django_db_blocker: Any) -> Iterator[Path]:
    """A fresh folder; rows that a page stores are rolled back. A run is executed as soon as it is followed."""
    monkeypatch.setattr(run_commands, "follow_run", lambda run, say: execute_run(run.pk) or run)
    monkeypatch.chdir(tmp_path)
    with django_db_blocker.unblock(), transaction.atomic():
        yield tmp_path
        transaction.set_rollback(True)


def without_project() -> None:
    Project.objects.filter(slug="weekend").delete()


def without_olga() -> None:
    without_project()
    User.objects.filter(username="olga").delete()


def with_my_folder() -> None:
    """The files of *Bring your own data*, which later pages continue with."""
    for block in read_blocks("docs/how-to/bring-your-own-data.md"):
        if block.title:
            Path(block.title).parent.mkdir(exist_ok=True)
            Path(block.title).write_text(block.text, encoding="utf-8")


def with_my_outputs() -> None:
    """The items and outputs of *Bring your own data* in the project."""
    with_my_folder()
    Path("my-folder/dataset.json").unlink()
    call_command("load", "my-folder", "--project", "weekend", stdout=io.StringIO())


def with_people() -> None:
    """A named filter *hasty*, and a campaign *pilot* with judgements of two people."""
    project, olga = Project.objects.get(slug="weekend"), User.objects.get(username="olga")
    rater = Rating.objects.filter(project=project).values_list("rater", flat=True).first()
    create_filter(project=project, user=olga, name="hasty", raters=[rater], reason="2 s each")
    scale = {"name": "naturalness", "question": "How natural is it?", "low": 1, "high": 5}
    plan = {
        "name": "Pilot",
        "slug": "pilot",
        "kind": "likert",
        "overlap": 2,
        "items": {"sample": 8},
        "aspects": [scale],
    }
    draft = create_campaign(project=project, user=olga, plan={**plan, "aspects": [scale]})
    pilot = open_campaign(campaign=draft, user=olga, here=True)
    for number in range(2):
        fred = person(f"fred-{number}")
        join(project, fred, Role.ANNOTATOR)
        shown = get_next_assignment(user=fred, campaign_id=pilot.pk).shown
        for value in (1, 2, 4, 5, 3):
            answer = {"naturalness": value}
            sent = submit_answer(user=fred, public=shown.public, submission=uuid4(), answer=answer, then="next")
            shown = sent.next


def with_rated_dialogues() -> None:
    """Dialogues rated as a whole, with their turns as outputs of items of their group."""
    rows: dict[str, list[dict[str, Any]]] = {"items": [], "outputs": [], "dialogues": [], "ratings": []}
    for number in range(12):
        turns = ["Hello there.", " ".join(["Yes"] * (number + 1))]
        rows["dialogues"].append({"id": f"rated-{number}", "turns": turns, "system": "sys-a"})
        rows["items"].append({"id": f"turn-{number}", "context": turns[:1], "group": f"rated-{number}"})
        rows["outputs"].append({"item": f"turn-{number}", "system": "sys-a", "text": turns[1]})
        rating = {"dialogue": f"rated-{number}", "rater": "r1", "aspect": "naturalness", "value": 1 + number % 5}
        rows["ratings"].append(rating)
    for name, kind in rows.items():
        Path(f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in kind), encoding="utf-8")
    call_command("load", ".", "--project", "weekend", stdout=io.StringIO())
    call_command("score", "length", "--project", "weekend", "--here", stdout=io.StringIO())


#: Further requirements of a page, besides the project *weekend*.
BEFORE: dict[str, Callable[[], None]] = {
    "docs/how-to/bring-your-own-data.md": without_project,
    "docs/how-to/run-it-for-a-group.md": without_olga,
    "docs/how-to/upload-scores.md": with_my_outputs,
    "docs/how-to/use-the-library.md": with_my_folder,
    "docs/tutorial/first-evaluation.md": with_my_folder,
    "docs/how-to/look-at-agreement.md": with_people,
    "docs/how-to/score-and-rank.md": with_rated_dialogues,
}
ONLINE = {"docs/how-to/use-the-api.md"}
RUN = [page for page in PAGES if read_blocks(page) and page not in {*ELSEWHERE, *ONLINE, *SHOWN}]


@pytest.mark.parametrize("page", RUN)
@pytest.mark.usefixtures("few_draws")
def test_page_can_be_followed(page, here):
    BEFORE.get(page, lambda: None)()
    reader = Reader(page, here)
    reader.follow()
    said = "\n".join(reader.said.values())
    assert "Traceback" not in said
    numbered = {line: NUMBERED.findall(text) for line, text in reader.said.items()}
    assert not [found for found in numbered.values() if found]


@pytest.mark.django_db(transaction=True)
def test_api_calls_can_be_followed(live_server, tmp_path, monkeypatch):
    """Uses curl against a server, with the files of *Bring your own data*."""
    monkeypatch.chdir(tmp_path)
    with_my_folder()
    rita = person("rita")
    join(create_project(slug="weekend", owner=person("olga")), rita, Role.RESEARCHER)
    token = create_token(user=rita, name="page", scopes=["read", "write", "annotate"])[1]
    reader = Reader("docs/how-to/use-the-api.md", tmp_path, live_server.url, token)
    reader.folder = tmp_path / "my-folder"
    reader.follow()
    assert any('"kind":"score"' in text for text in reader.said.values())


def test_tutorial_applies_evaluators_new_to_the_demonstration():
    from evalapp.management.commands.demo import EVALUATORS
    from scoring.ml import catalogue

    text = (ROOT / "docs/tutorial/first-evaluation.md").read_text(encoding="utf-8")
    named = re.findall(r"apply another one, `([\w-]+)`", text)
    assert len(named) == 1
    assert named[0] in {entry.name for entry in catalogue() if not entry.learns}
    assert named[0] not in EVALUATORS


# ---- completeness -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES)
def test_every_block_is_run_or_listed(page):
    """Blocks of a followed page are run, or their lines are listed; any other page names the test that covers it."""
    if page in ELSEWHERE:
        test = (ROOT / ELSEWHERE[page]).read_text(encoding="utf-8")
        assert page.removeprefix("docs/") in test
        assert {block.language for block in read_blocks(page)} == {"python"}
    if page in SHOWN:
        for block in read_blocks(page):
            lines = block.commands()
            assert block.language in (SHOWN[page], "mermaid") or all(reason_for(page, line) for line in lines)


def test_lists_match_the_pages():
    """No reason remains for a line that no longer exists."""
    left = []
    for page, reasons in NOT_RUN.items():
        lines = [line for block in read_blocks(page) for line in (block.text, *block.commands())]
        left += [f"{page}: {start}" for start in reasons if not any(line.startswith(start) for line in lines)]
    assert not left
    assert not (set(ELSEWHERE) | set(SHOWN) | set(BEFORE) | ONLINE) - set(PAGES)
