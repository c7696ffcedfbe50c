"""A user with a browser without JavaScript: opens pages, follows links by their text, and fills in displayed forms. It
sends exactly what the browser would send, including the CSRF token."""

from __future__ import annotations

from typing import Any
from urllib.parse import urljoin

from django.test import Client
from lxml import html

HOST = "http://testserver"
Values = dict[str, Any] | None


class Visitor:
    def __init__(self) -> None:
        self.client = Client(enforce_csrf_checks=True)
        self.path = "/"
        self.status = 0
        self.tree: Any = None
        self.content = b""

    # ---- reading ------------------------------------------------------------------------------------------

    @property
    def text(self) -> str:
        """Return the text of the page with white space normalised."""
        return " ".join(self.tree.find("body").text_content().split())

    def sees(self, *words: str) -> Visitor:
        for word in words:
            assert word in self.text, f"“{word}” is not on {self.path}: {self.text[:1500]}"
        return self

    def has(self, *paths: str) -> Visitor:
        """Check that an element of the page matches each XPath."""
        for path in paths:
            assert self.tree.xpath(path), f"nothing matches {path} on {self.path}: {self.text[:1500]}"
        return self

    def table(self, number: int = 0) -> list[list[str]]:
        rows = self.tree.xpath("//table")[number].xpath("./tbody/tr")
        return [[" ".join(" ".join(cell.itertext()).split()) for cell in row] for row in rows]

    # ---- navigation ---------------------------------------------------------------------------------------

    def go(self, path: str, status: int = 200) -> Visitor:
        return self._take(self.client.get(path, follow=True), path, status)

    def follow(self, words: str, status: int = 200) -> Visitor:
        """Follow the link with this text; an exact match comes first."""
        links = [(" ".join(a.text_content().split()), a.get("href")) for a in self.tree.xpath("//a[@href]")]
        hrefs = [href for text, href in links if text == words] or [href for text, href in links if words in text]
        assert hrefs, f"no link “{words}” on {self.path}; there are {[text for text, _ in links]}"
        return self.go(urljoin(self.path, hrefs[0]), status)

    def visit(self, group: str, place: str) -> Visitor:
        """Follow the navigation of a project to a place of one of its groups."""
        return self.follow(group).follow(place)

    def download(self, words: str) -> bytes:
        before = self.path, self.tree
        self.follow(words)
        content = self.content
        self.path, self.tree = before
        return content

    def send(
        self,
        button: str,
        values: dict[str, Any] | None = None,
        *,
        files: dict[str, Any] | None = None,
        status: int = 200,
    ) -> Visitor:
        """Fill in the form with this button and press it; None clears a field."""
        form, pressed = self._find_form(button)
        values = values or {}
        known = {field.get("name") for field in form.xpath(".//input|.//select|.//textarea")}
        assert set(values) | set(files or {}) <= known, f"{set(values) - known} not in the form: {known}"
        data: dict[str, list[str]] = {}
        for name, value in form.form_values():
            data.setdefault(name, []).append(value)
        for name, value in values.items():
            data[name] = (
                [str(choice) for choice in value] if isinstance(value, list) else ["" if value is None else str(value)]
            )
        if pressed.get("name"):
            data[pressed.get("name")] = [pressed.get("value") or ""]
        path = urljoin(self.path, pressed.get("formaction") or form.get("action") or self.path)
        if (form.get("method") or "get").lower() == "get":
            return self._take(self.client.get(path, data, follow=True), path, status)
        return self._take(self.client.post(path, {**data, **(files or {})}, follow=True), path, status)

    # ---- inside -------------------------------------------------------------------------------------------

    def _find_form(self, button: str) -> tuple[Any, Any]:
        matches = []
        for form in self.tree.xpath("//form"):
            # A button outside its form names it.
            inside = form.xpath(".//button[not(@form)]")
            for pressed in inside + self.tree.xpath("//button[@form=$name]", name=form.get("id") or "-"):
                words = " ".join(pressed.text_content().split())
                if words == button or words.startswith(button + " "):
                    matches.append((form, pressed))
                    break
        buttons = [" ".join(b.text_content().split()) for b in self.tree.xpath("//button")]
        assert matches, f"no button “{button}” on {self.path} ({self.status}); there are {buttons}: {self.text[:600]}"
        return matches[0]

    def _take(self, response: Any, path: str, status: int) -> Visitor:
        for address, _ in getattr(response, "redirect_chain", []):
            path = urljoin(path, address)
        self.path, self.status = path.removeprefix(HOST), response.status_code
        self.content = b"".join(response.streaming_content) if response.streaming else response.content
        content_type = response.headers.get("Content-Type", "")
        self.tree = html.fromstring(self.content) if content_type.startswith("text/html") and self.content else None
        assert self.status == status, f"{self.path} responded with {self.status}: {self.content[:1500]!r}"
        return self
