"""Evaluators, scores and leaderboards for programs. Scoring itself is a run: `POST projects/{slug}/runs/` with
`{"kind": "score", "evaluator": "bleu-4"}`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from annotation.allocation.texts import UNSTORABLE, is_storable
from evalapp.accounts.selectors import get_project
from evalapp.common.api.fields import PAGES, refuse_unknown
from evalapp.common.errors import BadInput, NotThere
from evalapp.common.forms import number_in
from evalapp.common.pagination import KeysetPagination, one_page
from scoring.boards.choices import CHOICES
from scoring.boards.metrics.query import EvaluatorsQuery
from scoring.boards.registry import get_board
from scoring.boards.systems.query import SystemsQuery

from ..models import Score, ScoreSet
from ..selectors.catalogue import entries, entry_as_dict
from ..selectors.inputs import count_outputs
from ..selectors.leaderboards import parse_query
from ..selectors.score_sets import current_sets, list_states
from ..services.leaderboards import answer_leaderboard
from ..services.scores import delete_scores
from .boards import board_response
from .serializers import (
    CatalogueSerializer,
    EvaluatorsBoardSerializer,
    EvaluatorsSerializer,
    FurtherBoardSerializer,
    PairsBoardSerializer,
    PendingSerializer,
    ScoreSerializer,
    ScoreSetSerializer,
    SystemsBoardSerializer,
)

#: What the name of a parameter does not say.
DESCRIBED = {
    "evaluators": "Slugs with commas between: only these make rows, are tested and leave out what they learned from, "
    "sentinels no less than others. Default: all."
}


def _parameters(shape: Any) -> list[OpenApiParameter]:
    return [
        OpenApiParameter(
            name,
            OpenApiTypes.STR,
            enum=list(CHOICES[name]) if name in CHOICES else None,
            default=default or None,
            description=DESCRIBED.get(name, ""),
        )
        for name, default in shape.defaults().items()
    ]


class Catalogue(APIView):
    @extend_schema(operation_id="evaluators_catalogue", responses=CatalogueSerializer)
    def get(self, request: Request) -> Response:
        """What can be applied by name, with options and needs."""
        return one_page([entry_as_dict(entry) for entry in entries()])


class EvaluatorList(APIView):
    @extend_schema(operation_id="evaluators_list", responses=EvaluatorsSerializer)
    def get(self, request: Request, slug: str) -> Response:
        """What has been applied in a project: one row per evaluator, signature and reference set, newest first."""
        project = get_project(user=request.user, slug=slug, need="read")
        return one_page(ScoreSetSerializer(list_states(project, count_outputs(project)), many=True).data)


class ScoreList(APIView):
    pagination_class = KeysetPagination
    keyset_order = ("score_set_id", "output_id")  # the order of an index, however many sets there are

    @extend_schema(
        operation_id="scores_list",
        responses=ScoreSerializer(many=True),
        parameters=[
            OpenApiParameter("evaluator", OpenApiTypes.STR, description="Slug; default: all."),
            OpenApiParameter("references", OpenApiTypes.STR, default="original", description="The reference set."),
            OpenApiParameter("system", OpenApiTypes.STR),
            OpenApiParameter("item", OpenApiTypes.STR),
            OpenApiParameter("cursor", OpenApiTypes.STR, description="Opaque position, from `next` or `previous`."),
            OpenApiParameter("limit", OpenApiTypes.INT, default=50, description="From 1 to 500."),
        ],
    )
    def get(self, request: Request, slug: str) -> Response:
        """The current scores of every output, by evaluator and output."""
        project = get_project(user=request.user, slug=slug, need="read")
        given = request.query_params
        refuse_unknown(given, ("evaluator", "references", "system", "item", *PAGES))
        if not is_storable(given.dict()):
            raise BadInput(UNSTORABLE)
        sets = current_sets(project, given.get("references", "original"))
        if "evaluator" in given:
            sets = [s for s in sets if s.evaluator.slug == given["evaluator"]]
        rows = Score.objects.filter(score_set__in=[s.pk for s in sets])
        if "system" in given:
            rows = rows.filter(output__system__name=given["system"], output__project=project)
        if "item" in given:
            rows = rows.filter(output__item__key=given["item"], output__project=project)
        paginator = KeysetPagination()
        found = paginator.paginate_queryset(
            rows.select_related("output__item", "output__system", "score_set__evaluator"), request, self
        )
        return paginator.get_paginated_response(ScoreSerializer(found, many=True).data)


class ScoreSetShow(APIView):
    @extend_schema(
        operation_id="scores_destroy",
        description="Delete the scores of one set, by its `id` in the list of evaluators that were applied.",
        responses={204: OpenApiResponse(description="Gone.")},
    )
    def delete(self, request: Request, slug: str, pk: int) -> Response:
        project = get_project(user=request.user, slug=slug, need="write")
        wanted = number_in(str(pk))
        found = None if wanted is None else ScoreSet.objects.filter(project=project, pk=wanted).first()
        if found is None:
            raise NotThere(f"There is no set of scores {pk} in {project.slug}.")
        delete_scores(score_set=found, user=request.user)
        return Response(status=204)


def _board(request: Request, slug: str, shape: Any, serializer: Any) -> Response:
    project = get_project(user=request.user, slug=slug, need="read")
    refuse_unknown(request.query_params, shape.names())
    query = parse_query(shape, request.query_params, project)
    answer = answer_leaderboard(project=project, query=query, user=request.user)
    return board_response(answer, serializer)


class SystemsBoard(APIView):
    @extend_schema(
        operation_id="leaderboards_systems",
        parameters=_parameters(SystemsQuery),
        responses={200: SystemsBoardSerializer, 202: PendingSerializer},
    )
    def get(self, request: Request, slug: str) -> Response:
        """Systems, best first, by people or by an evaluator."""
        return _board(request, slug, SystemsQuery, SystemsBoardSerializer)


class EvaluatorsBoard(APIView):
    @extend_schema(
        operation_id="leaderboards_evaluators",
        parameters=_parameters(EvaluatorsQuery),
        responses={200: EvaluatorsBoardSerializer, 202: PendingSerializer},
    )
    def get(self, request: Request, slug: str) -> Response:
        """Evaluators by their correlation with people, sentinels among them."""
        return _board(request, slug, EvaluatorsQuery, EvaluatorsBoardSerializer)


def _further(kind: str, words: str, serializer: Any = FurtherBoardSerializer) -> Any:
    """The address of one further table of evaluators."""

    class Further(APIView):
        @extend_schema(
            operation_id=f"leaderboards_{kind}",
            description=words,
            parameters=_parameters(get_board(kind).query),
            responses={200: serializer, 202: PendingSerializer},
        )
        def get(self, request: Request, slug: str) -> Response:
            return _board(request, slug, get_board(kind).query, serializer)

    return Further


class StoredTable:
    """A table without a serializer: all of it."""

    def __init__(self, table: Mapping[str, Any]) -> None:
        self.data = dict(table)


class AnyBoard(APIView):
    """A board that has no address of its own in this API: its table as it is stored."""

    @extend_schema(exclude=True)
    def get(self, request: Request, slug: str, kind: str) -> Response:
        return _board(request, slug, get_board(kind).query, StoredTable)


SlicesBoard = _further("slices", "Evaluators in every part of the items, as found and shrunken towards the whole.")
AspectsBoard = _further("aspects", "Evaluators by aspect: one figure for each, with its interval and letters.")
MatrixBoard = _further("matrix", "Evaluators against each other over all outputs.")
PairsBoard = _further(
    "pairs",
    "Evaluators on the pairs of outputs that people compared: the share of decided pairs that they order as most "
    "people did, the same less that of length, and the share of all pairs on which they give people’s verdict, ties "
    "included.",
    PairsBoardSerializer,
)
