"""How files leave: as attachments that no browser opens or guesses about. Used by pages and API."""

from __future__ import annotations

from django.http import FileResponse

from annotation.services.exports import exported_file
from evalapp.common.models import Run


def send_file(run: Run, name: str) -> FileResponse:
    """As an attachment that no browser opens or guesses about."""
    response = FileResponse(exported_file(run=run, name=name).open("rb"), as_attachment=True, filename=name)
    response.headers["Content-Type"] = "application/octet-stream"
    response.headers["X-Content-Type-Options"] = "nosniff"
    return response
