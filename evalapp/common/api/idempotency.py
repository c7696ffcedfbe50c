"""The header Idempotency-Key: `@idempotent()` on a `post` that creates rows or runs."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from collections.abc import Callable
from functools import wraps
from typing import Any

from django.core.files.uploadedfile import UploadedFile
from django.db import Error as DatabaseTrouble
from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from evalapp.accounts.roles import Need
from evalapp.accounts.selectors import get_project

from ..errors import BadInput, Conflict
from ..idempotency import begin_request, forget_request, keep_answer, reused
from ..models import IdempotencyKey
from ..outages import persist
from .parsers import HashedStream

HEADER = "Idempotency-Key"
#: Header of a response that repeats an earlier one.
REPLAYED = "Idempotency-Replayed"
CHUNK = 1 << 20
#: Seconds to retry storing a response while the database is unavailable.
PATIENCE = 5.0
_KEY = re.compile(r"[!-~]{1,255}")

PARAMETER = OpenApiParameter(
    HEADER,
    {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"},
    OpenApiParameter.HEADER,
    description="A key of your choice for this request, such as a UUID. If the request is repeated with the same key "
    f"within 24 hours, nothing is done and the first response is returned with {REPLAYED}: true; 409 while the first "
    "request is in progress, or if the key belongs to another request. Refused and failed requests are not stored.",
)


def idempotent(need: Need = "write") -> Callable[[Callable[..., Response]], Callable[..., Response]]:
    """Decorate a `post` below a project. `need` is its permission, which is also checked for a repeated response."""

    def decorate(post: Callable[..., Response]) -> Callable[..., Response]:
        @extend_schema(parameters=[PARAMETER])
        @wraps(post)
        def keyed(view: Any, request: Request, *, slug: str, **rest: Any) -> Response:
            key = request.headers.get(HEADER)
            if key is None:
                return post(view, request, slug=slug, **rest)
            if not _KEY.fullmatch(key):
                text = _("%(name)s must have 1 to 255 visible ASCII characters, for example a UUID.") % {"name": HEADER}
                raise BadInput.for_field(HEADER, text)
            get_project(user=request.user, slug=slug, need=need)
            return _process_once(request, key, lambda: post(view, request, slug=slug, **rest))

        return keyed

    return decorate


def _process_once(request: Request, key: str, work: Callable[[], Response]) -> Response:
    body = _Body(request)
    token = getattr(request.user, "api_token", None)
    address = f"{request.method} {request.get_full_path()}"
    try:
        row = begin_request(user=request.user, token=token.pk if token else 0, key=key, request=address)
    except Conflict:
        body.fingerprint()  # clients read the response only after sending all of the body
        raise
    if row.status is not None:
        return _repeat_response(row, body)
    try:
        response = work()
    except BaseException:
        _forget(row)
        raise
    if response.status_code >= 300:
        _forget(row)
        return response
    values = {
        "body": body.fingerprint(),
        "status": response.status_code,
        "answer": JSONRenderer().render(response.data).decode(),
        "location": response.headers.get("Location", ""),
    }
    persist(lambda: keep_answer(row, **values), PATIENCE)
    return response


def _repeat_response(row: IdempotencyKey, body: _Body) -> Response:
    if row.body != body.fingerprint():
        raise reused(row)
    headers = {REPLAYED: "true", **({"Location": row.location} if row.location else {})}
    return Response(json.loads(row.answer) if row.answer else None, status=row.status, headers=headers)


def _forget(row: IdempotencyKey) -> None:
    with contextlib.suppress(DatabaseTrouble):  # the error of the view is more important; the row expires
        forget_request(row)


class _Body:
    """Fingerprint of a request body by its contents, because multipart boundaries differ between requests. Files are
    read in chunks; a stream is hashed while the view reads it."""

    def __init__(self, request: Request) -> None:
        data = request.data
        self._stream: HashedStream | None = None
        if isinstance(data, dict) and isinstance(data.get("stream"), HashedStream):
            self._stream = data["stream"].start_hash()
            return
        files = [(name, file) for name, uploads in request.FILES.lists() for file in uploads]
        fields = sorted((name, values) for name, values in request.POST.lists()) if files or request.POST else data
        content = [fields, [[name, file.name, file.size, _sha256(file)] for name, file in files]]
        self._digest = hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()

    def fingerprint(self) -> str:
        """Return the fingerprint; read the rest of a stream first."""
        return self._digest if self._stream is None else self._stream.finish_hash()


def _sha256(file: UploadedFile) -> str:
    digest = hashlib.sha256()
    for chunk in file.chunks(CHUNK):
        digest.update(chunk)
    file.seek(0)
    return digest.hexdigest()
