"""Writing campaigns in the API: for researchers and for annotators."""

from typing import Any

from django.http import HttpResponse
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from annotation.models import WritingCampaign, WritingFlag, WrittenReference
from annotation.selectors.campaigns import get_campaign
from annotation.selectors.writing import list_writing, list_written
from annotation.selectors.writing_rows import list_attempts, make_attempt_row, make_written_row
from annotation.selectors.writing_watch import watch
from annotation.services.bodies import read_flag, read_number, read_submission, read_text, read_version
from annotation.services.campaigns import create_writing
from annotation.services.judging import CampaignNotOpen
from annotation.services.writing_acts import finish_task, flag_task, save_draft, skip_task
from annotation.services.writing_attempts import drop_candidate, submit_attempt
from annotation.services.writing_back import take_back_last
from annotation.services.writing_handout import get_next_task
from annotation.services.writing_later import (
    confirm_reference,
    get_next_confirmation,
    restore_reference,
    withdraw_reference,
)
from annotation.services.writing_view import get_task_view
from evalapp.accounts.selectors import rater_names

from .campaign_views import (
    CampaignAPI,
    FlaggedSerializer,
    FlagInputSerializer,
    flag_unit,
    make_views,
    read_body,
)
from .responses import CONFLICT, PagedView, ProblemSerializer, make_json_response
from .writing_schemas import (
    AttemptInputSerializer,
    BackInputSerializer,
    ConfirmInputSerializer,
    DropInputSerializer,
    OutcomeSerializer,
    ReasonSerializer,
    TaskViewSerializer,
    ToConfirmSerializer,
    WritingDetailSerializer,
    WritingDraftInputSerializer,
    WritingDraftSerializer,
    WritingFlagSerializer,
    WritingPlanSerializer,
    WritingProgressSerializer,
    WritingSerializer,
    WrittenSerializer,
)

# ---- for researchers -----------------------------------------------------------------------------------


class WritingProgressView(APIView):
    @extend_schema(summary="Progress of a writing campaign", responses=WritingProgressSerializer)
    def get(self, request: Request, pk: int) -> HttpResponse:
        """Progress, with the predicted reliability by round and arm."""
        campaign = get_campaign(user=request.user, campaign_id=pk, model=WritingCampaign)
        return make_json_response(watch(user=request.user, campaign=campaign).wire())


class WritingReferences(PagedView):
    @extend_schema(
        summary="Written references of a campaign",
        responses=WrittenSerializer(many=True),
    )  # fmt: skip
    def get(self, request: Request, pk: int) -> Response:
        """The written references with their origin, newest first."""
        campaign = get_campaign(user=request.user, campaign_id=pk, model=WritingCampaign)
        pseudonyms, rows = rater_names(campaign.project_id), list_written(campaign=campaign)
        return self.paginate(request, rows, lambda page: [_written(row, pseudonyms) for row in page])


class WritingAttempts(PagedView):
    @extend_schema(
        summary="Attempts of a writing campaign",
        responses={200: serializers.ListSerializer(child=serializers.DictField())},
    )
    def get(self, request: Request, pk: int) -> Response:
        """All submitted texts and discarded candidates, newest first."""
        campaign = get_campaign(user=request.user, campaign_id=pk, model=WritingCampaign)
        pseudonyms, rows = rater_names(campaign.project_id), list_attempts(campaign=campaign)
        return self.paginate(request, rows, lambda page: [make_attempt_row(row, pseudonyms) for row in page])


