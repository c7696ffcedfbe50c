"""Sends files as attachments, which browsers do not open or sniff. Used by pages and the API."""

from django.http import FileResponse

from annotation.services.exports import get_exported_file
from evalapp.common.models import Run


def send_file(run: Run, name: str) -> FileResponse:
    """The file as an attachment."""
    path = get_exported_file(run=run, name=name)
    response = FileResponse(path.open("rb"), as_attachment=True, filename=path.name)
    response.headers["Content-Type"] = "application/octet-stream"
    response.headers["X-Content-Type-Options"] = "nosniff"
    return response
