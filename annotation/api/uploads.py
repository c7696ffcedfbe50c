"""Uploads in the API: send files, follow the import, undo it."""

import json
import re
from collections.abc import Iterator
from typing import IO, Any

from django.conf import settings
from django.urls import reverse
from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.parsers import BaseParser, MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from annotation.models import Upload, UploadFault
from annotation.parsers import KINDS
from annotation.selectors.uploads import find_upload, list_uploads
from annotation.services.table_uploads import receive_mapped
from annotation.services.undo import take_back_upload
from annotation.services.uploads import Incoming, explain_size, receive_upload
from evalapp.accounts.selectors import get_project
from evalapp.common.api.fields import read_flag
from evalapp.common.api.idempotency import idempotent
from evalapp.common.api.parsers import HashedStream
from evalapp.common.errors import BadInput, TooLarge
from evalapp.common.forms import read_number

from .responses import PagedView

CHUNK = 1 << 16
#: The part of a form with the mapping, and its longest content.
MAPPING, MOST_MAPPING = "mapping", 1_000_000
BODY_KINDS = ("dataset", *KINDS)


class _BodyParser(BaseParser):
    """Passes the body on unread."""

    ending = ""

    def parse(self, stream: IO[bytes], media_type: str | None = None, parser_context: Any = None) -> Any:
        return {"stream": HashedStream(stream), "ending": self.ending}


class NdjsonParser(_BodyParser):
    media_type = "application/x-ndjson"
    ending = "jsonl"


class CsvParser(_BodyParser):
    media_type = "text/csv"
    ending = "csv"


class TsvParser(_BodyParser):
    media_type = "text/tab-separated-values"
    ending = "tsv"


BODY_TYPES = tuple(parser.media_type for parser in (NdjsonParser, CsvParser, TsvParser))


class FaultSerializer(serializers.ModelSerializer):
    class Meta:
        model = UploadFault
        fields = ["file", "line", "field", "message"]
        read_only_fields = fields


class UploadSerializer(serializers.ModelSerializer):
    """An upload in lists. `counts`: rows, added, same, replaced and faulty, by table."""

    url = serializers.SerializerMethodField()
    project = serializers.CharField(source="project.slug", read_only=True)
    run = serializers.SerializerMethodField()
    files = serializers.SerializerMethodField()
    error = serializers.SerializerMethodField()
    hints = serializers.SerializerMethodField()

    class Meta:
        model = Upload
        fields = [
            "id", "url", "project", "title", "state", "run", "error", "files", "content_hash", "options", "counts",
            "ignored", "hints", "fault_count", "created_at", "finished_at",
        ]  # fmt: skip
        read_only_fields = fields

    def get_url(self, upload: Upload) -> str:
        return self.context["request"].build_absolute_uri(reverse("api-upload", args=[upload.pk]))

    def get_run(self, upload: Upload) -> str | None:
        if upload.run_id is None:
            return None
        return self.context["request"].build_absolute_uri(reverse("api-run", args=[upload.run_id]))

    def get_hints(self, upload: Upload) -> list[str]:
        """Names that look alike and may be the same."""
        return list(upload.options.get("hints", []))

    def get_error(self, upload: Upload) -> str:
        return upload.run.error if upload.run is not None else ""

    def get_files(self, upload: Upload) -> list[dict[str, Any]]:
        return [{key: file[key] for key in ("name", "kind", "bytes", "sha256")} for file in upload.files]


class UploadDetailSerializer(UploadSerializer):
    """An upload with its faulty rows (the first thousand) and its progress."""

    faults = FaultSerializer(many=True, read_only=True)
    progress = serializers.SerializerMethodField()

    class Meta(UploadSerializer.Meta):
        fields = [*UploadSerializer.Meta.fields, "faults", "progress"]
        read_only_fields = fields

    def get_progress(self, upload: Upload) -> dict[str, Any] | None:
        run = upload.run
        if run is None or not run.is_active:
            return None
        return {"phase": run.phase, "done": run.done, "total": run.total, "unit": run.unit, "rate": run.rate,
                "seconds_left": run.seconds_left}  # fmt: skip


def _chunks(stream: HashedStream) -> Iterator[bytes]:
    while chunk := stream.read(CHUNK):
        yield chunk


def _incoming(request: Request, kind: str) -> list[Incoming]:
    data = request.data
    if "stream" in data and not request.FILES:
        if not kind:
            text = _("Add the kind of the rows: ?kind= one of %(kinds)s.") % {"kinds": ", ".join(BODY_KINDS)}
            raise BadInput.for_field("kind", text)
        return [Incoming(f"{kind}.{data['ending']}", _chunks(data["stream"]))]
    if (request.content_type or "").partition(";")[0].strip() in BODY_TYPES:
        raise BadInput(_("The body has no rows."))
    files = [file for name in request.FILES if name != MAPPING for file in request.FILES.getlist(name)]
    if not files:
        raise BadInput(_("The form has no file. Send each file as a part with its file name."))
    return [Incoming(file.name or "", file.chunks(CHUNK)) for file in files]


