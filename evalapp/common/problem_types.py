"""All types of problem documents with meaning and remedy. The page `/docs/errors` and docs/reference/errors.md are
generated from this list."""

from __future__ import annotations

from typing import NamedTuple


class ProblemType(NamedTuple):
    code: str
    status: int
    title: str
    meaning: str
    way_out: str


_FORMAT = "The OpenAPI document at /api/v1/docs/ describes every call."
_RELOAD = "Load the task again; the response has its current state."
PROBLEM_TYPES = (
    # ---- the request
    ProblemType(
        "bad-input", 400, "The input has faults", "A value is missing, unknown, of another type or out of bounds.",
        "Each entry of `errors` names a field, or a file and a line, and what to change. Nothing was stored.",
    ),
    ProblemType(
        "bad-request", 400, "The request could not be read",
        "The request is damaged.",
        "Send it again. If every request fails, check the proxy in front of the installation.",
    ),
    ProblemType(
        "unknown-host", 400, "This host name is not in ALLOWED_HOSTS",
        "The installation was requested under a host name that it does not know.",
        "Operators add the name to ALLOWED_HOSTS and let the proxy pass the header Host.",
    ),
    ProblemType(
        "parse-error", 400, "Malformed request.", "The body does not match its Content-Type, for example is not JSON.",
        "Correct the body. Numbers such as NaN and Infinity are not JSON.",
    ),
    ProblemType(
        "method-not-allowed", 405, "Method Not Allowed.", "The address does not support this HTTP method.",
        f"The header Allow lists the methods. {_FORMAT}",
    ),
    ProblemType(
        "not-acceptable", 406, "Could not satisfy the request Accept header.",
        "The call does not support any content type in the header Accept.",
        "Send Accept: application/json, or omit the header.",
    ),
    ProblemType(
        "too-slow", 408, "The upload was too slow", "The body did not arrive within the time that `detail` names.",
        "Send it over a faster connection or in smaller parts. A proxy that buffers requests helps slow senders.",
    ),
    ProblemType(
        "length-missing", 411, "The length of the upload is missing", "The request has no Content-Length.",
        "Send the header Content-Length; chunked bodies are not accepted.",
    ),
    ProblemType(
        "too-large", 413, "The upload is too large", "The body is larger than the limit that `detail` names.",
        "Compress the files (gzip), send them in several requests, or raise MAX_UPLOAD_BYTES.",
    ),
    ProblemType(
        "unsupported", 415, "Unsupported content type", "The content type or encoding is not supported.",
        "`detail` names the supported types.",
    ),
    ProblemType(
        "unsupported-media-type", 415, "Unsupported Media Type.", "The call does not read this Content-Type.",
        f"Most calls accept application/json, uploads multipart/form-data. {_FORMAT}",
    ),
    # ---- who asks
    ProblemType(
        "not-authenticated", 401, "Authentication credentials were not provided.", "No token and no session was sent.",
        "Send the header Authorization: Bearer TOKEN; create one under Account, Tokens. In a browser sign in again.",
    ),
    ProblemType(
        "authentication-failed", 401, "Incorrect authentication credentials.",
        "The token is unknown, has expired or was revoked.", "Create a new token under Account, Tokens.",
    ),
    ProblemType(
        "not-allowed", 403, "Your role does not allow this",
        "Your role in the project, or the scopes of the token, do not cover this call; or a form was sent without a "
        "valid CSRF token.",
        "Ask an owner of the project for another role, or create a token with the scope. For a form load the page "
        "again; behind a proxy see CSRF_TRUSTED_ORIGINS.",
    ),
    ProblemType(
        "permission-denied", 403, "You do not have permission to perform this action.",
        "The session is valid, but the request is refused, most often because the CSRF token is missing.",
        "Programs send a token in the header Authorization instead of a cookie.",
    ),
    ProblemType(
        "not-found", 404, "Not found",
        "The address is wrong, the object was deleted, or you have no access to it.",
        "Check the address and your role in the project.",
    ),
    ProblemType(
        "too-many", 429, "Too many requests", "Too many attempts in a short time from this address or account.",
        "Wait for the number of seconds in the header Retry-After.",
    ),
    ProblemType(
        "throttled", 429, "Request was throttled.", "Too many requests in a short time.",
        "Wait for the number of seconds in the header Retry-After.",
    ),
    # ---- the state of things
    ProblemType(
        "conflict", 409, "Not possible in the current state",
        "The request is valid, but not possible in the current state.",
        "`detail` says what must change first.",
    ),
    ProblemType(
        "in-progress", 409, "The same request is still in progress",
        "A request with the same Idempotency-Key has not ended yet.",
        "Send it again after the number of seconds in the header Retry-After.",
    ),
    ProblemType(
        "key-reused", 409, "The idempotency key was used for another request",
        "The Idempotency-Key was used within the last 24 hours for another request.",
        "Use a new key, for example a UUID.",
    ),
    ProblemType(
        "campaign-not-open", 409, "The campaign is not open", "It is a draft, paused or closed.",
        "A researcher of the project opens or resumes it. Assignments given out before a pause can still be answered.",
    ),
    ProblemType(
        "submission-conflict", 409, "The same submission came with another answer",
        "The UUID in `submission` was used for another answer or another assignment.",
        "Use a new UUID for each new answer, and the same UUID only to repeat an answer.",
    ),
    ProblemType(
        "stale-answer", 409, "The answer was changed in the meantime",
        "The judgement that you revise has a newer version.", "Fetch the assignment again and revise that version.",
    ),
    ProblemType(
        "stale-draft", 409, "The draft was changed in another window", "`version` is not the stored version.",
        "The document has both versions. Send the draft again with the newer version.",
    ),
    ProblemType(
        "task-closed", 409, "Nothing more is added here", "The item has all its references, or the task has ended.",
        "Ask for the next task.",
    ),
    ProblemType("round", 409, "The round is another one by now", "The group went on to the next candidate.", _RELOAD),
    ProblemType(
        "candidate-closed", 409, "This candidate was dealt with",
        "It was accepted or dropped before, or its attempts are used up.", _RELOAD,
    ),
    ProblemType(
        "not-last", 409, "This text cannot be taken back",
        "Only the text added last can be taken back, and only until something depends on it.",
        "Ask a researcher of the project to withdraw it.",
    ),
    # ---- backups (command line)
    ProblemType(
        "damaged-backup", 400, "The backup is damaged or incomplete",
        "The file is truncated, changed or not a backup.",
        "Copy it again and compare its fingerprint with the one that `backup` printed.",
    ),
    ProblemType(
        "does-not-fit", 409, "The backup does not fit",
        "The tables of the backup are not those of its migrations or of this version.",
        "Restore it with the version that made it, or a newer one.",
    ),
    # ---- the installation
    ProblemType(
        "server-error", 500, "Internal error", "An error in evalapp. No data was lost.",
        "Try again. If the error remains, the log of the installation has the details.",
    ),
    ProblemType(
        "unavailable", 503, "A part of the installation is not running",
        "The database, Redis, a worker or the disk is not available; `detail` says which.",
        "Try again after the number of seconds in the header Retry-After. `manage.py doctor` says what is missing.",
    ),
    ProblemType(
        "busy", 503, "This part of the installation is busy", "It is running, but busy with another task.",
        "Try again after `wait` seconds.",
    ),
    ProblemType(
        "no-room", 507, "The server is out of disk space", "The disk of the installation is nearly full.",
        "Operators free some space; then send the request again.",
    ),
    ProblemType("error", 400, "The request failed", "An error without its own code.", "`detail` gives the reason."),
)  # fmt: skip
