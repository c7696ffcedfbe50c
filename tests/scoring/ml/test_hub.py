"""Evaluators on a stand-in of the Hugging Face hub: sent, fetched, refused. Nothing here uses the network."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextvars import Context
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml
from django.core.management import CommandError, call_command

from evalapp.hub_access import allow_access
from scoring.ml import ArtefactError, HubError, from_pretrained, load
from scoring.ml.cross_fitted import CrossFitted
from scoring.ml.encoders.source import find_encoder
from scoring.ml.hub import fetch, send_folder
from scoring.ml.trained import TrainedEvaluator
from tests.scoring.ml.evaluators.ream.untrained import untrained
from tests.scoring.ml.hub_server import Hub, serve_hub
from tests.scoring.ml.test_artefact import RECORDS
from tests.scoring.ml.tiny import tiny_encoder

NAME = "my-lab/fluency"
MEASURED = {
    "evaluator": "ream", "aspect": "fluency", "n_groups": 12,
    "pearson": {"value": 0.61234, "low": 0.5, "high": 0.7, "n": 40, "note": ""},
    "spearman": {"value": None, "low": None, "high": None, "n": 40, "note": "constant"},
    "kendall": {"value": 0.4, "low": None, "high": None, "n": 40, "note": ""},
}  # fmt: skip


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Hub]:
    """An empty hub at the address that `huggingface_hub` uses, with an empty cache."""
    with serve_hub() as served, allow_access():
        monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", served.url)
        template = "/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr("huggingface_hub.constants.HUGGINGFACE_CO_URL_TEMPLATE", served.url + template)
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "cache"))
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
        monkeypatch.setenv("HF_TOKEN", "hf_of_the_test")
        yield served


@pytest.fixture(scope="module")
def evaluator(tmp_path_factory: pytest.TempPathFactory) -> TrainedEvaluator:
    """An evaluator whose frozen encoder lies in a folder of this machine."""
    source = find_encoder(tiny_encoder("bert", tmp_path_factory.mktemp("hub") / "encoder", layers=1))
    made = untrained(source).with_fixtures(RECORDS)
    record = replace(made.record, correlations=({**MEASURED}, {**MEASURED, "evaluator": "length"}))
    return type(made)(made.entry, replace(made.artefact, record=record))


def read_metadata(hub: Hub, name: str = NAME) -> dict[str, object]:
    readme = hub.files[name]["README.md"].decode()
    return yaml.safe_load(readme.split("---\n")[1])


def test_sent_evaluator_is_fetched_with_its_encoder_and_scores_the_same(hub, evaluator, tmp_path):
    url = evaluator.push_to_hub(NAME, licence="mit", datasets=["my-lab/talk"], languages=["en"])
    assert (url, hub.private[NAME]) == (f"{hub.url}/{NAME}", True)
    # Nothing that was sent names a folder of this machine.
    folder = str(evaluator.source.folder)
    assert not [name for name, content in hub.files[NAME].items() if folder.encode() in content]
    copy = load(NAME)
    assert isinstance(copy, TrainedEvaluator)
    assert copy.source.folder != evaluator.source.folder
    assert copy.signature == evaluator.signature
    np.testing.assert_array_equal(copy.score(RECORDS), evaluator.score(RECORDS))
    # It stays usable without a connection, and is not fetched twice.
    hub.calls.clear()
    from_pretrained(NAME)
    assert not [call for call in hub.calls if "resolve" in call]
    hub.files.pop(NAME)
    with pytest.raises(HubError, match=r"my-lab/fluency: .*no such model.*hf auth login"):
        load(NAME)


def test_card_has_the_metadata_of_the_hub_with_what_was_measured(hub, evaluator):
    evaluator.push_to_hub(NAME, licence="mit", datasets=["my-lab/talk"], languages=["en"])
    data = read_metadata(hub)
    assert (data["license"], data["datasets"], data["language"]) == ("mit", ["my-lab/talk"], ["en"])
    assert data["metrics"] == ["pearsonr", "kendalltau"]
    (index,) = data["model-index"]  # type: ignore[misc]
    (result,) = index["results"]
    assert result["dataset"] == {
        "name": f"{evaluator.record.dataset}, held-out groups", "type": "my-lab/talk", "split": "dev",
    }  # fmt: skip
    values = {row["type"]: (row["value"], row["name"]) for row in result["metrics"]}
    assert values["pearsonr"] == (
        0.6123, "Pearson: correlation with ratings, fluency (n = 40, 95 % [0.500, 0.700])"
    )  # fmt: skip
    assert values["kendalltau"][0] == 0.4
    assert {"evalapp", "ream"} <= set(data["tags"])  # type: ignore[arg-type]


def test_folds_share_the_encoder_that_is_sent(hub, evaluator):
    crossed = CrossFitted(evaluator.entry, [evaluator, evaluator])
    crossed.push_to_hub(NAME)
    names = set(hub.files[NAME])
    assert "encoder/model.safetensors" in names
    assert "fold-1/model.safetensors" in names
    assert "fold-0/encoder/model.safetensors" not in names
    assert load(NAME).signature == crossed.signature
    # A single model replaces all of it.
    evaluator.push_to_hub(NAME)
    assert not [name for name in hub.files[NAME] if name.startswith("fold-")]


def test_without_a_connection_the_cache_is_used(hub, evaluator, monkeypatch):
    evaluator.push_to_hub(NAME)
    fetch(NAME)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    assert load(NAME).signature == evaluator.signature
    with pytest.raises(HubError, match=r"my-lab/other: .*cannot be reached.*local cache"):
        load("my-lab/other")


def test_foreign_and_large_models_are_refused_before_they_are_fetched(hub, evaluator, tmp_path):
    evaluator.save_pretrained(tmp_path / "saved")
    send_folder(tmp_path / "saved", NAME)
    hub.calls.clear()
    with pytest.raises(HubError, match=r"the limit is 0\.0 GB"):
        fetch(NAME, max_bytes=1000)
    hub.declared["split.json"] = 300_000_000
    with pytest.raises(HubError, match=r"split\.json has 300 MB; the limit is 200 MB"):
        fetch(NAME)
    hub.files["my-lab/bert"] = {"config.json": b"{}", "pytorch_model.bin": b"x"}
    with pytest.raises(HubError, match=r"no evaluator\.json"):
        fetch("my-lab/bert")
    assert not [call for call in hub.calls if "resolve" in call]


def test_code_and_pickles_of_a_model_are_never_fetched(hub, evaluator, tmp_path):
    evaluator.push_to_hub(NAME)
    hub.files[NAME] |= {"pytorch_model.bin": b"\x80\x04.", "modeling.py": b"raise SystemExit", "x/encoder.py": b""}
    header = json.loads(hub.files[NAME]["config.json"])
    hub.files[NAME]["config.json"] = json.dumps({**header, "auto_map": {"AutoModel": "modeling.Model"}}).encode()
    folder = fetch(NAME)
    assert not [path.name for path in folder.rglob("*") if path.suffix in (".py", ".bin")]
    assert load(folder).signature == evaluator.signature


@pytest.mark.parametrize("name", ["fluency", "a/b/c", "../etc", "a/"])
def test_other_names_are_no_models_on_the_hub(hub, name):
    with pytest.raises(ArtefactError, match="organisation/model"):
        from_pretrained(name)
    assert hub.calls == []


def test_command_sends_and_fetches(hub, evaluator, tmp_path, capsys):
    evaluator.save_pretrained(tmp_path / "saved")
    call_command("hub", "push", str(tmp_path / "saved"), NAME, "--licence", "mit", "--public")
    assert f"{hub.url}/{NAME}" in capsys.readouterr().out
    assert (hub.private[NAME], read_metadata(hub)["license"]) == (False, "mit")
    call_command("hub", "pull", NAME, str(tmp_path / "fetched"))
    assert load(tmp_path / "fetched").signature == evaluator.signature
    assert not [path for path in (tmp_path / "fetched").rglob("*") if path.is_symlink()]
    shutil.rmtree(tmp_path / "fetched")
    with pytest.raises(CommandError, match="no such model"):
        call_command("hub", "pull", "my-lab/none", str(tmp_path / "fetched"))
    assert not (tmp_path / "fetched").exists()


@pytest.mark.promise("no-fetch")
def test_the_product_never_contacts_the_hub(hub, evaluator):
    """A name from a form or a call must not make a server fetch anything: starting Django forbids it."""
    evaluator.push_to_hub(NAME)
    hub.calls.clear()
    without_permission = Context()
    for call in (lambda: load(NAME), lambda: evaluator.push_to_hub(NAME)):
        with pytest.raises(HubError, match="does not contact the hub"):
            without_permission.run(call)
    assert hub.calls == []
