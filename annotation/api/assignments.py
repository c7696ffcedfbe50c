"""Assignments in the API: next, draft, submit, skip, flag, own history. Responses are rendered by orjson, because this
is the most frequent path."""

from typing import Any

from django.http import HttpResponse
from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.views import APIView

from annotation.models import Assignment
from annotation.selectors.campaigns import get_own_campaign
from annotation.selectors.judging import filter_by_state, get_own_assignment, list_own_assignments, wire_own
from annotation.selectors.judging_sheet import Sheet, make_sheet
from annotation.services.bodies import read_answer, read_text, read_then, read_version
from annotation.services.judging import WHY_TEXT, CampaignNotOpen, get_next_assignment, submit_answer
from annotation.services.judging_acts import flag_assignment, save_draft, skip_assignment
from evalapp.common.api.fields import ChoiceField, WholeSerializer, read_flag
from evalapp.common.errors import BadInput, Fault, NotThere

from .campaign_views import FlaggedSerializer, FlagInputSerializer, flag_unit, read_body
from .responses import CONFLICT, PagedView, ProblemSerializer, make_json_response

# ---- schemas -------------------------------------------------------------------------------------------


class TextSerializer(serializers.Serializer):
    id = serializers.CharField(help_text="a or b: the position on the page")
    text = serializers.CharField()


class OwnProgressSerializer(serializers.Serializer):
    done = serializers.IntegerField()
    goal = serializers.IntegerField(help_text="The number of judgements that the annotator can give.")
    skipped = serializers.IntegerField()
    seconds = serializers.FloatField()
    mean_seconds = serializers.FloatField(allow_null=True)
    practised = serializers.IntegerField()
    practice = serializers.IntegerField()


class FormAspectSerializer(serializers.Serializer):
    name = serializers.CharField()
    question = serializers.CharField()
    low = serializers.FloatField(required=False)
    high = serializers.FloatField(required=False)
    step = serializers.FloatField(required=False, allow_null=True)
    points = serializers.ListField(child=serializers.DictField(), required=False)
    labels = serializers.DictField(child=serializers.CharField(), required=False)


class FormSerializer(serializers.Serializer):
    kind = serializers.CharField()
    aspects = FormAspectSerializer(many=True)
    verdicts = serializers.ListField(child=serializers.DictField())
    options = serializers.DictField()


class BaseAssignmentSerializer(serializers.Serializer):
    id = serializers.CharField(help_text="Opaque.")
    campaign = serializers.IntegerField()
    number = serializers.IntegerField()
    state = ChoiceField(choices=Assignment.State.choices)
    version = serializers.IntegerField()
    practice = serializers.BooleanField()
    context = serializers.ListField(child=serializers.CharField())
    source = serializers.CharField(allow_null=True)
    texts = TextSerializer(many=True)
    draft = serializers.DictField(allow_null=True)
    draft_version = serializers.IntegerField()
    lease_until = serializers.DateTimeField()


class AssignmentSerializer(BaseAssignmentSerializer):
    kind = serializers.CharField()
    form = FormSerializer()
    progress = OwnProgressSerializer()


class OwnAssignmentSerializer(BaseAssignmentSerializer):
    answer = serializers.DictField(allow_null=True)
    note = serializers.CharField()
    saved_at = serializers.DateTimeField(allow_null=True)
    feedback = serializers.DictField(allow_null=True)
    kind = serializers.CharField(required=False)
    form = FormSerializer(required=False)


class DraftInputSerializer(WholeSerializer):
    version = serializers.IntegerField(min_value=0, help_text="The version of the draft that this one follows.")
    draft = serializers.DictField()


class DraftSerializer(serializers.Serializer):
    draft_version = serializers.IntegerField()
    saved_at = serializers.DateTimeField()
    lease_until = serializers.DateTimeField()


class SubmitInputSerializer(serializers.Serializer):
    submission = serializers.UUIDField(help_text="A UUID made by the client for each answer; the same on a retry.")
    answer = serializers.DictField(help_text="One member per aspect: a number, or a verdict with the sides as shown.")
    note = serializers.CharField(required=False, allow_blank=True, allow_null=True)
    seconds = serializers.FloatField(required=False, allow_null=True, min_value=0)
    replaces = serializers.IntegerField(required=False, allow_null=True, min_value=0, help_text="For a revision.")
    next = ChoiceField(
        choices=["next", "ahead"],
        required=False,
        help_text="true or next: also return the next assignment; ahead: the one after the next open one.",
    )


class SkippedSerializer(serializers.Serializer):
    id = serializers.CharField()
    state = serializers.CharField()
    progress = OwnProgressSerializer()
    next = AssignmentSerializer(allow_null=True)
    why = serializers.CharField(help_text="Why there is no next one: empty, limit, paused, closed.")


class SubmittedSerializer(SkippedSerializer):
    version = serializers.IntegerField()
    saved_at = serializers.DateTimeField()
    feedback = serializers.DictField(allow_null=True)


