"""Comparisons that were made in campaigns before `swapped` was kept in their `meta` get it from their assignments."""

from typing import Any

from django.db import migrations

BATCH = 2000


def fill(apps: Any, schema_editor: Any) -> None:
    comparisons = apps.get_model("annotation", "Comparison")
    judgements = apps.get_model("annotation", "Judgement").objects.filter(assignment__side_swapped=True)
    rows = comparisons.objects.filter(output_b__isnull=False, judgement__in=judgements.values("pk"))
    waiting: list[Any] = []
    for row in rows.only("pk", "meta").order_by("pk").iterator(chunk_size=BATCH):
        row.meta = {**row.meta, "swapped": True}
        waiting.append(row)
        if len(waiting) == BATCH:
            comparisons.objects.bulk_update(waiting, ["meta"])
            waiting = []
    comparisons.objects.bulk_update(waiting, ["meta"])


class Migration(migrations.Migration):
    dependencies = [("annotation", "0006_upload_failed")]

    operations = [migrations.RunPython(fill, migrations.RunPython.noop)]
