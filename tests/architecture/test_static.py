"""Errors in scripts and templates that are visible in their text."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = sorted((ROOT / "static" / "js").glob("*.js"))
TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))
KEY_EVENT = re.compile(r"""["'`](key(?:down|up|press))["'`]|\bonkey(?:down|up|press)\b""")
#: The only place that may listen to keys: it ignores those of an input method.
HELPER = '  document.addEventListener("keydown", (event) => {\n    if (!event.isComposing && event.keyCode !== 229) handler(event);\n'  # noqa: E501


def key_listeners(source: str) -> list[str]:
    return [match.group(0) for match in KEY_EVENT.finditer(source.replace(HELPER, ""))]


def test_key_handlers_ignore_input_methods() -> None:
    found = {path.name: listeners for path in SCRIPTS if (listeners := key_listeners(path.read_text("utf-8")))}
    assert found == {}, "register the handler by window.evalapp.onKeydown (static/js/app.js)"
    assert HELPER in (ROOT / "static/js/app.js").read_text("utf-8")
    triggers = re.compile(r"hx-(?:trigger|on)[^\"]*\"[^\"]*\bkey(?:down|up|press)|\bonkey\w+=")
    assert [str(path) for path in TEMPLATES if triggers.search(path.read_text("utf-8"))] == []


def test_other_key_handlers_are_found() -> None:
    assert key_listeners("stage.addEventListener('keyup', go);") == ["'keyup'"]
    assert key_listeners('for (const name of ["keydown", "scroll"]) listen(name);') == ['"keydown"']
    assert key_listeners("box.onkeydown = go;") == ["onkeydown"]
    assert key_listeners(HELPER) == []


TAG = re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)
#: Names of dictionary methods in templates: Django calls the method if the key is missing, and returns the value if a
#: user's mapping has the key.
METHODS = "|".join(sorted(name for name in dir(dict) if not name.startswith("_")))
LOOKUP = re.compile(rf"\b[\w.]+\.(?:{METHODS})\b(?!\()")
#: Objects that are not mappings, and mappings from the code that always have this key.
NO_METHOD = {
    "verdict.keys",  # annotation.allocation.answers: every verdict lists its keys
    "plan.items",  # annotation.services.writing_plans and plans: every plan names its items
    "figures.items", "row.items", "result.items", "column.values",
}  # fmt: skip


def method_lookups(source: str) -> list[str]:
    texts = [re.sub(r"\"[^\"]*\"|'[^']*'", "", tag.group(0)) for tag in TAG.finditer(source)]
    return [name for text in texts for name in LOOKUP.findall(text) if name not in NO_METHOD]


def test_templates_do_not_use_dictionary_methods_as_keys() -> None:
    found = {str(path.relative_to(ROOT)): names for path in TEMPLATES if (names := method_lookups(path.read_text()))}
    assert found == {}, 'use mapping|get:"name" for a value, mapping|entries for all'


def test_dictionary_methods_are_found() -> None:
    assert method_lookups("{% if plan.items.keys %}{{ plan.items.keys|length }}{% endif %}") == ["plan.items.keys"] * 2
    assert method_lookups("{% for name, value in item.meta.items %}{{ value.copy.x }}") == [
        "item.meta.items",
        "value.copy",
    ]
    assert method_lookups('{{ plan.items|get:"keys" }} x.keys {{ verdict.keys }}') == []
