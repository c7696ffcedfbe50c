"""A column that sorts ids naturally in the database (`q2` before `q10`), on PostgreSQL and SQLite alike."""

from typing import Any

from django.db import models

from evalapp.names import is_natural_key, natural_key


class NaturalOrder(models.TextField):
    """`natural_key` of the field `source`, set whenever the row is saved; compared by code point. Code that writes rows
    without models must set it too: the column is not null and has no default."""

    def __init__(self, *args: Any, source: str = "", **options: Any) -> None:
        self.source = source
        super().__init__(*args, **options)

    def deconstruct(self) -> Any:
        name, path, args, options = super().deconstruct()
        return name, path, args, {**options, "source": self.source}

    def db_parameters(self, connection: Any) -> Any:
        # SQLite compares UTF-8 bytes by default, PostgreSQL uses its locale.
        return {**super().db_parameters(connection), "collation": "C" if connection.vendor == "postgresql" else None}

    def pre_save(self, model_instance: models.Model, add: bool) -> Any:
        if self.source:
            setattr(model_instance, self.attname, natural_key(getattr(model_instance, self.source)))
        return super().pre_save(model_instance, add)

    def get_prep_value(self, value: Any) -> Any:
        """Rejects values that are not keys: cursors of earlier versions contain names or numbers."""
        if value is not None and not (isinstance(value, str) and is_natural_key(value)):
            raise ValueError(f"{value!r} is not a key of the natural order.")
        return value
