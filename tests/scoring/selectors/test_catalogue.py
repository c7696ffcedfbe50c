"""Web users may only name models of this installation."""

from __future__ import annotations

import re

import pytest

from evalapp.common.errors import BadInput
from scoring.selectors.catalogue import check_models, entries


def test_every_folder_option_names_a_model():
    found = [
        (entry.name, option)
        for entry in entries()
        for option in (*entry.options, *entry.train_options)
        if option.type == "str" and not option.choices and re.search(r"\b[Ff]older\b", option.help)
    ]
    assert {option.name for _, option in found} >= {"encoder", "generator", "translator", "back_translator"}
    assert [(name, option.name) for name, option in found if not option.names_model] == []


def test_models_outside_the_installation_are_refused(settings):
    settings.ENCODERS = ["allowed"]
    (maude,) = (entry for entry in entries() if entry.name == "maude")
    check_models(maude.train_options, {"encoder": "allowed", "generator": None})
    for name in ("encoder", "generator", "translator", "back_translator"):
        with pytest.raises(BadInput, match=f"{name} “/etc” is not allowed here") as caught:
            check_models(maude.train_options, {name: "/etc"})
        assert caught.value.faults[0].field == f"options.{name}"
