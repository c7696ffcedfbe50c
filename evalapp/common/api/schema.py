"""The OpenAPI document, made once in each process: anybody may ask for it, and making it takes most of a second."""

from __future__ import annotations

import threading
from typing import Any

from django.http import HttpResponse
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.views import SpectacularAPIView
from rest_framework.request import Request

_made: dict[str, bytes] = {}
_making = threading.Lock()


class Schema(SpectacularAPIView):
    """The same for everybody, hence one document for each format (YAML, JSON)."""

    def _get_schema_response(self, request: Request) -> HttpResponse:
        renderer: Any = request.accepted_renderer
        with _making:  # those who ask at the same time wait for one, instead of each making it
            if renderer.media_type not in _made:
                document = SchemaGenerator().get_schema(request=None, public=True)
                _made[renderer.media_type] = renderer.render(document, renderer_context={})
        response = HttpResponse(_made[renderer.media_type], content_type=renderer.media_type)
        response.headers["Content-Disposition"] = f'inline; filename="evalapp.{renderer.format}"'
        return response
