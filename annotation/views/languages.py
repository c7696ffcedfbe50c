"""The language of the pages for annotators."""

from collections.abc import Callable
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils import translation

from annotation.models import Campaign, WritingCampaign
from evalapp.common.display import read_display
from evalapp.common.pages import wants_fragment
from evalapp.languages import LANGUAGES

from .scripted import wants_json

#: Kind of campaign by the first part of the name of a page.
MODELS: dict[str, type[Campaign | WritingCampaign]] = {"judge": Campaign, "my": Campaign, "write": WritingCampaign}


def is_scripted(request: HttpRequest) -> bool:
    """Whether a script of an open page sends the request, with the language of the page."""
    return wants_fragment(request) or wants_json(request) or "X-Requested-With" in request.headers


def use_language(request: HttpRequest, campaign: Campaign | WritingCampaign | None) -> None:
    """Continue the request in the language of the campaign, unless the person has chosen one."""
    language = campaign.options.get("language") if campaign else ""
    if language in LANGUAGES and read_display(request).language == "browser":
        translation.activate(language)


class CampaignLanguage:
    """Shows whole pages for annotators in the language of their campaign. Later requests of these pages ask for the
    same language themselves, so that an answer needs no further query."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_view(self, request: HttpRequest, view: Any, arguments: Any, named: dict[str, Any]) -> None:
        match = request.resolver_match
        if match is None or match.namespace != "annotation" or "project" in named:
            return
        name = match.url_name or ""
        if (model := MODELS.get(name.partition("-")[0])) and "pk" in named and not is_scripted(request):
            use_language(request, model.objects.filter(pk=named["pk"]).only("options").first())
