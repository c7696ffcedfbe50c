"""Reports for people who do not sign in, for programs."""

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from evalapp.accounts.roles import Need
from evalapp.accounts.selectors import get_project
from evalapp.common.api.fields import ChoiceField, StrictSerializer, TextField, TruthField, read_body
from evalapp.common.errors import NotThere
from evalapp.common.pagination import KeysetPagination, paginate

from ..downloads import send_report
from ..models import SharedReport
from ..selectors.shared_reports import list_reports
from ..services.shared_reports import DAYS, MAX_DAYS, create_report, revoke_report


class ReportSerializer(serializers.ModelSerializer):
    """A report as of its creation. `opens` counts how often it was opened by its link."""

    project = serializers.CharField(source="project.slug")
    created_by = serializers.CharField(source="created_by.username", allow_null=True, default=None)
    raters = serializers.BooleanField(source="has_raters")
    texts = serializers.BooleanField(source="has_texts")
    state = ChoiceField(choices=SharedReport.State.choices)

    class Meta:
        model = SharedReport
        fields = [
            "id", "project", "label", "raters", "texts", "state", "expires_at", "revoked_at", "created_by",
            "created_at", "opened_at", "opens",
        ]  # fmt: skip
        read_only_fields = fields


class ReportDetailSerializer(ReportSerializer):
    """A report with its tables and counts."""

    content = serializers.JSONField()

    class Meta(ReportSerializer.Meta):
        fields = [*ReportSerializer.Meta.fields, "content"]
        read_only_fields = fields


class CreatedReportSerializer(ReportSerializer):
    link = serializers.CharField(read_only=True, help_text=gettext_lazy("Shown once."))

    class Meta(ReportSerializer.Meta):
        fields = [*ReportSerializer.Meta.fields, "link"]
        read_only_fields = fields


class NewReportSerializer(StrictSerializer):
    aspect = TextField(required=False, allow_blank=True, help_text=gettext_lazy("Missing: the first judged aspect."))
    days = serializers.IntegerField(default=DAYS, min_value=1, max_value=MAX_DAYS)
    raters = TruthField(default=False, help_text=gettext_lazy("Add the raters, under pseudonyms."))
    texts = TruthField(default=False, help_text=gettext_lazy("Add outputs of the first judged items."))
    label = TextField(max_length=100, required=False, allow_blank=True)


class ReportList(APIView):
    pagination_class = KeysetPagination
    keyset_order = ("-pk",)

    @extend_schema(operation_id="reports_list", responses=ReportSerializer(many=True))
    def get(self, request: Request, slug: str) -> Response:
        """List the reports of a project, newest first, without contents and links."""
        project = get_project(user=request.user, slug=slug, need="read")
        return paginate(self, list_reports(project).order_by(), ReportSerializer)

    @extend_schema(operation_id="reports_create", request=NewReportSerializer, responses={201: CreatedReportSerializer})
    def post(self, request: Request, slug: str) -> Response:
        """Create a report and a link to it. Only this response contains the link. 409 while a table is being
        computed."""
        project = get_project(user=request.user, slug=slug, need="manage")
        report, secret = create_report(project=project, user=request.user, **read_body(NewReportSerializer, request))
        report.link = request.build_absolute_uri(reverse("scoring:shared-report", args=[secret]))
        return Response(CreatedReportSerializer(report).data, status=201, headers={"Cache-Control": "no-store"})


def _find(request: Request, pk: int, need: Need) -> SharedReport:
    try:
        row = SharedReport.objects.select_related("project", "created_by").get(pk=pk)
        get_project(user=request.user, slug=row.project.slug, need=need)
    except (SharedReport.DoesNotExist, NotThere) as error:
        raise NotThere(_("Report not found.")) from error
    return row


class ReportShow(APIView):
    @extend_schema(operation_id="reports_retrieve", responses=ReportDetailSerializer)
    def get(self, request: Request, pk: int) -> Response:
        """A report with its tables and counts, without the link."""
        return Response(ReportDetailSerializer(_find(request, pk, "read")).data)

    @extend_schema(operation_id="reports_destroy", responses={204: OpenApiResponse(description="Revoked.")})
    def delete(self, request: Request, pk: int) -> Response:
        """Revoke the link. Members can still read the report."""
        revoke_report(report=_find(request, pk, "manage"), user=request.user)
        return Response(status=204)


class ReportFile(APIView):
    @extend_schema(operation_id="reports_pdf", responses={(200, "application/pdf"): OpenApiTypes.BINARY})
    def get(self, request: Request, pk: int) -> Response:
        """The report as PDF."""
        row = _find(request, pk, "read")
        return send_report(row, row.project.slug)
