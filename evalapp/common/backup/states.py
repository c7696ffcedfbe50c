"""Migration states: which migrations a database has, the models of a state, and migrating a database without rows."""

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from django.apps import apps as current_apps
from django.conf import settings
from django.core.management import call_command
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from ..errors import Conflict

#: App -> names of its applied migrations.
State = dict[str, list[str]]
Key = tuple[str, str]


def _loader() -> MigrationLoader:
    """The migrations of this version, cached because reading them is slow."""
    return _load(repr(settings.MIGRATION_MODULES))


@lru_cache(maxsize=2)
def _load(modules: str) -> MigrationLoader:
    return MigrationLoader(None, ignore_no_migrations=True)


def read_state(connection: Any) -> State:
    """Return the applied migrations that this version knows; empty for a database without tables."""
    known = _loader().graph.nodes
    return _group_by_app(key for key in MigrationRecorder(connection).applied_migrations() if key in known)


def check_not_newer(connection: Any) -> None:
    """Raise `Conflict` if a newer version has migrated the database."""
    known = _loader().graph.nodes
    apps = {app for app, _ in known}
    applied = MigrationRecorder(connection).applied_migrations()
    if unknown := sorted(key for key in applied if key[0] in apps and key not in known):
        raise Conflict(
            f"The database belongs to a newer version: it has {'.'.join(unknown[0])}. Use that version, or set "
            "DATABASE_URL to another database (for SQLite: move the file away)."
        )


def newest() -> State:
    return _group_by_app(_loader().graph.nodes)


def _group_by_app(keys: Iterable[Key]) -> State:
    state: State = {}
    for app, name in sorted(keys):
        state.setdefault(app, []).append(name)
    return state


def find_targets(state: State) -> list[tuple[str, str | None]]:
    """Return the targets to migrate to for exactly `state`. Raises `Conflict` if this version cannot reach it."""
    graph = _loader().graph
    keys = {(app, name) for app, names in state.items() for name in names}
    if unknown := sorted(f"{app}.{name}" for app, name in keys - set(graph.nodes)):
        raise Conflict(f"This version does not know the migration {unknown[0]}. Install the version it belongs to.")
    if missing := sorted(parent for key in keys for parent in graph.forwards_plan(key) if parent not in keys):
        raise Conflict(f"The migrations are not those of a release: {'.'.join(missing[0])} is missing.")
    leaves: list[tuple[str, str | None]] = [
        key
        for key in sorted(keys)
        if not any(child.key[0] == key[0] and child.key in keys for child in graph.node_map[key].children)
    ]
    return [*leaves, *((app, None) for app in sorted({app for app, _ in graph.nodes} - set(state)))]


def load_apps(state: State) -> Any:
    """Return the registry of models of a state; Django's own for the newest state."""
    if state == newest():
        return current_apps
    return _loader().project_state([key for key in find_targets(state) if key[1] is not None]).apps


def migrate_to(connection: Any, state: State) -> None:
    """Migrate a database without rows, also backwards."""
    current = read_state(connection)
    if state == newest():
        migrate_to_newest(connection)
    elif current != state:
        MigrationExecutor(connection).migrate([key for key in find_targets(state) if current or key[1] is not None])


def migrate_to_newest(connection: Any) -> None:
    if read_state(connection) != newest():
        call_command("migrate", database=connection.alias, interactive=False, verbosity=0)
