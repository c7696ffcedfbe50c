"""Results show a picture above their table; the page reserves its size and says what it shows."""

from __future__ import annotations

from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
from django.urls import reverse

pytestmark = pytest.mark.django_db

#: Results with a picture: the name of the page, and further arguments.
RESULTS = [
    ("systems", [], ""), ("evaluation", [], ""), ("evaluation", [], "?plot=length"),
    ("evaluation-board", ["matrix"], ""),
    ("evaluation-board", ["aspects"], ""), ("enhanced", [], ""), ("agreement", [], ""), ("evaluator", ["length"], ""),
]  # fmt: skip


class Pictures(HTMLParser):
    """The images of a page with its figures, and the place of the first table."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.images: list[dict[str, str | None]] = []
        self.order: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        address = found.get("src") or found.get("srcset") or ""
        if tag in ("img", "source") and ".svg?" in address:
            self.images.append({**found, "tag": tag, "address": address})
        if tag in ("img", "table"):
            self.order.append(tag)


@pytest.mark.parametrize(("name", "arguments", "query"), RESULTS)
def test_picture_is_above_the_table_in_the_size_that_the_page_reserves(scored, client, name, arguments, query):
    client.force_login(scored.researcher)
    answer = client.get(reverse(f"scoring:{name}", args=["alpha", *arguments]) + query)
    page = Pictures(answer.content.decode())
    assert {image["tag"] for image in page.images} == {"img", "source"}
    if name != "evaluator":
        assert page.order[0] == "img"
    for image in page.images:
        root = ElementTree.fromstring(client.get(image["address"]).content)
        assert (root.get("width"), root.get("height")) == (image["width"], image["height"])
    # The finding is the alternative text, and the beginning of the description in the file.
    for image in page.images:
        if image["tag"] == "img":
            assert image["alt"]
            described = ElementTree.fromstring(client.get(image["address"]).content)[1].text
            assert "scatter" in image["address"] or described.startswith(image["alt"])


def test_narrow_screens_and_dark_themes_get_pictures_of_their_own(scored, client):
    client.force_login(scored.researcher)
    images = Pictures(client.get(reverse("scoring:systems", args=["alpha"])).content.decode()).images
    looks = {("narrow=1" in image["address"], "theme=dark" in image["address"]) for image in images}
    assert looks == {(narrow, dark) for narrow in (True, False) for dark in (True, False)}
    type(scored.researcher).objects.update(theme="dark")
    images = Pictures(client.get(reverse("scoring:systems", args=["alpha"])).content.decode()).images
    assert len(images) == 2
    assert all("theme=dark" in image["address"] for image in images)
