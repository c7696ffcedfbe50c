"""What Chromium's accessibility tree, which screen readers get, says of a page."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

#: Roles that screen readers list or stop at, and that are useless without a name.
NAMED = {
    "button", "link", "textbox", "searchbox", "checkbox", "radio", "combobox", "listbox", "slider", "spinbutton",
    "image", "dialog", "region", "progressbar", "meter",
}  # fmt: skip


def list_nodes(page: Any) -> list[dict[str, Any]]:
    """Return the nodes of the page's accessibility tree. Ignored ones have no role; their children may matter."""
    session = page.context.new_cdp_session(page)
    try:
        return list(session.send("Accessibility.getFullAXTree")["nodes"])
    finally:
        session.detach()


def read_value(node: dict[str, Any], part: str) -> str:
    """Return the role, the name or the value of a node as text."""
    return "" if node["ignored"] else str(node.get(part, {}).get("value", "")).strip()


def list_live_texts(page: Any) -> list[str]:
    """Return the text of each live region."""
    nodes = {node["nodeId"]: node for node in list_nodes(page)}

    def read_text(node: dict[str, Any]) -> str:
        if read_value(node, "role") == "StaticText":
            return read_value(node, "name")
        return " ".join(filter(None, (read_text(nodes[one]) for one in node.get("childIds", ()) if one in nodes)))

    return [read_text(node) for node in nodes.values() if read_value(node, "role") in {"status", "alert", "log"}]


def find_tree_problems(page: Any, *, is_document: bool = False) -> Iterator[str]:
    """Yield each control, picture and region without a name, landmarks that are missing, doubled or not told apart, and
    a page without a live region for messages. `is_document`: a page without header, on which nothing changes."""
    nodes = list_nodes(page)
    roles = Counter(read_value(node, "role") for node in nodes)
    nameless = Counter(
        read_value(node, "role") for node in nodes if read_value(node, "role") in NAMED and not read_value(node, "name")
    )
    yield from (f"{count} without a name: {role}" for role, count in nameless.items())
    for role in ("main",) if is_document else ("main", "banner"):
        if roles[role] != 1:
            yield f"{roles[role]} landmarks {role} instead of one"
    names = Counter(read_value(node, "name") for node in nodes if read_value(node, "role") == "navigation")
    yield from (f"{count} navigations are called “{name}”" for name, count in names.items() if count > 1)
    if not is_document and not roles["status"]:
        yield "no live region for messages"
