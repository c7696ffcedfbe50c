"""API requests are parsed strictly."""

from __future__ import annotations

import re

import pytest
from rest_framework import serializers

from evalapp.common.api.fields import StrictSerializer, TextField, TruthField, WholeSerializer, read_flag
from evalapp.common.errors import BadInput


class Wish(WholeSerializer):
    name = TextField()
    active = TruthField()


@pytest.mark.parametrize("wrong", [{"name": 7, "active": True}, {"name": "x", "active": 0}, {"name": "x"}])
def test_number_is_not_text_and_zero_is_not_false(wrong):
    assert Wish(data={"name": "7", "active": False}).is_valid()
    assert not Wish(data=wrong).is_valid()


def test_nested_serializer_is_strict_throughout():
    wish = Wish(data={"name": "x"}, partial=True)
    wish.partial = True
    assert not wish.is_valid()
    assert isinstance(wish, serializers.Serializer)


class Part(StrictSerializer):
    elsewhere = {"aspect": "It belongs in options."}
    text = TextField()


class Body(StrictSerializer):
    parts = serializers.ListField(child=Part())
    made = serializers.CharField(read_only=True)


def test_unknown_names_are_reported_with_other_errors():
    assert Body(data={"parts": [{"text": "a"}], "made": "read only, as an answer has it"}).is_valid()
    body = Body(data={"parts": [{"text": 5, "aspect": "x"}, {"text": "b"}], "prats": []})
    assert not body.is_valid()
    # All levels of a body are checked, and all errors are reported at once.
    assert "parts" in body.errors["prats"][0]
    assert {"text", "options"} <= set(re.findall(r"\w+", body.errors["parts"][0]["aspect"][0]))
    assert body.errors["parts"][0]["text"] == ["Not a valid string."]
    assert not Body(data=[1]).is_valid()


@pytest.mark.parametrize(("said", "read"), [("1", True), ("TRUE", True), ("yes", True), ("0", False), ("", False)])
def test_flag_accepts_on_and_off(said, read):
    assert read_flag({"current": said}, "current") is read
    assert read_flag({}, "current") is False


def test_other_flag_value_is_an_error_naming_the_flag():
    with pytest.raises(BadInput, match=r"current .*1 .*0") as caught:
        read_flag({"current": "maybe"}, "current")
    assert caught.value.faults[0].field == "current"
