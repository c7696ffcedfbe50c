"""Every function of the product has a caller outside the tests."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PRODUCT = ("evalapp", "annotation", "retrieval", "scoring")
#: Places outside the product's own modules that may call a function.
CALLERS = ("docs/**/*.py", "docs/**/*.md", "benchmarks/*.py", "templates/**/*.*", "Makefile", "Dockerfile")
#: Called by a name composed at run time, or only by tests, with the reason.
EXCEPTIONS = {
    "pause_campaign": "`getattr` with the name of the transition",
    "resume_campaign": "`getattr` with the name of the transition",
    "close_campaign": "`getattr` with the name of the transition",
    "_score_sets": "`getattr` with the name of the table",
    "as_sqlite": "Django calls it by the name of the database",
    "wait_until_sent": "tests wait for mails that a thread sends",
    "process_view": "Django calls it on middleware",
    "_repr_pretty_": "IPython calls it in notebooks",
    "sendfile": "gunicorn calls it on the socket of an answer",
}


def list_functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Functions of a module and methods of classes without bases: a method of any other class may be called by a
    library."""
    for node in tree.body:
        body = node.body if isinstance(node, ast.ClassDef) and not node.bases else [node]
        yield from (one for one in body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef))


def test_every_function_has_a_caller() -> None:
    names, words = set(), Counter[str]()
    for room in PRODUCT:
        for path in (ROOT / room).rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            words.update(re.findall(r"\w+", text))
            names |= {
                function.name
                for function in list_functions(ast.parse(text))
                if not function.decorator_list and not function.name.startswith("__")
            }
    for pattern in CALLERS:
        for path in ROOT.glob(pattern):
            words.update(re.findall(r"\w+", path.read_text(encoding="utf-8", errors="replace")))
    uncalled = {name for name in names if words[name] < 2}
    assert uncalled - set(EXCEPTIONS) == set()
    assert set(EXCEPTIONS) - uncalled == set(), "an exception that is none any more"
