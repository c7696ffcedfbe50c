"""The OpenAPI document. It is public and takes most of a second to generate, so each process generates it once."""

import threading
from typing import Any

from django.http import HttpResponse
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.views import SpectacularAPIView
from rest_framework.request import Request

_documents: dict[str, bytes] = {}
_lock = threading.Lock()


class Schema(SpectacularAPIView):
    """Returns the document as YAML or JSON, the same for all users."""

    def _get_schema_response(self, request: Request) -> HttpResponse:
        renderer: Any = request.accepted_renderer
        with _lock:  # concurrent requests wait for the first
            if renderer.media_type not in _documents:
                document = SchemaGenerator().get_schema(request=None, public=True)
                _documents[renderer.media_type] = renderer.render(document, renderer_context={})
        response = HttpResponse(_documents[renderer.media_type], content_type=renderer.media_type)
        response.headers["Content-Disposition"] = f'inline; filename="evalapp.{renderer.format}"'
        return response
