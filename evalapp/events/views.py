"""Pages of the webhooks of a project."""

from functools import partial
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_post_parameters

from evalapp.accounts.forms import submit
from evalapp.accounts.models import Project
from evalapp.common.errors import EvalappError, NotThere
from evalapp.common.event_kinds import label_event
from evalapp.common.pages import page, project_page
from evalapp.common.pagination import keyset

from .forms import ChangedWebhookForm, WebhookForm
from .models import Delivery, Webhook
from .selectors import list_deliveries, list_webhooks
from .services.webhooks import create_webhook, delete_webhook, redeliver, renew_secret, send_test, update_webhook


def _find(project: Project, pk: int) -> Webhook:
    webhook = Webhook.objects.select_related("project").filter(project=project, pk=pk).first()
    if webhook is None:
        raise NotThere(_("Webhook not found."))
    return webhook


@project_page(GET="manage")
def webhook_list(request: HttpRequest, project: Project) -> HttpResponse:
    webhooks = list(list_webhooks(project).order_by("name"))
    for webhook in webhooks:
        webhook.labels = [label_event(name) for name in webhook.events]  # type: ignore[attr-defined]
    context = {"project": project, "webhooks": webhooks, "is_on": bool(settings.WEBHOOK_HOSTS)}
    return page(request, "events/webhook_list.html", context)


@sensitive_post_parameters("url")
@project_page(GET="manage", POST="manage")
def webhook_new(request: HttpRequest, project: Project) -> HttpResponse:
    """Create a webhook. Only the response to the POST contains the secret."""
    form = WebhookForm(request.POST or None)
    if created := submit(form, partial(create_webhook, project=project, actor=request.user)):
        return _show(request, project, created[0], secret=created[1])
    context = {"project": project, "form": form, "is_on": bool(settings.WEBHOOK_HOSTS)}
    return page(request, "events/webhook_new.html", context, status=422 if form.errors else 200)


@sensitive_post_parameters("url")
@project_page(GET="manage", POST="manage")
def webhook_show(request: HttpRequest, project: Project, pk: int) -> HttpResponse:
    webhook = _find(project, pk)
    form = ChangedWebhookForm(request.POST if request.method == "POST" else None, webhook=webhook)
    # Another object, so that the page shows the stored name if the new one is refused.
    if submit(form, lambda **values: update_webhook(webhook=_find(project, pk), actor=request.user, **values)):
        messages.success(request, _("Saved."))
        return redirect("events:webhook", project.slug, pk)
    return _show(request, project, webhook, form)


def _show(
    request: HttpRequest, project: Project, webhook: Webhook, form: ChangedWebhookForm | None = None, secret: str = ""
) -> HttpResponse:
    deliveries = keyset(list_deliveries(webhook), order=("-pk",), cursor=request.GET.get("cursor", ""), size=20)
    form = form or ChangedWebhookForm(webhook=webhook)
    context: dict[str, Any] = {
        "project": project,
        "webhook": webhook,
        "form": form,
        "secret": secret,
        "page": deliveries,
        "is_moving": any(_is_moving(row) for row in deliveries.rows),
    }
    status = 422 if form.errors else 200
    response = page(request, "events/webhook_show.html", context, fragment="deliveries", status=status)
    response.headers["Cache-Control"] = "no-store"
    return response


def _is_moving(row: Delivery) -> bool:
    """Return whether a delivery may end within seconds; the wait after a failure takes minutes or hours."""
    return row.state == Delivery.State.WAITING and (row.queued_at is not None or row.due_at <= timezone.now())


@project_page(POST="manage")
def webhook_renew(request: HttpRequest, project: Project, pk: int) -> HttpResponse:
    """Replace the secret. Only this response contains it."""
    webhook = _find(project, pk)
    return _show(request, project, webhook, secret=renew_secret(webhook=webhook, actor=request.user))


@project_page(POST="manage")
def webhook_test(request: HttpRequest, project: Project, pk: int) -> HttpResponse:
    webhook = _find(project, pk)
    try:
        send_test(webhook=webhook, actor=request.user)
    except EvalappError as error:
        messages.error(request, error.detail)
    return redirect("events:webhook", project.slug, pk)


@project_page(POST="manage")
def webhook_delete(request: HttpRequest, project: Project, pk: int) -> HttpResponse:
    webhook = _find(project, pk)
    delete_webhook(webhook=webhook, actor=request.user)
    messages.success(request, _("The webhook “%(name)s” has been deleted.") % {"name": webhook.name})
    return redirect("events:webhook-list", project.slug)


@project_page(POST="manage")
def delivery_repeat(request: HttpRequest, project: Project, pk: int, delivery: int) -> HttpResponse:
    row = list_deliveries(_find(project, pk)).select_related("webhook__project").filter(pk=delivery).first()
    if row is None:
        raise NotThere(_("Delivery not found."))
    try:
        redeliver(delivery=row, actor=request.user)
    except EvalappError as error:
        messages.error(request, error.detail)
    return redirect("events:webhook", project.slug, pk)
