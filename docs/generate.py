"""Writes docs/reference/ from the code: settings, commands, pages, API, evaluators, errors. Run it by
`make docs`; a test holds the files and the code together.

    python docs/generate.py [FOLDER]
"""

from __future__ import annotations

import argparse
import inspect
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "evalapp.settings.test")

NOTE = "<!-- Written by docs/generate.py from the code. Edit the code, then run `make docs`. -->\n\n"
ROOMS = ("evalapp", "annotation", "retrieval", "scoring")
OWN_APPS = ("evalapp", "annotation", "scoring", "retrieval", "evalapp.accounts", "evalapp.common")
COMMON_OPTIONS = {
    "--version", "-v", "--verbosity", "--settings", "--pythonpath", "--traceback", "--no-color", "--force-color",
    "--skip-checks", "-h", "--help",
}  # fmt: skip


def first_line(thing: object) -> str:
    text = inspect.getdoc(thing) or ""
    return " ".join(text.split("\n\n")[0].split())


def cell(text: object) -> str:
    return " ".join(str(text).split()).replace("|", "\\|")


def table(head: tuple[str, ...], rows: list[tuple]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(cell(value) for value in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def settings_page() -> str:
    from evalapp.settings.env import SETTINGS

    rows = [(f"`{s.name}`" + (" *" if s.secret else ""), s.default, s.help) for s in SETTINGS]
    words = (
        "Every setting is an environment variable, read and checked at start. A secret (*) can be in a file "
        "instead: `SECRET_KEY_FILE=/run/secrets/secret_key` in place of `SECRET_KEY`, and so on.\n\n"
    )
    return "# Settings\n\n" + words + table(("name", "default", "description"), rows)


def own_commands() -> dict[str, str]:
    from django.core.management import get_commands

    return {name: app for name, app in sorted(get_commands().items()) if app in OWN_APPS}


def commands_page() -> str:
    from django.core.management import load_command_class

    from evalapp.cli import COMMANDS

    alone = [
        (f"`{' '.join([name, *command.options[:1]])}`", command.help, f"`{command.extra}`")
        for name, command in COMMANDS.items()
    ]
    parts = [
        "# Commands\n\n`evalapp COMMAND`; in a checkout `.venv/bin/evalapp COMMAND`. Exit code 0: done; 1: the "
        "work failed; 2: wrong usage, or a name that does not exist. With `--json` stdout holds one JSON object in "
        "every case: the result, or `error` (a code), `detail` and `errors`.\n",
        "\n## Without an installation\n\nThese commands need no project and no database, only an extra of the package "
        "([Install the package](../how-to/install.md)). `--help` lists their arguments.\n\n"
        + table(("command", "purpose", "extra"), alone),
    ]
    for name, app in own_commands().items():
        command = load_command_class(app, name)
        parser = command.create_parser("evalapp", name)
        rows = []
        for action in parser._actions:
            if set(action.option_strings) & COMMON_OPTIONS or action.help == argparse.SUPPRESS:
                continue
            spelled = ", ".join(action.option_strings) or str(action.metavar or action.dest).upper()
            choices = " \\| ".join(map(str, action.choices)) if action.choices else ""
            rows.append((f"`{spelled}`", f"{action.help or ''} {f'({choices})' if choices else ''}"))
            if isinstance(action, argparse._SubParsersAction):
                rows += [
                    (f"`{verb}`", first_line(sub) or sub.description or "") for verb, sub in action.choices.items()
                ]
        parts.append(f"\n## {name}\n\n{command.help}\n\n{table(('argument', 'meaning'), rows)}")
    return "\n".join(parts)


def routes() -> Iterator[tuple[str, str, object]]:
    """(name, path, view) of every address, in the order of the resolver."""
    from django.urls import URLPattern, URLResolver, get_resolver

    def walk(patterns: list, prefix: str, space: str) -> Iterator[tuple[str, str, object]]:
        for entry in patterns:
            path = prefix + str(entry.pattern).removeprefix("^").removesuffix("$")
            if isinstance(entry, URLResolver):
                inner = f"{space}{entry.namespace}:" if entry.namespace else space
                yield from walk(entry.url_patterns, path, inner)
            elif isinstance(entry, URLPattern):
                yield f"{space}{entry.name or ''}", "/" + path, entry.callback

    yield from walk(get_resolver().url_patterns, "", "")


def view_words(view: object) -> str:
    target = getattr(view, "view_class", None) or getattr(view, "cls", None) or view
    return first_line(target) or first_line(sys.modules.get(getattr(target, "__module__", ""), None))


def pages_page() -> str:
    rows = [
        (f"`{path}`", f"`{name}`", view_words(view)) for name, path, view in routes() if not path.startswith("/api/")
    ]
    return "# Pages\n\nEvery address of the web pages and of the fragments they load.\n\n" + table(
        ("address", "name", "purpose"), rows
    )


def api_page() -> str:
    from drf_spectacular.generators import SchemaGenerator

    schema = SchemaGenerator().get_schema(request=None, public=True)
    rows = []
    for path, operations in sorted(schema["paths"].items()):
        for method, operation in operations.items():
            words = operation.get("summary") or operation.get("description") or ""
            rows.append((f"`{method.upper()} {path}`", " ".join(str(words).split("\n\n")[0].split())))
    return (
        "# REST API\n\nThe schema is served at `/api/v1/schema/`, a browsable form of it at `/api/v1/docs/`. "
        "Errors are RFC 9457 problem documents; lists are `results, next, previous` with `cursor` and `limit`. "
        "A call that makes work or rows takes the header `Idempotency-Key` where the schema says so: see "
        "[Use the API](../how-to/use-the-api.md).\n\n" + table(("call", "description"), rows)
    )


def slug(heading: str) -> str:
    """The anchor that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def find_explanations() -> dict[str, list[str]]:
    """Where each evaluator is explained, as page#anchor in docs/explanation/evaluators: the heading above a line
    "Evaluator: `name`" or "Evaluators: `one`, `two`", where names may be links."""
    found: dict[str, list[str]] = {}
    for page in sorted((HERE / "explanation/evaluators").glob("*.md")):
        heading = ""
        for line in page.read_text(encoding="utf-8").splitlines():
            if line.startswith("#"):
                heading = line.lstrip("#").strip()
            elif re.match(r"Evaluators?: \[?`", line):
                for name in re.findall(r"`([\w-]+)`", line):
                    found.setdefault(name, []).append(f"{page.name}#{slug(heading)}")
    return found


def evaluators_page() -> str:
    from scoring.ml import catalogue
    from scoring.selectors.catalogue import NEEDS

    entries = [entry for entry in catalogue() if not entry.plugin]
    explained = find_explanations()
    parts = [
        "# Evaluators\n\nThe evaluators that `score` applies and `scoring.ml.load(name)` loads, with their options: "
        "`--set name=value` of a command, `options` of a request, a keyword of the library. Trained evaluators are "
        "trained first, by `train` or `scoring.ml.fit(name, ...)`. Formulas, training and sources are "
        "[explained](../explanation/evaluators/README.md) on pages of their own.\n\n",
        table(
            ("name", "kind", "description"),
            [(f"[`{e.name}`](#{e.name})", e.kind, e.summary) for e in entries],
        ),
    ]
    for entry in entries:
        needs = ", ".join(NEEDS[need] for need in entry.needs) or "texts alone"
        low, high = ("unbounded" if bound is None else f"{bound:g}" for bound in entry.scale)
        facts = [
            f"- needs: {needs}",
            f"- a value for each {'system' if entry.level == 'system' else 'output'}, from {low} to {high}",
        ]
        facts += [
            f"- [formula and source](../explanation/evaluators/{place})" for place in explained.get(entry.name, [])
        ]
        if entry.learns:
            learned = {"none": "no aspect", "one": "one aspect", "many": "several aspects"}[entry.aspect]
            facts.append(f"- learns {learned}, from {', '.join(entry.train_needs) or 'texts'}")
        parts.append(f"\n## {entry.name}\n\n{entry.summary}\n\n" + "\n".join(facts) + "\n")
        if entry.options:
            title = "Options of scoring\n\n" if entry.learns else ""
            parts.append(f"\n{title}{options_table(entry.options, {'default': {}})}")
        if entry.train_options:
            defaults = {profile: entry.train_defaults(profile) for profile in entry.profiles}
            parts.append(f"\nOptions of training\n\n{options_table(entry.train_options, defaults)}")
    return "".join(parts)


def options_table(options: tuple, defaults: dict[str, dict]) -> str:
    """A row for each option, with a column of defaults for each profile."""

    def shown(value: object) -> str:
        return f"`{str(value).lower() if value is None or isinstance(value, bool) else value}`"

    rows = [
        (
            f"`{option.name}`",
            option.type,
            *(shown(values.get(option.name, option.default)) for values in defaults.values()),
            " ".join(f"`{choice}`" for choice in option.choices),
            option.help,
        )
        for option in options
    ]
    return table(("option", "type", *defaults, "choices", "description"), rows)


def errors_page() -> str:
    from evalapp.common.problem_types import PROBLEM_TYPES

    rows = [(f"`{one.code}`", one.status, str(one.title), str(one.meaning), str(one.way_out)) for one in PROBLEM_TYPES]
    head = ("code", "HTTP status", "title", "meaning", "way out")
    words = "`type` of a problem document ends in a code from this list. The same list is served at `/docs/errors`.\n\n"
    return "# Errors\n\n" + words + table(head, rows)


PAGES = {
    "settings.md": settings_page,
    "commands.md": commands_page,
    "pages.md": pages_page,
    "api.md": api_page,
    "evaluators.md": evaluators_page,
    "errors.md": errors_page,
}


def generate() -> dict[str, str]:
    import django

    django.setup()
    return {name: NOTE + make().rstrip() + "\n" for name, make in PAGES.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the pages of reference from the code.")
    parser.add_argument("folder", nargs="?", type=Path, default=HERE / "reference", help="default: docs/reference")
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in generate().items():
        (folder / name).write_text(text, encoding="utf-8")
        print(f"wrote {folder.name}/{name}", file=sys.stderr)


if __name__ == "__main__":
    main()
