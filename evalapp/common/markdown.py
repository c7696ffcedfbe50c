"""Render users' Markdown as safe HTML: no raw HTML, links without a referrer."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import TYPE_CHECKING

import nh3
from django.utils.safestring import SafeString, mark_safe

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

_TAGS = {
    "a", "blockquote", "br", "code", "del", "em", "h1", "h2", "h3", "h4", "hr", "li", "ol", "p", "pre", "strong",
    "table", "tbody", "td", "th", "thead", "tr", "ul",
}  # fmt: skip


@cache
def _writer() -> MarkdownIt:
    from markdown_it import MarkdownIt  # takes 25 ms; few processes need it

    return MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])


@lru_cache(maxsize=256)
def render_markdown(text: str) -> SafeString:
    html = nh3.clean(
        _writer().render(text), tags=_TAGS, attributes={"a": {"href"}}, url_schemes={"http", "https", "mailto"}
    )
    return mark_safe(html)
