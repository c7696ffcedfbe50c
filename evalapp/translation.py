"""Translation of messages in packages that do not import Django.

`gettext` returns the message unchanged until `install` gives it a translator; the Django application installs Django's,
so that one catalogue serves pages and libraries. `gettext_noop` marks a message that is translated where it is shown.
"""

from collections.abc import Callable

_translate: Callable[[str], str] = str
_translate_plural: Callable[[str, str, int], str] | None = None


def gettext(message: str, **values: object) -> str:
    """Return `message` in the language of the current request, or unchanged if there is no translator.

    `values` replace the named placeholders: `gettext("%(name)s is missing.", name="id")`."""
    translated = _translate(message)
    return translated % values if values else translated


def ngettext(singular: str, plural: str, number: int) -> str:
    """Return the form of a message that goes with `number`, translated like `gettext`."""
    if _translate_plural is not None:
        return _translate_plural(singular, plural, number)
    return singular if number == 1 else plural


def gettext_noop(message: str) -> str:
    """Return `message` unchanged; marks it for the catalogue."""
    return message


def install(translate: Callable[[str], str], translate_plural: Callable[[str, str, int], str]) -> None:
    """Use these translators from now on."""
    global _translate, _translate_plural
    _translate, _translate_plural = translate, translate_plural
