"""Rendering of Django forms, and reading numbers from URLs and forms."""

from django.forms.renderers import TemplatesSetting

#: Digits of the largest primary key. `int` fails for thousands of digits.
MAX_DIGITS = 18


def read_number(text: str) -> int | None:
    """Return the number in a URL or form; None for other texts and for too many digits."""
    return int(text) if text.isdecimal() and len(text) <= MAX_DIGITS else None


class FormRenderer(TemplatesSetting):
    form_template_name = "components/_form.html"
    field_template_name = "components/_field.html"
