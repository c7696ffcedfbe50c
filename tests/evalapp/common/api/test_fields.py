"""What programs send is read to the letter."""

from __future__ import annotations

import pytest
from rest_framework import serializers

from evalapp.common.api.fields import Closed, TextField, TruthField, WholeSerializer, read_flag
from evalapp.common.errors import BadInput


class Wish(WholeSerializer):
    name = TextField()
    active = TruthField()


@pytest.mark.parametrize("wrong", [{"name": 7, "active": True}, {"name": "x", "active": 0}, {"name": "x"}])
def test_a_number_is_no_text_and_zero_is_not_false(wrong):
    assert Wish(data={"name": "7", "active": False}).is_valid()
    assert not Wish(data=wrong).is_valid()


def test_a_whole_serializer_stays_whole():
    wish = Wish(data={"name": "x"}, partial=True)
    wish.partial = True
    assert not wish.is_valid()
    assert isinstance(wish, serializers.Serializer)


class Part(Closed):
    elsewhere = {"aspect": "It stands under options."}
    text = TextField()


class Body(Closed):
    parts = serializers.ListField(child=Part())
    made = serializers.CharField(read_only=True)


def test_names_that_a_body_does_not_have_are_named_beside_what_else_is_wrong():
    assert Body(data={"parts": [{"text": "a"}], "made": "read only, as an answer has it"}).is_valid()
    body = Body(data={"parts": [{"text": 5, "aspect": "x"}, {"text": "b"}], "prats": []})
    assert not body.is_valid()
    # A body is read at all levels, or not: whatever is wrong is told at once.
    assert body.errors["prats"] == ["prats is not known here. There are: parts."]
    assert body.errors["parts"][0]["aspect"] == ["aspect is not known here. It stands under options."]
    assert body.errors["parts"][0]["text"] == ["Not a valid string."]
    assert not Body(data=[1]).is_valid()


@pytest.mark.parametrize(("said", "read"), [("1", True), ("TRUE", True), ("yes", True), ("0", False), ("", False)])
def test_a_flag_says_on_or_off(said, read):
    assert read_flag({"current": said}, "current") is read
    assert read_flag({}, "current") is False


def test_another_word_is_a_fault_that_names_the_flag():
    with pytest.raises(BadInput, match="current must be 1 or 0") as caught:
        read_flag({"current": "maybe"}, "current")
    assert caught.value.faults[0].field == "current"
