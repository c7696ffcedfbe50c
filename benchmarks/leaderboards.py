"""Large leaderboards: 100 systems x 10,000 items x 30 evaluators, with some items rated. Seconds of the page (from a
run's cached result, also while newer judgements wait), of the first run, and of the run after a further judgement,
which reads the scores from cached columns. Prints JSON.

    python benchmarks/leaderboards.py [--systems 100] [--items 10000] [--evaluators 30] [--rated 100] [--keep FOLDER]

The rows are created inside a temporary SQLite database: 30 million scores take about 4 GB and some minutes. `--rated`
is the number of items whose outputs of all systems are rated, by two people each.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
SLUG = "large"


def fill(systems: int, items: int, evaluators: int, rated: int) -> None:
    """The project; texts are short, scores follow the system with noise."""
    from django.db import connection
    from django.utils import timezone

    from annotation.models import Aspect, Item, Output, Rating, System
    from evalapp.accounts.models import Membership, Project, User
    from scoring.models import Evaluator, ScoreSet

    project = Project.objects.create(slug=SLUG, name="Large")
    user = User.objects.create_user(username="rita", email="rita@example.org")
    Membership.objects.create(project=project, user=user, role="researcher", pseudonym="rita")
    Aspect.objects.create(project=project, name="quality", low=1, high=5)
    System.objects.bulk_create(System(project=project, name=f"system-{k:03d}") for k in range(systems))
    noise = "(random() % 1000003) / 1000003.0"
    Item.objects.bulk_create(
        (Item(project=project, key=f"i{k:05d}", context=["?"], group=f"g{k:05d}") for k in range(items)),
        batch_size=5000,
    )
    template = Output(project=project, item=Item.objects.first(), system=System.objects.first(), text="x")
    template.save()
    copy(Output, "annotation_item i, annotation_system s", {"item_id": "i.id", "system_id": "s.id"}, skip=template.pk)
    Output.objects.filter(pk=template.pk).delete()
    first = System.objects.first().pk  # type: ignore[union-attr]
    now = timezone.now()
    total = systems * items
    for k in range(evaluators):
        kind = "sentinel" if k == 0 else "baseline"
        row = Evaluator.objects.create(project=project, slug=f"metric-{k:02d}", name=f"metric-{k:02d}", kind=kind)
        made = ScoreSet.objects.create(
            project=project, evaluator=row, signature=f"metric-{k:02d}|v:1", short_signature=f"m{k}", scored_at=now,
            n_scores=total,
        )  # fmt: skip
        with connection.cursor() as cursor:
            score = f"(o.system_id - {first}) * {k} * 0.002 + {noise}"
            cursor.execute(
                "INSERT INTO scoring_score (score_set_id, output_id, value, note, input_hash, is_empty, is_truncated, "
                f"in_training) SELECT {made.pk}, o.id, {score}, '', o.id, 0, 0, 0 "
                "FROM annotation_output o ORDER BY o.id"
            )
    example = Rating(
        project=project, output=Output.objects.first(), aspect=Aspect.objects.get(), rater="template", value=3
    )
    example.save()
    value = f"max(1, min(5, round(3 + (o.system_id - {first}) * 0.02 + 2 * {noise})))"
    for rater in ("ann", "bob"):
        source = f"annotation_output o JOIN annotation_item i ON i.id = o.item_id AND i.key < 'i{rated:05d}'"
        copy(Rating, source, {"output_id": "o.id", "rater": f"'{rater}'", "value": value}, skip=None)
    Rating.objects.filter(rater="template").delete()


def copy(model: Any, source: str, values: dict[str, str], *, skip: int | None) -> None:
    """Copies the model's template row for each row of `source`, with some columns set by expressions."""
    from django.db import connection

    table = model._meta.db_table
    columns = [field.column for field in model._meta.concrete_fields if not field.primary_key]
    names = ", ".join(f'"{name}"' for name in columns)
    chosen = ", ".join(values.get(name, f't."{name}"') for name in columns)
    where = f"t.id = {skip}" if skip else f"t.id = (SELECT min(id) FROM {table} WHERE rater = 'template')"
    with connection.cursor() as cursor:
        if skip:
            # The template serves as a row itself and must not conflict with its own copy.
            cursor.execute(f"UPDATE {table} SET step = -1 WHERE id = {skip}")
            chosen = ", ".join("NULL" if name == "step" else values.get(name, f't."{name}"') for name in columns)
        cursor.execute(f'INSERT INTO "{table}" ({names}) SELECT {chosen} FROM "{table}" t, {source} WHERE {where}')


