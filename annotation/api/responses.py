"""Responses of the annotation API: fast JSON, and the problem details that the schema describes."""

from __future__ import annotations

from typing import Any

import orjson
from django.http import HttpResponse
from drf_spectacular.utils import OpenApiResponse
from rest_framework import serializers

_OPTIONS = orjson.OPT_UTC_Z | orjson.OPT_OMIT_MICROSECONDS


def fast_json(body: Any, status: int = 200) -> HttpResponse:
    response = HttpResponse(orjson.dumps(body, option=_OPTIONS), status=status, content_type="application/json")
    response.headers["Cache-Control"] = "no-store"
    return response


class ProblemSerializer(serializers.Serializer):
    type = serializers.CharField()
    title = serializers.CharField()
    status = serializers.IntegerField()
    detail = serializers.CharField()
    stored = serializers.DictField(required=False, allow_null=True)
    yours = serializers.DictField(required=False)


CONFLICT = OpenApiResponse(ProblemSerializer, description="Changed in the meantime; both versions are in the body.")
