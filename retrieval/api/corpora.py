"""Corpora in the API: list, create, add, delete. Rebuilding an index is a run: `POST projects/{slug}/runs/` with
`{"kind": "index", "corpus": "..."}`."""

from collections.abc import Collection
from typing import Any

from django.conf import settings
from django.urls import reverse
from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiResponse, extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from annotation.api.responses import PagedView
from annotation.services.uploads import Incoming, explain_size
from evalapp.accounts.models import Project
from evalapp.accounts.selectors import get_project
from evalapp.common.api.idempotency import idempotent
from evalapp.common.api.parsers import JSONParser
from evalapp.common.errors import BadInput, EvalappError, Fault, TooLarge

from ..models import Corpus, CorpusPart
from ..selectors.corpora import describe_condition, list_corpora, list_parts
from ..services.corpora import (
    DERIVED,
    add_file,
    add_rows,
    create_corpus,
    delete_corpus,
    get_visible,
)

CHUNK = 1 << 16
FIELDS = ("name", "language", "tokenizer", "licence", "source")
_TRUTH = {"1": True, "true": True, "0": False, "false": False, "": False}


class CorpusSerializer(serializers.ModelSerializer):
    """A corpus. `condition` describes its state in one line; `count` is the number of different pairs, `duplicates` of
    those left out."""

    url = serializers.SerializerMethodField()
    shared = serializers.BooleanField(source="is_shared", read_only=True)
    condition = serializers.SerializerMethodField()
    run = serializers.SerializerMethodField()

    class Meta:
        model = Corpus
        fields = [
            "name", "url", "shared", "language", "tokenizer", "licence", "source", "state", "condition", "count",
            "duplicates", "version", "bytes", "indexed_at", "created_at", "run",
        ]  # fmt: skip
        read_only_fields = fields

    def get_url(self, corpus: Corpus) -> str:
        path = reverse("api-corpus", args=[self.context["project"].slug, corpus.name])
        return self.context["request"].build_absolute_uri(path)

    def get_condition(self, corpus: Corpus) -> str:
        return describe_condition(corpus)

    def get_run(self, corpus: Corpus) -> str | None:
        """The last run, if it belongs to this project."""
        if corpus.run is None or corpus.run.project_id != self.context["project"].pk:
            return None
        return self.context["request"].build_absolute_uri(reverse("api-run", args=[corpus.run_id]))


class PartFaultSerializer(serializers.Serializer):
    message = serializers.CharField()
    field = serializers.CharField(required=False)
    file = serializers.CharField(required=False)
    line = serializers.IntegerField(required=False)


class PartSerializer(serializers.ModelSerializer):
    """An added file, or rows of a project. `added` of its `rows` were new; `faults` are the first thousand."""

    faults = serializers.SerializerMethodField()

    class Meta:
        model = CorpusPart
        fields = [
            "id",
            "kind",
            "title",
            "state",
            "rows",
            "added",
            "blank",
            "sha256",
            "fault_count",
            "faults",
            "created_at",
        ]
        read_only_fields = fields

    @extend_schema_field(PartFaultSerializer(many=True))
    def get_faults(self, part: CorpusPart) -> list[dict[str, Any]]:
        return part.faults


_PART = {
    "file": {"type": "string", "format": "binary", "description": "corpus.jsonl, CSV or TSV, plain or gzip."},
    "derive": {"type": "string", "enum": list(DERIVED), "description": "Instead of a file: rows of the project."},
}
_WORDS = {name: {"type": "string"} for name in FIELDS}


