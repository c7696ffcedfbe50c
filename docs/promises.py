"""What the product promises, and which tests show it: writes docs/promises.md from the tests' markers. Run it by
`make docs`; tests/architecture/test_promises.py holds the file, the markers and this list together.

A test says what it shows by `@pytest.mark.promise("name", ...)`, a whole file by `pytestmark`, and may note a figure by
`record_property("figure", "...")`; figures.json holds those of the last whole run that was written down. A promise
without a test is listed as missing; once every promise of a section is shown, the section is marked `complete` here,
and from then on a missing one fails."""

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
    """`complete`: every promise below has a test, and a promise that loses its last one fails."""

    title: str
    complete: bool
    promises: dict[str, str]


SECTIONS = (
    Section(
        "Nothing is lost, nothing is doubled",
        True,
        {
            "overlap": "Each unit is judged as often as planned, and by nobody twice, however many ask at once.",
            "submission": "The same submission again answers as the first time; another body under it is a conflict.",
            "late": "An answer after its lease is kept: in its slot while that is free, else as an extra.",
            "draft": "Drafts are versioned; answers that could not be sent stay in the browser until they are.",
            "import": "An upload is checked whole, then stored in one step or not at all; memory does not grow.",
            "job": "A killed worker costs an attempt: every run ends done as if undisturbed, or failed with a reason.",
            "queue": "A queue that is emptied, stopped or full loses no run.",
            "index": "Search indexes can be lost and are made again; writing goes on without them.",
            "database": "A connection cut in a transaction, and a restart of the database, leave nothing half done.",
            "disk": "A full disk is a clear error; nothing is damaged, and work goes on when there is room.",
            "supervisor": "`manage.py up` brings a killed process back, drains on TERM and leaves no orphan.",
            "backup": "A backup restored elsewhere has the same rows and the same tables to the last digit.",
            "migrations": "Every released state of the database comes forward with its data.",
        },
    ),
    Section(
        "Nobody gets where they do not belong",
        True,
        {
            "walk": "Every address by every method is walked as every role, on own and foreign objects.",
            "references": "A foreign object named in a body or a query is not found.",
            "blind": "No answer to an annotator names a system or tells a control text from others.",
            "unseen": "Nobody sees another's answer before giving their own.",
            "registration": "There is no account without an invitation, and none with a known password.",
            "settings": "The start refuses dangerous settings and says what to set; the deployment check is clean.",
            "attempts": "Passwords, tokens, links and mails cannot be tried without end, nor accounts be found out.",
            "tokens": "Tokens are hashed, narrow, expire, can be revoked, and are taken from the header alone.",
            "sessions": "A session begins anew at sign-in, ends at sign-out, and its cookie is hidden from scripts.",
            "forgery": "Nothing is changed by a request that another site made.",
            "redirects": "No address of ours leads to another site; a wrong Host is refused.",
            "headers": "Every answer carries the security policy; private pages stay in no cache, in no frame.",
            "scripts": "What people write is shown as text on every page and in every file name.",
            "policy": "No page breaks the content security policy in a real browser.",
            "formulas": "No spreadsheet runs what somebody wrote.",
            "injection": "What people type is never part of a query, a header, a path or a line of the log.",
            "assignment": "A request sets only what its door is for.",
            "bombs": "Small bodies that unpack, nest or count without end are refused in bounded time.",
            "patterns": "No expression takes more than linear time on any text.",
            "artefacts": "An evaluator from outside is read as data: no pickle, link, foreign code or huge tensor.",
            "no-fetch": "The server never asks an address that a user named.",
            "api-fuzz": "Whatever the API is sent, it answers as its document says, never with a server error.",
            "parser-fuzz": "Any bytes end in rows, in faults with their lines, or in a message.",
            "supply": "What is installed is pinned by hash, its licences are known, and a bill of materials is made.",
            "own-data": "People see, take away and withdraw what is stored about them; ratings stay without a name.",
            "mail": "E-mail addresses are seen by their owner and, on the page of members, by the project's owners.",
            "log": "The log holds no text, no name, no secret that somebody typed.",
            "audit": "Who did what is added to, never changed; a chain of hashes shows any change.",
        },
    ),
    Section(
        "It can be operated",
        True,
        {
            "health": "Liveness and readiness say what works, part by part, without telling secrets.",
            "metrics": "Figures for Prometheus, to whom they are meant for alone.",
            "json-log": "Lines of the log are JSON with the number of the request and of the run.",
            "doctor": "`manage.py doctor` says in words what is wrong and which command mends it.",
        },
    ),
)


