"""Links for hired participants in the API: create, list, change, the participants with what is owed to them, and the
withdrawal of a participant's data."""

from typing import Any

from django.http import HttpResponse
from django.urls import reverse
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from annotation.allocation.recruitment import MAX_PLACES, PLATFORMS, QUESTION_KINDS
from annotation.models import Participant, Recruitment
from annotation.selectors.campaigns import get_campaign
from annotation.selectors.participants import (
    describe_recruitment,
    get_participant,
    get_recruitment,
    list_payments,
    list_recruitments,
)
from annotation.services.participant_answers import withdraw_participant
from annotation.services.recruitments import create_recruitment, update_recruitment

from .campaign_views import read_body
from .responses import make_json_response


class StudyQuestionSerializer(serializers.Serializer):
    name = serializers.CharField()
    question = serializers.CharField()
    kind = serializers.ChoiceField(choices=list(QUESTION_KINDS))
    choices = serializers.ListField(child=serializers.CharField(), required=False)
    low = serializers.FloatField(required=False, allow_null=True)
    high = serializers.FloatField(required=False, allow_null=True)
    required = serializers.BooleanField(required=False)


class StudyOutcomeSerializer(serializers.Serializer):
    code = serializers.CharField(required=False, allow_blank=True)
    address = serializers.CharField(required=False, allow_blank=True)
    text = serializers.CharField(required=False, allow_blank=True)


class RecruitmentSettingsSerializer(serializers.Serializer):
    """The settings of a link; see the documentation on hired participants."""

    places = serializers.IntegerField(min_value=1, max_value=MAX_PLACES)
    label = serializers.CharField(required=False, allow_blank=True)
    platform = serializers.ChoiceField(choices=list(PLATFORMS), required=False, allow_null=True)
    id_parameter = serializers.CharField(required=False, allow_null=True)
    meta_parameters = serializers.ListField(child=serializers.CharField(), required=False, allow_null=True)
    consent = serializers.CharField(required=False, allow_blank=True)
    contact = serializers.CharField(required=False, allow_blank=True)
    questions = StudyQuestionSerializer(many=True, required=False)
    outcomes = serializers.DictField(
        child=StudyOutcomeSerializer(), required=False, help_text="By name: passed, failed, screened, full, refused."
    )
    lease_minutes = serializers.IntegerField(required=False, min_value=5, max_value=1440)
    only_new = serializers.BooleanField(required=False)
    any_browser = serializers.BooleanField(required=False)
    ask_export = serializers.BooleanField(required=False)
    pass_mark = serializers.FloatField(required=False, allow_null=True, min_value=0, max_value=1)
    min_controls = serializers.FloatField(required=False, allow_null=True, min_value=0, max_value=1)
    min_seconds = serializers.FloatField(required=False, allow_null=True, min_value=0)
    min_agreement = serializers.FloatField(required=False, allow_null=True, min_value=0, max_value=1)
    replace_failed = serializers.BooleanField(required=False)
    personal_codes = serializers.BooleanField(required=False)
    pay = serializers.FloatField(required=False, min_value=0)
    pay_failed = serializers.FloatField(required=False, min_value=0)
    pay_screened = serializers.FloatField(required=False, min_value=0)
    bonus = serializers.FloatField(required=False, min_value=0)
    bonus_controls = serializers.FloatField(required=False, allow_null=True, min_value=0, max_value=1)
    currency = serializers.CharField(required=False, allow_blank=True)


class RecruitmentSerializer(serializers.Serializer):
    id = serializers.IntegerField()
    campaign = serializers.IntegerField()
    label = serializers.CharField()
    places = serializers.IntegerField()
    held = serializers.IntegerField(help_text="Places in use.")
    refusals = serializers.IntegerField(help_text="People who did not agree to take part.")
    states = serializers.DictField(child=serializers.IntegerField(), help_text="Participants by state.")
    settings = RecruitmentSettingsSerializer()
    created_at = serializers.DateTimeField()
    closed_at = serializers.DateTimeField(allow_null=True)


