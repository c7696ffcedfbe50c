"""Exports on a stand-in of the Hugging Face hub, sent by the command and by the client. Nothing here uses the
network."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import yaml
from django.core.management import CommandError, call_command

from evalapp.client import InvalidArgument, MissingFile
from evalapp.client.hub import HubRefused, push_dataset
from evalapp.hub_access import allow_access
from tests.scoring.ml.hub_server import Hub, serve_hub
from tests.taking import WHOLE, take_in

pytestmark = pytest.mark.django_db


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    with serve_hub() as served:
        monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", served.url)
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
        monkeypatch.setenv("HF_TOKEN", "hf_of_the_test")
        yield served


def test_dump_sends_a_folder_that_the_hub_reads(cast, hub, tmp_path, capsys):
    take_in(cast.project, WHOLE)
    call_command("dump", "alpha", str(tmp_path / "a"), "--format", "parquet", "--push", "my-lab/alpha")
    assert f"Sent to {hub.url}/datasets/my-lab/alpha." in capsys.readouterr().out
    sent = hub.files["my-lab/alpha"]
    assert sent == {path.name: path.read_bytes() for path in (tmp_path / "a").iterdir()}
    assert hub.private["my-lab/alpha"] is True
    _, head, _ = sent["README.md"].decode().split("---\n", 2)
    assert {"config_name": "ratings", "data_files": "ratings.parquet"} in yaml.safe_load(head)["configs"]


def test_refusals_name_the_way_out_and_keep_the_folder(cast, tmp_path, monkeypatch):
    take_in(cast.project, WHOLE)
    with pytest.raises(CommandError, match="organisation/dataset"):
        call_command("dump", "alpha", str(tmp_path / "a"), "--push", "alpha")
    assert (tmp_path / "a" / "items.jsonl").is_file()
    with pytest.raises(HubRefused, match="dump --push"):
        push_dataset(tmp_path / "a", "my-lab/alpha")
    with allow_access(), pytest.raises(MissingFile):
        push_dataset(tmp_path, "my-lab/alpha")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(CommandError, match="cannot be reached"):
        call_command("dump", "alpha", str(tmp_path / "b"), "--push", "my-lab/alpha")
    with allow_access(), pytest.raises(InvalidArgument):
        push_dataset(tmp_path / "a", "../x")
