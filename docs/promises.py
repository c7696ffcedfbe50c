"""Writes docs/promises.md, the list of promises with their tests, from the markers of the tests. Run it with `make
docs`; tests/architecture/test_promises.py checks that the page, the markers and the list here agree.

A test names its promise with `@pytest.mark.promise("name", ...)`, a module with `pytestmark`. It may record a figure
with `record_property("figure", "...")`; figures.json contains the figures of the last recorded complete run. A promise
without a test is listed as missing. In a section marked `complete` a missing promise is an error."""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
NOTE = "<!-- Written by docs/promises.py from the markers of the tests. Run `make docs`. -->\n\n"


@dataclass(frozen=True)
class Section:
    """`complete`: every promise must have a test."""

    title: str
    complete: bool
    promises: dict[str, str]


SECTIONS = (
    Section(
        "No data are lost or stored twice",
        True,
        {
            "overlap": "Each unit is judged as often as planned, never twice by the same annotator, under any load.",
            "submission": "A repeated submission gets the same response; a different body under its id is a conflict.",
            "late": "An answer after its lease is stored: in its slot while that is free, else as an extra.",
            "draft": "Drafts are versioned; unsent answers stay in the browser until they are sent.",
            "import": "An upload is checked completely, then stored completely or not at all; memory does not grow.",
            "job": "A killed worker costs an attempt: every run ends as if undisturbed, or fails with a reason.",
            "queue": "A queue that is emptied, stopped or full loses no run.",
            "index": "Lost search indexes are rebuilt; writing continues without them.",
            "database": "A connection lost in a transaction, and a database restart, leave no partial changes.",
            "disk": "A full disk is a clear error; nothing is damaged, and work continues when there is space.",
            "supervisor": "`evalapp up` restarts killed processes, drains on TERM and leaves no orphan.",
            "backup": "A restored backup has the same rows, and the same tables to the last digit.",
            "migrations": "Every released state of the database can be migrated with its data.",
        },
    ),
    Section(
        "Users reach only what their role allows",
        True,
        {
            "walk": "Every address is tried with every method and role, on own and foreign objects.",
            "references": "A foreign object named in a body or a query is not found.",
            "blind": "No response to an annotator names a system or reveals a control item.",
            "unseen": "Annotators see the answers of others only after their own.",
            "registration": "There is no account without an invitation, and none with a known password.",
            "settings": "The start refuses dangerous settings and says what to set; the deployment check is clean.",
            "attempts": "Passwords, tokens, links and mails are limited in attempts; accounts cannot be discovered.",
            "tokens": "Tokens are hashed, have scopes, expire, can be revoked, and are accepted in the header only.",
            "sessions": "A new session starts at sign-in and ends at sign-out; scripts cannot read its cookie.",
            "forgery": "Requests made by another site change nothing.",
            "redirects": "No address redirects to another site; a wrong Host is refused.",
            "headers": "Every response has the security policy; private pages are never cached or framed.",
            "scripts": "What people write is shown as text on every page and in every file name.",
            "policy": "No page breaks the content security policy in a real browser.",
            "formulas": "No spreadsheet runs user input as a formula.",
            "injection": "User input never becomes part of a query, a header, a path or a log line.",
            "assignment": "A request sets only the fields that its endpoint allows.",
            "bombs": "Small bodies that expand, nest or count without end are refused in bounded time.",
            "patterns": "No regular expression takes more than linear time on any text.",
            "artefacts": "An uploaded evaluator is read as data: no pickle, link, foreign code or huge tensor.",
            "no-fetch": "The server requests no address that a user supplied, except webhooks to allowed hosts.",
            "api-fuzz": "The API answers any input as documented, never with a server error.",
            "parser-fuzz": "Any file ends in rows, in faults with their lines, or in a message.",
            "supply": "Packages are pinned by hash, their licences are known, and a bill of materials is written.",
            "own-data": "Users see, download and withdraw the data stored about them; ratings remain without a name.",
            "mail": "E-mail addresses are visible to their owner and, on the members page, to the project's owners.",
            "log": "The log contains no text, name or secret from user input.",
            "audit": "The audit log is append-only; a hash chain reveals any change.",
        },
    ),
    Section(
        "It can be monitored",
        True,
        {
            "health": "Liveness and readiness report the state of each part without secrets.",
            "metrics": "Figures for Prometheus, for authorised readers only.",
            "json-log": "Log lines are JSON with the number of the request and of the run.",
            "doctor": "`evalapp doctor` describes each problem and the command that fixes it.",
        },
    ),
)


