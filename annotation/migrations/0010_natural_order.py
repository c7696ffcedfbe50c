"""Items, systems and dialogues get `order_key`, by which their ids sort naturally (`q2` before `q10`). Text blocks for
searching follow that order: the old ones go, and a run makes new ones."""

from collections.abc import Iterator
from typing import Any

from django.db import migrations, models

from annotation.models.ordered import NaturalOrder
from annotation.triggers import drop_triggers
from evalapp.common.queue import input_hash
from evalapp.names import natural_key

BATCH = 5000
NAMES = {"item": "key", "system": "name", "dialogue": "key"}
JUDGED = {"item_judged": True, "item_unjudged": False}


def drop(apps: Any, schema_editor: Any) -> None:
    """SQLite cannot rebuild the table of items while triggers refer to it; they are made again after the migration."""
    drop_triggers(schema_editor.connection)


def fill(apps: Any, schema_editor: Any) -> None:
    connection = schema_editor.connection
    for model, name in NAMES.items():
        table = f"annotation_{model}"
        rows = apps.get_model("annotation", model).objects.order_by("pk").values_list("pk", name)
        for batch in _batches(rows):
            keys = [(natural_key(text), pk) for pk, text in batch]
            with connection.cursor() as cursor:
                if connection.vendor == "postgresql":
                    cursor.execute(
                        f"UPDATE {table} t SET order_key = v.key FROM unnest(%s::text[], %s::bigint[]) AS v (key, id)"
                        " WHERE t.id = v.id",
                        [list(column) for column in zip(*keys, strict=True)],
                    )
                else:
                    cursor.executemany(f"UPDATE {table} SET order_key = %s WHERE id = %s", keys)


def _batches(rows: Any) -> Iterator[list[tuple[int, str]]]:
    last = 0
    while batch := list(rows.filter(pk__gt=last)[:BATCH]):
        yield batch
        last = batch[-1][0]


def replace_blocks(apps: Any, schema_editor: Any) -> None:
    blocks, runs = apps.get_model("annotation", "TextBlock"), apps.get_model("common", "Run")
    for project in list(blocks.objects.order_by().values_list("project", flat=True).distinct()):
        digest = input_hash("search", project, {})
        if not runs.objects.filter(input_hash=digest, state__in=["queued", "running"]).exists():
            runs.objects.create(project_id=project, kind="search", title="Prepare the search", input_hash=digest)
    forget_blocks(apps, schema_editor)


def forget_blocks(apps: Any, schema_editor: Any) -> None:
    apps.get_model("annotation", "TextBlock").objects.all().delete()


class Migration(migrations.Migration):
    dependencies = [("annotation", "0009_writing_flags"), ("common", "0004_idempotency_keys")]

    operations = [
        migrations.RunPython(drop, drop),
        *(migrations.RemoveIndex("item", name) for name in JUDGED),
        *(
            migrations.AddField(
                model, "order_key", NaturalOrder(source=name, default="", editable=False), preserve_default=False
            )
            for model, name in NAMES.items()
        ),
        migrations.RunPython(fill, migrations.RunPython.noop),
        *(
            migrations.AddConstraint(
                model, models.UniqueConstraint(fields=["project", "order_key"], name=f"one_{model}_in_order")
            )
            for model in NAMES
        ),
        *(
            migrations.AddIndex(
                "item", models.Index(fields=["project", "order_key"], condition=models.Q(judged=judged), name=name)
            )
            for name, judged in JUDGED.items()
        ),
        migrations.RunPython(replace_blocks, migrations.RunPython.noop),
        migrations.AlterField("textblock", "first_key", NaturalOrder()),
        migrations.RunPython(migrations.RunPython.noop, forget_blocks),
        migrations.RunPython(migrations.RunPython.noop, drop),
    ]
