"""Early stopping of a training by a comparative evaluator on the server: it is trained there, called through the API
and answered by a real live worker. The encoder is tiny: the test covers the path, not the figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from evalapp.accounts.models import User
from evalapp.accounts.services import create_token
from evalapp.client import Client
from evalapp.client.stopping import Monitor
from evalapp.common.queue import queue_has_worker
from evalapp.wsgi import application
from scoring.ml.registry import get_entry
from tests.evalapp.common.conftest import Installation, file_database, installation, wait_until
from tests.scoring.live_house import start
from tests.short_training import SHORT, command, encoder, load, part, words

pytestmark = [pytest.mark.slow, pytest.mark.server("redis"), pytest.mark.usefixtures("few_draws")]
__all__ = ["encoder", "file_database", "installation", "part"]


@pytest.fixture
def client(installation: Installation, encoder: str, settings: Any, part: Path) -> Client:
    """An API client for an installation with a trained comparative evaluator and a live worker."""
    settings.ARTEFACTS_DIR = Path(installation.env["EVALAPP_DATA"]) / "artefacts"
    installation.env["ENCODERS"] = encoder
    start(installation, "live", "live")
    load(part)
    options = [*words(get_entry("comparative").train_options, SHORT), "--folds", "1", "--encoder", encoder]
    command("train", "comparative", "--project", "demo", "--aspect", "naturalness", *options, "--here")
    wait_until(lambda: queue_has_worker("live"), seconds=180)
    secret = create_token(user=User.objects.get(username="olga"), name="training", scopes=["read"], days=1)[1]
    return Client("http://testserver", secret, transport=httpx.WSGITransport(app=application))


def test_trained_evaluator_on_the_server_compares(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    evaluator = client.evaluator("comparative-1", project="demo")
    monitor = Monitor(evaluator, ["Where are you from?", ["Hi.", "Hello. How are you?"]], timeout=120)
    monitor.try_server()
    assert monitor.check(1, lambda left: ["I am from Kiel.", "Fine."]).n == 0
    check = monitor.check(2, lambda left: ["from from from", ""])
    assert check.n == 2
    assert monitor.missed == 0
    assert not [record.message for record in caplog.records if record.name.startswith("evalapp.client")]
