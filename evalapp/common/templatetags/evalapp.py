"""Template filters and tags for numbers, times, optional links and the navigation of a project."""

import math
import re
from collections.abc import Callable
from datetime import datetime
from typing import Any

from django import template
from django.urls import NoReverseMatch, reverse
from django.utils import timezone
from django.utils.html import format_html, json_script
from django.utils.safestring import SafeString
from django.utils.translation import get_language, ngettext, npgettext
from django.utils.translation import gettext as _

from evalapp.common.display import Display, read_display
from evalapp.common.documentation import find_help
from evalapp.common.naming import in_sentence
from evalapp.common.navigation import Entry, Group, find_parent, list_groups
from evalapp.common.script_messages import load_script_messages
from evalapp.common.turns import name_speakers
from evalapp.number_text import MINUS, show_count, show_figure
from evalapp.side_figures import failure_sentence
from evalapp.stored_texts import translate_stored

register = template.Library()
register.filter("failed_figures", failure_sentence)
register.filter("speakers", name_speakers)
register.filter("in_sentence", in_sentence)

_HYPHEN = re.compile(r"(?<![\w.])-(?=\d)")

#: Number of units in the next larger one, and how to format a number of them: in a sentence with “ago” or “in”, and
#: alone.
_STEPS: tuple[tuple[int, Callable[[int], str], Callable[[int], str]], ...] = (
    (60, lambda count: _("%(count)d s"), lambda count: _("%(count)d s")),
    (60, lambda count: _("%(count)d min"), lambda count: _("%(count)d min")),
    (24, lambda count: _("%(count)d h"), lambda count: _("%(count)d h")),
    (
        7,
        lambda count: ngettext("%(count)d day", "%(count)d days", count),
        lambda count: npgettext("duration", "%(count)d day", "%(count)d days", count),
    ),
    (
        9,
        lambda count: ngettext("%(count)d week", "%(count)d weeks", count),
        lambda count: npgettext("duration", "%(count)d week", "%(count)d weeks", count),
    ),
    (
        1_000_000,
        lambda count: ngettext("%(count)d month", "%(count)d months", count),
        lambda count: npgettext("duration", "%(count)d month", "%(count)d months", count),
    ),
)


def _span(seconds: float, *, alone: bool) -> str:
    value, place = float(seconds), 0
    while round(value) >= _STEPS[place][0]:
        # A month has no whole number of weeks.
        value = seconds / 2_629_746 if _STEPS[place][0] == 9 else value / _STEPS[place][0]
        place += 1
    _size, within, standing = _STEPS[place]
    words = standing if alone else within
    return words(round(value)) % {"count": round(value)}


def _undefined(value: Any) -> bool:
    """Templates pass an empty text for a missing value."""
    return value is None or value == "" or (isinstance(value, float) and not math.isfinite(value))


@register.filter
def ago(moment: datetime | None) -> SafeString | str:
    """Format a relative time; hovering shows the exact time."""
    if moment is None:
        return "-"
    seconds = (timezone.now() - moment).total_seconds()
    if abs(seconds) < 5:
        words = _("just now")
    else:
        words = (_("%(span)s ago") if seconds > 0 else _("in %(span)s")) % {"span": _span(abs(seconds), alone=False)}
    return format_html(
        '<time datetime="{}" title="{}">{}</time>',
        moment.isoformat(),
        moment.strftime("%Y-%m-%d %H:%M:%S UTC"),
        words,
    )


@register.filter
def span(seconds: float | None) -> str:
    """Format a duration: 0.2 s, 14 s, 3 min, 2 h."""
    if seconds is None or _undefined(seconds):
        return "-"
    seconds = max(0.0, float(seconds))
    if 0 < seconds < 0.05:
        return _("under 0.1 s")
    if seconds >= 9.95:
        return _span(seconds, alone=True)
    return _("%(seconds)s s") % {"seconds": f"{seconds:.1f}".removesuffix(".0")}