def _written(row: WrittenReference, pseudonyms: dict[int, str]) -> dict[str, Any]:
    return {
        "id": row.pk,
        "item": row.unit.item.key,
        "set": row.set.name,
        "text": row.text,
        "meta": row.meta,
        "written": make_written_row(row, pseudonyms),
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


# ---- for annotators ------------------------------------------------------------------------------------


class NextWriting(APIView):
    @extend_schema(
        summary="Get the current item",
        request=None,
        responses={200: TaskViewSerializer, 204: OpenApiResponse(description="No items are left."), 409: CONFLICT},
    )
    def post(self, request: Request, pk: int) -> HttpResponse:
        """The open task or a new one; 204 if no items are left."""
        view = get_next_task(user=request.user, campaign_id=pk)
        if view.task is None and view.why in ("empty", "limit"):
            return HttpResponse(status=204)
        if view.task is None:
            raise CampaignNotOpen(view.why_text)
        return make_json_response(view.wire())


class WritingTaskDetail(APIView):
    @extend_schema(summary="An own task in its current state", responses=TaskViewSerializer)
    def get(self, request: Request, public: str) -> HttpResponse:
        """A writing task: context, references, candidates, and scores if the arm has them."""
        return make_json_response(get_task_view(user=request.user, public=public).wire())

    @extend_schema(
        summary="Save a draft",
        description="Compare and set by version; renews the lease.",
        request=WritingDraftInputSerializer,
        responses={200: WritingDraftSerializer, 409: CONFLICT},
    )
    def patch(self, request: Request, public: str) -> HttpResponse:
        body = read_body(request)
        saved = save_draft(user=request.user, public=public, draft=body.get("draft"), version=read_version(body))
        return make_json_response(saved.wire())


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
            submission=read_submission(body),
            text=read_text(body, "text"),
            relevant=read_flag(body, "relevant"),
            candidate=read_text(body, "candidate") or None,
            seconds=read_number(body, "seconds", (int, float)),
            unscored=bool(read_flag(body, "unscored")),
        )
        return make_json_response(outcome.wire())


class WritingDrop(APIView):
    @extend_schema(
        summary="Discard a candidate", request=DropInputSerializer, responses={200: OutcomeSerializer, 409: CONFLICT}
    )
    def post(self, request: Request, public: str) -> HttpResponse:
        """Discard the candidate; the response contains the next one."""
        body = read_body(request)
        outcome = drop_candidate(
            user=request.user, public=public, submission=read_submission(body),
            candidate=read_text(body, "candidate") or None, seconds=read_number(body, "seconds", (int, float)),
        )  # fmt: skip
        return make_json_response(outcome.wire())


class WritingBack(APIView):
    @extend_schema(
        summary="Take back the last text",
        description="The text leaves the set but stays on record; an item that it completed is reopened.",
        request=BackInputSerializer,
        responses={200: TaskViewSerializer, 409: CONFLICT},
    )
    def post(self, request: Request, public: str) -> HttpResponse:
        reference = read_text(read_body(request), "reference")
        return make_json_response(take_back_last(user=request.user, public=public, reference=reference).wire())


class WritingDone(APIView):
    @extend_schema(summary="Finish an item", request=None, responses={200: TaskViewSerializer, 409: CONFLICT})
    def post(self, request: Request, public: str) -> HttpResponse:
        """Finish the item; the next task is another one."""
        return make_json_response(finish_task(user=request.user, public=public).wire())


class WritingSkip(APIView):
    @extend_schema(summary="Skip an item", request=ReasonSerializer, responses={200: TaskViewSerializer, 409: CONFLICT})
    def post(self, request: Request, public: str) -> HttpResponse:
        """Skip the item with a reason."""
        reason = read_text(read_body(request), "reason", most=300)
        return make_json_response(skip_task(user=request.user, public=public, reason=reason).wire())


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
        pair = get_next_confirmation(user=request.user, campaign_id=pk)
        return make_json_response(pair.wire()) if pair.public else HttpResponse(status=204)


class ConfirmWritten(APIView):
    @extend_schema(
        summary="Compare a text with the original", request=ConfirmInputSerializer,
        responses={204: None, 400: ProblemSerializer, 409: CONFLICT},
    )  # fmt: skip
    def post(self, request: Request, public: str) -> HttpResponse:
        """Vote for the better of two texts, which confirms or rejects a written text."""
        body = read_body(request)
        confirm_reference(
            user=request.user, public=public, submission=read_submission(body), better=read_text(body, "better")
        )
        return HttpResponse(status=204)
