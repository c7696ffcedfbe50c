"""docs/how-to/notebook.ipynb, run from top to bottom against the real application: its stored outputs are those of this
code. `WRITE_NOTEBOOK=1` writes them."""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

import evalapp.client
from evalapp.accounts.models import Project
from evalapp.accounts.services import create_token

pytestmark = pytest.mark.django_db
PAGE = Path(__file__).resolve().parents[3] / "docs/how-to/notebook.ipynb"
#: What differs between two runs: hashes and versions in signatures.
VOLATILE = re.compile(r"\b[0-9a-f]{8,}\b|\d+\.\d+\.\d+(?:\.dev\d+)?")


def run_cell(source: str, space: dict[str, Any], number: int) -> list[dict[str, Any]]:
    """Run a cell as a notebook does; return its outputs."""
    tree, printed = ast.parse(source), io.StringIO()
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    value = None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, f"{PAGE.name}, cell {number}", "exec"), space)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), f"{PAGE.name}, cell {number}", "eval"), space)
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        outputs.append({"name": "stdout", "output_type": "stream", "text": printed.getvalue().splitlines(True)})
    if value is not None:
        data = {"text/plain": repr(value).splitlines(True)}
        if (html := getattr(value, "_repr_html_", None)) is not None:
            data["text/html"] = html().splitlines(True)
        outputs.append({"data": data, "execution_count": number, "metadata": {}, "output_type": "execute_result"})
    return outputs


def test_stored_outputs_are_those_of_this_code(cast, installation, monkeypatch):
    Project.objects.filter(pk=cast.project.pk).update(slug="weekend", name="Weekend")
    secret = create_token(user=cast.researcher, name="notebook", scopes=["read", "write"], days=1)[1]

    class Connected(evalapp.client.Client):
        def __init__(self, url: str, token: str) -> None:
            super().__init__(url, token, transport=installation)

    monkeypatch.setattr(evalapp.client, "Client", Connected)
    notebook = json.loads(PAGE.read_text(encoding="utf-8"))
    monkeypatch.setenv("EVALAPP_TOKEN", secret)
    space: dict[str, Any] = {}
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    stored = [json.dumps(cell["outputs"]) for cell in cells]
    for number, cell in enumerate(cells, 1):
        cell["outputs"] = run_cell("".join(cell["source"]), space, number)
        cell["execution_count"] = number
    if os.environ.get("WRITE_NOTEBOOK"):
        PAGE.write_text(json.dumps(notebook, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
        return
    assert sum(bool(cell["outputs"]) for cell in cells) >= 6
    for number, (cell, before) in enumerate(zip(cells, stored, strict=True), 1):
        assert VOLATILE.sub("*", before) == VOLATILE.sub("*", json.dumps(cell["outputs"])), f"cell {number}"
