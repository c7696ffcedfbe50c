"""A database with rows of earlier releases: created in every table through the models of that state of the migrations,
with their values, to be compared after newer migrations."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import connection, models
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.operations import RenameModel

from evalapp.common.backup import tables

OURS = ("accounts", "common", "events", "annotation", "retrieval", "scoring")
ROWS = 3
#: Values determined by constraints of a table: table -> field -> values of rows 0, 1, 2.
RULES: dict[str, dict[str, tuple[Any, ...]]] = {
    "annotation_rating": {"output_id": (1, 2, None), "dialogue_id": (None, None, 1)},
    "annotation_comparison": {"output_b_id": (1, 2, None), "reference": (None, None, 0)},
    "annotation_writingcandidate": {"task_id": (1, 2, None), "number": (None, None, 0)},
    "annotation_writingattempt": {"improved": (True, None, False), "decision": ("accept", "accept", "drop")},
    "annotation_writtenreference": {"state": ("shown", "shown", "waiting"), "reference_id": (1, 2, None)},
    "annotation_referenceset": {"name": ("original", "b", "c")},
}


class ReleaseHistory:
    """Applies the releases one after the other: the first has the first migration of every app, each later one has one
    migration."""

    def __init__(self) -> None:
        self.executor = MigrationExecutor(connection)
        self.executor.recorder.ensure_schema()
        loader = self.executor.loader
        others = [node for node in loader.graph.leaf_nodes() if node[0] not in OURS]
        migrations = [migration for migration, _ in self.executor.migration_plan(loader.graph.leaf_nodes())]
        first = [m for m, _ in self.executor.migration_plan([*others, *((app, "0001_initial") for app in OURS)])]
        self.plan = [first, *([migration] for migration in migrations if migration not in first)]
        self.state = loader.project_state([])
        self.rows: dict[str, list[dict[str, Any]]] = {}

    def steps(self) -> Iterator[str]:
        """Apply each release and add rows to its new tables; yield the name of the release."""
        for migrations in self.plan:
            for migration in migrations:
                self.state = self.executor.apply_migration(self.state, migration)
                self._rename_tables(migration)
            self._fill()
            yield ".".join((migrations[-1].app_label, migrations[-1].name)) if len(migrations) == 1 else "the first"

    def _rename_tables(self, migration: Any) -> None:
        for operation in migration.operations:
            if isinstance(operation, RenameModel):
                former = f"{migration.app_label}_{operation.old_name_lower}"
                self.rows[f"{migration.app_label}_{operation.new_name_lower}"] = self.rows.pop(former)

    def _fill(self) -> None:
        models_by_table = _get_models(self.state.apps)
        for table in tables.list_tables(self.state.apps):
            model = models_by_table[table.name]
            targets = [field.related_model for field in model._meta.local_fields if field.is_relation]
            is_ours = all(each._meta.app_label in OURS for each in [model, *targets])
            if not is_ours or table.name in self.rows:
                continue
            for number in range(ROWS):
                model._base_manager.create(**_make_values(model, number))
            self.rows[table.name] = list(model._base_manager.order_by("pk").values())


def _get_models(apps: Any) -> dict[str, Any]:
    return {model._meta.db_table: model for model in apps.get_models(include_auto_created=True)}


def _make_values(model: Any, number: int) -> dict[str, Any]:
    rules = RULES.get(model._meta.db_table, {})
    values = {}
    for field in model._meta.local_fields:
        if field.attname in rules:
            values[field.attname] = rules[field.attname][number]
        elif not isinstance(field, models.AutoField):
            values[field.attname] = _make_value(field, number)
    return values


def _make_value(field: Any, number: int) -> Any:
    if field.is_relation:
        if field.null and number == ROWS - 1:
            return None
        return field.related_model._base_manager.order_by("pk").values_list("pk", flat=True)[number]
    kind = tables.find_kind(field)
    if kind == "text":
        if field.choices:
            return field.choices[0][0]
        return None if field.null and number == 2 else f"{field.name} é-{number}"[-(field.max_length or 999) :]
    if kind == "boolean":
        return number == 0
    return {
        "integer": number + 1,
        "float": number + 1 / 3,
        "json": {"z": [number, None, 0.1], "é": "ü"},
        "datetime": datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC) + timedelta(days=number),
        "uuid": uuid.UUID(int=number + 1),
    }[kind]


def read_rows(apps: Any, stored: dict[str, list[dict[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
    """Read the same rows again, with the columns that they had originally."""
    managers = {table: model._base_manager for table, model in _get_models(apps).items()}
    return {
        table: [
            {name: row[name] for name in rows[0]}
            for row in managers[table].filter(pk__in=[row["id"] for row in rows]).order_by("pk").values()
        ]
        for table, rows in stored.items()
    }
