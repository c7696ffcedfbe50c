"""Read webhooks and deliveries, with the permission check in the same call."""

from django.contrib.auth.models import AnonymousUser
from django.db.models import Max, QuerySet
from django.utils.translation import gettext as _

from evalapp.accounts.models import Project, User
from evalapp.accounts.selectors import get_project
from evalapp.common.errors import NotThere

from .models import Delivery, Webhook


def list_webhooks(project: Project) -> QuerySet[Webhook]:
    """Return the webhooks of a project with the time of their last delivery, `last_at`."""
    return Webhook.objects.filter(project=project).annotate(last_at=Max("deliveries__finished_at"))


def get_webhook(*, user: User | AnonymousUser, pk: int) -> Webhook:
    """Return a webhook of a project that the user manages."""
    try:
        webhook = Webhook.objects.select_related("project").get(pk=pk)
        get_project(user=user, slug=webhook.project.slug, need="manage")
    except (Webhook.DoesNotExist, NotThere) as error:
        raise NotThere(_("Webhook not found.")) from error
    return webhook


def get_delivery(*, user: User | AnonymousUser, pk: int) -> Delivery:
    """Return a delivery to a webhook of a project that the user manages."""
    rows = Delivery.objects.select_related("webhook__project", "event")
    try:
        delivery = rows.get(pk=pk)
        get_project(user=user, slug=delivery.webhook.project.slug, need="manage")
    except (Delivery.DoesNotExist, NotThere) as error:
        raise NotThere(_("Delivery not found.")) from error
    return delivery


def list_deliveries(webhook: Webhook) -> QuerySet[Delivery]:
    """Return the deliveries to a webhook; order by `-pk`."""
    return Delivery.objects.filter(webhook=webhook).select_related("event")
