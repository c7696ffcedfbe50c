"""API of the webhooks of a project."""

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from evalapp.accounts.selectors import get_project
from evalapp.common.api.fields import read_body
from evalapp.common.pagination import KeysetPagination, paginate

from ..selectors import get_delivery, get_webhook, list_deliveries, list_webhooks
from ..services.webhooks import create_webhook, delete_webhook, redeliver, renew_secret, send_test, update_webhook
from .serializers import (
    ChangedWebhookSerializer,
    CreatedWebhookSerializer,
    DeliverySerializer,
    NewWebhookSerializer,
    SecretSerializer,
    WebhookSerializer,
)

_NO_STORE = {"Cache-Control": "no-store"}


class WebhookList(APIView):
    pagination_class = KeysetPagination

    @extend_schema(operation_id="webhooks_list", responses=WebhookSerializer(many=True))
    def get(self, request: Request, slug: str) -> Response:
        """List the webhooks of a project, without their secrets."""
        project = get_project(user=request.user, slug=slug, need="manage")
        return paginate(self, list_webhooks(project), WebhookSerializer)

    @extend_schema(
        operation_id="webhooks_create", request=NewWebhookSerializer, responses={201: CreatedWebhookSerializer}
    )
    def post(self, request: Request, slug: str) -> Response:
        """Create a webhook. Only this response contains its secret."""
        project = get_project(user=request.user, slug=slug, need="manage")
        webhook, secret = create_webhook(
            project=project, actor=request.user, **read_body(NewWebhookSerializer, request)
        )
        webhook.secret = secret  # type: ignore[attr-defined]
        return Response(CreatedWebhookSerializer(webhook).data, status=201, headers=_NO_STORE)


class WebhookShow(APIView):
    @extend_schema(operation_id="webhooks_retrieve", responses=WebhookSerializer)
    def get(self, request: Request, pk: int) -> Response:
        """Show a webhook, without its secret."""
        return Response(WebhookSerializer(get_webhook(user=request.user, pk=pk)).data)

    @extend_schema(operation_id="webhooks_update", request=ChangedWebhookSerializer, responses=WebhookSerializer)
    def patch(self, request: Request, pk: int) -> Response:
        """Change name, address, events, or whether events are sent."""
        webhook = get_webhook(user=request.user, pk=pk)
        changes = read_body(ChangedWebhookSerializer, request)
        return Response(WebhookSerializer(update_webhook(webhook=webhook, actor=request.user, **changes)).data)

    @extend_schema(operation_id="webhooks_delete", responses={204: OpenApiResponse(description="Deleted.")})
    def delete(self, request: Request, pk: int) -> Response:
        """Delete a webhook with its log of deliveries."""
        delete_webhook(webhook=get_webhook(user=request.user, pk=pk), actor=request.user)
        return Response(status=204)


class WebhookSecret(APIView):
    @extend_schema(operation_id="webhooks_renew", request=None, responses=SecretSerializer)
    def post(self, request: Request, pk: int) -> Response:
        """Replace the secret. Only this response contains the new one; later requests are signed with it."""
        secret = renew_secret(webhook=get_webhook(user=request.user, pk=pk), actor=request.user)
        return Response({"secret": secret}, headers=_NO_STORE)


class WebhookTest(APIView):
    @extend_schema(operation_id="webhooks_test", request=None, responses={201: DeliverySerializer})
    def post(self, request: Request, pk: int) -> Response:
        """Send a test event to the webhook. A worker delivers it."""
        delivery = send_test(webhook=get_webhook(user=request.user, pk=pk), actor=request.user)
        return Response(DeliverySerializer(delivery).data, status=201)


class DeliveryList(APIView):
    pagination_class = KeysetPagination
    keyset_order = ("-pk",)

    @extend_schema(operation_id="deliveries_list", responses=DeliverySerializer(many=True))
    def get(self, request: Request, pk: int) -> Response:
        """List the deliveries to a webhook, newest first."""
        return paginate(self, list_deliveries(get_webhook(user=request.user, pk=pk)), DeliverySerializer)


class DeliveryRepeat(APIView):
    @extend_schema(operation_id="deliveries_repeat", request=None, responses={201: DeliverySerializer})
    def post(self, request: Request, pk: int) -> Response:
        """Send an event again, with the same id."""
        delivery = redeliver(delivery=get_delivery(user=request.user, pk=pk), actor=request.user)
        return Response(DeliverySerializer(delivery).data, status=201)
