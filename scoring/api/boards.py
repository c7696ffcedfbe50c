"""Leaderboards for programs. The schema of each answer is the board's table type (`scoring/boards/*/table.py`)."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import cache
from typing import Any

from django.http import HttpResponse
from django.utils.translation import gettext as _
from drf_spectacular.contrib.pydantic import PydanticExtension
from drf_spectacular.plumbing import ResolvedComponent
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from pydantic import create_model
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from evalapp.accounts.selectors import get_project
from evalapp.common.api.fields import refuse_unknown
from evalapp.common.errors import NotThere
from scoring.boards.base import Query
from scoring.boards.choices import CHOICES
from scoring.boards.registry import Board, get_board, list_boards
from scoring.boards.render.files import FORMATS
from scoring.boards.shapes import BoardTable, Number, Part, about, find_faults, optional

from ..downloads import send_board
from ..selectors.leaderboards import parse_query
from ..services.leaderboards import Answer, answer_leaderboard

#: Help of parameters whose name does not say everything.
DESCRIPTIONS = {
    "evaluators": "Slugs, separated by commas. Only these are compared, and only outputs in their training data are "
    "left out. Default: all."
}


#: Formats of leaderboards besides JSON.
FILES = {ending: written for ending, written in FORMATS.items() if ending != "json"}


class PendingSerializer(serializers.Serializer):
    """A large table that is not computed yet: ask again when the run has ended."""

    run = serializers.IntegerField()
    detail = serializers.CharField()


class StaleScores(Part):
    """Scores of a table that are outdated. Applying the evaluator again scores only outputs that changed."""

    evaluator: str
    aspect: str
    references: str
    reason: str
    n_unscored: Number = about("Outputs without a score.")
    final: bool = optional("The scores cannot be renewed: a part of this combination was deleted.")


class BoardAnswer(Part):
    """Members that the API adds to a table."""

    project: str
    computed_at: datetime
    is_current: bool = about(
        "False: the data changed, and `run` recomputes the table. Games are replayed on request only."
    )
    run: int | None
    stale: list[StaleScores] = optional("Outdated scores, also in a table that is current.")


@cache
def make_model(table: type[BoardTable]) -> type[BoardTable]:
    """Return the type of the API's answer with such a table."""
    return create_model(table.__name__, __base__=(BoardAnswer, table), __doc__=table.__doc__)  # type: ignore[arg-type]


class _Schema(GenerateJsonSchema):
    """JSON schema as OpenAPI 3.0 writes it."""

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        inner = self.generate_inner(schema["schema"])
        return {"allOf": [inner], "nullable": True} if "$ref" in inner else {**inner, "nullable": True}

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        inner = super().default_schema(schema)
        if inner.get("default", 0) is None:
            del inner["default"]
        return inner

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


class BoardExtension(PydanticExtension):  # type: ignore[no-untyped-call]
    target_class = "scoring.boards.shapes.BoardTable"
    priority = 1

    def map_serializer(self, auto_schema: Any, direction: Any) -> dict[str, Any]:
        reference = "#/components/schemas/{model}"
        schema: dict[str, Any] = self.target.model_json_schema(
            ref_template=reference, mode="serialization", schema_generator=_Schema
        )
        for name, part in schema.pop("$defs", {}).items():
            component = ResolvedComponent(name, ResolvedComponent.SCHEMA, schema=part, object=name)
            auto_schema.registry.register_on_missing(component)
        return schema


def list_parameters(shape: type[Query]) -> list[OpenApiParameter]:
    return [
        OpenApiParameter(
            name, OpenApiTypes.STR, enum=list(CHOICES[name]) if name in CHOICES else None, default=default or None,
            description=DESCRIPTIONS.get(name, ""),
        )
        for name, default in shape.defaults().items()
    ]  # fmt: skip


def describe_board(kind: str, operation_id: str = "") -> Any:
    """Return the decorator that documents the view of a board."""
    board = get_board(kind)
    return extend_schema(
        operation_id=operation_id or f"leaderboards_{kind}",
        description=board.query.description,
        parameters=list_parameters(board.query),
        responses={200: make_model(board.module("table").Table), 202: PendingSerializer},
    )


def make_view(kind: str) -> type[APIView]:
    """Return the view of a board."""

    class Board(APIView):
        @describe_board(kind)
        def get(self, request: Request, slug: str) -> Response:
            return answer_request(request, slug, kind)

    return Board


class AnyBoard(APIView):
    """A board that was registered after the addresses of this API were made, or one that does not exist."""

    @extend_schema(exclude=True)
    def get(self, request: Request, slug: str, kind: str) -> Response:
        return answer_request(request, slug, kind)


class BoardFile(APIView):
    @extend_schema(
        operation_id="leaderboards_file",
        parameters=[OpenApiParameter("ending", OpenApiTypes.STR, OpenApiParameter.PATH, enum=list(FILES))],
        responses={(200, media_type.partition(";")[0]): OpenApiTypes.STR for write, media_type in FILES.values()},
    )
    def get(self, request: Request, slug: str, kind: str, ending: str) -> HttpResponse:
        """A leaderboard as CSV or LaTeX, with the parameters of the leaderboard. 503 while it is computed."""
        project = get_project(user=request.user, slug=slug, need="read")
        shape = find_board(kind).query
        if ending not in FILES:
            text = _("There is no leaderboard as %(ending)s. There are: %(known)s.")
            raise NotThere(text % {"ending": ending, "known": ", ".join(FILES)})
        refuse_unknown(request.query_params, shape.names())
        query = parse_query(shape, request.query_params, project)
        return send_board(project=project, query=query, user=request.user, ending=ending)


def find_board(kind: str) -> Board:
    """Return the leaderboard of this kind. Raises `NotThere` with all kinds if there is none."""
    boards = {name: board for name, board in list_boards().items() if board.query.in_leaderboards}
    if kind not in boards:
        text = _("There is no leaderboard “%(kind)s”. There are: %(known)s.")
        raise NotThere(text % {"kind": kind, "known": ", ".join(boards)})
    return boards[kind]


def answer_request(request: Request, slug: str, kind: str) -> Response:
    project = get_project(user=request.user, slug=slug, need="read")
    shape = find_board(kind).query
    refuse_unknown(request.query_params, shape.names())
    query = parse_query(shape, request.query_params, project)
    return respond(answer_leaderboard(project=project, query=query, user=request.user))


def respond(answer: Answer) -> Response:
    """Return the stored table, or 202 with the run that computes it."""
    run = answer.run.pk if answer.run else None
    pending = {"run": run, "detail": _("The table is large and is being computed in this run.")}
    if answer.table is None or answer.leaderboard is None:
        return Response(pending, status=202)
    # A table that came with an upload may be by another program.
    if not answer.leaderboard.stamp and next(_find_table_faults(answer.table), None):
        return Response(pending, status=202)
    is_current = answer.is_current and not answer.is_old
    return Response(
        {**answer.table, "computed_at": answer.leaderboard.computed_at, "is_current": is_current, "run": run}
    )


def _find_table_faults(table: Mapping[str, Any]) -> Iterator[Any]:
    return find_faults(get_board(table["kind"]).choose_model(table), table, "table")
