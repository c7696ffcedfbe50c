"""Puts a text into every place where a person could have written one: every free text column of every table, and
strings inside JSON. Values for programs (states, names of addresses, digests) are left alone."""

from __future__ import annotations

from typing import Any

from django.apps import apps
from django.core.validators import MaxLengthValidator
from django.db import models

OURS = ("accounts", "common", "annotation", "retrieval", "scoring")
#: Columns that programs read.
READ_BY_PROGRAMS = {
    "slug", "public", "digest", "state", "state_before", "kind", "queue", "folder", "worker", "stored", "password",
    "username", "landing", "input_hash", "body_hash", "data_hash", "prefix", "evaluator", "corpus", "references",
    "aspect", "lang", "verb", "limit", "key_hash", "host", "theme", "pseudonym", "signature_hash", "decision", "why",
    "rater_suffix", "prepared", "key", "current", "method", "issuer",
}  # fmt: skip
#: Names that must stay different from each other.
NAMES = {
    ("System", "name"),
    ("Item", "key"),
    ("Item", "group"),
    ("Aspect", "name"),
    ("Rating", "rater"),
    ("Identity", "subject"),
}
#: Tables whose names are looked up.
LOOKED_UP = {("ReferenceSet", "name"), ("Corpus", "name"), ("Aspect", "name"), ("WorkerBeat", "name")}
TEXTS_IN_JSON = {"context", "turns", "speakers", "meta", "faults", "labels", "preferences"}
#: Tables whose `meta` may contain any key.
OPEN = {"Item", "Output", "System", "Reference"}
INTERNAL = {"AttemptCount", "WorkerBeat", "AuditEvent", "AuditHead"}


def poison(long: str, short: str) -> int:
    """Returns the filled columns. `short` is used where `long` has no room."""
    filled = 0
    for model in apps.get_models():
        if model._meta.app_label not in OURS or model.__name__ in INTERNAL or not model._meta.managed:
            continue
        columns = [field for field in model._meta.concrete_fields if _is_free(model, field)]
        rows = list(model._default_manager.all())
        for row in rows:
            for field in columns:
                value = getattr(row, field.attname)
                setattr(row, field.attname, _filled(model, field, value, row.pk, long, short))
        if rows and columns:
            model._base_manager.bulk_update(rows, [field.attname for field in columns])
            filled += len(columns)
    return filled


def _is_free(model: Any, field: Any) -> bool:
    if (model.__name__, field.name) in LOOKED_UP:
        return False
    if isinstance(field, models.JSONField):
        return field.name in TEXTS_IN_JSON
    if type(field) not in (models.CharField, models.TextField, models.EmailField) or field.choices:
        return False
    checked = [rule for rule in field.validators if not isinstance(rule, MaxLengthValidator)]
    named = (model.__name__, field.name) in NAMES
    if (field.name in READ_BY_PROGRAMS and not named) or (checked and not isinstance(field, models.EmailField)):
        return False
    return not field.unique


def _filled(model: Any, field: Any, value: Any, pk: Any, long: str, short: str) -> Any:
    if isinstance(field, models.JSONField):
        inside = _inside(value, long)
        return inside | {long: long} if model.__name__ in OPEN and isinstance(inside, dict) else inside
    room = field.max_length or 10_000
    end = f" {pk}" if (model.__name__, field.name) in NAMES else ""
    return (long if len(long) + len(end) <= room else short)[: room - len(end)] + end


def _inside(value: Any, text: str) -> Any:
    if isinstance(value, str):
        return text
    if isinstance(value, list):
        return [_inside(part, text) for part in value]
    if isinstance(value, dict):
        return {key: _inside(part, text) for key, part in value.items()}
    return value
