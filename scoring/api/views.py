"""Evaluators and scores for programs. Scoring is a run: `POST projects/{slug}/runs/` with
`{"kind": "score", "evaluator": "bleu-4"}`."""

from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from annotation.allocation.texts import UNSTORABLE, is_storable
from evalapp.accounts.selectors import get_project
from evalapp.common.api.fields import PAGES, refuse_unknown
from evalapp.common.api.idempotency import idempotent
from evalapp.common.api.runs import RunSerializer
from evalapp.common.errors import BadInput, NotThere
from evalapp.common.forms import read_number
from evalapp.common.models import Run
from evalapp.common.pagination import KeysetPagination, one_page

from ..models import Score, ScoreSet
from ..selectors.catalogue import entries
from ..selectors.inputs import count_outputs
from ..selectors.score_sets import current_sets, list_states
from ..services.scores import delete_scores
from ..services.several import plan_scores, score_several
from .serializers import (
    CatalogueEntrySerializer,
    CatalogueSerializer,
    EvaluatorsSerializer,
    ScoreSerializer,
    ScoreSetSerializer,
    SeveralAnswerSerializer,
    SeveralSerializer,
)


class Catalogue(APIView):
    @extend_schema(operation_id="evaluators_catalogue", responses=CatalogueSerializer)
    def get(self, request: Request) -> Response:
        """The catalogue of evaluators with their options and requirements."""
        return one_page(CatalogueEntrySerializer(entries(), many=True).data)


class EvaluatorList(APIView):
    @extend_schema(operation_id="evaluators_list", responses=EvaluatorsSerializer)
    def get(self, request: Request, slug: str) -> Response:
        """Applied evaluators: one row per evaluator, signature and reference set, newest first."""
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
        """Current scores by evaluator and output."""
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
        result = paginator.paginate_queryset(
            rows.select_related("output__item", "output__system", "score_set__evaluator"), request, self
        )
        return paginator.get_paginated_response(ScoreSerializer(result, many=True).data)

    @extend_schema(operation_id="scores_create", request=SeveralSerializer, responses={202: SeveralAnswerSerializer})
    @idempotent()
    def post(self, request: Request, slug: str) -> Response:
        """Score with several evaluators, each with its default options. What is already scored is left alone. With
        `dry_run` nothing is queued."""
        project = get_project(user=request.user, slug=slug, need="write")
        given = SeveralSerializer(data=request.data)
        given.is_valid(raise_exception=True)
        body = dict(given.validated_data)
        plans = plan_scores(project=project, evaluators=body["evaluators"], references=body["references"])
        runs: list[Run] = []
        if not body["dry_run"]:
            runs, _rest = score_several(
                project=project, user=request.user, evaluators=body["evaluators"], references=body["references"]
            )
        rows = RunSerializer(runs, many=True, context={"request": request, "project": project}).data
        return Response({"runs": rows, "plan": [plan.as_dict() for plan in plans]}, status=202)


class ScoreSetShow(APIView):
    @extend_schema(
        operation_id="scores_destroy",
        description="Delete a score set by its `id` in the list of applied evaluators.",
        responses={204: OpenApiResponse(description="Deleted.")},
    )
    def delete(self, request: Request, slug: str, pk: int) -> Response:
        project = get_project(user=request.user, slug=slug, need="write")
        wanted = read_number(str(pk))
        result = None if wanted is None else ScoreSet.objects.filter(project=project, pk=wanted).first()
        if result is None:
            raise NotThere(_("There is no score set %(pk)d in %(project)s.") % {"pk": pk, "project": project.slug})
        delete_scores(score_set=result, user=request.user)
        return Response(status=204)
