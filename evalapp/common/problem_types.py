"""All types of problem documents with meaning and remedy. The page `/docs/errors` and docs/reference/errors.md are
generated from this list."""

from typing import NamedTuple

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _


class ProblemType(NamedTuple):
    code: str
    status: int
    title: str | Promise
    meaning: str | Promise
    way_out: str | Promise


_RELOAD = _("Load the task again; the response has its current state.")
PROBLEM_TYPES = (
    # ---- the request
    ProblemType(
        "bad-input", 400, _("The input has faults"),
        _("A value is missing, unknown, of another type or out of bounds."),
        _("Each entry of `errors` names a field, or a file and a line, and what to change. Nothing was stored."),
    ),
    ProblemType(
        "bad-request", 400, _("The request could not be read"),
        _("The request is damaged."),
        _("Send it again. If every request fails, check the proxy in front of the installation."),
    ),
    ProblemType(
        "unknown-host", 400, _("This host name is not in ALLOWED_HOSTS"),
        _("The installation was requested under a host name that it does not know."),
        _("Operators add the name to ALLOWED_HOSTS and let the proxy pass the header Host."),
    ),
    ProblemType(
        "parse-error", 400, _("Malformed request."),
        _("The body does not match its Content-Type, for example is not JSON."),
        _("Correct the body. Numbers such as NaN and Infinity are not JSON."),
    ),
    ProblemType(
        "method-not-allowed", 405, _("Method Not Allowed."), _("The address does not support this HTTP method."),
        _("The header Allow lists the methods. The OpenAPI document at /api/v1/docs/ describes every call."),
    ),
    ProblemType(
        "not-acceptable", 406, _("Could not satisfy the request Accept header."),
        _("The call does not support any content type in the header Accept."),
        _("Send Accept: application/json, or omit the header."),
    ),
    ProblemType(
        "too-slow", 408, _("The upload was too slow"),
        _("The body did not arrive within the time that `detail` names."),
        _("Send it over a faster connection or in smaller parts. A proxy that buffers requests helps slow senders."),
    ),
    ProblemType(
        "length-missing", 411, _("The length of the upload is missing"), _("The request has no Content-Length."),
        _("Send the header Content-Length; chunked bodies are not accepted."),
    ),
    ProblemType(
        "too-large", 413, _("The upload is too large"), _("The body is larger than the limit that `detail` names."),
        _("Compress the files (gzip), send them in several requests, or raise MAX_UPLOAD_BYTES."),
    ),
    ProblemType(
        "unsupported", 415, _("Unsupported content type"), _("The content type or encoding is not supported."),
        _("`detail` names the supported types."),
    ),
    ProblemType(
        "unsupported-media-type", 415, _("Unsupported Media Type."), _("The call does not read this Content-Type."),
        _("Most calls accept application/json, uploads multipart/form-data. The OpenAPI document at /api/v1/docs/ "
        "describes every call."),
    ),
    # ---- who asks
    ProblemType(
        "not-authenticated", 401, _("Authentication credentials were not provided."),
        _("No token and no session was sent."),
        _("Send the header Authorization: Bearer TOKEN; create one under Account, Tokens. In a browser sign in again."),
    ),
    ProblemType(
        "authentication-failed", 401, _("Incorrect authentication credentials."),
        _("The token is unknown, has expired or was revoked."), _("Create a new token under Account, Tokens."),
    ),
    ProblemType(
        "not-allowed", 403, _("Your role does not allow this"),
        _("Your role in the project, or the scopes of the token, do not cover this call; or a form was sent without a "
        "valid CSRF token."),
        _("Ask an owner of the project for another role, or create a token with the scope. For a form load the page "
        "again; behind a proxy see CSRF_TRUSTED_ORIGINS."),
    ),
    ProblemType(
        "permission-denied", 403, _("You do not have permission to perform this action."),
        _("The session is valid, but the request is refused, most often because the CSRF token is missing."),
        _("Programs send a token in the header Authorization instead of a cookie."),
    ),
    ProblemType(
        "not-found", 404, _("Not found"),
        _("The address is wrong, the object was deleted, or you have no access to it."),
        _("Check the address and your role in the project."),
    ),
    ProblemType(
        "too-many", 429, _("Too many requests"), _("Too many attempts in a short time from this address or account."),
        _("Wait for the number of seconds in the header Retry-After."),
    ),
    ProblemType(
        "throttled", 429, _("Request was throttled."), _("Too many requests in a short time."),
        _("Wait for the number of seconds in the header Retry-After."),
    ),
    # ---- the state of things
    ProblemType(
        "conflict", 409, _("Not possible in the current state"),
        _("The request is valid, but not possible in the current state."),
        _("`detail` says what must change first."),
    ),
    ProblemType(
        "in-progress", 409, _("The same request is still in progress"),
        _("A request with the same Idempotency-Key has not ended yet."),
        _("Send it again after the number of seconds in the header Retry-After."),
    ),
    ProblemType(
        "key-reused", 409, _("The idempotency key was used for another request"),
        _("The Idempotency-Key was used within the last 24 hours for another request."),
        _("Use a new key, for example a UUID."),
    ),
    ProblemType(
        "campaign-not-open", 409, _("The campaign is not open"), _("It is a draft, paused or closed."),
        _(
            "A researcher of the project opens or resumes it. Assignments given out before a pause can still be "
            "answered."
        ),
    ),
    ProblemType(
        "submission-conflict", 409, _("The same submission came with another answer"),
        _("The UUID in `submission` was used for another answer or another assignment."),
        _("Use a new UUID for each new answer, and the same UUID only to repeat an answer."),
    ),
    ProblemType(
        "stale-answer", 409, _("The answer was changed in the meantime"),
        _("The judgement that you revise has a newer version."),
        _("Fetch the assignment again and revise that version."),
    ),
    ProblemType(
        "stale-draft", 409, _("The draft was changed in another window"), _("`version` is not the stored version."),
        _("The document has both versions. Send the draft again with the newer version."),
    ),
    ProblemType(
        "task-closed", 409, _("Nothing more is added here"),
        _("The item has all its references, or the task has ended."),
        _("Ask for the next task."),
    ),
    ProblemType(
        "round", 409, _("The round is another one by now"), _("The group went on to the next candidate."), _RELOAD
    ),
    ProblemType(
        "candidate-closed", 409, _("This candidate was dealt with"),
        _("It was accepted or dropped before, or its attempts are used up."), _RELOAD,
    ),
    ProblemType(
        "not-last", 409, _("This text cannot be taken back"),
        _("Only the text added last can be taken back, and only until something depends on it."),
        _("Ask a researcher of the project to withdraw it."),
    ),
    # ---- backups (command line)
    ProblemType(
        "damaged-backup", 400, _("The backup is damaged or incomplete"),
        _("The file is truncated, changed or not a backup."),
        _("Copy it again and compare its fingerprint with the one that `backup` printed."),
    ),
    ProblemType(
        "does-not-fit", 409, _("The backup does not fit"),
        _("The tables of the backup are not those of its migrations or of this version."),
        _("Restore it with the version that made it, or a newer one."),
    ),
    # ---- the installation
    ProblemType(
        "server-error", 500, _("Internal error"), _("An error in evalapp. No data was lost."),
        _("Try again. If the error remains, the log of the installation has the details."),
    ),
    ProblemType(
        "unavailable", 503, _("A part of the installation is not running"),
        _("The database, Redis, a worker or the disk is not available; `detail` says which."),
        _("Try again after the number of seconds in the header Retry-After. `evalapp doctor` says what is missing."),
    ),
    ProblemType(
        "busy", 503, _("This part of the installation is busy"), _("It is running, but busy with another task."),
        _("Try again after `wait` seconds."),
    ),
    ProblemType(
        "no-room", 507, _("The server is out of disk space"), _("The disk of the installation is nearly full."),
        _("Operators free some space; then send the request again."),
    ),
    ProblemType(
        "error", 400, _("The request failed"), _("An error without its own code."), _("`detail` gives the reason.")
    ),
)  # fmt: skip
