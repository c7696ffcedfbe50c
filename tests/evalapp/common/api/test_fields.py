"""What programs send is read to the letter."""

from __future__ import annotations

import pytest
from rest_framework import serializers

from evalapp.common.api.fields import TextField, TruthField, WholeSerializer, read_flag
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


@pytest.mark.parametrize(("said", "read"), [("1", True), ("TRUE", True), ("yes", True), ("0", False), ("", False)])
def test_a_flag_says_on_or_off(said, read):
    assert read_flag({"current": said}, "current") is read
    assert read_flag({}, "current") is False


def test_another_word_is_a_fault_that_names_the_flag():
    with pytest.raises(BadInput, match="current must be 1 or 0") as caught:
        read_flag({"current": "maybe"}, "current")
    assert caught.value.faults[0].field == "current"
