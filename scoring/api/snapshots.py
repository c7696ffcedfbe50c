"""Snapshots of leaderboards for programs."""

from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from evalapp.accounts.selectors import get_project
from evalapp.common.api.fields import ChoiceField, OnePageSerializer, StrictSerializer, TextField
from evalapp.common.errors import BadInput, Fault
from evalapp.common.pagination import one_page
from scoring.boards.choices import COEFFICIENTS
from scoring.boards.registry import get_board, list_boards
from scoring.boards.render.figures import has_earlier_test, letters_caption

from ..models import Snapshot
from ..selectors.leaderboards import parse_query
from ..selectors.snapshots import compare_tables, get_snapshot, list_snapshots
from ..services.snapshots import delete_snapshot, take_snapshot


class SnapshotSerializer(serializers.ModelSerializer):
    """A stored leaderboard; `params` are its query."""

    name = serializers.CharField(source="slug")
    board = serializers.CharField(source="kind")
    created_by = serializers.CharField(source="created_by.username", allow_null=True, default=None)

    class Meta:
        model = Snapshot
        fields = ["name", "title", "note", "board", "params", "computed_at", "created_at", "created_by"]
        read_only_fields = fields


class SnapshotDetailSerializer(SnapshotSerializer):
    """A snapshot with its table, as `leaderboards/{board}/` returned it."""

    table = serializers.JSONField()
    notice = serializers.SerializerMethodField(
        help_text=gettext_lazy("Caveat on letters from the test of version 0.1.0 at the system level.")
    )

    def get_notice(self, row: Snapshot) -> str:
        return letters_caption(row.table) if row.kind == "evaluators" and has_earlier_test(row.table) else ""

    class Meta(SnapshotSerializer.Meta):
        fields = [*SnapshotSerializer.Meta.fields, "table", "notice"]
        read_only_fields = fields


class SnapshotsSerializer(OnePageSerializer):
    results = SnapshotSerializer(many=True)


class TakeSerializer(StrictSerializer):
    """The table to store: `board` and the parameters of its address."""

    board = ChoiceField(choices=list(list_boards()))
    query = serializers.DictField(child=TextField(allow_blank=True), required=False)
    title = TextField(max_length=200, required=False, allow_blank=True)
    note = TextField(max_length=5000, required=False, allow_blank=True)
    name = TextField(
        max_length=70, required=False, allow_blank=True, help_text=gettext_lazy("Default: from the title.")
    )


class FigureSerializer(serializers.Serializer):
    """A figure with its 95 % interval. A null value is undefined and `note` says why."""

    value = serializers.FloatField(allow_null=True)
    low = serializers.FloatField(allow_null=True)
    high = serializers.FloatField(allow_null=True)
    n = serializers.IntegerField()
    note = serializers.CharField(allow_blank=True)


class ChangedSerializer(serializers.Serializer):
    """A setting or a count that differs."""

    name = serializers.CharField()
    first = serializers.JSONField(allow_null=True)
    second = serializers.JSONField(allow_null=True)


class ChangeSerializer(serializers.Serializer):
    """A row of both tables; `outside`: the second value is outside the interval of the first."""

    name = serializers.CharField()
    first = FigureSerializer(allow_null=True)
    second = FigureSerializer(allow_null=True)
    rank_first = serializers.CharField()
    rank_second = serializers.CharField()
    difference = serializers.FloatField(allow_null=True)
    outside = serializers.BooleanField()


class ChangesSerializer(serializers.Serializer):
    kind = serializers.CharField()
    coefficient = serializers.CharField(allow_blank=True)
    settings = ChangedSerializer(many=True)
    counts = ChangedSerializer(many=True)
    rows = ChangeSerializer(many=True)


class SnapshotList(APIView):
    @extend_schema(operation_id="snapshots_list", responses=SnapshotsSerializer)
    def get(self, request: Request, slug: str) -> Response:
        """All snapshots of a project, newest first, without tables."""
        project = get_project(user=request.user, slug=slug, need="read")
        return one_page(SnapshotSerializer(list_snapshots(project), many=True).data)

    @extend_schema(operation_id="snapshots_create", request=TakeSerializer, responses={201: SnapshotDetailSerializer})
    def post(self, request: Request, slug: str) -> Response:
        """Store the current table. 409 while it is being recomputed."""
        project = get_project(user=request.user, slug=slug, need="write")
        given = TakeSerializer(data=request.data)
        given.is_valid(raise_exception=True)
        options: dict[str, Any] = given.validated_data
        query = parse_query(_find_shape(options), options.get("query", {}), project)
        row = take_snapshot(
            project=project,
            user=request.user,
            query=query,
            title=options.get("title", ""),
            note=options.get("note", ""),
            slug=options.get("name", ""),
        )
        return Response(SnapshotDetailSerializer(row).data, status=201)


def _find_shape(options: dict[str, Any]) -> Any:
    """Return the query class of the requested board. Raises `BadInput` for unknown parameters, because a misspelt one
    would store another table."""
    shape = get_board(options["board"]).query
    known = sorted(shape.names())
    faults = [
        Fault(
            _("%(board)s has no parameter %(name)s. There are: %(known)s.")
            % {"board": options["board"], "name": name, "known": ", ".join(known)},
            field=f"query.{name}",
        )
        for name in options.get("query", {})
        if name not in known
    ]
    if faults:
        raise BadInput(_("The query has unknown parameters."), faults=faults)
    return shape


class SnapshotShow(APIView):
    @extend_schema(operation_id="snapshots_retrieve", responses=SnapshotDetailSerializer)
    def get(self, request: Request, slug: str, name: str) -> Response:
        """A snapshot with its table."""
        project = get_project(user=request.user, slug=slug, need="read")
        return Response(SnapshotDetailSerializer(get_snapshot(project, name)).data)

    @extend_schema(operation_id="snapshots_destroy", responses={204: None})
    def delete(self, request: Request, slug: str, name: str) -> Response:
        """Delete the snapshot; leaderboards and data are kept."""
        project = get_project(user=request.user, slug=slug, need="write")
        delete_snapshot(project=project, user=request.user, slug=name)
        return Response(status=204)


class SnapshotComparison(APIView):
    @extend_schema(
        operation_id="snapshots_compare",
        parameters=[
            OpenApiParameter("coefficient", OpenApiTypes.STR, enum=list(COEFFICIENTS), default="pearson"),
        ],
        responses=ChangesSerializer,
    )
    def get(self, request: Request, slug: str, name: str, other: str) -> Response:
        """Compare two snapshots."""
        project = get_project(user=request.user, slug=slug, need="read")
        first, second = get_snapshot(project, name), get_snapshot(project, other)
        coefficient = request.query_params.get("coefficient", "pearson")
        return Response(ChangesSerializer(compare_tables(first.table, second.table, coefficient)).data)
