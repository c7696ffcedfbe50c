"""Trained evaluators for programs: list, files, upload, deleting. Training is a run:
`POST projects/{slug}/runs/` with `{"kind": "train", "evaluator": "..."}`, its dry check the same with kind plan."""

from django.conf import settings
from django.http import FileResponse
from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from evalapp.accounts.selectors import get_project
from evalapp.common.api.idempotency import idempotent
from evalapp.common.api.runs import RunDetailSerializer
from evalapp.common.errors import BadInput, Fault, TooLarge
from evalapp.common.forms import read_number
from evalapp.common.pagination import KeysetPagination

from ..downloads import send_file
from ..selectors.training import find_trained, list_trained
from ..services.artefacts import receive_artefact, too_large
from ..services.evaluators import delete_evaluator
from .serializers import TrainedDetailSerializer, TrainedSerializer


class TrainedList(APIView):
    parser_classes = [MultiPartParser]
    pagination_class = KeysetPagination
    keyset_order = ("-pk",)

    @extend_schema(operation_id="trained_list", responses=TrainedSerializer(many=True))
    def get(self, request: Request, slug: str) -> Response:
        """Trained and uploaded evaluators, newest first."""
        project = get_project(user=request.user, slug=slug, need="read")
        paginator = KeysetPagination()
        rows = paginator.paginate_queryset(list_trained(project), request, self)
        return paginator.get_paginated_response(TrainedSerializer(rows, many=True).data)

    @extend_schema(
        operation_id="trained_create",
        description="Upload a trained evaluator: the files of its folder, each as a part `files`. For a cross-fitted "
        "evaluator, evaluator.json is a part `files`, and files of its models are parts `fold-0`, `fold-1` and so on. "
        "A worker checks names, sizes, safetensors, configuration and fixtures before the evaluator becomes visible; "
        "`name` is its name in this project.",
        request={
            "multipart/form-data": {
                "type": "object",
                "properties": {
                    "name": {"type": "string"},
                    "files": {"type": "array", "items": {"type": "string", "format": "binary"}},
                    "fold-0": {"type": "array", "items": {"type": "string", "format": "binary"}},
                },
            }
        },
        responses={202: OpenApiResponse(RunDetailSerializer, description="Received; a run checks it.")},
    )
    @idempotent()
    def post(self, request: Request, slug: str) -> Response:
        project = get_project(user=request.user, slug=slug, need="write")
        length = request.META.get("CONTENT_LENGTH") or "0"
        size = read_number(length)
        if size is None or size > settings.MAX_UPLOAD_BYTES:
            raise TooLarge(too_large())
        if unknown := sorted(set(request.data) - set(request.FILES) - {"name"}):
            text = _("%(name)s is unknown. Use name and files.")
            faults = [Fault(text % {"name": name}, field=name) for name in unknown]
            raise BadInput(_("The request has unknown parts."), faults=faults)
        files = {field: request.FILES.getlist(field) for field in request.FILES}
        run = receive_artefact(project=project, user=request.user, name=str(request.data.get("name", "")), files=files)
        data = RunDetailSerializer(run, context={"request": request, "project": project}).data
        return Response(data, status=202, headers={"Location": data["url"]})


class TrainedShow(APIView):
    @extend_schema(operation_id="trained_retrieve", responses=TrainedDetailSerializer)
    def get(self, request: Request, slug: str, evaluator: str) -> Response:
        """A trained evaluator with its data, settings, figures and files."""
        project = get_project(user=request.user, slug=slug, need="read")
        trained = find_trained(project, evaluator)
        trained.project = project
        return Response(TrainedDetailSerializer(trained, context={"request": request}).data)

    @extend_schema(
        operation_id="trained_destroy",
        description="Delete the evaluator with its files and scores. Combinations that contain it (`part_of`) keep "
        "their scores, which can no longer be renewed.",
        responses={204: OpenApiResponse(description="Deleted.")},
    )
    def delete(self, request: Request, slug: str, evaluator: str) -> Response:
        project = get_project(user=request.user, slug=slug, need="write")
        delete_evaluator(evaluator=find_trained(project, evaluator), user=request.user)
        return Response(status=204)


class TrainedFile(APIView):
    @extend_schema(operation_id="trained_file", responses={(200, "application/octet-stream"): OpenApiTypes.BINARY})
    def get(self, request: Request, slug: str, evaluator: str, name: str) -> FileResponse:
        """A file of the artefact. Files of a fold are named `fold-0/model.safetensors`."""
        project = get_project(user=request.user, slug=slug, need="read")
        return send_file(find_trained(project, evaluator), name)
