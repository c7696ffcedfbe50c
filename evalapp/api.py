"""URLs of the REST API. Each app has its own in `<app>.api.urls`."""

from django.urls import include, path
from drf_spectacular.views import SpectacularSwaggerSplitView

from evalapp.common.api.schema import Schema

urlpatterns = [
    path("schema/", Schema.as_view(), name="api-schema"),
    path("docs/", SpectacularSwaggerSplitView.as_view(url_name="api-schema"), name="api-docs"),
    path("", include("evalapp.accounts.api.urls")),
    path("", include("evalapp.common.api.urls")),
    path("", include("evalapp.events.api.urls")),
    path("", include("annotation.api.urls")),
    path("", include("retrieval.api.urls")),
    path("", include("scoring.api.urls")),
]
