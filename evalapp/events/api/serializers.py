"""Serializers of webhooks and deliveries."""

from rest_framework import serializers

from evalapp.common.api.fields import ChoiceField, StrictSerializer, TextField, TruthField
from evalapp.common.event_kinds import EVENT_KINDS

from ..models import Delivery, Webhook

_EVENTS = list(EVENT_KINDS)


class WebhookSerializer(serializers.ModelSerializer):
    events = serializers.ListField(child=serializers.CharField(), read_only=True)

    class Meta:
        model = Webhook
        fields = ["id", "name", "url", "events", "active", "created_at"]
        read_only_fields = fields


class SecretSerializer(serializers.Serializer):
    secret = serializers.CharField(read_only=True, help_text="Shown once; see the documentation on signatures.")


class CreatedWebhookSerializer(WebhookSerializer):
    secret = serializers.CharField(read_only=True, help_text="Shown once; see the documentation on signatures.")

    class Meta(WebhookSerializer.Meta):
        fields = [*WebhookSerializer.Meta.fields, "secret"]
        read_only_fields = fields


class NewWebhookSerializer(StrictSerializer):
    name = TextField(max_length=100)
    url = TextField(max_length=500, help_text="Its host must be in the setting WEBHOOK_HOSTS.")
    events = serializers.ListField(child=ChoiceField(choices=_EVENTS), min_length=1)


class ChangedWebhookSerializer(StrictSerializer):
    name = TextField(max_length=100, required=False)
    url = TextField(max_length=500, required=False, help_text="Its host must be in the setting WEBHOOK_HOSTS.")
    events = serializers.ListField(child=ChoiceField(choices=_EVENTS), min_length=1, required=False)
    active = TruthField(required=False)


class DeliverySerializer(serializers.ModelSerializer):
    event = serializers.UUIDField(source="event.public", read_only=True, help_text="The id that the receiver gets.")
    type = serializers.CharField(source="event.kind", read_only=True)
    state = ChoiceField(choices=Delivery.State.choices, read_only=True)
    problem = serializers.CharField(read_only=True, help_text="Of the last attempt; empty if it was accepted.")

    class Meta:
        model = Delivery
        fields = [
            "id", "event", "type", "state", "attempts", "status", "problem", "created_at", "due_at", "finished_at",
        ]  # fmt: skip
        read_only_fields = fields
