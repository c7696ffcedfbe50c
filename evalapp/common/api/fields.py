"""What programs send, read to the letter: a text is a text, true and false are just that, and a flag in an address says
1 or 0. Forms of browsers, where everything is text, are read elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django.db import models
from django.utils.translation import gettext as _
from rest_framework import serializers

from evalapp.common.errors import BadInput, Fault

_FLAGS = {"": False, "0": False, "false": False, "no": False, "1": True, "true": True, "yes": True}


class TextField(serializers.CharField):
    """A JSON string. A number is refused rather than turned into its digits."""

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(data)


class TruthField(serializers.BooleanField):
    """JSON true or false. 0, "off" and their like are refused rather than guessed at."""

    def to_internal_value(self, data: Any) -> bool:
        if not isinstance(data, bool):
            self.fail("invalid", input=data)
        return data


class StrictModelSerializer(serializers.ModelSerializer):
    """Whose texts are read to the letter, too."""

    serializer_field_mapping = {
        **serializers.ModelSerializer.serializer_field_mapping,
        models.CharField: TextField,
        models.TextField: TextField,
    }


class Closed(serializers.Serializer):
    """A body without members of other names: a misspelt one would be left out without a word. `elsewhere` says of
    a name where it belongs."""

    elsewhere: Mapping[str, str] = {}

    def to_internal_value(self, data: Any) -> Any:
        errors: dict[str, Any] = {}
        if isinstance(data, Mapping):
            known = ", ".join(name for name, field in self.fields.items() if not field.read_only)
            for name in sorted(set(map(str, data)) - set(self.fields)):
                errors[name] = [f"{name} is not known here. {self.elsewhere.get(name) or f'There are: {known}.'}"]
        try:
            found = super().to_internal_value(data)
        except serializers.ValidationError as error:
            if not isinstance(error.detail, dict):
                raise
            errors = {**error.detail, **errors}
        if errors:
            raise serializers.ValidationError(errors)
        return found


class WholeSerializer(serializers.Serializer):
    """For a PATCH that needs every member: the document calls them required, as they are."""

    @property
    def partial(self) -> bool:
        return False

    @partial.setter
    def partial(self, value: bool) -> None:
        """Asked for by every PATCH in the making of the document; there is nothing to set."""


def read_flag(given: Mapping[str, Any], name: str) -> bool:
    """A parameter of the address: off unless it says 1, true or yes; everything but their opposites is a fault."""
    value = str(given.get(name, "")).lower()
    if value not in _FLAGS:
        text = _("%(name)s must be 1 or 0.") % {"name": name}
        raise BadInput(text, faults=[Fault(text, field=name)])
    return _FLAGS[value]


#: Of every address: how the answer is written. Of every list: its pages.
_EVERYWHERE, PAGES = ("format",), ("cursor", "limit")


def refuse_unknown(given: Iterable[str], known: Iterable[str]) -> None:
    """Raises BadInput for parameters of an address that nobody reads: of a misspelt one the answer would be to another
    question."""
    names = tuple(known)
    unknown = sorted(set(given) - {*names, *_EVERYWHERE})
    text = _("%(name)s is unknown. Known: %(known)s.")
    faults = [Fault(text % {"name": name, "known": ", ".join(names) or "-"}, field=name) for name in unknown]
    if faults:
        raise BadInput(" ".join(fault.message for fault in faults), faults=faults)


class OnePageSerializer(serializers.Serializer):
    """A list that is a single page; subclasses add `results`."""

    next = serializers.URLField(allow_null=True, help_text="Always null: everything is on this page.")
    previous = serializers.URLField(allow_null=True, help_text="Always null.")
