"""List pages and API lists with 100,000 items, 500,000 outputs and 1,000,000 ratings: real HTTP, gunicorn and a
temporary database, and the lists of an empty project with an aspect, which must not be slowed down by the large one.
Prints JSON: per address p50 and p95 in milliseconds, and the number of queries.

    python benchmarks/pages.py [--items 100000] [--requests 40] [--database postgres|sqlite]

The rows are created inside the database. One client requests the addresses in turn; client and server share the
machine. Queries are counted in a separate process through Django's test client.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

SLUG, SYSTEMS, RATERS = "bench", 5, 2
BESIDE = "beside"
AIM_MS, AIM_QUERIES = 300, 15


# ---- inside Django ----------------------------------------------------------------------------------------


def copy_rows(model: Any, source: str, values: dict[str, str]) -> None:
    """Copies the model's first row for each row of `source`, with some columns set by expressions."""
    from django.db import connection

    table = model._meta.db_table
    columns = [field.column for field in model._meta.concrete_fields if not field.primary_key]
    names = ", ".join(f'"{name}"' for name in columns)
    chosen = ", ".join(values.get(name, f't."{name}"') for name in columns)
    with connection.cursor() as cursor:
        cursor.execute(f'SELECT min(id) FROM "{table}"')
        first = cursor.fetchone()[0]
        cursor.execute(
            f'INSERT INTO "{table}" ({names}) SELECT {chosen} FROM "{table}" t, {source} WHERE t.id = {first}'
        )


def prepare(items: int) -> dict[str, Any]:
    """A project of `items` items with an output of each of five systems, two ratings of each output, 2,000 runs and
    1,000 uploads; a researcher with a session."""
    import django

    django.setup()
    from django.db import connection
    from django.test import Client

    from annotation.models import Aspect, Item, Output, Rating, Reference, ReferenceSet, System, Upload
    from annotation.services.texts import prepare_search
    from evalapp.accounts.models import Membership, Project, User
    from evalapp.common.models import Run
    from evalapp.names import natural_key

    project = Project.objects.create(slug=SLUG, name="Benchmark")
    user = User.objects.create_user(username="researcher", password="bench-researcher-password")
    beside = Project.objects.create(slug=BESIDE, name="Beside")
    for each in (project, beside):
        Membership.objects.create(project=each, user=user, role="researcher", pseudonym="r0")
    Aspect.objects.create(project=beside, name="quality", low=1, high=5)
    systems = [System.objects.create(project=project, name=f"system-{k}") for k in range(SYSTEMS)]
    aspect = Aspect.objects.create(project=project, name="quality", low=1, high=5)
    words = "Any plans for the weekend? I am thinking of hiking, if the weather holds. Sounds good, where to?"
    item = Item.objects.create(project=project, key="i", context=[words, words], group="g")
    original = ReferenceSet.objects.create(project=project, name="original")
    Reference.objects.create(set=original, item=item, position=0, text=words)
    output = Output.objects.create(project=project, item=item, system=systems[0], text=words)
    Rating.objects.create(project=project, output=output, aspect=aspect, rater="x", value=3)
    Upload.objects.create(project=project, title="outputs.jsonl", state="done")
    Run.objects.create(project=project, kind="score", title="Score", queue="cpu", state="succeeded", input_hash="x")

    def numbers(n: int) -> str:
        return f"(WITH RECURSIVE s(k) AS (SELECT 1 UNION ALL SELECT k + 1 FROM s WHERE k < {n}) SELECT k FROM s) n"

    started = time.perf_counter()
    character = "char" if connection.vendor == "sqlite" else "chr"
    # As written by `natural_key`.
    order = f"'item-' || {character}(2) || {character}(64 + length(CAST(n.k AS text))) || n.k"
    copy_rows(Item, numbers(items), {"key": "'item-' || n.k", "order_key": order, "group": "'group-' || (n.k / 3)"})
    last = Item.objects.order_by("-pk")[0]
    assert last.order_key == natural_key(last.key)
    others = f"(SELECT i.id, i.key FROM annotation_item i WHERE i.id > {item.pk}) o"
    copy_rows(Reference, others, {"item_id": "o.id"})
    pairs = (f"(SELECT i.id AS item, i.key AS key, s.id AS system FROM annotation_item i, annotation_system s "
             f"WHERE i.id > {item.pk}) o")  # fmt: skip
    copy_rows(
        Output, pairs, {"item_id": "o.item", "system_id": "o.system", "text": "'Maybe the lake trail near ' || o.key"}
    )
    judged = (f"(SELECT q.id AS output, n.k AS rater FROM annotation_output q, {numbers(RATERS)} "
              f"WHERE q.id > {output.pk}) o")  # fmt: skip
    copy_rows(
        Rating,
        judged,
        {"output_id": "o.output", "rater": "'r' || o.rater", "value": "1 + (o.output * 7 + o.rater) % 5"},
    )
    copy_rows(Upload, numbers(1000), {})
    copy_rows(Run, numbers(2000), {"input_hash": "'h' || n.k"})
    prepare_search(project=project)  # left by an import to a separate run
    with connection.cursor() as cursor:  # done by a server by itself some minutes later
        cursor.execute("ANALYZE" if connection.vendor == "sqlite" else "VACUUM ANALYZE")
    client = Client()
    client.force_login(user)
    return {
        "cookie": client.cookies["sessionid"].value,
        "made_seconds": round(time.perf_counter() - started, 1),
        "addresses": addresses(items),
        "counts": {model.__name__: model.objects.count() for model in (Item, Output, Rating)},
    }