class CreatedRecruitmentSerializer(RecruitmentSerializer):
    address = serializers.CharField(help_text="The address for participants, shown only here. Append their parameters.")


class ParticipantSerializer(serializers.Serializer):
    id = serializers.IntegerField()
    participant = serializers.CharField()
    rater = serializers.CharField()
    state = serializers.ChoiceField(choices=Participant.State.choices)
    failed_rules = serializers.CharField(help_text="Separated by spaces: controls, speed, agreement.")
    units = serializers.IntegerField()
    minutes = serializers.FloatField()
    median_seconds = serializers.FloatField(allow_null=True)
    practice_share = serializers.FloatField(allow_null=True)
    controls = serializers.IntegerField()
    controls_as_expected = serializers.FloatField(allow_null=True)
    shared_texts = serializers.IntegerField()
    agreement = serializers.FloatField(allow_null=True)
    pay = serializers.FloatField()
    bonus = serializers.FloatField()
    currency = serializers.CharField()
    code = serializers.CharField()
    consent_version = serializers.IntegerField(allow_null=True)
    consented_at = serializers.DateTimeField()
    joined_at = serializers.DateTimeField()
    ended_at = serializers.DateTimeField(allow_null=True)
    other_ids_in_browser = serializers.IntegerField()
    banned = serializers.BooleanField()
    remark = serializers.CharField()
    meta = serializers.DictField(child=serializers.CharField())


def _wire(row: Recruitment) -> dict[str, Any]:
    return describe_recruitment(row).wire()


class CampaignRecruitments(APIView):
    @extend_schema(summary="Links for hired participants", responses=RecruitmentSerializer(many=True))
    def get(self, request: Request, pk: int) -> HttpResponse:
        """The links of a campaign with their places and participants by state, newest first."""
        campaign = get_campaign(user=request.user, campaign_id=pk, need="write")
        return make_json_response([row.wire() for row in list_recruitments(campaign)])

    @extend_schema(
        summary="Create a link for hired participants",
        request=RecruitmentSettingsSerializer,
        responses={201: CreatedRecruitmentSerializer},
    )
    def post(self, request: Request, pk: int) -> HttpResponse:
        """Only this response contains the address."""
        campaign = get_campaign(user=request.user, campaign_id=pk, need="write")
        row, secret = create_recruitment(campaign=campaign, user=request.user, settings=read_body(request))
        row.campaign = campaign
        address = request.build_absolute_uri(reverse("annotation:study", args=[secret]))
        return make_json_response({**_wire(row), "address": address}, status=201)


class RecruitmentDetail(APIView):
    @extend_schema(summary="A link for hired participants", responses=RecruitmentSerializer)
    def get(self, request: Request, pk: int) -> HttpResponse:
        """The settings, places and participants by state of a link."""
        return make_json_response(_wire(get_recruitment(user=request.user, pk=pk)))

    @extend_schema(
        summary="Change a link for hired participants",
        request=RecruitmentSettingsSerializer(partial=True),
        responses=RecruitmentSerializer,
    )
    def patch(self, request: Request, pk: int) -> HttpResponse:
        """Settings that are not named stay. Rules apply to participants who end later."""
        row = get_recruitment(user=request.user, pk=pk)
        return make_json_response(
            _wire(update_recruitment(recruitment=row, user=request.user, changes=read_body(request)))
        )


class RecruitmentParticipants(APIView):
    @extend_schema(summary="Participants of a link", responses=ParticipantSerializer(many=True))
    def get(self, request: Request, pk: int) -> HttpResponse:
        """All participants in the order of joining, with their work and what is owed to them."""
        row = get_recruitment(user=request.user, pk=pk)
        names = ParticipantSerializer().fields.keys()
        return make_json_response([{name: person[name] for name in names} for person in list_payments(row)])


class ParticipantWithdraw(APIView):
    @extend_schema(summary="Delete the data of a participant", request=None, responses={204: None})
    def post(self, request: Request, pk: int) -> Response:
        """Delete answers, id and everything that they told, on their request. Pay them first."""
        withdraw_participant(participant=get_participant(user=request.user, pk=pk), actor=request.user)
        return Response(status=204)
