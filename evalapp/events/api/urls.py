"""URLs of webhooks below /api/v1/."""

from django.urls import path

from .webhooks import DeliveryList, DeliveryRepeat, WebhookList, WebhookSecret, WebhookShow, WebhookTest

urlpatterns = [
    path("projects/<slug:slug>/webhooks/", WebhookList.as_view(), name="api-webhook-list"),
    path("webhooks/<int:pk>/", WebhookShow.as_view(), name="api-webhook"),
    path("webhooks/<int:pk>/secret/", WebhookSecret.as_view(), name="api-webhook-secret"),
    path("webhooks/<int:pk>/test/", WebhookTest.as_view(), name="api-webhook-test"),
    path("webhooks/<int:pk>/deliveries/", DeliveryList.as_view(), name="api-delivery-list"),
    path("deliveries/<int:pk>/repeat/", DeliveryRepeat.as_view(), name="api-delivery-repeat"),
]