def addresses(items: int) -> dict[str, str]:
    """Name -> path. Deep pages start in the middle of the table, where counting rows would take longest."""
    from annotation.models import Item, Rating
    from evalapp.common.pagination import _encode
    from evalapp.names import natural_key

    def middle(model: Any) -> str:
        first, last = model.objects.order_by("pk").first().pk, model.objects.order_by("-pk").first().pk
        return _encode([(first + last) // 2], False)

    deep = _encode([natural_key(f"item-{items // 2}")], False)
    deep_rows = _encode([natural_key(f"item-{items // 2}"), 0], False)
    some = Item.objects.order_by("-pk").first()
    p, a = f"/projects/{SLUG}/", f"/api/v1/projects/{SLUG}/"
    return {
        "home": "/",
        "overview": p,
        "items": p + "items/",
        "items, deep": p + f"items/?cursor={deep}",
        "items, search finds much": p + "items/?q=hiking",
        "items, search finds nothing": p + "items/?q=nothing+like+this",
        "items, search in outputs": p + f"items/?scope=output&q=item-{items}",
        "items, search in ids": p + f"items/?scope=id&q=item-{items}",
        "items, of a group": p + "items/?group=group-100",
        "items, of a system": p + "items/?system=system-3",
        "items, judged": p + "items/?rated=yes",
        "items, not judged": p + "items/?rated=no",
        "item": p + f"items/{some.pk}/",
        "systems of items": p + "items/systems/",
        "uploads": p + "uploads/",
        "campaigns": p + "campaigns/",
        "campaign, new": p + "campaigns/new/",
        "evaluators": p + "evaluators/",
        "systems": p + "systems/",
        "evaluation": p + "evaluation/",
        "exports": p + "exports/",
        "runs": p + "runs/",
        "people": p + "people/",
        "api items": a + "items/",
        "api items, deep": a + f"items/?cursor={deep}",
        "api items, by key": a + f"items/?key={some.key}",
        "api outputs, deep": a + f"outputs/?cursor={deep_rows}",
        "api outputs, of a system": a + f"outputs/?system=system-3&cursor={deep_rows}",
        "api outputs, of an item": a + f"outputs/?item={some.key}",
        "api ratings, deep": a + f"ratings/?cursor={middle(Rating)}",
        "api ratings, of an item": a + f"ratings/?item={some.key}",
        "api ratings, of a rater": a + "ratings/?rater=r2",
        "api references": a + "references/",
        "api references, deep": a + f"references/?cursor={deep_rows}",
        "api scores": a + "scores/",
        "api uploads": a + "uploads/",
        "api runs": a + "runs/",
        "api projects": "/api/v1/projects/",
        **list_addresses_of_empty_project(),
    }


def list_addresses_of_empty_project() -> dict[str, str]:
    """The lists of an empty project in the same tables. A query plan made for the large project might scan that one."""
    pages = ("", "items/", "items/?q=hiking", "items/?rated=yes", "items/?scope=output&q=lake", "items/systems/",
             "uploads/", "campaigns/", "evaluators/", "systems/", "evaluation/", "agreement/", "exports/",
             "runs/")  # fmt: skip
    lists = ("items/", "outputs/", "outputs/?system=system-3", "ratings/", "ratings/?rater=r2", "comparisons/",
             "references/", "scores/", "uploads/", "runs/")  # fmt: skip
    return {
        **{f"at the same time, {path or 'overview'}": f"/projects/{BESIDE}/{path}" for path in pages},
        **{f"at the same time, api {path}": f"/api/v1/projects/{BESIDE}/{path}" for path in lists},
    }


def count_queries(paths: dict[str, str]) -> dict[str, int]:
    import django

    django.setup()
    from django.db import connection
    from django.test import Client
    from django.test.utils import CaptureQueriesContext

    from evalapp.accounts.models import User

    client = Client(headers={"host": "127.0.0.1"})
    client.force_login(User.objects.get(username="researcher"))
    found = {}
    for name, path in paths.items():
        client.get(path)
        with CaptureQueriesContext(
            connection,
        ) as queries:
            client.get(path)
        found[name] = len(queries)
    return found


# ---- outside ----------------------------------------------------------------------------------------------


def run_in_django(env: dict[str, str], *words: str, given: Any = None) -> Any:
    done = subprocess.run(
        [sys.executable, __file__, *words], env=env, cwd=ROOT, capture_output=True, text=True, check=False,
        input=json.dumps(given),
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(done.stderr[-3000:])
    return json.loads(done.stdout.splitlines()[-1])


def time_requests(base: str, plan: dict[str, Any], requests: int) -> dict[str, dict[str, Any]]:
    """Return milliseconds of each address, requested in turn so that a busy moment of the machine affects all."""
    import httpx

    times: dict[str, list[float]] = {name: [] for name in plan["addresses"]}
    status: dict[str, int] = {}
    with httpx.Client(base_url=base, cookies={"sessionid": plan["cookie"]}, timeout=120) as client:
        for number in range(requests + 2):
            for name, path in plan["addresses"].items():
                started = time.perf_counter()
                answer = client.get(path)
                if number >= 2:  # the first two rounds load code and fill caches
                    times[name].append(1000 * (time.perf_counter() - started))
                status[name] = answer.status_code
    return {
        name: {
            "status": status[name],
            "p50_ms": round(statistics.median(row), 1),
            "p95_ms": round(statistics.quantiles(row, n=20)[-1], 1),
        }
        for name, row in times.items()
    }


def measure(options: argparse.Namespace) -> dict[str, Any]:
    from evalapp.ops.ports import answers, find_free_port, wait_until
    from evalapp.ops.processes import Family
    from tests.services.run import start_servers

    names = ["postgres"] if options.database == "postgres" else []
    with tempfile.TemporaryDirectory(prefix="evalapp-pages-") as folder, start_servers(names) as servers:
        if names and "TEST_DATABASE_URL" not in servers:
            raise SystemExit("PostgreSQL is unavailable here; use --database sqlite")
        env = {**os.environ, "EVALAPP_DATA": folder, "DJANGO_SETTINGS_MODULE": "evalapp.settings"}
        env.pop("DATABASE_URL", None)
        if names:
            env["DATABASE_URL"] = servers["TEST_DATABASE_URL"]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
        subprocess.run([sys.executable, "manage.py", "migrate", "-v0"], env=env, cwd=ROOT, check=True, **quiet)
        subprocess.run(
            [sys.executable, "manage.py", "collectstatic", "--noinput", "-v0"], env=env, cwd=ROOT, check=True, **quiet
        )
        plan = run_in_django(env, "prepare", str(options.items))
        port = find_free_port()
        command = [
            sys.executable, "-m", "gunicorn", "evalapp.wsgi:application", "--bind", f"127.0.0.1:{port}", "--preload",
            "--workers", "2", "--worker-class", "evalapp.ops.web.Worker",
            "--threads", "4", "--timeout", "120", "--keep-alive", "15",
            "--log-level", "error", "--no-control-socket",
        ]  # fmt: skip
        with Family() as family, Path(folder, "web.log").open("wb") as log:
            family.spawn("web", command, env=env, cwd=ROOT, output=log)
            if not wait_until(lambda: answers("127.0.0.1", port), 30):
                raise SystemExit(Path(folder, "web.log").read_text()[-2000:])
            found = time_requests(f"http://127.0.0.1:{port}", plan, options.requests)
        for name, number in run_in_django(env, "queries", given=plan["addresses"]).items():
            found[name]["queries"] = number
    return {
        "benchmark": "pages",
        "database": options.database,
        "rows": plan["counts"],
        "made_seconds": plan["made_seconds"],
        "requests": options.requests,
        "load": round(os.getloadavg()[0], 1),
        "slowest_p95_ms": max(row["p95_ms"] for row in found.values()),
        "most_queries": max(row["queries"] for row in found.values()),
        "beyond_aim": [n for n, row in found.items() if row["p95_ms"] > AIM_MS or row["queries"] > AIM_QUERIES],
        "pages": found,
        "aims": {"p95_ms": AIM_MS, "queries": AIM_QUERIES},
    }


def main() -> None:
    if sys.argv[1:2] == ["prepare"]:
        print(json.dumps(prepare(int(sys.argv[2]))))
        return
    if sys.argv[1:2] == ["queries"]:
        print(json.dumps(count_queries(json.load(sys.stdin))))
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--requests", type=int, default=40)
    parser.add_argument("--database", choices=["postgres", "sqlite"], default="postgres")
    print(json.dumps(measure(parser.parse_args()), indent=1))


if __name__ == "__main__":
    main()
