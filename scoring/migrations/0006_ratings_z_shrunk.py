"""What 0.1.0 called `ratings: z` is `z-shrunk` since 0.2.0, where `z` are plain z-scores: stored settings keep their
meaning. Tables that are only cached are left alone: they are computed again."""

import re

from django.db import migrations

_IN_SIGNATURE = re.compile(r"(?<=\|ratings:)z(?=\||\Z)")


def _settings(value):
    """The same settings, at any depth, with `ratings` renamed."""
    if isinstance(value, list):
        return [_settings(part) for part in value]
    if not isinstance(value, dict):
        return value
    found = {key: _settings(part) for key, part in value.items()}
    return {**found, "ratings": "z-shrunk"} if found.get("ratings") == "z" else found


def _table(table):
    """The same table with its setting and its own signatures renamed. Those of evaluators are theirs."""
    found = {**table, "ratings": "z-shrunk"} if table.get("ratings") == "z" else dict(table)
    if isinstance(found.get("signature"), str):
        found["signature"] = _IN_SIGNATURE.sub("z-shrunk", found["signature"])
    if isinstance(found.get("aspects"), list):
        found["aspects"] = [_table(row) if isinstance(row, dict) else row for row in found["aspects"]]
    return found


def rename(apps, schema_editor):
    # Snapshots, trained and combined evaluators, and runs, which may run again.
    columns = {
        ("scoring", "Snapshot"): {"params": _settings, "table": _table},
        ("scoring", "Evaluator"): {"options": _settings},
        ("common", "Run"): {"params": _settings},
    }
    for (app, name), fields in columns.items():
        for row in apps.get_model(app, name).objects.only("pk", *fields).iterator(chunk_size=200):
            found = {field: change(getattr(row, field)) for field, change in fields.items()}
            changed = [field for field in fields if found[field] != getattr(row, field)]
            for field in changed:
                setattr(row, field, found[field])
            if changed:
                row.save(update_fields=changed)


class Migration(migrations.Migration):
    dependencies = [
        ("scoring", "0005_pairs_board"),
        ("common", "0004_idempotency_keys"),
    ]

    operations = [migrations.RunPython(rename, migrations.RunPython.noop)]
