"""JUDGE_ENDPOINTS: what an administrator can write, and the messages for mistakes."""

from __future__ import annotations

import json

import pytest
from django.core.exceptions import ImproperlyConfigured

from evalapp.settings.judge_endpoints import read_endpoints

GOOD = {"url": "https://models.example.org/v1/", "models": ["large"]}


def read(monkeypatch, value):
    monkeypatch.setenv("JUDGE_ENDPOINTS", value if isinstance(value, str) else json.dumps(value))
    return read_endpoints()


def test_there_are_none_by_default(monkeypatch):
    monkeypatch.delenv("JUDGE_ENDPOINTS", raising=False)
    assert read_endpoints() == {}


def test_an_endpoint_has_defaults(monkeypatch, tmp_path):
    found = read(monkeypatch, {"a": GOOD})
    assert found["a"]["url"] == "https://models.example.org/v1"
    assert (found["a"]["at_once"], found["a"]["logprobs"], found["a"]["key_env"]) == (8, True, "")
    file = tmp_path / "endpoints.json"
    file.write_text(json.dumps({"a": GOOD}))
    assert read(monkeypatch, str(file)) == found


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("/no/such/file", "cannot be read"),
        ("{", "not valid JSON"),
        ({"A b": GOOD}, "a name has"),
        ({"a": []}, "must be an object"),
        ({"a": {"url": "https://x"}}, "models"),
        ({"a": {**GOOD, "models": "large"}}, "list of names"),
        ({"a": {**GOOD, "key": "sk-secret"}}, "key_env or key_file"),
        ({"a": {**GOOD, "adress": "x"}}, "'adress' is unknown"),
        ({"a": {**GOOD, "url": "ftp://x"}}, "must be an address"),
        ({"a": {**GOOD, "url": "https://user:sk-secret@x/v1"}}, "must have no password"),
        ({"a": {**GOOD, "url": "https://x:99999/"}}, "not a valid address"),
        ({"a": {**GOOD, "at_once": 0}}, "at_once"),
        ({"a": {**GOOD, "at_once": 2.5}}, "at_once"),
        ({"a": {**GOOD, "price_in": -1}}, "price_in"),
        ({"a": {**GOOD, "price_in": True}}, "price_in"),
        ({"a": {**GOOD, "logprobs": 1}}, "logprobs"),
        ({"a": {**GOOD, "key_env": "A", "key_file": "B"}}, "not both"),
        ({"a": {"folder": "models/judge"}}, "absolute path"),
        ({"a": {"folder": "/"}}, "absolute path"),
        ({"a": {"folder": "/models/judge", "url": "https://x/v1"}}, "'url' is unknown for a model in a folder"),
        ({"a": {"folder": "/models/judge", "dtype": "int4"}}, "fp32 or bf16"),
        ({"a": {"folder": "/models/judge", "device": "tpu"}}, "device must be"),
        ({"a": {"folder": "/models/judge", "batch_tokens": 1.5}}, "batch_tokens"),
    ],
)
def test_mistakes_have_messages_without_secrets(monkeypatch, value, said):
    with pytest.raises(ImproperlyConfigured, match=said) as caught:
        read(monkeypatch, value)
    assert "sk-secret" not in str(caught.value)


def test_a_folder_is_named_by_its_last_part(monkeypatch):
    row = read(monkeypatch, {"a": {"folder": "/srv/models/judge-7b"}})["a"]
    assert (row["models"], row["url"], row["dtype"], row["batch_tokens"]) == (["judge-7b"], "", "fp32", 0)


def test_doctor_says_which_key_is_missing(settings, monkeypatch):
    from scoring.services.doctoring import check_endpoints

    monkeypatch.setenv("SOME_KEY", "sk-secret")
    row = {"url": "https://x/v1", "models": ["m"]}
    settings.JUDGE_ENDPOINTS = read(
        monkeypatch, {"a": {**row, "key_env": "SOME_KEY"}, "b": {**row, "key_env": "NO_KEY"}}
    )
    good, bad = check_endpoints()
    assert "https://x/v1: m" in good.found
    assert "NO_KEY" in bad.found
    assert "sk-secret" not in repr((good, bad))


def test_doctor_says_which_folder_is_no_judge(monkeypatch, settings, tmp_path):
    from scoring.services.doctoring import check_endpoints

    folder = tmp_path / "judge"
    folder.mkdir()
    settings.JUDGE_ENDPOINTS = read(monkeypatch, {"a": {"folder": str(folder)}})
    (bad,) = check_endpoints()
    assert "config.json is missing" in bad.found
    (folder / "config.json").write_text(json.dumps({"architectures": ["T5ForConditionalGeneration"]}))
    (good,) = check_endpoints()
    assert good.found == f"{folder}: seq2seq"
