"""The examples of docs/how-to/python-client.md, run from top to bottom against the real application. Only the address
differs, and a script answers online scores, whose worker does not run here."""

from __future__ import annotations

import json
import re
from pathlib import Path

import httpx
import pytest

import evalapp.client
from evalapp.client import Client
from tests.taking import WHOLE, as_bytes

pytestmark = pytest.mark.django_db
PAGE = Path(__file__).resolve().parents[3] / "docs/how-to/python-client.md"


@pytest.fixture
def blocks() -> list[str]:
    return re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)


@pytest.fixture
def here(cast, installation, tmp_path, monkeypatch) -> dict[str, object]:
    """The page's assumptions: a project, a folder, a token."""
    from evalapp.accounts.models import Project
    from evalapp.accounts.services import create_token

    Project.objects.filter(pk=cast.project.pk).update(slug="weekend")
    folder = tmp_path / "my-folder"
    folder.mkdir()
    for name, rows in WHOLE.items():
        (folder / name).write_bytes(as_bytes(rows))

    class Routed(httpx.BaseTransport):
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            if request.url.path != "/api/v1/evaluators/chrf/score/":
                return installation.handle_request(request)
            pairs = json.loads(request.read())["pairs"]
            return httpx.Response(200, json={"signature": "chrf|v:0.1.0", "scores": [50.0] * len(pairs)})

    class Connected(Client):
        def __init__(self, url: str, token: str) -> None:
            super().__init__(url, token, transport=Routed())

    monkeypatch.setattr(evalapp.client, "Client", Connected)
    monkeypatch.chdir(tmp_path)
    secret = create_token(user=cast.researcher, name="page", scopes=["read", "write"], days=1)[1]
    return {"token": secret}


def test_examples_run(blocks, here, capsys, tmp_path):
    from transformers import Trainer

    from tests.evalapp.client import tiny

    trainer = Trainer(
        tiny.tiny(),
        tiny.arguments(tmp_path / "training", max_steps=3, save_strategy="no"),
        train_dataset=tiny.Rows(),
        eval_dataset=tiny.Rows(),
    )
    space = {**here, "comparer": tiny.Lengths(), "tokenizer": tiny.Letters(), "trainer": trainer}
    pytest.importorskip("tensorboardX")
    assert len(blocks) == 13
    for number, block in enumerate(blocks, 1):
        exec(compile(block, f"{PAGE.name}, block {number}", "exec"), space)
    said = capsys.readouterr().out
    assert "weekend researcher" in said
    assert "{'rows': 3, 'added': 3, 'same': 0, 'replaced': 0, 'faulty': 0}" in said
    assert "outputs.jsonl 1 item" in said
    assert "succeeded {" in said
    assert "chrf|v:0.1.0 [50.0]" in said
    assert "False 3 None" in said
    assert "404 Not found" in said
    assert r"\toprule" in said
    assert list((tmp_path / "tensorboard-files").glob("events.*"))
    assert (tmp_path / "weekend-copy" / "outputs.jsonl").exists()


def test_page_names_existing_members():
    import evalapp.client.callback
    import evalapp.client.tracking

    modules = (evalapp.client, evalapp.client.callback, evalapp.client.tracking)
    for name in re.findall(r"`([A-Z]\w+)`", PAGE.read_text(encoding="utf-8")):
        assert any(hasattr(module, name) for module in modules), name
