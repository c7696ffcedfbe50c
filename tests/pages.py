"""Pages as tests read them: HTML without the white space that browsers ignore."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

_BLOCK = (
    "article|aside|blockquote|body|button|caption|dd|details|dialog|div|dl|dt|fieldset|figcaption|figure|footer|form|"
    "h[1-6]|header|head|html|label|legend|li|main|nav|ol|option|p|section|select|summary|table|tbody|td|th|thead|"
    "title|tr|ul"
)
_AFTER_OPENING = re.compile(rf"(<(?:{_BLOCK})\b(?:[^<>\"']|\"[^\"]*\"|'[^']*')*>) ")
_BEFORE_CLOSING = re.compile(rf" (</(?:{_BLOCK})>)")


def squeeze(html: str) -> str:
    """Return HTML with runs of white space as one space, and none at the edges of blocks."""
    html = re.sub(r" (/?>)", r"\1", re.sub(r"[ \t\r\n]+", " ", html))
    return _BEFORE_CLOSING.sub(r"\1", _AFTER_OPENING.sub(r"\1", html))


def read_flashes(response: Any) -> list[tuple[str, str]]:
    """Return level (success, error, ...) and text of each message about what just happened."""
    pattern = r'<div class="flash" data-level="(\w*)"><p>(.*?)</p></div>'
    return [(level, unescape(text)) for level, text in re.findall(pattern, read_page(response))]


def is_refused_sign_in(response: Any) -> bool:
    """Whether the response is the form of signing in, with an error that belongs to no field."""
    refused = re.search(r'<ul class="errorlist nonfield"[^>]*><li>[^<]+</li>', read_page(response))
    return response.status_code == 200 and refused is not None


def read_page(response: Any) -> str:
    """Return the HTML of a response, squeezed."""
    return squeeze(response.content.decode())


def fetch_figures(client: Any, page: str) -> list[bytes]:
    """Return the files, SVG and PDF, of the plots that are drawn inside a page."""
    links = [unescape(link) for link in re.findall(r'href="([^"]*[?&]figure=[^"]*)"', page)]
    responses = [client.get(link) for link in links]
    assert [response.status_code for response in responses] == [200] * len(links)
    return [response.content for response in responses]


def list_failed_figures(page: str) -> list[str]:
    """Return the names of the figures that a page could not show because of an internal error."""
    return [name for names in re.findall(r'data-failed="([^"]*)"', page) for name in names.split("; ")]
