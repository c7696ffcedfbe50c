"""A database as an earlier release left it: rows in every table, made through the models of that state of the
migrations, and their values, to be compared after newer migrations."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import connection, models
from django.db.migrations.executor import MigrationExecutor

from evalapp.common.backup import tables

OURS = ("accounts", "common", "annotation", "retrieval", "scoring")
ROWS = 3
#: Where a rule of the table determines values: table -> field -> value of row 0, 1, 2.
RULES: dict[str, dict[str, tuple[Any, ...]]] = {
    "annotation_rating": {"output_id": (1, 2, None), "dialogue_id": (None, None, 1)},
    "annotation_comparison": {"output_b_id": (1, 2, None), "reference": (None, None, 0)},
    "annotation_writingcandidate": {"task_id": (1, 2, None), "number": (None, None, 0)},
    "annotation_writingattempt": {"improved": (True, None, False), "decision": ("accept", "accept", "drop")},
    "annotation_writtenreference": {"state": ("shown", "shown", "waiting"), "reference_id": (1, 2, None)},
    "annotation_referenceset": {"name": ("original", "b", "c")},
}


class Released:
    """Iterates over the releases: the first one, which has the first migration of every app, then each later one."""

    def __init__(self) -> None:
        self.executor = MigrationExecutor(connection)
        self.executor.recorder.ensure_schema()
        loader = self.executor.loader
        others = [node for node in loader.graph.leaf_nodes() if node[0] not in OURS]
        whole = [migration for migration, _ in self.executor.migration_plan(loader.graph.leaf_nodes())]
        first = [m for m, _ in self.executor.migration_plan([*others, *((app, "0001_initial") for app in OURS)])]
        self.plan = [first, *([migration] for migration in whole if migration not in first)]
        self.state = loader.project_state([])
        self.rows: dict[str, list[dict[str, Any]]] = {}

    def steps(self) -> Iterator[str]:
        """Applies each release in turn and adds rows to its new tables."""
        for migrations in self.plan:
            for migration in migrations:
                self.state = self.executor.apply_migration(self.state, migration)
            self._fill()
            yield ".".join((migrations[-1].app_label, migrations[-1].name)) if len(migrations) == 1 else "the first"

    def _fill(self) -> None:
        found = {model._meta.db_table: model for model in self.state.apps.get_models(include_auto_created=True)}
        for table in tables.list_tables(self.state.apps):
            model = found[table.name]
            targets = [field.related_model for field in model._meta.local_fields if field.is_relation]
            is_ours = all(each._meta.app_label in OURS for each in [model, *targets])
            if not is_ours or table.name in self.rows:
                continue
            for number in range(ROWS):
                model._base_manager.create(**_values(model, number))
            self.rows[table.name] = list(model._base_manager.order_by("pk").values())


def _values(model: Any, number: int) -> dict[str, Any]:
    rules = RULES.get(model._meta.db_table, {})
    found = {}
    for field in model._meta.local_fields:
        if field.attname in rules:
            found[field.attname] = rules[field.attname][number]
        elif not isinstance(field, models.AutoField):
            found[field.attname] = _value(field, number)
    return found


def _value(field: Any, number: int) -> Any:
    if field.is_relation:
        one = field.null and number == ROWS - 1
        keys = field.related_model._base_manager.order_by("pk").values_list("pk", flat=True)
        return None if one else keys[number]
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


def rows_now(apps: Any, kept: dict[str, list[dict[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
    """The same rows in the columns they had then."""
    found = {model._meta.db_table: model for model in apps.get_models(include_auto_created=True)}
    return {
        table: [
            {name: row[name] for name in rows[0]}
            for row in found[table]._base_manager.filter(pk__in=[row["id"] for row in rows]).order_by("pk").values()
        ]
        for table, rows in kept.items()
    }