@dataclass(frozen=True)
class Shown:
    """One test, or a whole file, that shows a promise."""

    path: str
    test: str


def _names(node: ast.expr) -> list[str]:
    """The arguments of `pytest.mark.promise(...)`; nothing for any other expression."""
    if isinstance(node, (ast.List, ast.Tuple)):
        return [name for part in node.elts for name in _names(part)]
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != "promise":
        return []
    return [part.value for part in node.args if isinstance(part, ast.Constant) and isinstance(part.value, str)]


def _found(path: Path) -> Iterator[tuple[str, str]]:
    """(promise, name of the test) of a file; the name is empty where the whole file shows it."""
    text = path.read_text(encoding="utf-8")
    if ".promise(" not in text:
        return
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign) and any(getattr(target, "id", "") == "pytestmark" for target in node.targets):
            yield from ((name, "") for name in _names(node.value))
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield from ((name, node.name) for mark in node.decorator_list for name in _names(mark))


def find() -> dict[str, list[Shown]]:
    """Promise -> the tests that show it, in the order of their paths."""
    found: dict[str, list[Shown]] = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for name, test in _found(path):
            found.setdefault(name, []).append(Shown(path.relative_to(ROOT).as_posix(), test))
    return found


def missing(section: Section, shown: dict[str, list[Shown]]) -> list[str]:
    return [name for name in section.promises if name not in shown]


def _link(test: Shown) -> str:
    words = test.test.removeprefix("test_").replace("_", " ") or f"all of {Path(test.path).name}"
    return f"[{words}](../{test.path})"


def _figures(row: dict[str, Any] | None) -> str:
    """What the last whole run that was written down saw of a promise."""
    if row is None:
        return "-"
    tests = f"{row['passed']} passed" + (f", **{row['failed']} failed**" if row["failed"] else "")
    return "; ".join([f"{tests}, {row['seconds']:.0f} s", *dict.fromkeys(row["noted"].values())])


def generate() -> str:
    shown, last = find(), json.loads((HERE / "figures.json").read_text(encoding="utf-8"))
    parts = ["# What is promised, and which test shows it\n\n"]
    parts.append("Every line is shown by tests that really do it. `make test` runs them all. ")
    when = f"Figures: the whole run of {last['date']}" if last["promises"] else "No run was written down yet"
    parts.append(f"{when} (`PROMISE_FIGURES=docs/figures.json make test docs`); speed is in ")
    parts.append("[benchmarks](../benchmarks/README.md).\n")
    for section in SECTIONS:
        lost = missing(section, shown)
        state = "" if not lost else f" ({len(section.promises) - len(lost)} of {len(section.promises)} shown)"
        parts.append(f"\n## {section.title}{state}\n\n| | promise | last figures | shown by |\n|---|---|---|---|\n")
        for name, words in section.promises.items():
            tests = ", ".join(_link(test) for test in shown.get(name, [])) or "**no test yet**"
            figures = _figures(last["promises"].get(name))
            parts.append(f"| `{name}` | {words} | {figures} | {tests} |\n")
    return NOTE + "".join(parts)


def main() -> None:
    (HERE / "promises.md").write_text(generate(), encoding="utf-8")
    print("wrote promises.md", file=sys.stderr)


if __name__ == "__main__":
    main()
