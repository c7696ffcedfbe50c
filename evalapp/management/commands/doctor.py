"""`evalapp doctor`: report what is running and what is missing, with remedies."""

from typing import Any

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, DatabaseError, connections
from django.db.migrations.exceptions import BadMigrationError, InconsistentMigrationHistory
from django.db.migrations.executor import MigrationExecutor
from kombu.exceptions import KombuError
from redis.exceptions import RedisError

from evalapp.common import commands as base
from evalapp.common.backup import journal
from evalapp.common.hooks import DOCTOR_CHECKS
from evalapp.common.jobs import FALLBACK, QUEUES
from evalapp.common.mails import is_mail_set_up
from evalapp.common.outages import explain_damage
from evalapp.ops import checks, redis
from evalapp.ops.checks import MISSING, OK, OPTIONAL, Check

_MARKS = {OK: "ok      ", MISSING: "MISSING ", OPTIONAL: "optional"}


class Command(base.Command):
    help = "Report what is running and what is missing, with remedies; exit status 1 if something required is missing."
    requires_system_checks = ()

    def work(self, **options: Any) -> dict[str, Any]:
        results = [
            checks.python(),
            checks.disk(settings.DATA_DIR),
            *database_checks(),
            *journal.checks(),
            checks.supervisor(settings.DATA_DIR),
            checks.redis_server(settings.REDIS_URL),
            *worker_checks(),
            checks.encoder(),
            *deployment_checks(),
        ]
        if any(check.name == "migrations" and check.state == OK for check in results):
            results += DOCTOR_CHECKS.collect()
        healthy = all(check.state != MISSING for check in results)
        return {"healthy": healthy, "checks": [check.as_dict() for check in results], "exit": 0 if healthy else 1}

    def show(self, result: dict[str, Any]) -> None:
        width = max(len(check["name"]) for check in result["checks"])
        for check in result["checks"]:
            self.stdout.write(f"{_MARKS[check['state']]}  {check['name']:<{width}}  {check['found']}")
            if check["way_out"]:
                self.stdout.write(f"{'':8}  {'':{width}}  -> {check['way_out']}")


def database_checks() -> list[Check]:
    """Check that the database responds and that all migrations are applied."""
    connection = connections[DEFAULT_DB_ALIAS]
    name = f"{connection.vendor} {connection.settings_dict['NAME']}"
    try:
        executor = MigrationExecutor(connection)
        waiting = len(executor.migration_plan(executor.loader.graph.leaf_nodes()))
    except DatabaseError as error:
        damage = explain_damage(error)
        way_out = damage.detail if damage else "Start the server or correct DATABASE_URL."
        return [Check("database", MISSING, f"{name}: {str(error).strip()}", way_out)]
    except (BadMigrationError, InconsistentMigrationHistory) as error:
        return [Check("database", OK, name), Check("migrations", MISSING, str(error), "Restore a backup.")]
    state = Check("migrations", OK, "all applied")
    if waiting:
        state = Check("migrations", MISSING, f"{waiting} not applied", "Run `evalapp migrate`.")
    return [Check("database", OK, name), state]


def deployment_checks() -> list[Check]:
    """Check TLS and mail of an installation that is reachable from other machines."""
    public = sorted(set(settings.ALLOWED_HOSTS) - {"127.0.0.1", "localhost", "[::1]", "testserver"})
    if not public:
        return []
    results = []
    if settings.SECURE_SSL_REDIRECT:
        results.append(Check("tls", OK, f"{public[0]} requires TLS"))
    else:
        way_out = "Use a TLS proxy and set SECURE_PROXY=1; otherwise passwords are sent unencrypted."
        results.append(Check("tls", OPTIONAL, f"{public[0]} does not use TLS", way_out))
    if not is_mail_set_up():
        way_out = "Set EMAIL_URL=smtp://user:password@host:port; without it, no mail is sent."
        results.append(Check("mail", OPTIONAL, "mails are written to the log", way_out))
    return results


def worker_checks() -> list[Check]:
    """Check that each queue has a worker that responds."""
    result: list[Check] = []
    consumers: dict[str, set[str]] = {}
    if redis.answers(settings.REDIS_URL):
        try:
            consumers = _consumers()
        except (KombuError, RedisError, OSError) as error:
            # It responds to PING only: the password is wrong or missing, or its memory is full.
            way_out = "Check REDIS_URL and REDIS_PASSWORD, and its memory: redis-cli info memory."
            result.append(Check("queue", MISSING, f"Redis refuses requests: {' '.join(str(error).split())}", way_out))
    for queue in QUEUES:
        workers = sorted(worker for worker, queues in consumers.items() if queue in queues)
        if workers:
            result.append(Check(f"queue {queue}", OK, ", ".join(workers)))
            continue
        command = f"python -m celery -A evalapp worker --queues {queue}"
        way_out = f"Start all with `evalapp up`, or one with `{command}`."
        other = FALLBACK.get(queue)
        if any(other in queues for queues in consumers.values()):
            found = f"no worker of its own: its runs wait in the queue {other} and keep others waiting there"
            result.append(Check(f"queue {queue}", OPTIONAL, found, way_out))
        else:
            result.append(Check(f"queue {queue}", MISSING, "no worker is running", way_out))
    return result


def _consumers() -> dict[str, set[str]]:
    from evalapp.celery import app

    answers = app.control.inspect(timeout=1.5).active_queues() or {}
    return {worker: {queue["name"] for queue in queues} for worker, queues in answers.items()}