@dataclass(frozen=True)
class PromiseTest:
    """A test, or a whole module (`test` is empty), that demonstrates a promise."""

    path: str
    test: str


def _get_promise_names(node: ast.expr) -> list[str]:
    """Return the arguments of `pytest.mark.promise(...)`; an empty list for any other expression."""
    if isinstance(node, (ast.List, ast.Tuple)):
        return [name for part in node.elts for name in _get_promise_names(part)]
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != "promise":
        return []
    return [part.value for part in node.args if isinstance(part, ast.Constant) and isinstance(part.value, str)]


def _read_markers(path: Path) -> Iterator[tuple[str, str]]:
    """Yield (promise, name of the test) for a module; the name is empty if the whole module is marked."""
    text = path.read_text(encoding="utf-8")
    if ".promise(" not in text:
        return
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign) and any(getattr(target, "id", "") == "pytestmark" for target in node.targets):
            yield from ((name, "") for name in _get_promise_names(node.value))
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield from ((name, node.name) for mark in node.decorator_list for name in _get_promise_names(mark))


def find_tests() -> dict[str, list[PromiseTest]]:
    """Return for each promise its tests, in the order of their paths."""
    tests: dict[str, list[PromiseTest]] = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for name, test in _read_markers(path):
            tests.setdefault(name, []).append(PromiseTest(path.relative_to(ROOT).as_posix(), test))
    return tests


def find_missing(section: Section, tests: dict[str, list[PromiseTest]]) -> list[str]:
    return [name for name in section.promises if name not in tests]


def _format_link(test: PromiseTest) -> str:
    words = test.test.removeprefix("test_").replace("_", " ") or f"all of {Path(test.path).name}"
    return f"[{words}](../{test.path})"


def _format_figures(row: dict[str, Any] | None) -> str:
    """Return the results of a promise in the last recorded complete run."""
    if row is None:
        return "-"
    tests = f"{row['passed']} passed" + (f", **{row['failed']} failed**" if row["failed"] else "")
    return "; ".join([f"{tests}, {row['seconds']:.0f} s", *dict.fromkeys(row["noted"].values())])


def generate() -> str:
    tests, last = find_tests(), json.loads((HERE / "figures.json").read_text(encoding="utf-8"))
    parts = ["# Promises and their tests\n\n"]
    parts.append("Each promise is demonstrated by the tests in its row. `make test` runs them all. ")
    when = f"Figures: the complete run of {last['date']}" if last["promises"] else "No run was recorded yet"
    parts.append(f"{when} (`PROMISE_FIGURES=docs/figures.json make test docs`); speed is in ")
    parts.append("[benchmarks](../benchmarks/README.md).\n")
    for section in SECTIONS:
        missing = find_missing(section, tests)
        n = len(section.promises)
        state = f" ({n - len(missing)} of {n} shown)" if missing else ""
        parts.append(f"\n## {section.title}{state}\n\n| | promise | last figures | shown by |\n|---|---|---|---|\n")
        for name, words in section.promises.items():
            links = ", ".join(map(_format_link, tests.get(name, []))) or "**no test yet**"
            figures = _format_figures(last["promises"].get(name))
            parts.append(f"| `{name}` | {words} | {figures} | {links} |\n")
    return NOTE + "".join(parts)


def main() -> None:
    (HERE / "promises.md").write_text(generate(), encoding="utf-8")
    print("wrote promises.md", file=sys.stderr)


if __name__ == "__main__":
    main()
