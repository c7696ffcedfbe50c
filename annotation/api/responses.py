"""Responses of the annotation API: fast JSON, pages of lists, and the problem details that the schema describes."""

from collections.abc import Callable
from typing import Any

import orjson
from django.db.models import QuerySet
from django.http import HttpResponse
from drf_spectacular.utils import OpenApiResponse
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from evalapp.common.pagination import KeysetPagination

_OPTIONS = orjson.OPT_UTC_Z | orjson.OPT_OMIT_MICROSECONDS


def make_json_response(body: Any, status: int = 200) -> HttpResponse:
    response = HttpResponse(orjson.dumps(body, option=_OPTIONS), status=status, content_type="application/json")
    response.headers["Cache-Control"] = "no-store"
    return response


class PagedView(APIView):
    """A list in pages; the order must be unique and indexed."""

    pagination_class = KeysetPagination
    keyset_order: tuple[str, ...] = ("-pk",)

    def paginate(self, request: Request, rows: QuerySet[Any], serialize: Callable[[list[Any]], Any]) -> Response:
        """The page of `rows` that the request asks for, as `serialize` returns it."""
        paginator = self.pagination_class()
        return paginator.get_paginated_response(serialize(paginator.paginate_queryset(rows, request, view=self)))


class ProblemSerializer(serializers.Serializer):
    type = serializers.CharField()
    title = serializers.CharField()
    status = serializers.IntegerField()
    detail = serializers.CharField()
    stored = serializers.DictField(required=False, allow_null=True)
    yours = serializers.DictField(required=False)


CONFLICT = OpenApiResponse(ProblemSerializer, description="Changed in the meantime; both versions are in the body.")
