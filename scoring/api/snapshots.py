"""Snapshots of leaderboards for programs."""

from __future__ import annotations

from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from evalapp.accounts.selectors import get_project
from evalapp.common.api.fields import Closed, OnePageSerializer, TextField
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
    """A leaderboard as it stood; `params` are the query it answered."""

    name = serializers.CharField(source="slug")
    board = serializers.CharField(source="kind")
    created_by = serializers.CharField(source="created_by.username", allow_null=True, default=None)

    class Meta:
        model = Snapshot
        fields = ["name", "title", "note", "board", "params", "computed_at", "created_at", "created_by"]
        read_only_fields = fields


class SnapshotDetailSerializer(SnapshotSerializer):
    """With the table itself, as `leaderboards/{board}/` gave it."""

    table = serializers.JSONField()
    notice = serializers.SerializerMethodField(
        help_text="What to know of its letters: where they come from the test of version 0.1.0 at the system level."
    )

    def get_notice(self, row: Snapshot) -> str:
        return letters_caption(row.table) if row.kind == "evaluators" and has_earlier_test(row.table) else ""

    class Meta(SnapshotSerializer.Meta):
        fields = [*SnapshotSerializer.Meta.fields, "table", "notice"]
        read_only_fields = fields


class SnapshotsSerializer(OnePageSerializer):
    results = SnapshotSerializer(many=True)


class TakeSerializer(Closed):
    """Which table is kept: `board` and the parameters that its address takes."""

    board = serializers.ChoiceField(choices=list(list_boards()))
    query = serializers.DictField(child=TextField(allow_blank=True), required=False)
    title = TextField(max_length=200, required=False, allow_blank=True)
    note = TextField(max_length=5000, required=False, allow_blank=True)
    name = TextField(max_length=70, required=False, allow_blank=True, help_text="Default: from the title.")


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
    """A row of both tables; `outside`: the second value lies outside the first's interval."""

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
        """All of a project, the newest first, without their tables."""
        project = get_project(user=request.user, slug=slug, need="read")
        return one_page(SnapshotSerializer(list_snapshots(project), many=True).data)

    @extend_schema(operation_id="snapshots_create", request=TakeSerializer, responses={201: SnapshotDetailSerializer})
    def post(self, request: Request, slug: str) -> Response:
        """Keep the present table. 409 while it is being computed anew."""
        project = get_project(user=request.user, slug=slug, need="write")
        given = TakeSerializer(data=request.data)
        given.is_valid(raise_exception=True)
        wishes: dict[str, Any] = given.validated_data
        query = parse_query(_find_shape(wishes), wishes.get("query", {}), project)
        row = take_snapshot(
            project=project,
            user=request.user,
            query=query,
            title=wishes.get("title", ""),
            note=wishes.get("note", ""),
            slug=wishes.get("name", ""),
        )
        return Response(SnapshotDetailSerializer(row).data, status=201)


def _find_shape(wishes: dict[str, Any]) -> Any:
    """The kind of table that is asked for. In an address an unknown parameter does no harm; here a misspelt one would
    keep another table than the one that was meant."""
    shape = get_board(wishes["board"]).query
    known = sorted(shape.names())
    faults = [
        Fault(f"{wishes['board']} has no parameter {name}. There are: {', '.join(known)}.", field=f"query.{name}")
        for name in wishes.get("query", {})
        if name not in known
    ]
    if faults:
        raise BadInput("Nothing was kept: the query has parameters that the table does not.", faults=faults)
    return shape


class SnapshotShow(APIView):
    @extend_schema(operation_id="snapshots_retrieve", responses=SnapshotDetailSerializer)
    def get(self, request: Request, slug: str, name: str) -> Response:
        """A stored table, as it was when the snapshot was taken."""
        project = get_project(user=request.user, slug=slug, need="read")
        return Response(SnapshotDetailSerializer(get_snapshot(project, name)).data)

    @extend_schema(operation_id="snapshots_destroy", responses={204: None})
    def delete(self, request: Request, slug: str, name: str) -> Response:
        """The table and its address go; leaderboards and data stay."""
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
        """What the second says where the first said something else."""
        project = get_project(user=request.user, slug=slug, need="read")
        first, second = get_snapshot(project, name), get_snapshot(project, other)
        coefficient = request.query_params.get("coefficient", "pearson")
        return Response(compare_tables(first.table, second.table, coefficient).as_dict())
