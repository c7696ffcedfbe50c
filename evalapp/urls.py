"""All addresses. Rooms are included by name: the ground knows none of them by import."""

from django.urls import include, path

urlpatterns = [
    # First: programs and the judging page call it most.
    path("api/v1/", include("evalapp.api")),
    path("", include("evalapp.accounts.urls")),  # before common: /projects/new/ is no project
    path("", include("evalapp.common.urls")),
    path("", include("annotation.urls")),
    path("", include("retrieval.urls")),
    path("", include("scoring.urls")),
]

handler404 = "evalapp.common.views.not_found"
handler403 = "evalapp.common.views.not_allowed"
handler400 = "evalapp.common.views.bad_request"
handler500 = "evalapp.common.views.server_error"
