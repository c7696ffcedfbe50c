"""`evalapp up`: run the whole installation from one terminal. Prepares database and static files, then starts the
servers by `evalapp.ops`."""

import argparse
import hashlib
import os
import sys
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.staticfiles.finders import get_finders
from django.core.management import BaseCommand, CommandError, call_command
from django.db import DEFAULT_DB_ALIAS, DatabaseError, connections
from django.db.migrations.executor import MigrationExecutor

from evalapp.common.backup import journal
from evalapp.common.outages import explain_damage
from evalapp.ops import lock, ports, stack
from evalapp.ops.errors import OpsError
from evalapp.ops.log import MergedLog, wants_colour
from evalapp.ops.supervisor import NAME, Supervisor
from evalapp.settings import env

# Seconds to wait until the children of a killed predecessor have ended.
PATIENCE = 10.0


def _port(text: str) -> int:
    if not text.isdigit() or not 0 <= int(text) <= 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port (0 to 65535; 0: a free one)")
    return int(text)


class Command(BaseCommand):
    help = "Start Redis, workers and web, and restart them if they end; Ctrl-C stops all."
    requires_system_checks = ()

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--port", type=_port, help="port of the web pages (default: PORT, else 8000)")
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1)")
        parser.add_argument("--demo", action="store_true", help="also fill the demonstration project")
        parser.add_argument(
            "--data", type=Path, metavar="FOLDER", help="also load a project from an interchange folder"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            self._run(options)
        except OpsError as error:
            raise CommandError(str(error)) from error

    def _run(self, options: dict[str, Any]) -> None:
        fill = self._fill(options)
        port = options["port"] if options["port"] is not None else env.number("PORT", 8000, 0, 65535)
        cores = os.cpu_count() or 1
        folder = lock.FolderLock(settings.DATA_DIR)
        folder.acquire(f"http://{options['host']}:{port}", PATIENCE)
        try:
            with ports.bind(options["host"], port) as listener:
                layout = stack.Layout(
                    folder=settings.DATA_DIR,
                    listener=listener,
                    redis_url=env.text("REDIS_URL"),
                    web_workers=env.number("WEB_WORKERS", min(8, max(2, cores)), 1, 64),
                    cpu_processes=min(4, max(2, cores // 2)),
                    fill=fill,
                )
                services = stack.services(layout)
                log = MergedLog(
                    sys.stdout,
                    [NAME, *(service.name for service in services)],
                    colour=wants_colour(sys.stdout),
                )
                self._prepare(log)
                address = stack.address(listener)

                def announce(stage: int) -> None:
                    if stage == stack.WEB:
                        log.line(NAME, f"open {address}    (Ctrl-C stops everything)")

                Supervisor(
                    services,
                    log,
                    env=stack.environment(layout, os.environ),
                    cwd=settings.BASE_DIR,
                    keep_open=[folder.descriptor],
                    announce=announce,
                ).run()
        finally:
            folder.release()

    @staticmethod
    def _fill(options: dict[str, Any]) -> tuple[str, ...]:
        if options["data"] is not None:
            if not options["data"].is_dir():
                raise CommandError(f"--data {options['data']} is not a folder.", returncode=2)
            return ("demo", "--data", str(options["data"].resolve()))
        return ("demo",) if options["demo"] else ()

    def _prepare(self, log: MergedLog) -> None:
        """Apply migrations and collect static files, which take seconds, if they have changed."""
        connection = connections[DEFAULT_DB_ALIAS]
        try:
            executor = MigrationExecutor(connection)
            plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
        except DatabaseError as error:
            if damage := explain_damage(error):
                raise CommandError(damage.detail) from error
            raise CommandError(f"The database cannot be reached: {error}\nCheck DATABASE_URL.") from error
        journal.settle(lambda text: log.line(NAME, text))
        if plan:
            log.line(NAME, f"preparing the database ({len(plan)} migrations)")
            call_command("migrate", interactive=False, verbosity=0)
        if is_static_stale():
            log.line(NAME, "collecting static files")
            collect_static()
        connections.close_all()


def _static_stamp() -> Path:
    return Path(settings.STATIC_ROOT) / ".collected"


def _static_state() -> str:
    """Return a hash of names and contents of all static files and the collected manifest. Modification times do not
    suffice if checkouts share a data folder or a version is rolled back."""
    digest = hashlib.sha256()
    files = sorted((path, storage.path(path)) for finder in get_finders() for path, storage in finder.list([]))
    for name, path in [*files, ("manifest", str(Path(settings.STATIC_ROOT) / "staticfiles.json"))]:
        content = Path(path).read_bytes() if Path(path).exists() else b""
        digest.update(f"{name}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()


def is_static_stale() -> bool:
    """Return whether the static files differ from the collected ones."""
    stamp = _static_stamp()
    return not stamp.exists() or stamp.read_text() != _static_state()


def collect_static() -> None:
    # The stamp is written last, so that an interrupted start collects again.
    _static_stamp().unlink(missing_ok=True)
    call_command("collectstatic", interactive=False, verbosity=0)
    _static_stamp().write_text(_static_state())
