"""A temporary installation with annotators who write references, for the benchmarks of reference writing: Redis, web
and live worker on free ports."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

EVALUATOR = "rater"
QUIET = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}


@dataclass(frozen=True)
class WritingInstallation:
    """The address of the installation, and `people`: [{"cookie", "campaign", "public"}], each with a separate task."""

    base: str
    people: list[dict[str, Any]]
    pids: dict[str, int]

    def cpu_seconds(self) -> dict[str, float]:
        """CPU seconds used so far by web and worker: the cost of an answer, independent of other load on the
        machine."""
        import psutil

        found = {}
        for name, pid in self.pids.items():
            tree = [psutil.Process(pid)]
            times = [row.cpu_times() for row in [*tree, *tree[0].children(recursive=True)]]
            found[name] = sum(row.user + row.system for row in times)
        return found


def prepare(people: int, references: int, seed: int, data: str, live: bool) -> list[dict[str, Any]]:
    """Create a project with an evaluator that rates sets (with files only if `live`), and for each annotator an item
    with this number of references and a task in an open campaign."""
    import django

    django.setup()
    from _texts import make_queries, read_texts
    from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
    from django.contrib.sessions.backends.db import SessionStore

    from annotation.models import Item, Reference, ReferenceSet
    from annotation.services.campaigns import create_writing, open_campaign
    from annotation.services.writing_handout import get_next_task
    from evalapp.accounts.models import Membership, Project, User

    texts = read_texts(Path(data) if data else None)
    project = Project.objects.create(slug="bench", name="Benchmark")
    owner = User.objects.create(username="owner")
    Membership.objects.create(project=project, user=owner, role="owner")
    _make_rater(project, live)
    original = ReferenceSet.objects.create(project=project, name="original")
    for number, (context, known) in enumerate(make_queries(texts, people, 1, references, seed)):
        item = Item.objects.create(project=project, key=f"i{number}", context=context, group=f"g{number}")
        rows = [Reference(set=original, item=item, position=place, text=text) for place, text in enumerate(known)]
        Reference.objects.bulk_create(rows)
    options = {"arms": ["scores"], "target": references + 100}
    plan = {"name": "Benchmark", "evaluator": EVALUATOR, "corpus": "", "options": options}
    campaign = open_campaign(user=owner, campaign=create_writing(user=owner, project=project, plan=plan))
    found = []
    for number in range(people):
        user = User.objects.create(username=f"annotator{number:02d}")
        Membership.objects.create(project=project, user=user, role="annotator", pseudonym=f"r{number:02d}")
        view = get_next_task(user=user, campaign_id=campaign.pk)
        session = SessionStore()
        session[SESSION_KEY] = str(user.pk)
        session[BACKEND_SESSION_KEY] = "evalapp.accounts.backends.PasswordBackend"
        session[HASH_SESSION_KEY] = user.get_session_auth_hash()
        session.create()
        found.append({"cookie": session.session_key, "campaign": campaign.pk, "public": view.public})
    return found


def _make_rater(project: Any, live: bool) -> None:
    from django.conf import settings

    from scoring.models import Evaluator

    folder = f"{project.pk}/{EVALUATOR}"
    Evaluator.objects.create(project=project, slug=EVALUATOR, name="ream", kind="trained", folder=folder)
    if live:
        from scoring.ml.encoders.source import find_encoder
        from tests.scoring.ml.evaluators.ream.untrained import untrained

        evaluator = untrained(find_encoder(), heads=4, metric="bleu-star")
        evaluator.save_pretrained(Path(settings.ARTEFACTS_DIR) / folder)


@contextmanager
def start_writing_installation(
    people: int, references: int, seed: int, data: Path | None, *, live: bool = True
) -> Iterator[WritingInstallation]:
    """PostgreSQL where available, else SQLite; two web processes and one live worker, as `manage.py up` starts them on
    two cores."""
    from evalapp.ops.ports import answers, find_free_port, wait_until
    from evalapp.ops.processes import Family
    from tests.services.run import start_servers

    with (
        tempfile.TemporaryDirectory(prefix="evalapp-writing-") as folder,
        start_servers(["postgres", "redis"], durable=True) as servers,
        Family() as family,
        Path(folder, "log").open("wb") as log,
    ):
        env = {
            **os.environ, "EVALAPP_DATA": folder, "DJANGO_SETTINGS_MODULE": "evalapp.settings",
            "REDIS_URL": servers["TEST_REDIS_URL"], "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT),
        }  # fmt: skip
        env.pop("DATABASE_URL", None)
        if "TEST_DATABASE_URL" in servers:
            env["DATABASE_URL"] = servers["TEST_DATABASE_URL"]
        for command in (["migrate", "-v0"], ["collectstatic", "--noinput", "-v0"]):
            subprocess.run([sys.executable, "manage.py", *command], env=env, cwd=ROOT, check=True, **QUIET)
        asked = [str(people), str(references), str(seed), str(data or ""), "live" if live else ""]
        done = subprocess.run(
            [sys.executable, __file__, *asked], env=env, cwd=ROOT, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise SystemExit(done.stderr[-3000:])
        port, pids = find_free_port(), {}
        web = [
            sys.executable, "-m", "gunicorn", "evalapp.wsgi:application", "--bind", f"127.0.0.1:{port}", "--preload",
            "--workers", "2", "--worker-class", "evalapp.ops.web.Worker",
            "--threads", "4", "--timeout", "60", "--keep-alive", "15",
            "--log-level", "warning", "--no-control-socket",
        ]  # fmt: skip
        pids["web"] = family.spawn("web", web, env=env, cwd=ROOT, output=log).pid
        if live:
            worker = [
                sys.executable, "-m", "celery", "--quiet", "-A", "evalapp", "worker", "--pool", "prefork",
                "--concurrency", "1", "--queues", "live", "--hostname", "live@%h", "--without-gossip",
                "--without-mingle", "--loglevel", "WARNING",
            ]  # fmt: skip
            pids["live"] = family.spawn("live", worker, env=env, cwd=ROOT, output=log).pid
        if not wait_until(lambda: answers("127.0.0.1", port), 60):
            raise SystemExit(Path(folder, "log").read_text()[-3000:])
        yield WritingInstallation(f"http://127.0.0.1:{port}", json.loads(done.stdout.splitlines()[-1]), pids)


def sign_in_client(installation: WritingInstallation, person: dict[str, Any], kind: Any) -> Any:
    """An httpx client signed in as this person; `kind` is its class."""
    import httpx

    token = "b" * 32
    return kind(
        base_url=installation.base,
        timeout=60,
        verify=httpx.create_ssl_context(verify=False),  # not needed, and one per person would cost a second of CPU
        cookies={"sessionid": person["cookie"], "csrftoken": token},
        headers={"X-CSRFToken": token},
    )


if __name__ == "__main__":
    numbers = [int(each) for each in sys.argv[1:4]]
    print(json.dumps(prepare(numbers[0], numbers[1], numbers[2], sys.argv[4], bool(sys.argv[5]))))
