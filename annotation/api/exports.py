"""Exports in the API: request one, follow its run, download its files."""

from dataclasses import Field, fields
from typing import Any

from django.http import HttpResponseBase
from django.urls import reverse
from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from annotation.downloads import send_file
from annotation.exporters.options import ExportOptions
from annotation.services.exports import delete_export, list_exports, request_export
from evalapp.accounts.roles import Need
from evalapp.accounts.selectors import get_project
from evalapp.common.api.fields import ChoiceField, StrictSerializer, TruthField
from evalapp.common.api.idempotency import idempotent
from evalapp.common.errors import NotThere
from evalapp.common.models import Run
from evalapp.common.selectors import find_run

from .responses import PagedView


class ExportRequestSerializer(StrictSerializer):
    """The options of an export: the fields of `ExportOptions`."""

    def get_fields(self) -> dict[str, serializers.Field]:
        return {one.name: _make_field(one) for one in fields(ExportOptions)}


def _make_field(one: Field[Any]) -> serializers.Field:
    about = {"default": one.default, "help_text": one.metadata["help"]}
    return (
        TruthField(**about) if isinstance(one.default, bool) else ChoiceField(choices=one.metadata["choices"], **about)
    )


class ExportSerializer(serializers.ModelSerializer):
    """An export is a run of kind `export`; `files` and `archive` are set when it has succeeded."""

    url = serializers.SerializerMethodField()
    format = serializers.SerializerMethodField()
    files = serializers.SerializerMethodField()
    archive = serializers.SerializerMethodField()

    class Meta:
        model = Run
        fields = ["id", "url", "state", "format", "files", "archive", "error", "created_at", "finished_at"]
        read_only_fields = fields

    def _address(self, name: str, *parts: Any) -> str:
        return self.context["request"].build_absolute_uri(reverse(name, args=parts))

    def get_url(self, run: Run) -> str:
        return self._address("api-export", run.pk)

    def get_format(self, run: Run) -> str:
        return run.params.get("format", "jsonl")

    def get_files(self, run: Run) -> list[dict[str, Any]]:
        files = (run.result or {}).get("files", [])
        return [{**file, "url": self._address("api-export-file", run.pk, file["name"])} for file in files]

    def get_archive(self, run: Run) -> str | None:
        name = (run.result or {}).get("archive")
        return self._address("api-export-file", run.pk, name) if name else None


def find_export(request: Request, pk: int, need: Need = "read") -> Run:
    run = find_run(user=request.user, pk=pk, need=need)
    if run.kind != "export" or (run.result or {}).get("deleted"):
        raise NotThere(_("There is no such export that you can see."))
    return run


class ExportList(PagedView):
    @extend_schema(operation_id="exports_list", responses=ExportSerializer(many=True))
    def get(self, request: Request, slug: str) -> Response:
        """The exports of a project, newest first."""
        project = get_project(user=request.user, slug=slug, need="read")
        rows = list_exports(project)
        return self.paginate(
            request, rows, lambda page: ExportSerializer(page, many=True, context={"request": request}).data
        )

    @extend_schema(
        operation_id="exports_create",
        request=ExportRequestSerializer,
        responses={202: OpenApiResponse(ExportSerializer, description="Queued, or the export already under way.")},
    )
    @idempotent()
    def post(self, request: Request, slug: str) -> Response:
        """Write the project as an interchange folder, in a run. The same request joins a run in progress."""
        project = get_project(user=request.user, slug=slug, need="write")
        wanted = ExportRequestSerializer(data=request.data)
        wanted.is_valid(raise_exception=True)
        run = request_export(project=project, user=request.user, **wanted.validated_data)
        data = ExportSerializer(run, context={"request": request}).data
        return Response(data, status=202, headers={"Location": data["url"]})


class ExportShow(APIView):
    @extend_schema(operation_id="exports_retrieve", responses=ExportSerializer)
    def get(self, request: Request, pk: int) -> Response:
        """State of an export; once it succeeded, its files and the archive."""
        return Response(ExportSerializer(find_export(request, pk), context={"request": request}).data)

    @extend_schema(operation_id="exports_destroy", responses={204: None})
    def delete(self, request: Request, pk: int) -> Response:
        """Delete the files of an export; its run stays in the list of runs."""
        delete_export(run=find_export(request, pk, "write"), user=request.user)
        return Response(status=204)


class ExportFile(APIView):
    @extend_schema(operation_id="exports_file", responses={(200, "application/octet-stream"): OpenApiTypes.BINARY})
    def get(self, request: Request, pk: int, name: str) -> HttpResponseBase:
        """Download one file of an export."""
        return send_file(find_export(request, pk), name)
