"""Check names for hidden characters (`evalapp.names`), and write labels inside sentences."""

from django.utils.translation import get_language

from evalapp.languages import lower_word
from evalapp.names import explain_hidden

from .errors import BadInput, Fault


def find_name_faults(**names: str) -> list[Fault]:
    """Return a fault for each name, given by field, that contains a forbidden character."""
    return [Fault(text, field=field) for field, name in names.items() if (text := explain_hidden(name))]


def check_names(**names: str) -> None:
    """Raise `BadInput` if a name, given by field, contains a forbidden character."""
    faults = find_name_faults(**names)
    if faults:
        raise BadInput(" ".join(dict.fromkeys(fault.message for fault in faults)), faults=faults)


def in_sentence(label: object) -> str:
    """Return a label of a state or role as it stands inside a sentence of the current language."""
    return lower_word(str(label), get_language())
