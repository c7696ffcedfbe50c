"""Strict reading of API requests: a text must be a JSON string, a boolean true or false, a flag of an address 1 or 0.
Forms of browsers, in which everything is text, are read elsewhere."""

from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

from django.db import models
from django.utils.translation import gettext as _
from rest_framework import serializers
from rest_framework.request import Request

from evalapp.common.errors import BadInput, Fault

_FLAGS = {"": False, "0": False, "false": False, "no": False, "1": True, "true": True, "yes": True}


class TextField(serializers.CharField):
    """A JSON string. Numbers are refused, not converted."""

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(data)


class TruthField(serializers.BooleanField):
    """JSON true or false. Values such as 0 and "off" are refused."""

    def to_internal_value(self, data: Any) -> bool:
        if not isinstance(data, bool):
            self.fail("invalid", input=data)
        return data


class ChoiceField(serializers.ChoiceField):
    """One of some texts. The refusal of another one lists them."""

    def fail(self, key: str, **values: Any) -> NoReturn:
        if key != "invalid_choice":
            super().fail(key, **values)
        text = _("%(name)s must be one of %(choices)s, not “%(value)s”.")
        known = {"name": self.field_name or self.parent.field_name, "choices": ", ".join(map(str, self.choices))}
        raise serializers.ValidationError(text % {**known, "value": f"{values['input']!s:.60}"}, code=key)


class StrictModelSerializer(serializers.ModelSerializer):
    """A model serializer with `TextField` for all texts."""

    serializer_field_mapping = {
        **serializers.ModelSerializer.serializer_field_mapping,
        models.CharField: TextField,
        models.TextField: TextField,
    }
    serializer_choice_field = ChoiceField


def _find_unknown(given: Iterable[str], known: Iterable[str], accepted: Iterable[str] = ()) -> dict[str, str]:
    """Return name -> message for names that are neither `known` nor `accepted`."""
    names = list(known)
    text = _("%(name)s is unknown. Known: %(known)s.")
    unknown = sorted(set(map(str, given)) - {*names, *accepted})
    return {name: text % {"name": name, "known": ", ".join(names) or "-"} for name in unknown}


class StrictSerializer(serializers.Serializer):
    """A body that refuses unknown members, so that a misspelt one is not ignored. `elsewhere`: name -> sentence on
    where it belongs."""

    elsewhere: Mapping[str, str] = {}

    def to_internal_value(self, data: Any) -> Any:
        errors: dict[str, Any] = {}
        if isinstance(data, Mapping):
            writable = [name for name, field in self.fields.items() if not field.read_only]
            unknown = _find_unknown(data, writable, self.fields)
            errors = {name: [f"{text} {self.elsewhere.get(name, '')}".strip()] for name, text in unknown.items()}
        try:
            values = super().to_internal_value(data)
        except serializers.ValidationError as error:
            if not isinstance(error.detail, dict):
                raise
            errors = {**error.detail, **errors}
        if errors:
            raise serializers.ValidationError(errors)
        return values


class WholeSerializer(serializers.Serializer):
    """For a PATCH that needs every member, so that the OpenAPI document marks all members as required."""

    @property
    def partial(self) -> bool:
        return False

    @partial.setter
    def partial(self, value: bool) -> None:
        """Ignore the value, which drf-spectacular sets for every PATCH."""


def read_body(serializer_class: type[serializers.Serializer], request: Request) -> dict[str, Any]:
    """Return the validated members of a request body; raise `ValidationError` if it has faults."""
    serializer = serializer_class(data=request.data)
    serializer.is_valid(raise_exception=True)
    return dict(serializer.validated_data)


def read_flag(given: Mapping[str, Any], name: str) -> bool:
    """Return a flag of the query string: true for 1, true or yes, false if missing. Other values raise `BadInput`."""
    value = str(given.get(name, "")).lower()
    if value not in _FLAGS:
        raise BadInput.for_field(name, _("%(name)s must be 1 or 0.") % {"name": name})
    return _FLAGS[value]


#: Parameters of every address (the format of the response), and of every list (its pages).
_EVERYWHERE, PAGES = ("format",), ("cursor", "limit")


def refuse_unknown(given: Iterable[str], known: Iterable[str]) -> None:
    """Raise `BadInput` for unknown query parameters; the response to a misspelt one would be wrong."""
    faults = [Fault(text, field=name) for name, text in _find_unknown(given, known, _EVERYWHERE).items()]
    if faults:
        raise BadInput(" ".join(fault.message for fault in faults), faults=faults)


class OnePageSerializer(serializers.Serializer):
    """A list that is a single page; subclasses add `results`."""

    next = serializers.URLField(allow_null=True, help_text="Always null: everything is on this page.")
    previous = serializers.URLField(allow_null=True, help_text="Always null.")
