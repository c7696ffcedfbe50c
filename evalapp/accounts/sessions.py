"""Sessions in the database, read by one plain statement: every request of fifty annotators begins here, and
building the query anew each time cost more than running it. Writing is Django's own."""

from __future__ import annotations

from typing import Any

from django.contrib.sessions.backends import db
from django.db import connections, router
from django.utils import timezone


class SessionStore(db.SessionStore):
    """`SESSION_ENGINE = "evalapp.accounts.sessions"`."""

    def load(self) -> dict[str, Any]:
        connection = connections[router.db_for_read(self.model)]
        now = connection.ops.adapt_datetimefield_value(timezone.now())
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT session_data FROM django_session WHERE session_key = %s AND expire_date > %s",
                [self.session_key, now],
            )
            row = cursor.fetchone()
        if row is None:
            self._session_key = None
            return {}
        return self.decode(row[0])
