"""Translations of messages in scripts."""

from functools import lru_cache
from typing import Any

from django.utils.translation import get_language
from django.utils.translation.trans_real import DjangoTranslation
from django.views.i18n import JavaScriptCatalog

#: Plural rules of larger numbers depend on their last two digits, so that the table for 0 to 199 serves all.
_COUNTS = range(200)


def load_script_messages() -> dict[str, Any]:
    """Return the translated messages of static/js/ in the current language, by message, and for each count from 0 to
    199 the index of its plural form; empty if the language has no translations.

    Pages carry them as JSON (base.html), because the content security policy forbids evaluating the plural rule of a
    catalogue as code and because a page that stays open offline needs no further request.
    """
    return _load(get_language() or "en")


@lru_cache
def _load(language: str) -> dict[str, Any]:
    view = JavaScriptCatalog()
    view.translation = DjangoTranslation(language, domain=view.domain)
    messages = view.get_catalog()
    if not messages:
        return {}
    return {"messages": messages, "plurals": [int(view.translation.plural(count)) for count in _COUNTS]}
