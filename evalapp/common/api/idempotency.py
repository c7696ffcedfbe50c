"""Doors that honour the header Idempotency-Key: `@idempotent()` on a `post` that makes work or rows."""

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

from ..errors import BadInput, Conflict, Fault
from ..idempotency import begin_request, forget_request, keep_answer, reused
from ..models import IdempotencyKey
from ..outages import persist
from .parsers import Passing

HEADER = "Idempotency-Key"
#: Whether an answer is the one that was given before.
REPLAYED = "Idempotency-Replayed"
CHUNK = 1 << 20
#: So long an answer is held that cannot be kept because the database is away.
PATIENCE = 5.0
_KEY = re.compile(r"[!-~]{1,255}")

PARAMETER = OpenApiParameter(
    HEADER,
    {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"},
    OpenApiParameter.HEADER,
    description="A name of your making for this request, such as a UUID. Sent again with the same key within 24 hours, "
    f"it does nothing and gives the first answer, with {REPLAYED}: true; 409 while the first is being worked on, or "
    "when the key was sent with another request. What was refused or failed is not kept.",
)


def idempotent(need: Need = "write") -> Callable[[Callable[..., Response]], Callable[..., Response]]:
    """For a `post` below a project; `need` is what it asks of the role, also where the answer is only given again."""

    def decorate(post: Callable[..., Response]) -> Callable[..., Response]:
        @extend_schema(parameters=[PARAMETER])
        @wraps(post)
        def keyed(view: Any, request: Request, *, slug: str, **rest: Any) -> Response:
            key = request.headers.get(HEADER)
            if key is None:
                return post(view, request, slug=slug, **rest)
            if not _KEY.fullmatch(key):
                text = _("%(name)s must have 1 to 255 visible ASCII characters, for example a UUID.") % {"name": HEADER}
                raise BadInput(text, faults=[Fault(text, field=HEADER)])
            get_project(user=request.user, slug=slug, need=need)
            return _once(request, key, lambda: post(view, request, slug=slug, **rest))

        return keyed

    return decorate


def _once(request: Request, key: str, work: Callable[[], Response]) -> Response:
    body = _Body(request)
    token = getattr(request.user, "api_token", None)
    address = f"{request.method} {request.get_full_path()}"
    try:
        row = begin_request(user=request.user, token=token.pk if token else 0, key=key, request=address)
    except Conflict:
        body.fingerprint()  # who still sends reads no answer
        raise
    if row.status is not None:
        return _again(row, body)
    try:
        response = work()
    except BaseException:
        _forget(row)
        raise
    if response.status_code >= 300:
        _forget(row)
        return response
    answer = JSONRenderer().render(response.data).decode()
    told = {"body": body.fingerprint(), "status": response.status_code, "answer": answer}
    persist(lambda: keep_answer(row, location=response.headers.get("Location", ""), **told), PATIENCE)
    return response


def _again(row: IdempotencyKey, body: _Body) -> Response:
    if row.body != body.fingerprint():
        raise reused(row)
    headers = {REPLAYED: "true", **({"Location": row.location} if row.location else {})}
    return Response(json.loads(row.answer) if row.answer else None, status=row.status, headers=headers)


def _forget(row: IdempotencyKey) -> None:
    """What the view raised counts for more than a database that went away with it: the row's time runs out."""
    with contextlib.suppress(DatabaseTrouble):
        forget_request(row)


class _Body:
    """What a request carries, by its content: two requests with the same files differ in the boundary of their parts.
    Nothing is loaded whole; a body that is handed on unread is hashed as it passes."""

    def __init__(self, request: Request) -> None:
        data = request.data
        self._stream: Passing | None = None
        if isinstance(data, dict) and isinstance(data.get("stream"), Passing):
            self._stream = data["stream"].watched()
            return
        files = [(name, file) for name, found in request.FILES.lists() for file in found]
        fields = sorted((name, values) for name, values in request.POST.lists()) if files or request.POST else data
        said = [fields, [[name, file.name, file.size, _sha256(file)] for name, file in files]]
        self._fixed = hashlib.sha256(json.dumps(said, sort_keys=True, default=str).encode()).hexdigest()

    def fingerprint(self) -> str:
        """Reads what nobody has read yet."""
        return self._fixed if self._stream is None else self._stream.rest()


def _sha256(file: UploadedFile) -> str:
    digest = hashlib.sha256()
    for chunk in file.chunks(CHUNK):
        digest.update(chunk)
    file.seek(0)
    return digest.hexdigest()
