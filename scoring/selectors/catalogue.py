"""The catalogue of evaluators for pages and the API. `scoring.ml` is imported on first use, because it is slow."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.utils.translation import gettext as _

from evalapp.common.errors import BadInput, Fault, NotThere

if TYPE_CHECKING:
    from scoring.ml import Entry, InvalidOption, Option
    from scoring.ml.shipped import Shipped

NEEDS = {
    "references": "references",
    "context": "context or source",
    "encoder": "an encoder",
}


def entries() -> tuple[Entry, ...]:
    from scoring.ml import catalogue

    return catalogue()


def list_shipped() -> Mapping[str, Shipped]:
    """Return the evaluators that come trained with the package, by name."""
    from scoring.ml.shipped import SHIPPED

    return SHIPPED


def get_method(name: str) -> Entry:
    """Return the catalogue entry of a name of the catalogue or of a shipped evaluator."""
    shipped = list_shipped().get(name)
    return get_entry(shipped.method if shipped else name)


def get_entry(name: str) -> Entry:
    """Return the catalogue entry of a name. Raises `NotThere` with similar names."""
    from scoring.ml import UnknownEvaluator
    from scoring.ml.registry import get_entry as get_library_entry

    try:
        return get_library_entry(name)
    except UnknownEvaluator as error:
        text = _("There is no evaluator “%(name)s”. `evalapp evaluators` lists all.") % {"name": name}
        if error.near:
            text = f"{text} {_('Did you mean %(names)s?') % {'names': ', '.join(error.near)}}"
        raise NotThere(text) from error


def resolve_alias(name: str) -> tuple[str, dict[str, Any]]:
    """Return the catalogue's name and the options of a metric with another usual name, as the library does."""
    from scoring.ml.registry import resolve_alias as resolve

    return resolve(name)


def parse_options(entry: Entry, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return all options with their values. Raises `BadInput` with the names of invalid options."""
    from scoring.ml import InvalidOption

    try:
        return entry.parse_options(given)
    except InvalidOption as error:
        raise make_refusal(error) from error


def make_refusal(error: InvalidOption, own: Collection[str] = ()) -> BadInput:
    """Return the errors of the library as faults. `own` are options that a request has outside of `options`."""
    faults = [
        Fault(
            f"{fault.option} {fault.message}.", field=fault.option if fault.option in own else f"options.{fault.option}"
        )
        for fault in error.faults
    ]
    return BadInput(f"{error.evaluator}: {' '.join(fault.message for fault in faults)}", faults=faults)


def check_models(options: Iterable[Option], values: Mapping[str, Any], *, field: str = "options.") -> None:
    """Raise `BadInput` for a model that is not in the setting ENCODERS: a name may be a folder of the server."""
    faults = []
    for option in options:
        value = values.get(option.name)
        if not option.names_model or value is None or value in settings.ENCODERS:
            continue
        known = ", ".join(settings.ENCODERS) or _("only the default")
        text = _("%(option)s “%(value)s” is not allowed here. Allowed: %(known)s (setting ENCODERS).")
        text %= {"option": option.name, "value": value, "known": known}
        faults.append(Fault(text, field=f"{field if option.name == 'encoder' else 'options.'}{option.name}"))
    if faults:
        raise BadInput(" ".join(fault.message for fault in faults), faults=faults)
