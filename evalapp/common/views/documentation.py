"""Public pages of documentation."""

from django.contrib.auth.decorators import login_not_required
from django.http import FileResponse, Http404, HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from evalapp.common import documentation
from evalapp.common.markdown import render_markdown
from evalapp.common.pages import page
from evalapp.common.problem_types import PROBLEM_TYPES


@login_not_required
@require_safe
def errors(request: HttpRequest) -> HttpResponse:
    """List all types of problem documents with meaning and remedy; their `type` links here."""
    problems = [
        {"type": type_, "meaning": render_markdown(str(type_.meaning)), "way_out": render_markdown(str(type_.way_out))}
        for type_ in PROBLEM_TYPES
    ]
    return page(request, "docs/errors.html", {"problems": problems})


@login_not_required
@require_safe
def show(request: HttpRequest, name: str = "") -> HttpResponse:
    """A document with the navigation of all documents."""
    document = documentation.load_documents().get(name)
    if document is None:
        raise Http404(_("There is no document “%(name)s”.") % {"name": name})
    context = {
        "document": document,
        "body": documentation.render_document(name),
        "groups": documentation.list_groups(),
        "parts": [section for section in document.sections if section.level == 2],
    }
    return page(request, "docs/document.html", context)


@login_not_required
@require_safe
def search(request: HttpRequest) -> HttpResponse:
    """Sections of the documentation that contain the words `?q=`."""
    query = request.GET.get("q", "")[:200]
    context = {
        "query": query,
        "hits": documentation.search_documents(query),
        "groups": documentation.list_groups(),
    }
    return page(request, "docs/search.html", context)


@login_not_required
@require_safe
def image(request: HttpRequest, name: str) -> FileResponse:
    """An image of a document."""
    path = documentation.find_image(name)
    if path is None:
        raise Http404(_("There is no image “%(name)s”.") % {"name": name})
    return FileResponse(path.open("rb"), content_type=documentation.IMAGES[path.suffix])
