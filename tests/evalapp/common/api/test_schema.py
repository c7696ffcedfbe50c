"""The OpenAPI document is built once per process, also under concurrent requests."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest
import yaml
from django.test import Client

from evalapp.common.api import schema


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Empties the cache; the list grows with each build."""
    calls: list[int] = []
    make = schema.SchemaGenerator.get_schema

    def counted(self: Any, *args: Any, **kwargs: Any) -> Any:
        calls.append(1)
        return make(self, *args, **kwargs)

    monkeypatch.setattr(schema.SchemaGenerator, "get_schema", counted)
    monkeypatch.setattr(schema, "_documents", {})
    return calls


@pytest.mark.django_db(transaction=True)
def test_twelve_concurrent_requests_share_one_build(made):
    found: list[bytes] = []
    threads = [
        threading.Thread(target=lambda: found.append(Client().get("/api/v1/schema/").content)) for _ in range(12)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(found) == 12
    assert len(set(found)) == len(made) == 1


@pytest.mark.django_db
def test_both_formats_agree(made, cast):
    client = Client()
    as_yaml = client.get("/api/v1/schema/")
    as_json = client.get("/api/v1/schema/?format=json")
    assert yaml.safe_load(as_yaml.content) == json.loads(as_json.content)
    assert as_json.json()["openapi"].startswith("3.")
    client.force_login(cast.owner)
    assert client.get("/api/v1/schema/").content == as_yaml.content
    assert client.get("/api/v1/schema/?format=json").content == as_json.content
    assert len(made) == 2
