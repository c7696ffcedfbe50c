"""Rename the automatic selection of references, called "annotate" before 0.2.0: its traces and its kinds of run."""

import django.db.models.deletion
from django.db import migrations, models

KINDS = {"annotate": "select-references", "annotate-preview": "preview-references"}


def rename_runs(apps, schema_editor):
    for old, new in KINDS.items():
        apps.get_model("common", "Run").objects.filter(kind=old).update(kind=new)


def restore_runs(apps, schema_editor):
    for old, new in KINDS.items():
        apps.get_model("common", "Run").objects.filter(kind=new).update(kind=old)


class Migration(migrations.Migration):
    dependencies = [
        ("scoring", "0006_ratings_z_shrunk"),
        ("common", "0004_idempotency_keys"),
    ]

    operations = [
        migrations.RenameModel("AnnotationTrace", "SelectionTrace"),
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterField(
                    "selectiontrace",
                    "item",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="selection_traces",
                        to="annotation.item",
                    ),
                ),
            ]
        ),
        migrations.RunPython(rename_runs, restore_runs),
    ]
