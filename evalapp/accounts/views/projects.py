"""Pages to create, change and delete projects."""

from functools import partial

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from evalapp.accounts.forms import DeleteForm, NewProjectForm, ProjectForm, add_faults, submit
from evalapp.accounts.models import Project
from evalapp.accounts.services import check_may_create_projects, create_project, delete_project, update_project
from evalapp.common.errors import EvalappError
from evalapp.common.pages import page, project_page


@require_http_methods(["GET", "POST"])
def create(request: HttpRequest) -> HttpResponse:
    check_may_create_projects(request.user)
    form = NewProjectForm(request.POST or None)
    if project := submit(form, partial(create_project, owner=request.user)):
        messages.success(request, _("%(project)s created. Next: upload data.") % {"project": project})
        return redirect("project", project.slug)
    return page(request, "accounts/projects/create.html", {"form": form}, status=422 if form.errors else 200)


@project_page(GET="manage", POST="manage")
def settings(request: HttpRequest, project: Project) -> HttpResponse:
    # The form gets a second instance, so that the header does not show refused values.
    form = ProjectForm(request.POST or None, instance=Project.objects.get(pk=project.pk))
    if submit(form, partial(update_project, project=project, actor=request.user)):
        messages.success(request, _("Saved."))
        return redirect("accounts:project-settings", project.slug)
    context = {"project": project, "form": form}
    return page(request, "accounts/projects/settings.html", context, status=422 if form.errors else 200)


@project_page(GET="manage", POST="manage")
def delete(request: HttpRequest, project: Project) -> HttpResponse:
    form = DeleteForm(request.POST or None)
    name = project.name
    if form.is_bound and form.is_valid():
        try:
            run = delete_project(project=project, actor=request.user, **form.cleaned_data)
        except EvalappError as error:
            add_faults(form, error)
        else:
            text = _("%(name)s has been deleted.") if run is None else _("%(name)s is being deleted.")
            messages.success(request, text % {"name": name})
            return redirect("home")
    context = {"project": project, "form": form}
    return page(request, "accounts/projects/delete.html", context, status=422 if form.errors else 200)
