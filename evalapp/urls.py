"""All URLs. Apps are included by name, because evalapp does not import them."""

from django.urls import include, path

urlpatterns = [
    # First, because it is requested most.
    path("api/v1/", include("evalapp.api")),
    path("", include("evalapp.accounts.urls")),  # before common, because /projects/new/ is not a project
    path("", include("evalapp.common.urls")),
    path("", include("evalapp.events.urls")),
    path("", include("annotation.urls")),
    path("", include("retrieval.urls")),
    path("", include("scoring.urls")),
]

handler404 = "evalapp.common.views.not_found"
handler403 = "evalapp.common.views.not_allowed"
handler400 = "evalapp.common.views.bad_request"
handler500 = "evalapp.common.views.server_error"