@register.filter
def figure(value: Any, digits: int = 3) -> str:
    """Format a number with fixed digits; undefined is a dash."""
    return show_figure(None if value == "" else value, int(digits))


@register.filter
def true_minus(text: Any) -> str:
    """Return a text with the minus sign instead of hyphens before numbers; those in names and ranges stay."""
    return _HYPHEN.sub(MINUS, str(text))


@register.filter
def signed(value: Any, digits: int = 3) -> str:
    """Format a difference like `figure`, with its sign."""
    return show_figure(None if value == "" else value, int(digits), sign=True)


@register.filter
def percent(value: Any, digits: int = 0) -> str:
    return "-" if _undefined(value) else f"{100 * value:.{int(digits)}f} %".replace("-", MINUS)


@register.filter
def hundredths(value: Any) -> str:
    """Format a share in %, without the unit, for a column whose header has it."""
    return "-" if _undefined(value) else f"{100 * value:.0f}"


@register.filter
def thousands(value: Any) -> str:
    return "-" if _undefined(value) else show_count(int(value), get_language())


@register.filter
def option_value(value: Any) -> str:
    """Format the value of an option as in signatures; a dash if the evaluator chooses."""
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    return "-" if _undefined(value) else str(value)


@register.filter
def get(mapping: Any, key: Any) -> Any:
    return mapping.get(key) if mapping is not None else None


@register.filter
def entries(mapping: Any) -> list[tuple[Any, Any]]:
    """Return the items of a mapping. In a template, `mapping.items` is the value of a key “items”."""
    return list(mapping.items()) if mapping else []


_KEYS = {"ArrowLeft": "←", "ArrowRight": "→", "ArrowDown": "↓", "ArrowUp": "↑"}


@register.filter
def translated(word: str) -> str:
    """Return a word of the data that the code marks for translation, in the current language."""
    return _(word) if word else ""


@register.filter
def stored(text: Any) -> str:
    """Return a note, or another text that is stored in English, in the current language."""
    return translate_stored(str(text)) if text else ""


@register.filter
def key_name(key: str) -> str:
    """Return the label of a key as on a keyboard."""
    return _KEYS.get(key, key)


@register.filter
def per_second(rate: float | None) -> str:
    """Format a rate with at least two significant digits: 0.0048, 0.42, 7.3, 1,250."""
    if rate is None or not math.isfinite(rate):
        return "-"
    if 0 < rate < 0.1:
        return f"{rate:.2g}" if rate >= 1e-4 else "<0.0001"
    return f"{rate:.2f}" if rate < 1 else f"{rate:.1f}" if rate < 100 else thousands(rate)


@register.simple_tag
def nav_url(name: str, *args: Any, **kwargs: Any) -> str:
    """Return the URL of a page, or an empty text if no app has it. Only for navigation between apps."""
    try:
        return reverse(name, args=args, kwargs=kwargs)
    except NoReverseMatch:
        return ""


@register.simple_tag(takes_context=True)
def project_nav(context: template.Context) -> list[Group]:
    """Return the groups of the navigation of `project` with the entries that the user may open."""
    return list_groups(context.get("request"), context["project"])


@register.simple_tag(takes_context=True)
def page_parent(context: template.Context, groups: list[Group]) -> Entry | None:
    """Return the entry of the navigation that the page is below; None if it is an entry itself."""
    return find_parent(context.get("request"), groups or [])


@register.simple_tag
def script_catalogue() -> SafeString | str:
    """Return the translations for scripts as a JSON element; empty if the language has none."""
    messages = load_script_messages()
    return json_script(messages, "catalogue") if messages else ""


@register.simple_tag(takes_context=True)
def get_display(context: template.Context) -> Display:
    """Return colours, size of text and contrast of the person who opened the page."""
    return read_display(context.get("request"))


@register.simple_tag(takes_context=True)
def help_url(context: template.Context) -> str:
    """Return the address of the section of the documentation that explains this page."""
    match = getattr(context.get("request"), "resolver_match", None)
    return find_help(match.view_name if match else "")
