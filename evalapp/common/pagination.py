"""Keyset pagination: each page costs the same, and no page counts the table. Used by the API and, through `keyset`, by
list pages."""

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as _lazy
from rest_framework.pagination import BasePagination
from rest_framework.response import Response
from rest_framework.serializers import Serializer
from rest_framework.views import APIView

from .errors import BadInput

MAX_SIZE = 500
WRONG_CURSOR = _lazy("The cursor belongs to another list or an earlier version. Start again without it.")


@dataclass(frozen=True)
class Page:
    rows: list
    next: str | None
    previous: str | None


def _encode(values: Sequence[Any], backwards: bool) -> str:
    raw = json.dumps([int(backwards), *values], separators=(",", ":"), default=str).encode()
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _decode(cursor: str, length: int) -> tuple[bool, list]:
    try:
        values = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        if not isinstance(values, list) or len(values) != length + 1:
            raise ValueError
        json.dumps(values, ensure_ascii=False).encode()  # databases refuse half of a surrogate pair
    except (ValueError, TypeError, RecursionError) as error:
        raise BadInput(str(WRONG_CURSOR)) from error
    return bool(values[0]), values[1:]


def read_cursor(cursor: str, length: int) -> tuple[bool, list]:
    """Return whether a cursor goes backwards, and the values of its row (none for an empty cursor)."""
    return _decode(cursor, length) if cursor else (False, [])


def keyset(queryset: QuerySet, *, order: Sequence[str] = ("pk",), cursor: str = "", size: int = 50) -> Page:
    """Return a page of `queryset` in `order` (unique, non-null fields; all ascending, or all prefixed by `-`)."""
    descending = order[0].startswith("-")
    fields = [name.lstrip("-") for name in order]
    backwards, values = read_cursor(cursor, len(fields))
    if values:
        operator = "lt" if descending != backwards else "gt"
        # Implied by the other conditions, but databases use the index only with this one.
        condition = Q(**{f"{fields[0]}__{operator}e": values[0]}) if len(fields) > 1 else Q()
        later = Q()
        for index, name in enumerate(fields):
            equal = dict(zip(fields[:index], values[:index], strict=True))
            later |= Q(**equal, **{f"{name}__{operator}": values[index]})
        try:
            queryset = queryset.filter(condition, later)
        except (ValueError, TypeError, OverflowError) as error:
            raise BadInput(str(WRONG_CURSOR)) from error
    sign = "-" if descending != backwards else ""
    rows = list(queryset.order_by(*(sign + name for name in fields))[: size + 1])
    more, rows = len(rows) > size, rows[:size]
    if backwards:
        rows.reverse()

    def at(row: Any, back: bool) -> str:
        values = []
        for name in fields:
            value = row
            for part in name.split("__"):
                value = value[part] if isinstance(value, dict) else getattr(value, part)
            values.append(value)
        return _encode(values, back)

    has_next = bool(rows) and (more if not backwards else True)
    has_previous = bool(rows) and (bool(values) if not backwards else more)
    return Page(rows, at(rows[-1], False) if has_next else None, at(rows[0], True) if has_previous else None)


def page_of_list(rows: Sequence[Any], *, cursor: str = "", size: int = 50) -> Page:
    """Return a page of a list in memory, in its order, in the same form as `keyset`."""
    _, values = read_cursor(cursor, 1)
    first = values[0] if values else 0
    if type(first) is not int or first < 0:
        raise BadInput(str(WRONG_CURSOR))
    after, before = first + size, max(first - size, 0)
    following = _encode([after], False) if after < len(rows) else None
    return Page(list(rows[first:after]), following, _encode([before], True) if first else None)


class KeysetPagination(BasePagination):
    """`?cursor=...&limit=...` -> `results, next, previous`. A view may set `keyset_order`."""

    def paginate_queryset(self, queryset: Any, request: Any, view: Any = None) -> list:
        self.request = request
        limit = request.query_params.get("limit", "50")
        if not limit.isdecimal() or len(limit) > 9 or not 1 <= int(limit) <= MAX_SIZE:
            raise BadInput(_("limit must be a whole number from 1 to %(most)d.") % {"most": MAX_SIZE})
        self.page = keyset(
            queryset,
            order=getattr(view, "keyset_order", ("pk",)),
            cursor=request.query_params.get("cursor", ""),
            size=int(limit),
        )
        return self.page.rows

    def _link(self, cursor: str | None) -> str | None:
        if cursor is None:
            return None
        query = {**self.request.query_params.dict(), "cursor": cursor}
        return self.request.build_absolute_uri(f"{self.request.path}?{urlencode(query)}")

    def get_paginated_response(self, data: Any) -> Response:
        return Response(
            {"results": data, "next": self._link(self.page.next), "previous": self._link(self.page.previous)}
        )

    def get_paginated_response_schema(self, schema: dict) -> dict:
        link = {"type": "string", "format": "uri", "nullable": True}
        return {
            "type": "object",
            "required": ["results", "next", "previous"],
            "properties": {"results": schema, "next": link, "previous": link},
        }

    def get_schema_operation_parameters(self, view: Any) -> list[dict]:
        return [
            {
                "name": "cursor",
                "in": "query",
                "required": False,
                "schema": {"type": "string"},
                "description": "Opaque position, from `next` or `previous`.",
            },
            {
                "name": "limit",
                "in": "query",
                "required": False,
                "schema": {"type": "integer", "minimum": 1, "maximum": MAX_SIZE, "default": 50},
            },
        ]


def paginate(view: APIView, queryset: QuerySet, serializer: type[Serializer], **context: Any) -> Response:
    """Return the response of a page of `queryset`, in the order of the view."""
    paginator = KeysetPagination()
    rows = paginator.paginate_queryset(queryset, view.request, view)
    context = {"request": view.request, **context}
    return paginator.get_paginated_response(serializer(rows, many=True, context=context).data)


def one_page(rows: Any) -> Response:
    """Return the response of a short list as a single page, so that clients read it like long lists."""
    return Response({"results": rows, "next": None, "previous": None})