def _body(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    plain = {name: shape for name, shape in properties.items() if name != "file"}
    needed = {"required": required} if required else {}  # an empty list is not valid in a schema
    return {
        "multipart/form-data": {"type": "object", "properties": properties, **needed},
        "application/json": {"type": "object", "properties": plain, **needed},
    }


def _check_size(request: Request) -> None:
    length = request.META.get("CONTENT_LENGTH") or "0"
    if not length.isdecimal() or int(length) > settings.MAX_UPLOAD_BYTES:
        raise TooLarge(explain_size())


def _add(request: Request, project: Project, corpus: Corpus) -> CorpusPart:
    file, kind = request.FILES.get("file"), request.data.get("derive", "")
    if (file is None) == (not kind):
        text = _("Send a file as the part “file”, or derive: one of %(kinds)s.") % {"kinds": ", ".join(DERIVED)}
        raise BadInput.for_field("file", text)
    if file is None:
        return add_rows(corpus=corpus, user=request.user, project=project, kind=str(kind))
    incoming = Incoming(file.name or "", file.chunks(CHUNK))
    return add_file(corpus=corpus, user=request.user, file=incoming, through=project)


def _members(request: Request, known: Collection[str]) -> dict[str, str]:
    if not isinstance(request.data, dict):
        raise BadInput(_("Send a JSON object."))
    faults = [
        Fault(_("%(name)s is unknown. Known: %(known)s.") % {"name": name, "known": ", ".join(known)}, field=name)
        for name in sorted(set(request.data) - set(known))
    ]
    faults += [
        Fault(_("%(name)s must be a text.") % {"name": name}, field=name)
        for name in FIELDS
        if not isinstance(request.data.get(name, ""), str)
    ]
    if faults:
        raise BadInput(_("The request has faults."), faults=faults)
    return {name: request.data.get(name, "") for name in FIELDS}


class CorpusList(PagedView):
    parser_classes = [MultiPartParser, JSONParser]
    keyset_order = ("name", "pk")

    @extend_schema(operation_id="corpora_list", responses=CorpusSerializer(many=True))
    def get(self, request: Request, slug: str) -> Response:
        """The corpora that a project can use: its own and shared ones, by name."""
        project = get_project(user=request.user, slug=slug, need="read")
        context = {"request": request, "project": project}
        return self.paginate(
            request, list_corpora(project), lambda page: CorpusSerializer(page, many=True, context=context).data
        )

    @extend_schema(
        operation_id="corpora_create",
        description="Create a corpus from a file or from rows of the project. A run checks all rows, leaves out "
        "duplicate pairs and builds the index; a faulty row rejects the whole file. `shared` needs the role owner.",
        request=_body({**_WORDS, **_PART, "shared": {"type": "boolean"}}, ["name"]),
        responses={202: OpenApiResponse(CorpusSerializer, description="Received; a run checks and indexes it.")},
    )
    @idempotent()
    def post(self, request: Request, slug: str) -> Response:
        project = get_project(user=request.user, slug=slug, need="write")
        _check_size(request)
        given = _members(request, (*FIELDS, *_PART, "shared"))
        shared = request.data.get("shared", False)
        if request.content_type.startswith("multipart/"):  # in which all values are text
            shared = _TRUTH.get(str(shared).lower())
        if not isinstance(shared, bool):
            raise BadInput.for_field("shared", _("shared must be true or false."))
        if shared:
            get_project(user=request.user, slug=slug, need="manage")
        corpus = create_corpus(project=project, user=request.user, shared=shared, **given)
        try:
            _add(request, project, corpus)
        except EvalappError:
            delete_corpus(corpus=corpus, user=request.user)
            raise
        data = CorpusSerializer(corpus, context={"request": request, "project": project}).data
        return Response(data, status=202, headers={"Location": data["url"]})


class CorpusShow(APIView):
    @extend_schema(operation_id="corpora_retrieve", responses=CorpusSerializer)
    def get(self, request: Request, slug: str, name: str) -> Response:
        """A corpus: its condition, size and origin."""
        project, corpus = get_visible(request.user, slug, name)
        return Response(CorpusSerializer(corpus, context={"request": request, "project": project}).data)

    @extend_schema(
        operation_id="corpora_destroy",
        description="Delete the corpus with all its files. References written with its candidates stay.",
        responses={204: OpenApiResponse(description="The corpus is deleted.")},
    )
    def delete(self, request: Request, slug: str, name: str) -> Response:
        _, corpus = get_visible(request.user, slug, name, change=True)
        delete_corpus(corpus=corpus, user=request.user)
        return Response(status=204)


class PartList(PagedView):
    parser_classes = [MultiPartParser, JSONParser]

    @extend_schema(operation_id="corpus_parts_list", responses=PartSerializer(many=True))
    def get(self, request: Request, slug: str, name: str) -> Response:
        """The parts of a corpus, newest first, with the faults of rejected ones."""
        _, corpus = get_visible(request.user, slug, name)
        return self.paginate(request, list_parts(corpus), lambda page: PartSerializer(page, many=True).data)

    @extend_schema(
        operation_id="corpus_parts_create",
        description="Add a file or rows of the project; duplicate pairs are left out.",
        request=_body(_PART, []),
        responses={202: OpenApiResponse(PartSerializer, description="Received; a run checks and indexes it.")},
    )
    @idempotent()
    def post(self, request: Request, slug: str, name: str) -> Response:
        project, corpus = get_visible(request.user, slug, name, change=True)
        _check_size(request)
        _members(request, _PART)
        return Response(PartSerializer(_add(request, project, corpus)).data, status=202)
