"""Writing campaigns in the API: for researchers and for annotators."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from annotation.models import WritingAttempt, WritingCampaign, WritingFlag, WrittenReference
from annotation.selectors.campaigns import get_campaign
from annotation.selectors.writing import list_writing, list_written, writing_plan
from annotation.selectors.writing_rows import attempt_row, list_attempts, written_row
from annotation.selectors.writing_watch import watch
from annotation.services.bodies import read_flag, read_number, read_submission, read_text, read_version
from annotation.services.campaigns import create_writing
from annotation.services.judging import CampaignNotOpen
from annotation.services.writing_acts import finish_task, flag_task, save_draft, skip_task
from annotation.services.writing_attempts import drop_candidate, submit_attempt
from annotation.services.writing_back import take_back_last
from annotation.services.writing_desk import get_desk
from annotation.services.writing_handout import next_task
from annotation.services.writing_later import (
    confirm_reference,
    next_confirmation,
    restore_reference,
    withdraw_reference,
)
from evalapp.accounts.selectors import rater_names
from evalapp.common.api.fields import WholeSerializer
from evalapp.common.pagination import KeysetPagination

from .campaign_views import (
    BaseCampaignSerializer,
    CampaignAPI,
    FlaggedSerializer,
    FlagInputSerializer,
    flag_unit,
    make_views,
    read_body,
)
from .responses import CONFLICT, ProblemSerializer, fast_json

CANDIDATE = "Opaque id of the candidate; required in rounds."

# ---- what goes over the wire, for the schema --------------------------------------------------------------


class WritingSerializer(BaseCampaignSerializer):
    class Meta(BaseCampaignSerializer.Meta):
        model = WritingCampaign
        fields = (*BaseCampaignSerializer.Meta.fields, "evaluator", "corpus")
        read_only_fields = fields


class WritingPlanSerializer(serializers.Serializer):
    """The plan of a writing campaign; see the documentation on reference writing."""

    slug = serializers.CharField(required=False, allow_blank=True, allow_null=True, max_length=40)
    name = serializers.CharField(max_length=200)
    kind = serializers.ChoiceField(choices=WritingCampaign.Kind.choices, required=False)
    guidelines = serializers.CharField(required=False, allow_blank=True, allow_null=True)
    items = serializers.JSONField(required=False)
    start_set = serializers.CharField(required=False, allow_blank=True, allow_null=True)
    evaluator = serializers.CharField(required=False, allow_blank=True, allow_null=True)
    corpus = serializers.CharField(required=False, allow_blank=True, allow_null=True)
    seed = serializers.IntegerField(required=False, allow_null=True, min_value=0, max_value=2**31 - 1)
    lease_minutes = serializers.IntegerField(required=False, allow_null=True, min_value=1, max_value=1440)
    max_per_annotator = serializers.IntegerField(required=False, allow_null=True, min_value=1)
    options = serializers.DictField(required=False, allow_null=True)


class WritingDetailSerializer(WritingSerializer):
    plan = serializers.SerializerMethodField()

    class Meta(WritingSerializer.Meta):
        fields = (*WritingSerializer.Meta.fields, "guidelines", "plan")
        read_only_fields = fields

    @extend_schema(responses=WritingPlanSerializer)
    def get_plan(self, campaign: WritingCampaign) -> dict[str, Any]:
        return writing_plan(campaign)


class WritingPointSerializer(serializers.Serializer):
    round = serializers.IntegerField()
    mean = serializers.FloatField()
    low = serializers.FloatField(allow_null=True)
    high = serializers.FloatField(allow_null=True)
    n = serializers.IntegerField()


class WritingProgressSerializer(serializers.Serializer):
    campaign = serializers.IntegerField()
    state = serializers.ChoiceField(choices=WritingCampaign.State.choices)
    figures = serializers.DictField()
    arms = serializers.ListField(child=serializers.DictField())
    people = serializers.ListField(child=serializers.DictField())
    by_arm = serializers.DictField(child=WritingPointSerializer(many=True))
    by_person = serializers.DictField(child=WritingPointSerializer(many=True))
    comparisons = serializers.ListField(child=serializers.DictField())


class DeskReferenceSerializer(serializers.Serializer):
    text = serializers.CharField()
    gain = serializers.FloatField(allow_null=True)
    mine = serializers.BooleanField()
    added_by_other = serializers.BooleanField()
    waiting = serializers.BooleanField(help_text="Other annotators have not confirmed it yet.")


class DeskCandidateSerializer(serializers.Serializer):
    public = serializers.CharField(help_text="Opaque.")
    text = serializers.CharField()
    query = serializers.CharField()
    jaccard = serializers.FloatField(allow_null=True)
    source = serializers.DictField()


class LastSerializer(serializers.Serializer):
    task = serializers.CharField(help_text="Opaque id of its task.")
    reference = serializers.CharField(help_text="Opaque.")
    text = serializers.CharField()


class DeskSerializer(serializers.Serializer):
    id = serializers.CharField(help_text="Opaque.")
    campaign = serializers.IntegerField()
    state = serializers.ChoiceField(choices=["write", "wait", "done", "skipped", "none"])
    why = serializers.CharField()
    message = serializers.CharField()
    context = serializers.ListField(child=serializers.CharField())
    source = serializers.CharField(allow_null=True)
    originals = serializers.ListField(child=serializers.CharField())
    references = DeskReferenceSerializer(many=True)
    candidate = DeskCandidateSerializer(allow_null=True, help_text="The candidate of the round.")
    attempts_left = serializers.IntegerField()
    max_attempts = serializers.IntegerField()
    target = serializers.IntegerField()
    growth = serializers.ListField(child=serializers.ListField(child=serializers.FloatField()))
    draft = serializers.DictField(allow_null=True)
    draft_version = serializers.IntegerField()
    round = serializers.IntegerField()
    rounds = serializers.IntegerField()
    waiting_for = serializers.IntegerField()
    note = serializers.CharField()
    done = serializers.IntegerField()
    goal = serializers.IntegerField()
    to_confirm = serializers.IntegerField()
    last = LastSerializer(allow_null=True, help_text="The annotator's last text, while it can be taken back.")
    shows_scores = serializers.BooleanField()
    shows_candidates = serializers.BooleanField()
    allows_edit = serializers.BooleanField()
    allows_own_text = serializers.BooleanField()


class AttemptInputSerializer(serializers.Serializer):
    submission = serializers.UUIDField(help_text="A UUID made by the client for each text; the same on a retry.")
    text = serializers.CharField()
    relevant = serializers.BooleanField(
        required=False, allow_null=True, help_text="Whether the unedited candidate fits the context."
    )
    candidate = serializers.CharField(required=False, allow_null=True, help_text=CANDIDATE)
    seconds = serializers.FloatField(required=False, allow_null=True, min_value=0)
    unscored = serializers.BooleanField(required=False, help_text="Add the text even if no score is available.")


class OutcomeSerializer(serializers.Serializer):
    decision = serializers.ChoiceField(choices=["accept", "edit", "drop", "wait"])
    score_before = serializers.FloatField(allow_null=True)
    score_after = serializers.FloatField(allow_null=True)
    improved = serializers.BooleanField(allow_null=True)
    attempts_left = serializers.IntegerField()
    why = serializers.CharField()
    message = serializers.CharField()
    repeated = serializers.BooleanField()
    desk = DeskSerializer()


class DropInputSerializer(serializers.Serializer):
    submission = serializers.UUIDField()
    candidate = serializers.CharField(required=False, allow_null=True, help_text=CANDIDATE)
    seconds = serializers.FloatField(required=False, allow_null=True, min_value=0)


class BackInputSerializer(serializers.Serializer):
    reference = serializers.CharField(help_text="Opaque id, see `last` of the task.")


class WritingDraftInputSerializer(WholeSerializer):
    version = serializers.IntegerField(min_value=0, help_text="The version of the draft that this one follows.")
    draft = serializers.DictField()


class WritingDraftSerializer(serializers.Serializer):
    draft_version = serializers.IntegerField()
    saved_at = serializers.DateTimeField()


class ReasonSerializer(serializers.Serializer):
    reason = serializers.CharField(required=False, allow_blank=True, allow_null=True, max_length=300)


class ToConfirmSerializer(serializers.Serializer):
    id = serializers.CharField(help_text="Opaque.")
    campaign = serializers.IntegerField()
    context = serializers.ListField(child=serializers.CharField())
    source = serializers.CharField(allow_null=True)
    texts = serializers.ListField(child=serializers.DictField())
    left = serializers.IntegerField()


class ConfirmInputSerializer(serializers.Serializer):
    submission = serializers.UUIDField()
    better = serializers.ChoiceField(choices=["a", "b", "tie"])


class WrittenSerializer(serializers.Serializer):
    id = serializers.IntegerField()
    item = serializers.CharField()
    set = serializers.CharField()
    text = serializers.CharField()
    meta = serializers.DictField()
    written = serializers.DictField()


# ---- those who plan and watch -----------------------------------------------------------------------------


class WritingProgressView(APIView):
    @extend_schema(summary="Progress of a writing campaign", responses=WritingProgressSerializer)
    def get(self, request: Request, pk: int) -> HttpResponse:
        """Progress, with the predicted reliability by round and arm."""
        campaign = get_campaign(user=request.user, campaign_id=pk, model=WritingCampaign)
        return fast_json(watch(user=request.user, campaign=campaign).wire())


class WritingReferences(APIView):
    pagination_class = KeysetPagination
    keyset_order = ("-pk",)

    @extend_schema(
        summary="Written references of a campaign",
        responses=WrittenSerializer(many=True),
    )  # fmt: skip
    def get(self, request: Request, pk: int) -> Response:
        """The written references with their origin, newest first."""
        campaign = get_campaign(user=request.user, campaign_id=pk, model=WritingCampaign)
        paginator = self.pagination_class()
        page = paginator.paginate_queryset(list_written(campaign=campaign), request, view=self)
        pseudonyms = rater_names(campaign.project_id)
        return paginator.get_paginated_response([_written(row, pseudonyms) for row in page])


class WritingAttempts(APIView):
    pagination_class = KeysetPagination
    keyset_order = ("-pk",)

    @extend_schema(
        summary="Attempts of a writing campaign",
        responses={200: serializers.ListSerializer(child=serializers.DictField())},
    )
    def get(self, request: Request, pk: int) -> Response:
        """All submitted texts and discarded candidates, newest first."""
        campaign = get_campaign(user=request.user, campaign_id=pk, model=WritingCampaign)
        paginator = self.pagination_class()
        page: list[WritingAttempt] = paginator.paginate_queryset(list_attempts(campaign=campaign), request, view=self)
        pseudonyms = rater_names(campaign.project_id)
        return paginator.get_paginated_response([attempt_row(row, pseudonyms) for row in page])


def _written(row: WrittenReference, pseudonyms: dict[int, str]) -> dict[str, Any]:
    return {
        "id": row.pk,
        "item": row.unit.item.key,
        "set": row.set.name,
        "text": row.text,
        "meta": row.meta,
        "written": written_row(row, pseudonyms),
    }


class WrittenWithdraw(APIView):
    @extend_schema(summary="Withdraw a written reference", request=ReasonSerializer, responses={204: None})
    def post(self, request: Request, pk: int) -> Response:
        """Take a reference out of its set, with a reason; its record stays."""
        reason = read_text(read_body(request), "reason", most=300)
        withdraw_reference(user=request.user, reference_id=pk, reason=reason)
        return Response(status=204)


class WrittenRestore(APIView):
    @extend_schema(summary="Restore a written reference", request=None, responses={204: None})
    def post(self, request: Request, pk: int) -> Response:
        """Put a withdrawn reference back into its set."""
        restore_reference(user=request.user, reference_id=pk)
        return Response(status=204)


class WritingFlagSerializer(serializers.ModelSerializer):
    item = serializers.CharField(source="task.unit.item.key", read_only=True)

    class Meta:
        model = WritingFlag
        fields = ("id", "item", "reason", "text", "created_at", "resolved_at")
        read_only_fields = fields


VIEWS = make_views(
    CampaignAPI(
        noun="writing campaign",
        changeable="name, guidelines and limits",
        model=WritingCampaign,
        flag_model=WritingFlag,
        list_campaigns=list_writing,
        create=create_writing,
        serializer=WritingSerializer,
        detail=WritingDetailSerializer,
        plan=WritingPlanSerializer,
        flag=WritingFlagSerializer,
    )
)


# ---- those who write --------------------------------------------------------------------------------------


class NextWriting(APIView):
    @extend_schema(
        summary="Get the current item",
        request=None,
        responses={200: DeskSerializer, 204: OpenApiResponse(description="No items are left."), 409: CONFLICT},
    )
    def post(self, request: Request, pk: int) -> HttpResponse:
        """The open task or a new one; 204 if no items are left."""
        desk = next_task(user=request.user, campaign_id=pk)
        if desk.task is None and desk.why in ("empty", "limit"):
            return HttpResponse(status=204)
        if desk.task is None:
            raise CampaignNotOpen(desk.why_text)
        return fast_json(desk.wire())


class WritingDesk(APIView):
    @extend_schema(summary="An own task in its current state", responses=DeskSerializer)
    def get(self, request: Request, public: str) -> HttpResponse:
        """A writing task: context, references, candidates, and scores if the arm has them."""
        return fast_json(get_desk(user=request.user, public=public).wire())

    @extend_schema(
        summary="Save a draft",
        description="Compare and set by version; renews the lease.",
        request=WritingDraftInputSerializer,
        responses={200: WritingDraftSerializer, 409: CONFLICT},
    )
    def patch(self, request: Request, public: str) -> HttpResponse:
        body = read_body(request)
        saved = save_draft(user=request.user, public=public, draft=body.get("draft"), version=read_version(body))
        return fast_json(saved.wire())


class WritingSubmit(APIView):
    @extend_schema(
        summary="Submit a text",
        description="The server computes the scores and decides: accept, edit, drop, or wait for a score.",
        request=AttemptInputSerializer,
        responses={200: OutcomeSerializer, 400: ProblemSerializer, 409: CONFLICT},
    )
    def post(self, request: Request, public: str) -> HttpResponse:
        body = read_body(request)
        outcome = submit_attempt(
            user=request.user,
            public=public,
            submission=read_submission(body, "text"),
            text=read_text(body, "text"),
            relevant=read_flag(body, "relevant"),
            candidate=read_text(body, "candidate") or None,
            seconds=read_number(body, "seconds", (int, float)),
            unscored=bool(read_flag(body, "unscored")),
        )
        return fast_json(outcome.wire())


class WritingDrop(APIView):
    @extend_schema(
        summary="Discard a candidate", request=DropInputSerializer, responses={200: OutcomeSerializer, 409: CONFLICT}
    )
    def post(self, request: Request, public: str) -> HttpResponse:
        """Discard the candidate; the response contains the next one."""
        body = read_body(request)
        outcome = drop_candidate(
            user=request.user, public=public, submission=read_submission(body, "text"),
            candidate=read_text(body, "candidate") or None, seconds=read_number(body, "seconds", (int, float)),
        )  # fmt: skip
        return fast_json(outcome.wire())


class WritingBack(APIView):
    @extend_schema(
        summary="Take back the last text",
        description="The text leaves the set but stays on record; an item that it completed is reopened.",
        request=BackInputSerializer,
        responses={200: DeskSerializer, 409: CONFLICT},
    )
    def post(self, request: Request, public: str) -> HttpResponse:
        reference = read_text(read_body(request), "reference")
        return fast_json(take_back_last(user=request.user, public=public, reference=reference).wire())


class WritingDone(APIView):
    @extend_schema(summary="Finish an item", request=None, responses={200: DeskSerializer, 409: CONFLICT})
    def post(self, request: Request, public: str) -> HttpResponse:
        """Finish the item; the next task is another one."""
        return fast_json(finish_task(user=request.user, public=public).wire())


class WritingSkip(APIView):
    @extend_schema(summary="Skip an item", request=ReasonSerializer, responses={200: DeskSerializer, 409: CONFLICT})
    def post(self, request: Request, public: str) -> HttpResponse:
        """Skip the item with a reason."""
        reason = read_text(read_body(request), "reason", most=300)
        return fast_json(skip_task(user=request.user, public=public, reason=reason).wire())


class WritingFlagged(APIView):
    @extend_schema(
        summary="Flag an item",
        description="Report a problem with the item; the task stays open.",
        request=FlagInputSerializer,
        responses={201: FlaggedSerializer, 400: ProblemSerializer},
    )
    def post(self, request: Request, public: str) -> HttpResponse:
        return flag_unit(request, public, flag_task)


class NextConfirmation(APIView):
    @extend_schema(
        summary="Get a text to compare with the original",
        request=None,
        responses={200: ToConfirmSerializer, 204: OpenApiResponse(description="No texts are waiting.")},
    )
    def post(self, request: Request, pk: int) -> HttpResponse:
        """The next pair of texts to compare; 204 if there is none."""
        found = next_confirmation(user=request.user, campaign_id=pk)
        return fast_json(found.wire()) if found.public else HttpResponse(status=204)


class ConfirmWritten(APIView):
    @extend_schema(
        summary="Compare a text with the original", request=ConfirmInputSerializer,
        responses={204: None, 400: ProblemSerializer, 409: CONFLICT},
    )  # fmt: skip
    def post(self, request: Request, public: str) -> HttpResponse:
        """Vote for the better of two texts, which confirms or rejects a written text."""
        body = read_body(request)
        confirm_reference(
            user=request.user, public=public, submission=read_submission(body, "text"), better=read_text(body, "better")
        )
        return HttpResponse(status=204)
