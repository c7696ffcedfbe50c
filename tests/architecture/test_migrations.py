"""Migrations may run on large tables while people work. Operations that lock them for long, break the running release
or cannot be reversed are listed with a reason."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection, migrations, models
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.state import ProjectState

pytestmark = pytest.mark.promise("migrations")
OURS = {"accounts", "common", "annotation", "retrieval", "scoring"}
#: docs/operations/upgrade-and-rollback.md
_STOPPED = "the upgrade stops web and workers before it migrates, and "

#: Flagged operations that stay: migration -> operation -> why it is safe.
ALLOWED: dict[str, dict[str, str]] = {
    "annotation.0002_kept": {
        "AddIndex item_judged": _STOPPED + "the index holds two short keys of the items that are judged",
        "AddIndex item_unjudged": _STOPPED + "the index holds two short keys of each item",
    },
    "annotation.0005_filters": {
        "AddField campaign.begun_count": "an installation has hundreds of campaigns, not millions",
        "AddIndex slot_pool": _STOPPED + "the index is partial: three numbers of each free slot",
    },
    "annotation.0008_latest_of_project": {
        f"AddIndex {name}": _STOPPED + "the index holds two numbers of each row: about a second for a million"
        for name in ("rating_project", "comparison_project")
    },
    "annotation.0010_natural_order": {
        **{
            f"{change}{model}{rest}": _STOPPED + "the rows are written once: some 6 seconds for 100,000 items"
            for model in ("item", "system", "dialogue")
            for change, rest in (("AddField ", ".order_key"), ("AddConstraint one_", "_in_order"))
        },
        **{
            f"AddIndex {name}": _STOPPED + "the index holds two short keys of each item, as the one it replaces"
            for name in ("item_judged", "item_unjudged")
        },
        "AlterField textblock.first_key": "the table is empty: a run after the upgrade makes its rows again",
    },
    "common.0002_audit_chain": {
        "AddField auditevent.position": "a unique index over a column that is null everywhere holds next to nothing",
        **{
            f"AddField auditevent.{name}": _STOPPED + "PostgreSQL adds a constant default without writing the table"
            for name in ("content", "link", "salt", "scope")
        },
    },
    "scoring.0007_reference_selection": {"RenameModel AnnotationTrace": _STOPPED + "a table is renamed in no time"},
    "scoring.0002_trained": {
        **{
            f"AddField evaluator.{name}": "a project has dozens of evaluators, not thousands"
            for name in ("damage", "folder", "record", "run", "signature", "state")
        },
        **{
            f"AddField scoreset.{name}": "an evaluator has a handful of score sets"
            for name in ("aspect", "n_in_training")
        },
        "AddConstraint one_score_set": "an evaluator has a handful of score sets",
    },
}


def flagged(migration: migrations.Migration, before: ProjectState) -> Iterator[tuple[str, str]]:
    """(operation, its problem), except for tables created by the same migration."""
    state, new = before.clone(), set()
    for operation in migration.operations:
        label = migration.app_label
        model = getattr(operation, "model_name", "") or getattr(operation, "name", "")
        if isinstance(operation, migrations.CreateModel):
            new.add(operation.name.lower())
        elif str(model).lower() not in new:
            yield from _flags(operation, label, state)
        operation.state_forwards(label, state)


def _flags(operation: Any, label: str, state: ProjectState) -> Iterator[tuple[str, str]]:
    name = type(operation).__name__
    if isinstance(operation, migrations.AddField):
        yield from _added(operation)
    elif isinstance(operation, migrations.AlterField):
        old = state.models[label, operation.model_name_lower].fields[operation.name]
        if _is_altered(old, operation.field):
            yield f"{name} {operation.model_name}.{operation.name}", "rewrites or scans the whole table"
    elif isinstance(operation, migrations.AddIndex):
        yield f"{name} {operation.index.name}", "keeps writers out while the index is built"
    elif isinstance(operation, migrations.AddConstraint):
        yield f"{name} {operation.constraint.name}", "looks through the whole table under a lock"
    elif isinstance(operation, migrations.RunPython | migrations.RunSQL):
        if not operation.reversible:
            yield f"{name}", "cannot be undone"
    elif isinstance(operation, migrations.SeparateDatabaseAndState):
        for inner in operation.database_operations:
            yield from _flags(inner, label, state)
    elif isinstance(operation, _BREAKING):
        yield f"{name} {_about(operation)}", "the former release still uses it"
    elif not isinstance(operation, _HARMLESS):
        yield f"{name} {_about(operation)}", "it is not known to be safe"


_BREAKING = (
    migrations.RemoveField, migrations.RenameField, migrations.DeleteModel, migrations.RenameModel,
    migrations.AlterModelTable, migrations.AlterUniqueTogether, migrations.AlterIndexTogether,
)  # fmt: skip
_HARMLESS = (
    migrations.RemoveIndex, migrations.RemoveConstraint, migrations.AlterModelOptions, migrations.AlterModelManagers,
    migrations.RenameIndex,
)  # fmt: skip


def _about(operation: Any) -> str:
    """The model or field that an operation changes."""
    found = getattr(operation, "model_name", "") or getattr(operation, "name", "") or operation.old_name
    part = getattr(operation, "old_name", "") or getattr(operation, "name", "")
    return f"{found}.{part}" if hasattr(operation, "model_name") else str(found)


def _added(operation: migrations.AddField) -> Iterator[tuple[str, str]]:
    field, name = operation.field, f"AddField {operation.model_name}.{operation.name}"
    if not field.null and not field.has_db_default():
        yield name, "the former release does not fill it, and the database has no default"
    elif field.unique or field.db_index or (field.is_relation and field.db_constraint):
        yield name, "builds an index or looks through the whole table"


def _is_altered(old: models.Field, new: models.Field) -> bool:
    """Whether the database has work to do: not for choices, help texts and the like."""
    ours = [field.clone() for field in (old, new)]
    for field in ours:
        field.set_attributes_from_name("field")
    return bool(connection.schema_editor(collect_sql=True)._field_should_be_altered(*ours))


@pytest.fixture(scope="module")
def loader() -> MigrationLoader:
    from django.test import override_settings

    with override_settings(MIGRATION_MODULES={}):
        return MigrationLoader(None)


def test_no_migration_is_unsafe_without_a_reason(loader):
    found: dict[str, dict[str, str]] = {}
    for key in sorted(loader.graph.nodes):
        migration = loader.graph.nodes[key]
        if key[0] in OURS and not migration.initial and not key[1].startswith("0001_"):
            before = loader.project_state([parent.key for parent in loader.graph.node_map[key].parents])
            flags = dict(flagged(migration, before))
            if flags:
                found[".".join(key)] = flags
    assert {name: set(flags) for name, flags in found.items()} == {name: set(why) for name, why in ALLOWED.items()}
    assert all(len(why) > 30 for reasons in ALLOWED.values() for why in reasons.values())


def _one(*operations: Any) -> list[tuple[str, str]]:
    state = ProjectState()
    migrations.CreateModel(
        "Item", [("id", models.BigAutoField(primary_key=True)), ("text", models.CharField(max_length=10))]
    ).state_forwards("annotation", state)
    migration = migrations.Migration("0009_x", "annotation")
    migration.operations = list(operations)
    return list(flagged(migration, state))


@pytest.mark.parametrize(
    ("operation", "words"),
    [
        (migrations.AddField("item", "x", models.IntegerField(default=0)), "no default"),
        (migrations.AddField("item", "x", models.IntegerField(null=True, db_index=True)), "builds an index"),
        (migrations.AlterField("item", "text", models.CharField(max_length=20)), "scans the whole table"),
        (migrations.AlterField("item", "text", models.TextField()), "scans the whole table"),
        (migrations.AlterField("item", "text", models.CharField(max_length=10, null=True)), "scans the whole table"),
        (migrations.AddIndex("item", models.Index(fields=["text"], name="i")), "keeps writers out"),
        (migrations.AddConstraint("item", models.UniqueConstraint(fields=["text"], name="c")), "under a lock"),
        (migrations.RemoveField("item", "text"), "former release"),
        (migrations.RenameField("item", "text", "words"), "former release"),
        (migrations.DeleteModel("Item"), "former release"),
        (migrations.RenameModel("Item", "Thing"), "former release"),
        (migrations.RunPython(print), "cannot be undone"),
        (migrations.RunSQL("DELETE FROM annotation_item"), "cannot be undone"),
        (migrations.SeparateDatabaseAndState([migrations.RemoveField("item", "text")]), "former release"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else "",
)
def test_unsafe_operations_are_found(operation, words):
    [(name, why)] = _one(operation)
    assert name.startswith(type(operation).__name__) or "Separate" in type(operation).__name__
    assert words in why


def test_safe_operations_are_not_flagged(loader):
    new = migrations.CreateModel("Thing", [("id", models.BigAutoField(primary_key=True))])
    assert not _one(
        new,
        migrations.AddIndex("thing", models.Index(fields=["id"], name="i")),
        migrations.AddField("item", "x", models.IntegerField(null=True)),
        migrations.AddField("item", "y", models.IntegerField(default=0, db_default=0)),
        migrations.AlterField("item", "text", models.CharField(max_length=10, choices=[("a", "A")], help_text="a")),
        migrations.RunPython(print, migrations.RunPython.noop),
    )
