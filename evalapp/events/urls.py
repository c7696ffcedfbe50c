"""URLs of webhooks."""

from django.urls import path

from . import views

app_name = "events"
urlpatterns = [
    path("projects/<slug:slug>/webhooks/", views.webhook_list, name="webhook-list"),
    path("projects/<slug:slug>/webhooks/new/", views.webhook_new, name="webhook-new"),
    path("projects/<slug:slug>/webhooks/<int:pk>/", views.webhook_show, name="webhook"),
    path("projects/<slug:slug>/webhooks/<int:pk>/secret/", views.webhook_renew, name="webhook-renew"),
    path("projects/<slug:slug>/webhooks/<int:pk>/test/", views.webhook_test, name="webhook-test"),
    path("projects/<slug:slug>/webhooks/<int:pk>/delete/", views.webhook_delete, name="webhook-delete"),
    path(
        "projects/<slug:slug>/webhooks/<int:pk>/deliveries/<int:delivery>/repeat/",
        views.delivery_repeat,
        name="delivery-repeat",
    ),
]
