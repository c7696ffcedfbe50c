"""Texts that people see go through gettext, so that they can be translated: messages of errors, labels and help of form
fields, flash messages, titles. Commands, logs and exceptions that only programmers see stay in English.
The other half, templates and JavaScript, is `test_gettext_pages.py`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("evalapp", "annotation", "retrieval", "scoring")
#: Parts of paths with texts for operators and programmers: commands, servers, the client, settings, migrations.
EXEMPT = ("management", "migrations", "ops", "client", "settings", "demo", "stats", "backup", "commands.py")
#: Functions that translate.
TRANSLATORS = {"_", "gettext", "gettext_lazy", "ngettext", "ngettext_lazy", "pgettext", "format_html"}
FIELD_TEXTS = {"label", "help_text", "empty_label", "verbose_name"}
FLASH = {"success", "error", "warning", "info"}


def list_files() -> list[Path]:
    return [
        path
        for package in PACKAGES
        for path in sorted((ROOT / package).rglob("*.py"))
        if not set(path.relative_to(ROOT).parts) & set(EXEMPT)
    ]


def find_error_classes(trees: list[ast.Module]) -> set[str]:
    """Names of the errors whose messages reach a page or the API: `EvalappError` and what derives from it."""
    bases = {
        node.name: {base.id for base in node.bases if isinstance(base, ast.Name)}
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    }
    known = {"EvalappError"}
    while more := {name for name, parents in bases.items() if parents & known} - known:
        known |= more
    return known


def name_of(function: ast.expr) -> str:
    return (
        function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""
    )


def is_raw(node: ast.expr | None, local: dict[str, ast.expr]) -> bool:
    """Whether a value is a text with words that no translator has seen. Local names are followed once."""
    if isinstance(node, ast.Name):
        return is_raw(local.get(node.id), {})
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and " " in node.value.strip() and any(map(str.isalpha, node.value))
    if isinstance(node, ast.JoinedStr):
        words = "".join(part.value for part in node.values if isinstance(part, ast.Constant))
        return any(map(str.isalpha, words))
    if isinstance(node, ast.BinOp):
        return is_raw(node.left, local) or (isinstance(node.op, ast.Add) and is_raw(node.right, local))
    if isinstance(node, ast.IfExp):
        return is_raw(node.body, local) or is_raw(node.orelse, local)
    return False


def list_shown(call: ast.Call, errors: set[str]) -> list[ast.expr]:
    """The arguments of a call that people see."""
    name = name_of(call.func)
    owner = name_of(call.func.value) if isinstance(call.func, ast.Attribute) else ""
    if name in errors or name in ("Fault", "ValidationError"):
        return call.args[:1]
    if owner == "messages" and name in FLASH:
        return call.args[1:2]
    if name in ("add_error", "for_field"):
        return call.args[1:2]
    if name in ("side_figure", "side_value"):
        return call.args[:1]
    if name == "ProblemType":
        return call.args[2:]
    if name == "Job":
        return [keyword.value for keyword in call.keywords if keyword.arg == "label"]
    if owner == "forms":
        return [keyword.value for keyword in call.keywords if keyword.arg in FIELD_TEXTS]
    return []


def find_raw_texts(tree: ast.Module, errors: set[str]) -> Iterator[int]:
    """Yield the lines of texts that people see and no translator has seen."""
    scopes = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    seen: set[int] = set()
    for scope in [*scopes, tree]:
        local = {
            target.id: node.value
            for node in ast.walk(scope)
            if isinstance(node, ast.Assign) and scope is not tree
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        for node in ast.walk(scope):
            if isinstance(node, ast.Call) and id(node) not in seen:
                seen.add(id(node))
                yield from (text.lineno for text in list_shown(node, errors) if is_raw(text, local))
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            choices = any(name_of(base) in ("TextChoices", "IntegerChoices") for base in node.bases)
            for line in node.body:
                if isinstance(line, ast.Assign) and (choices or (node.name in errors and is_title(line))):
                    values = line.value.elts if isinstance(line.value, ast.Tuple) else [line.value]
                    yield from (value.lineno for value in values if is_raw(value, {}))


def is_title(line: ast.Assign) -> bool:
    names = [name for target in line.targets for name in ast.walk(target) if isinstance(name, ast.Name)]
    return any(name.id == "title" for name in names)


@pytest.fixture(scope="module")
def findings() -> dict[str, list[int]]:
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in list_files()}
    errors = find_error_classes(list(trees.values()))
    lines = {str(path.relative_to(ROOT)): sorted(set(find_raw_texts(tree, errors))) for path, tree in trees.items()}
    return {path: found for path, found in lines.items() if found}


def test_texts_for_people_go_through_gettext(findings: dict[str, list[int]]) -> None:
    assert findings == {}, (
        "write _(“...”) from django.utils.translation, or evalapp.translation in packages without Django"
    )


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ('raise Conflict("It is taken.")', [1]),
        ('raise Conflict(f"{name} is taken.")', [1]),
        ('raise Conflict.for_field("name", "It is taken.")', [1]),
        ('raise Conflict(_("It is taken."))', []),
        ('side_value("The noise ceiling", compute, None)', [1]),
        ('ProblemType("taken", 409, _("Taken"), "It is taken.", _("Choose another."))', [1]),
        ('Job("score", "cpu", "pipeline:run", "Score outputs.", label="Scores of an evaluator")', [1]),
        ('raise Conflict(_("%(name)s is taken.") % {"name": name})', []),
        ('def f():\n    text = "It is taken."\n    raise Conflict(text, faults=[])', [3]),
        ('messages.success(request, "Project created.")', [1]),
        ('name = forms.CharField(label="Short name", help_text=_("For addresses."))', [1]),
        ('class Taken(Conflict):\n    code, title = "taken", "It is taken"', [2]),
        (
            'class Role(models.TextChoices):\n    OWNER = "owner", "Owner of it"\n    OTHER = "other", _("Other one")',
            [2],
        ),
        ('name = serializers.CharField(help_text="For addresses, in the schema.")', []),
        ('log.info("It is taken.")', []),
    ],
)
def test_the_guard_sees_texts(source: str, found: list[int]) -> None:
    assert sorted(set(find_raw_texts(ast.parse(source), {"Conflict", "Taken"}))) == found
