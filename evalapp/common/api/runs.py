"""API of runs: list, start, show, cancel, retry."""

from typing import Any

from django.urls import reverse
from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiResponse, extend_schema, extend_schema_field, inline_serializer
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from evalapp.accounts.selectors import get_project
from evalapp.common.errors import BadInput
from evalapp.common.models import Run
from evalapp.common.pagination import KeysetPagination, paginate
from evalapp.common.queue import cancel_run, queue_place, retry_run
from evalapp.common.selectors import find_run, list_runs, log_tail

from .idempotency import idempotent
from .run_bodies import list_public_jobs


class ProgressSerializer(serializers.Serializer):
    done = serializers.IntegerField()
    total = serializers.IntegerField(allow_null=True)
    unit = serializers.CharField()
    rate = serializers.FloatField(allow_null=True, help_text="Units per second.")
    seconds_left = serializers.FloatField(allow_null=True)


class RunSerializer(serializers.ModelSerializer):
    """A run in lists."""

    url = serializers.SerializerMethodField()
    project = serializers.SerializerMethodField()
    worker = serializers.CharField(source="process", read_only=True)
    progress = ProgressSerializer(source="*", read_only=True)
    cause = serializers.CharField(
        read_only=True, help_text="Why it failed: input (request or data), machine, unexpected; or empty."
    )

    class Meta:
        model = Run
        fields = [
            "id", "url", "project", "kind", "title", "queue", "state", "attempt", "worker", "heartbeat",
            "cancel_requested", "phase", "progress", "result", "error", "cause", "created_at", "started_at",
            "finished_at",
        ]  # fmt: skip
        read_only_fields = fields

    def get_url(self, run: Run) -> str:
        path = reverse("api-run", args=[run.pk])
        request = self.context.get("request")
        return request.build_absolute_uri(path) if request else path

    def get_project(self, run: Run) -> str:
        return self.context["project"].slug if "project" in self.context else run.project.slug


class RunDetailSerializer(RunSerializer):
    """A run with its place in the queue, its errors and the end of its log."""

    queue_place = serializers.SerializerMethodField()
    errors = serializers.JSONField(source="faults", read_only=True)
    log = serializers.SerializerMethodField()

    class Meta(RunSerializer.Meta):
        fields = [*RunSerializer.Meta.fields, "queue_place", "errors", "log"]
        read_only_fields = fields

    def get_queue_place(self, run: Run) -> int | None:
        return queue_place(run)

    @extend_schema_field(
        serializers.ListSerializer(
            child=inline_serializer("LogLine", {"at": serializers.DateTimeField(), "text": serializers.CharField()})
        )
    )
    def get_log(self, run: Run) -> list[dict[str, Any]]:
        return [{"at": line.at, "text": line.text} for line in log_tail(run)]


class RunList(APIView):
    pagination_class = KeysetPagination
    keyset_order = ("-pk",)

    @extend_schema(operation_id="runs_list", responses=RunSerializer(many=True))
    def get(self, request: Request, slug: str) -> Response:
        """List the runs of a project, newest first."""
        project = get_project(user=request.user, slug=slug, need="read")
        return paginate(self, list_runs(project), RunSerializer, project=project)

    @extend_schema(
        operation_id="runs_create",
        request={"application/json": {"$ref": "#/components/schemas/RunRequest"}},
        responses={202: OpenApiResponse(RunDetailSerializer, description="Queued, or the identical active run.")},
    )
    @idempotent()
    def post(self, request: Request, slug: str) -> Response:
        """Start a run. `kind` determines the other members. An identical request returns the active run."""
        project = get_project(user=request.user, slug=slug, need="write")
        if not isinstance(request.data, dict):
            raise BadInput(_("Send a JSON object with the member “kind”."))
        params = dict(request.data)
        kind = params.pop("kind", None)
        jobs = {job.kind: job for job in list_public_jobs()}
        if not isinstance(kind, str) or kind not in jobs:
            raise BadInput.for_field("kind", _("kind must be one of: %(kinds)s.") % {"kinds": ", ".join(jobs)})
        run = jobs[kind].ask(project=project, user=request.user, params=params)
        data = RunDetailSerializer(run, context={"request": request, "project": project}).data
        return Response(data, status=202, headers={"Location": data["url"]})


class RunShow(APIView):
    @extend_schema(operation_id="runs_retrieve", responses=RunDetailSerializer)
    def get(self, request: Request, pk: int) -> Response:
        """Show a run with its progress, place in the queue, errors and the end of its log."""
        run = find_run(user=request.user, pk=pk)
        return Response(RunDetailSerializer(run, context={"request": request}).data)


class RunCancel(APIView):
    @extend_schema(operation_id="runs_cancel", request=None, responses={202: RunDetailSerializer})
    def post(self, request: Request, pk: int) -> Response:
        """Cancel a run. A waiting run stops at once, a running one within seconds."""
        run = cancel_run(run=find_run(user=request.user, pk=pk, need="write"), user=request.user)
        return Response(RunDetailSerializer(run, context={"request": request}).data, status=202)


class RunRetry(APIView):
    @extend_schema(operation_id="runs_retry", request=None, responses={202: RunDetailSerializer})
    def post(self, request: Request, pk: int) -> Response:
        """Return a failed or cancelled run to the queue."""
        run = retry_run(run=find_run(user=request.user, pk=pk, need="write"), user=request.user)
        return Response(RunDetailSerializer(run, context={"request": request}).data, status=202)