class SkipInputSerializer(serializers.Serializer):
    reason = serializers.CharField(required=False, allow_blank=True, allow_null=True, max_length=300)
    next = ChoiceField(choices=["next", "ahead"], required=False)


# ---- views ---------------------------------------------------------------------------------------------


class NextAssignmentView(APIView):
    @extend_schema(
        summary="Get the current assignment",
        description="The oldest open assignment or a new one. With prefetch=1 the one after it (two can be open).",
        parameters=[OpenApiParameter("prefetch", bool, description="Get the assignment after the current one.")],
        request=None,
        responses={
            200: AssignmentSerializer,
            204: OpenApiResponse(description="No assignments are left."),
            409: CONFLICT,
        },
    )
    def post(self, request: Request, pk: int) -> HttpResponse:
        ahead = read_flag(request.query_params, "prefetch")
        turn = get_next_assignment(user=request.user, campaign_id=pk, ahead=ahead)
        body = turn.wire()
        if body is None:
            if turn.why in ("empty", "limit"):
                return HttpResponse(status=204)
            raise CampaignNotOpen(WHY_TEXT[turn.why])
        return make_json_response(body)


class OwnAssignments(PagedView):
    keyset_order = ("-order_number", "-pk")

    @extend_schema(
        summary="Own assignments in a campaign",
        parameters=[
            OpenApiParameter("campaign", int, required=True),
            OpenApiParameter("state", str, enum=Assignment.State.values),
        ],
        responses=OwnAssignmentSerializer(many=True),
    )
    def get(self, request: Request) -> Any:
        """Your own assignments, newest first."""
        number = request.query_params.get("campaign", "")
        if not number.isdecimal() or len(number) > 18:
            fault = Fault(_("Use the number of a campaign."), field="campaign")
            raise BadInput(_("Add the number of the campaign: ?campaign=NUMBER"), faults=[fault])
        state = request.query_params.get("state", "")
        if state and state not in Assignment.State.values:
            choices = ", ".join(Assignment.State.values)
            raise BadInput(_("state must be one of: %(choices)s.") % {"choices": choices})
        campaign = get_own_campaign(user=request.user, campaign_id=int(number))
        rows = filter_by_state(list_own_assignments(user=request.user, campaign=campaign), state)
        return self.paginate(request, rows, lambda page: [wire_own(row) for row in page])


class OwnAssignment(APIView):
    @extend_schema(summary="An own assignment with form and answer", responses=OwnAssignmentSerializer)
    def get(self, request: Request, public: str) -> HttpResponse:
        """One of your assignments: texts, questions and the stored draft or answer."""
        row, sheet = _own(request, public)
        return make_json_response(wire_own(row, sheet))

    @extend_schema(
        summary="Save a draft",
        description="Compare and set by version; renews the lease.",
        request=DraftInputSerializer,
        responses={200: DraftSerializer, 409: CONFLICT},
    )
    def patch(self, request: Request, public: str) -> HttpResponse:
        body = read_body(request)
        saved = save_draft(user=request.user, public=public, version=read_version(body), draft=body.get("draft"))
        return make_json_response(saved.wire())


def _own(request: Request, public: str) -> tuple[Assignment, Sheet]:
    row = get_own_assignment(user=request.user, public=public)
    full = list_own_assignments(user=request.user, campaign=row.campaign).filter(pk=row.pk).first()
    if full is None:
        raise NotThere(_("There is no such assignment of yours."))
    return full, make_sheet(row.campaign)


class SubmitAssignment(APIView):
    @extend_schema(
        summary="Submit an answer",
        request=SubmitInputSerializer,
        responses={200: SubmittedSerializer, 400: ProblemSerializer, 409: CONFLICT},
    )
    def post(self, request: Request, public: str) -> HttpResponse:
        """Store the answer. The same `submission` again returns the first result."""
        done = submit_answer(user=request.user, public=public, **read_answer(read_body(request)))
        return make_json_response(done.wire())


class SkipAssignment(APIView):
    @extend_schema(summary="Skip an assignment", request=SkipInputSerializer, responses={200: SkippedSerializer})
    def post(self, request: Request, public: str) -> HttpResponse:
        """Skip the assignment with a reason, if the campaign allows it."""
        body = read_body(request)
        turn = skip_assignment(
            user=request.user,
            public=public,
            reason=read_text(body, "reason", most=300),
            then=read_then(body.get("next")),
        )
        return make_json_response(
            {
                "id": public,
                "state": "skipped",
                "progress": turn.progress.wire(),
                "next": turn.wire(),
                "why": turn.why,
            }
        )


class FlagAssignment(APIView):
    @extend_schema(
        summary="Flag an assignment",
        request=FlagInputSerializer,
        responses={201: FlaggedSerializer},
    )
    def post(self, request: Request, public: str) -> HttpResponse:
        """Report a problem with the item; the assignment stays open."""
        return flag_unit(request, public, flag_assignment)