def read_mapping_part(request: Request) -> Any:
    """The mapping in a form: a JSON object as a file or as text, the name of a preset, or `auto`; None without one."""
    data = request.data
    sent = request.FILES.get(MAPPING) or (data.get(MAPPING) if "stream" not in data else None)
    if sent is None:
        return None
    if hasattr(sent, "read"):
        sent = sent.read(MOST_MAPPING + 1).decode("utf-8-sig", "replace")
    text = str(sent).strip()
    if len(text) > MOST_MAPPING:
        raise BadInput.for_field(MAPPING, _("The mapping is too long."))
    if re.fullmatch(r"[a-z][a-z0-9-]*", text):
        return text
    try:
        return json.loads(text)
    except ValueError as error:
        problem = _("The mapping is not JSON: %(error)s.") % {"error": error}
        raise BadInput.for_field(MAPPING, problem) from error


class UploadList(PagedView):
    parser_classes = [MultiPartParser, NdjsonParser, CsvParser, TsvParser]

    @extend_schema(operation_id="uploads_list", responses=UploadSerializer(many=True))
    def get(self, request: Request, slug: str) -> Response:
        """The uploads of a project, newest first."""
        project = get_project(user=request.user, slug=slug, need="read")
        rows = list_uploads(project).select_related("project")
        return self.paginate(
            request, rows, lambda page: UploadSerializer(page, many=True, context={"request": request}).data
        )

    @extend_schema(
        operation_id="uploads_create",
        description="One or more files of the interchange format, or the rows of a file as the body. They are "
        "checked together and stored completely or not at all; sending the same content again changes nothing. "
        "Files with other columns need the part `mapping`, which says what the columns are.",
        parameters=[
            OpenApiParameter(
                "kind", str, enum=BODY_KINDS, description="The kind of the rows, if no file name states it."
            ),
            OpenApiParameter("dry_run", str, enum=["0", "1"], description="Check and report only."),
            OpenApiParameter(
                "replace",
                str,
                enum=["0", "1"],
                description="Replace stored rows that have the same key and other content.",
            ),
        ],
        request={
            "multipart/form-data": {
                "type": "object",
                "properties": {
                    "file": {"type": "array", "items": {"type": "string", "format": "binary"}},
                    "mapping": {
                        "type": "string",
                        "description": "A mapping as a JSON object, the name of a preset, or `auto`, which takes the "
                        "proposal if it leaves no question open.",
                    },
                },
            },
            "application/x-ndjson": OpenApiTypes.BINARY,
            "text/csv": OpenApiTypes.BINARY,
            "text/tab-separated-values": OpenApiTypes.BINARY,
        },
        responses={202: OpenApiResponse(UploadDetailSerializer, description="Received; a run checks it.")},
    )
    @idempotent()
    def post(self, request: Request, slug: str) -> Response:
        project = get_project(user=request.user, slug=slug, need="write")
        length = request.META.get("CONTENT_LENGTH") or "0"
        size = read_number(length)
        if size is None or size > settings.MAX_UPLOAD_BYTES:
            raise TooLarge(explain_size())
        kind = request.query_params.get("kind", "")
        files, mapping = _incoming(request, kind), read_mapping_part(request)
        flags: Any = {name: read_flag(request.query_params, name) for name in ("dry_run", "replace")}
        if mapping is not None:
            upload = receive_mapped(project=project, user=request.user, files=files, mapping=mapping, **flags)
        else:
            upload = receive_upload(project=project, user=request.user, files=files, kind=kind, **flags)
        data = UploadDetailSerializer(upload, context={"request": request}).data
        return Response(data, status=202, headers={"Location": data["url"]})


class UploadShow(APIView):
    @extend_schema(operation_id="uploads_retrieve", responses=UploadDetailSerializer)
    def get(self, request: Request, pk: int) -> Response:
        """State of an upload; if it was rejected, its faulty rows."""
        upload = find_upload(user=request.user, pk=pk)
        return Response(UploadDetailSerializer(upload, context={"request": request}).data)

    @extend_schema(
        operation_id="uploads_destroy",
        description="Cancel the import, discard a dry run, or undo a stored upload. 409 with a list if judgements, "
        "scores, references or other uploads depend on its rows.",
        responses={204: OpenApiResponse(description="The upload is undone.")},
    )
    def delete(self, request: Request, pk: int) -> Response:
        upload = find_upload(user=request.user, pk=pk, need="write")
        take_back_upload(upload=upload, user=request.user)
        return Response(status=204)
