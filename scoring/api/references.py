"""Reference sets for programs. Automatic selection is a run: `POST projects/{slug}/runs/` with
`{"kind": "select-references", ...}`. The texts of a set are in `references/?set=NAME`."""

from typing import Any

from django.utils.translation import gettext_lazy
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from evalapp.accounts.selectors import get_project
from evalapp.common.api.fields import OnePageSerializer, StrictSerializer, TextField, read_flag
from evalapp.common.pagination import KeysetPagination, one_page

from ..models import SelectionTrace
from ..selectors.reference_sets import compare_sets, get_set, list_sets
from ..services.reference_sets import delete_set, merge_sets


class ReferenceSetSerializer(serializers.Serializer):
    """A named set; `score_sets` use it, `learned` are evaluators trained with it, `derived` are sets made from it."""

    name = serializers.CharField()
    kind = serializers.CharField(help_text=gettext_lazy("original, selected, raw, random, merge, writing or other"))
    origin = serializers.CharField(help_text=gettext_lazy("Description of its origin."))
    n_references = serializers.IntegerField()
    n_items = serializers.IntegerField()
    created_at = serializers.DateTimeField(source="set.created_at")
    score_sets = serializers.SerializerMethodField()
    learned = serializers.ListField(child=serializers.CharField())
    derived = serializers.ListField(child=serializers.CharField())
    meta = serializers.JSONField(help_text=gettext_lazy("Evaluator, candidates, options, counts."))

    def get_score_sets(self, row: Any) -> list[int]:
        return [score_set.pk for score_set in row.score_sets]


class ReferenceSetsSerializer(OnePageSerializer):
    results = ReferenceSetSerializer(many=True)


class MergeSerializer(StrictSerializer):
    """A new set with the references of others."""

    name = TextField(max_length=63)
    merge = serializers.ListField(child=TextField(max_length=63), min_length=2, max_length=50)


class SizeSerializer(serializers.Serializer):
    name = serializers.CharField()
    references = serializers.IntegerField(source="n_references")
    items = serializers.IntegerField(source="n_items")


class SetComparisonSerializer(serializers.Serializer):
    """Two sets; a text counts once per item. `overlap` is shared / (shared + only_first + only_second)."""

    first = SizeSerializer()
    second = SizeSerializer()
    items_both = serializers.IntegerField()
    shared = serializers.IntegerField()
    only_first = serializers.IntegerField()
    only_second = serializers.IntegerField()
    overlap = serializers.FloatField(allow_null=True)


class TraceSerializer(serializers.ModelSerializer):
    """The steps of the selection for an item."""

    item = serializers.CharField(source="item.key")

    class Meta:
        model = SelectionTrace
        fields = ["item", "before", "after", "in_training", "steps"]
        read_only_fields = fields


class ReferenceSetList(APIView):
    @extend_schema(operation_id="reference_sets_list", responses=ReferenceSetsSerializer)
    def get(self, request: Request, slug: str) -> Response:
        """All sets of a project, `original` first."""
        project = get_project(user=request.user, slug=slug, need="read")
        return one_page(ReferenceSetSerializer(list_sets(project), many=True).data)

    @extend_schema(
        operation_id="reference_sets_create", request=MergeSerializer, responses={201: ReferenceSetSerializer}
    )
    def post(self, request: Request, slug: str) -> Response:
        """Merge sets into a new one. The merged sets are kept."""
        project = get_project(user=request.user, slug=slug, need="write")
        given = MergeSerializer(data=request.data)
        given.is_valid(raise_exception=True)
        options = given.validated_data
        made = merge_sets(project=project, user=request.user, names=options["merge"], into=options["name"])
        return Response(ReferenceSetSerializer(get_set(project, made.name)).data, status=201)


class ReferenceSetShow(APIView):
    @extend_schema(operation_id="reference_sets_retrieve", responses=ReferenceSetSerializer)
    def get(self, request: Request, slug: str, name: str) -> Response:
        """A reference set with its size, origin and dependent scores."""
        project = get_project(user=request.user, slug=slug, need="read")
        return Response(ReferenceSetSerializer(get_set(project, name)).data)

    @extend_schema(
        operation_id="reference_sets_destroy",
        parameters=[OpenApiParameter("with_scores", OpenApiTypes.BOOL, description="Also delete scores made with it.")],
        responses={
            204: OpenApiResponse(description="Deleted."),
            409: OpenApiResponse(description="Scores depend on it."),
        },
    )
    def delete(self, request: Request, slug: str, name: str) -> Response:
        """Delete the set with its traces. Refused for `original`, and if scores depend on it, unless `with_scores`."""
        project = get_project(user=request.user, slug=slug, need="write")
        with_scores = read_flag(request.query_params, "with_scores")
        delete_set(project=project, user=request.user, name=name, with_scores=with_scores)
        return Response(status=204)


class ReferenceSetComparison(APIView):
    @extend_schema(operation_id="reference_sets_compare", responses=SetComparisonSerializer)
    def get(self, request: Request, slug: str, name: str, other: str) -> Response:
        """Sizes of two sets and their overlap."""
        project = get_project(user=request.user, slug=slug, need="read")
        return Response(SetComparisonSerializer(compare_sets(project, name, other)).data)


class TraceList(APIView):
    pagination_class = KeysetPagination
    keyset_order = ("item__order_key",)

    @extend_schema(operation_id="reference_sets_traces", responses=TraceSerializer(many=True))
    def get(self, request: Request, slug: str, name: str) -> Response:
        """How an evaluator selected the references of each item."""
        project = get_project(user=request.user, slug=slug, need="read")
        rows = SelectionTrace.objects.filter(set=get_set(project, name).set.pk).select_related("item")
        paginator = KeysetPagination()
        result = paginator.paginate_queryset(rows, request, self)
        return paginator.get_paginated_response(TraceSerializer(result, many=True).data)
