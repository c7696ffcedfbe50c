"""The rule of `evalapp.names` as a refusal by field, for services."""

from __future__ import annotations

from evalapp.names import explain_hidden

from .errors import BadInput, Fault


def find_name_faults(**names: str) -> list[Fault]:
    """One fault for each name, by its field, that holds a character no name may hold."""
    return [Fault(text, field=field) for field, name in names.items() if (text := explain_hidden(name))]


def check_names(**names: str) -> None:
    """Raise BadInput if one of the names, given by field, holds a character no name may hold."""
    faults = find_name_faults(**names)
    if faults:
        raise BadInput(" ".join(dict.fromkeys(fault.message for fault in faults)), faults=faults)