def page(path: str, times: int = 9) -> tuple[float, int]:
    """Median seconds of the page and its status, for the researcher."""
    from django.test import Client

    from evalapp.accounts.models import User

    client = Client()
    client.force_login(User.objects.get(username="rita"))
    seconds, status = [], 0
    for _ in range(times):
        started = time.perf_counter()
        status = client.get(path).status_code
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds), status


def time_run() -> float | None:
    """Seconds of the run that the page has queued, in this process; None if the page computed the table itself."""
    from evalapp.common.models import Run
    from evalapp.common.runner import execute_run

    waiting = Run.objects.filter(kind="rank", state="queued").order_by("-pk").first()
    if waiting is None:
        return None
    started = time.perf_counter()
    done = execute_run(waiting.pk)
    assert done is not None, "another worker took the run"
    assert done.state == "succeeded", done.error
    return round(time.perf_counter() - started, 2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--systems", type=int, default=100)
    parser.add_argument("--items", type=int, default=10_000)
    parser.add_argument("--evaluators", type=int, default=30)
    parser.add_argument("--rated", type=int, default=100, help="items whose outputs are rated, by two people")
    parser.add_argument("--keep", type=Path, help="a folder that stays, with the database, for the next time")
    options = parser.parse_args()
    folder = options.keep or Path(tempfile.mkdtemp(prefix="evalapp-boards-"))
    folder.mkdir(parents=True, exist_ok=True)
    os.environ |= {"EVALAPP_DATA": str(folder), "DJANGO_SETTINGS_MODULE": "evalapp.settings", "LOG_LEVEL": "WARNING"}
    os.environ.setdefault("ALLOWED_HOSTS", "testserver,localhost")
    import django
    from django.core.management import call_command

    django.setup()
    call_command("migrate", verbosity=0)
    call_command("collectstatic", verbosity=0, interactive=False)
    from annotation.models import Output, Rating
    from evalapp.accounts.models import Project

    sizes = {name: getattr(options, name) for name in ("systems", "items", "evaluators", "rated")}
    found: dict[str, Any] = {"sizes": sizes}
    started = time.perf_counter()
    if not Project.objects.filter(slug=SLUG).exists():
        fill(options.systems, options.items, options.evaluators, options.rated)
    found["fill_seconds"] = round(time.perf_counter() - started, 1)
    addresses = {
        "evaluators": f"/projects/{SLUG}/evaluation/",
        "systems_by_people": f"/projects/{SLUG}/systems/",
        "systems_by_evaluator": f"/projects/{SLUG}/systems/?by=metric-01",
        "matrix": f"/projects/{SLUG}/evaluation/matrix/",
    }
    for name, path in addresses.items():
        empty, status = page(path, 1)
        first = time_run()
        kept, status = page(path)
        template = Rating.objects.order_by("pk").first()
        assert template is not None, "nothing was rated"
        output = Output.objects.order_by("-pk").first()
        rater = f"late-{name}-{time.time()}"
        Rating.objects.create(project=template.project, output=output, aspect=template.aspect, rater=rater, value=4)
        stale, _ = page(path)
        again = time_run()
        found[name] = {
            "page_without_table_ms": round(1000 * empty), "run_seconds": first, "status": status,
            "page_ms": round(1000 * kept), "page_while_newer_waits_ms": round(1000 * stale),
            "run_after_a_judgement_seconds": again,
        }  # fmt: skip
        print(name, found[name], file=sys.stderr, flush=True)
    found["peak_mb"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
