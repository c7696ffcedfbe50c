"""API calls that judging and writing campaigns share: list, create, read, change, delete, move, and flags."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.db.models import QuerySet
from django.http import HttpResponse
from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from annotation.models import Campaign, WritingCampaign
from annotation.models.shared import BaseFlag
from annotation.selectors.campaigns import get_campaign, get_flag, list_flags
from annotation.services import campaigns as services
from annotation.services.bodies import read_text
from annotation.services.judging_acts import resolve_flag
from evalapp.accounts.selectors import get_project
from evalapp.common.api.fields import ChoiceField
from evalapp.common.api.idempotency import idempotent
from evalapp.common.errors import BadInput

from .responses import CONFLICT, PagedView, ProblemSerializer, make_json_response

_FIELDS = (
    "id", "project", "slug", "name", "kind", "state", "seed", "lease_minutes", "max_per_annotator", "unit_count",
    "created_at", "opened_at", "closed_at",
)  # fmt: skip


class BaseCampaignSerializer(serializers.ModelSerializer):
    """The fields of both kinds of campaign."""

    project = serializers.SlugRelatedField(slug_field="slug", read_only=True)

    class Meta:
        fields: tuple[str, ...] = _FIELDS


class BasePlanSerializer(serializers.Serializer):
    """The fields of both kinds of plan."""

    slug = serializers.CharField(required=False, allow_blank=True, allow_null=True, max_length=63)
    name = serializers.CharField(max_length=200)
    guidelines = serializers.CharField(required=False, allow_blank=True, allow_null=True)
    items = serializers.JSONField(required=False)
    seed = serializers.IntegerField(required=False, allow_null=True, min_value=0, max_value=2**31 - 1)
    lease_minutes = serializers.IntegerField(required=False, allow_null=True, min_value=1, max_value=1440)
    max_per_annotator = serializers.IntegerField(required=False, allow_null=True, min_value=1)
    options = serializers.DictField(required=False, allow_null=True)


class FlagInputSerializer(serializers.Serializer):
    reason = ChoiceField(choices=BaseFlag.Reason.choices)
    text = serializers.CharField(required=False, allow_blank=True, allow_null=True)


class FlaggedSerializer(serializers.Serializer):
    id = serializers.IntegerField()
    reason = serializers.CharField()
    text = serializers.CharField()


def read_body(request: Request) -> dict[str, Any]:
    if not isinstance(request.data, dict):
        raise BadInput(_("The body must be a JSON object."))
    return request.data


def flag_unit(request: Request, public: str, flag: Callable[..., BaseFlag]) -> HttpResponse:
    """Store the flag in the body of a request by `flag`, a service."""
    body = read_body(request)
    row = flag(user=request.user, public=public, reason=read_text(body, "reason"), text=read_text(body, "text"))
    return make_json_response({"id": row.pk, "reason": row.reason, "text": row.text}, status=201)


@dataclass(frozen=True)
class CampaignAPI:
    """How the API of a kind of work differs. `noun` and `changeable` are words for the documentation."""

    noun: str
    changeable: str
    model: type[Campaign] | type[WritingCampaign]
    flag_model: type[BaseFlag]
    list_campaigns: Callable[..., QuerySet[Any]]
    create: Callable[..., Any]
    serializer: type[serializers.Serializer]
    detail: type[serializers.Serializer]
    plan: type[serializers.Serializer]
    flag: type[serializers.Serializer]


class CampaignViews(NamedTuple):
    campaigns: type[APIView]
    detail: type[APIView]
    move: type[APIView]
    flags: type[APIView]
    resolve_flag: type[APIView]


def make_views(api: CampaignAPI) -> CampaignViews:
    """The shared views for one kind of work, with its serializers in their documentation."""
    errors = {400: ProblemSerializer, 409: CONFLICT}
    campaigns, detail = _make_campaign_views(api, errors)
    move = _make_move_view(api, errors)
    flags, resolve = _make_flag_views(api)
    return CampaignViews(campaigns, detail, move, flags, resolve)


def _make_campaign_views(api: CampaignAPI, errors: dict[int, Any]) -> tuple[type[APIView], type[APIView]]:
    class ProjectCampaigns(PagedView):
        @extend_schema(
            summary=f"{api.noun.capitalize()}s of a project",
            description="Newest first, in pages.",
            responses=api.serializer(many=True),
        )
        def get(self, request: Request, slug: str) -> Response:
            project = get_project(user=request.user, slug=slug, need="read")
            rows = api.list_campaigns(project=project)
            return self.paginate(request, rows, lambda page: api.serializer(page, many=True).data)

        @extend_schema(
            summary=f"Create a {api.noun} as a draft",
            description="Create a draft from a plan. Assignments are given out after it was opened.",
            request=api.plan,
            responses={201: api.detail, **errors},
        )
        @idempotent()
        def post(self, request: Request, slug: str) -> Response:
            project = get_project(user=request.user, slug=slug, need="write")
            campaign = api.create(project=project, user=request.user, plan=read_body(request))
            return Response(api.detail(campaign).data, status=201)

    class CampaignDetail(APIView):
        @extend_schema(
            summary=f"A {api.noun} with its plan",
            description="The plan has the form that creating a campaign takes.",
            responses=api.detail,
        )
        def get(self, request: Request, pk: int) -> Response:
            campaign = get_campaign(user=request.user, campaign_id=pk, model=api.model)
            return Response(api.detail(campaign).data)

        @extend_schema(
            summary=f"Change a {api.noun}",
            description=f"Any part of a draft; after opening only {api.changeable}.",
            request=api.plan(partial=True),
            responses={200: api.detail, **errors},
        )
        def patch(self, request: Request, pk: int) -> Response:
            campaign = get_campaign(user=request.user, campaign_id=pk, need="write", model=api.model)
            changed = services.update_campaign(campaign=campaign, user=request.user, changes=read_body(request))
            return Response(api.detail(changed).data)

        @extend_schema(
            summary=f"Delete a {api.noun}",
            description="Answers are never deleted, so this needs a campaign without answers.",
            responses={204: None, 409: CONFLICT},
        )
        def delete(self, request: Request, pk: int) -> Response:
            campaign = get_campaign(user=request.user, campaign_id=pk, need="write", model=api.model)
            services.delete_campaign(campaign=campaign, user=request.user)
            return Response(status=204)

    return ProjectCampaigns, CampaignDetail


def _make_move_view(api: CampaignAPI, errors: dict[int, Any]) -> type[APIView]:
    waiting = OpenApiResponse(api.serializer, description="A large campaign: a worker opens it, see `opening`.")
    moved_responses = {200: api.serializer, **({202: waiting} if api.model is Campaign else {}), **errors}

    class CampaignMove(APIView):
        """Open, pause, resume or close the campaign, as the address says; 409 if its state does not allow that."""

        move = ""

        @extend_schema(request=None, responses=moved_responses)
        def post(self, request: Request, pk: int) -> Response:
            campaign = get_campaign(user=request.user, campaign_id=pk, need="write", model=api.model)
            moved = getattr(services, f"{self.move}_campaign")(campaign=campaign, user=request.user)
            waits = self.move == "open" and moved.state == Campaign.State.DRAFT
            return Response(api.serializer(moved).data, status=202 if waits else 200)

    return CampaignMove


def _make_flag_views(api: CampaignAPI) -> tuple[type[APIView], type[APIView]]:
    class CampaignFlags(PagedView):
        @extend_schema(
            summary=f"Flags of a {api.noun}",
            description="The problems that annotators reported, newest first.",
            responses=api.flag(many=True),
        )
        def get(self, request: Request, pk: int) -> Response:
            campaign = get_campaign(user=request.user, campaign_id=pk, model=api.model)
            return self.paginate(request, list_flags(campaign), lambda page: api.flag(page, many=True).data)

    class FlagResolve(APIView):
        @extend_schema(
            summary=f"Resolve a flag of a {api.noun}",
            description="Mark the reported problem as resolved.",
            request=None,
            responses=api.flag,
        )
        def post(self, request: Request, pk: int) -> Response:
            flag: Any = get_flag(user=request.user, flag_id=pk, model=api.flag_model)  # type: ignore[type-var]
            return Response(api.flag(resolve_flag(user=request.user, flag=flag)).data)

    return CampaignFlags, FlagResolve
