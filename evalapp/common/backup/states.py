"""Which migrations a database has, the models of such a state, and bringing a database without rows to another one."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from django.apps import apps as present
from django.conf import settings
from django.core.management import call_command
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from ..errors import Conflict

State = dict[str, list[str]]


def _loader() -> MigrationLoader:
    """The migrations of this version; reading them takes a moment, and they do not change."""
    return _loaded(repr(settings.MIGRATION_MODULES))


@lru_cache(maxsize=2)
def _loaded(modules: str) -> MigrationLoader:
    return MigrationLoader(None, ignore_no_migrations=True)


def state_of(connection: Any) -> State:
    """The applied migrations by app, as far as this version knows them; empty where there are no tables yet."""
    known = _loader().graph.nodes
    return _by_app(key for key in MigrationRecorder(connection).applied_migrations() if key in known)


def check_not_newer(connection: Any) -> None:
    """A database that a newer version has changed is that version's business."""
    known = _loader().graph.nodes
    apps = {app for app, _ in known}
    applied = MigrationRecorder(connection).applied_migrations()
    unknown = sorted(key for key in applied if key[0] in apps and key not in known)
    if unknown:
        raise Conflict(
            f"The database belongs to a newer version: it has {'.'.join(unknown[0])}. Use that version, or name "
            "another database by DATABASE_URL (for SQLite: move the file away)."
        )


def newest() -> State:
    return _by_app(_loader().graph.nodes)


def _by_app(keys: Any) -> State:
    found: State = {}
    for app, name in sorted(keys):
        found.setdefault(app, []).append(name)
    return found


def targets_of(state: State) -> list[tuple[str, str | None]]:
    """What to migrate to in order to have exactly `state`; a state this version cannot make is a Conflict."""
    graph = _loader().graph
    keys = {(app, name) for app, names in state.items() for name in names}
    unknown = sorted(f"{app}.{name}" for app, name in keys - set(graph.nodes))
    if unknown:
        raise Conflict(f"This version does not know the migration {unknown[0]}. Install the version it belongs to.")
    lacking = sorted(parent for key in keys for parent in graph.forwards_plan(key) if parent not in keys)
    if lacking:
        raise Conflict(f"The migrations are no released state: {'.'.join(lacking[0])} is missing.")
    leaves: list[tuple[str, str | None]] = []
    for key in sorted(keys):
        if not any(child.key[0] == key[0] and child.key in keys for child in graph.node_map[key].children):
            leaves.append(key)
    return [*leaves, *((app, None) for app in sorted({app for app, _ in graph.nodes} - set(state)))]


def apps_at(state: State) -> Any:
    """The registry of models of this state: that of Django where nothing is newer."""
    if state == newest():
        return present
    nodes = [key for key in targets_of(state) if key[1] is not None]
    return _loader().project_state(nodes).apps


def bring_to(connection: Any, state: State) -> None:
    """Only while there are no rows: an older state is reached backwards, too."""
    there = state_of(connection)
    if there == state:
        return
    if state == newest():
        bring_forward(connection)
        return
    targets = [key for key in targets_of(state) if there or key[1] is not None]
    MigrationExecutor(connection).migrate(targets)


def bring_forward(connection: Any) -> None:
    if state_of(connection) != newest():
        call_command("migrate", database=connection.alias, interactive=False, verbosity=0)
