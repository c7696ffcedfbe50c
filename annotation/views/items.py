"""Data pages of a project: items with search and filters, an item with all its texts, kinds of systems."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _

from annotation.models import Item, System
from annotation.parsers.kinds import SYSTEM_KINDS
from annotation.selectors.data import list_system_names, list_systems
from annotation.selectors.items import (
    RATED,
    SCOPES,
    ItemFilter,
    count_judgements,
    find_neighbours,
    get_item,
    get_item_view,
)
from annotation.selectors.search import get_item_page
from annotation.services.systems import set_system_kind
from evalapp.accounts.models import Project
from evalapp.accounts.selectors import can
from evalapp.common.errors import NotThere
from evalapp.common.naming import in_sentence
from evalapp.common.pages import page, project_page
from evalapp.common.pagination import page_of_list

PAGE = 50
MAX_CHOICES = 500


@project_page(GET="read")
def item_list(request: HttpRequest, project: Project) -> HttpResponse:
    wanted = ItemFilter(
        **{name: request.GET.get(name, "").strip() for name in ("q", "group", "meta", "system", "rated")},
        scope=request.GET.get("scope") or "context",
    )
    items = get_item_page(project, wanted, cursor=request.GET.get("cursor", ""), size=PAGE)
    counts = count_judgements(items.rows)
    context = {
        "project": project,
        "filter": wanted,
        "page": items,
        "rows": [(item, counts[item.pk]) for item in items.rows],
        "any": bool(items.rows) or Item.objects.filter(project=project).exists(),
        "systems": list_system_names(project)[:MAX_CHOICES],
        "scopes": SCOPES.items(),
        "rated": RATED.items(),
        "may_write": can(user=request.user, project=project, need="write"),
    }
    return page(request, "annotation/item/list.html", context, fragment="table")


@project_page(GET="read")
def item_show(request: HttpRequest, project: Project, pk: int) -> HttpResponse:
    item = get_item(project, pk)
    before, after = find_neighbours(item)
    context = {"project": project, "view": get_item_view(item), "item": item, "before": before, "after": after}
    return page(request, "annotation/item/show.html", context)


@project_page(GET="read")
def system_list(request: HttpRequest, project: Project) -> HttpResponse:
    systems = page_of_list(list_systems(project), cursor=request.GET.get("cursor", ""), size=100)
    context = {
        "project": project,
        "page": systems,
        "kinds": SYSTEM_KINDS,
        "may_write": can(user=request.user, project=project, need="write"),
    }
    return page(request, "annotation/item/systems.html", context)


@project_page(POST="write")
def system_kind(request: HttpRequest, project: Project, pk: int) -> HttpResponse:
    system = System.objects.filter(project=project, pk=pk).select_related("project").first()
    if system is None:
        raise NotThere(_("There is no such system in this project."))
    set_system_kind(system=system, kind=request.POST.get("kind", ""), user=request.user)
    messages.success(
        request,
        _("“%(name)s” is now %(kind)s.") % {"name": system.name, "kind": in_sentence(system.get_kind_display())},
    )
    return redirect("annotation:system-list", project.slug)
