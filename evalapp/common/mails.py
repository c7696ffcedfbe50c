"""Send mails through the workers: written with the action that they report, tried again while the mail server fails.

Password resets do not use it, because they must work without workers and take the same time for unknown addresses."""

import logging
import smtplib
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.mail import EmailMessage
from django.core.validators import validate_email
from django.db import transaction
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.translation import gettext as _

from . import audit
from .errors import BadInput
from .models import Mail
from .outbox import Outbox

log = logging.getLogger(__name__)

#: Rows are deleted with the address in them.
OUTBOX = Outbox(
    Mail,
    "evalapp.send_mail",
    waits=tuple(timedelta(minutes=minutes) for minutes in (1, 5, 30, 120, 720)),
    lease=timedelta(minutes=5),
    retention=timedelta(days=30),
)


def is_mail_set_up() -> bool:
    """Return whether EMAIL_URL names a mail server; by default, mails are written to the log."""
    return not settings.EMAIL_BACKEND.endswith(("console.EmailBackend", "dummy.EmailBackend"))


def site_address(path: str = "") -> str:
    """Return the absolute address of a path from `reverse`, for texts that are written outside of a request."""
    return f"{settings.SITE_URL}{path}"


def send_mail(*, to: str, template: str, context: dict[str, Any], project: Any = None, about: str = "") -> Mail:
    """Write a mail that a worker sends after the transaction. Returns its row.

    `template`: name of two templates of plain text, `TEMPLATE_subject.txt` and `TEMPLATE.txt`, both with `context`.
    They are rendered now, in the active language. `about`: what the mail reports, such as “invitation:12”, by which
    its state is found later. Raises `BadInput` for an address that is not valid. Callers check `is_mail_set_up`."""
    try:
        validate_email(to)
    except ValidationError as error:
        raise BadInput(_("“%(address)s” is not an e-mail address.") % {"address": to}) from error
    mail = Mail.objects.create(
        to=to,
        subject=" ".join(render_to_string(f"{template}_subject.txt", context).split())[:200],
        body=render_to_string(f"{template}.txt", context).strip() + "\n",
        project=project,
        about=about,
    )
    transaction.on_commit(lambda: OUTBOX.dispatch(mail), robust=True)
    return mail


def deliver_mail(mail_id: int) -> Mail | None:
    """Hand a mail that is due to the mail server. Returns its row; None if it is not due or another worker has it."""
    if not OUTBOX.claim(mail_id):
        return None
    mail = Mail.objects.select_related("project").get(pk=mail_id)
    try:
        EmailMessage(mail.subject, mail.body, settings.DEFAULT_FROM_EMAIL, [mail.to]).send()
    except Exception as error:  # noqa: BLE001 - every failure of a mail backend is reported in the row
        _note_failure(mail, error)
    else:
        # The body may contain a secret link.
        mail.state, mail.body, mail.error, mail.finished_at = Mail.State.SENT, "", "", timezone.now()
        mail.save(update_fields=["state", "body", "error", "finished_at"])
    return mail


def _note_failure(mail: Mail, error: Exception) -> None:
    why = _explain(error)
    # The message of the error may contain the address, which must not be logged.
    log.error("mail %s was not sent, attempt %d: %s", mail.pk, mail.attempts, why)
    with transaction.atomic():
        if OUTBOX.note_failure(mail, is_final=_is_refused(error), error=why):
            mail.body = ""
            mail.save(update_fields=["body"])
            audit.record(verb="mail.failed", project=mail.project, object=mail.about, error=why)


def _explain(error: Exception) -> str:
    code = _find_code(error) or getattr(error, "strerror", None)
    return f"{type(error).__name__} ({code})" if code else type(error).__name__


def _find_code(error: Exception) -> int | None:
    """Return the code of SMTP with which the server answered."""
    if isinstance(error, smtplib.SMTPRecipientsRefused) and error.recipients:
        return next(iter(error.recipients.values()))[0]
    return getattr(error, "smtp_code", None)


def _is_refused(error: Exception) -> bool:
    """Return whether the server refuses the recipient for good (5xx); wrong settings may be corrected."""
    return isinstance(error, smtplib.SMTPRecipientsRefused) and (_find_code(error) or 0) >= 500


def cancel_mails(*, about: str) -> int:
    """Do not send waiting mails about something that was withdrawn. Returns their number."""
    waiting = Mail.objects.filter(about=about, state=Mail.State.WAITING)
    return waiting.update(state=Mail.State.CANCELLED, body="", finished_at=timezone.now())


def resend_mails() -> int:
    """Send the messages of mails that are due or that the queue has lost. Returns their number."""
    return OUTBOX.resend()


def delete_old_mails() -> int:
    """Delete mails that were sent or given up long ago. Returns their number."""
    return OUTBOX.delete_old()
