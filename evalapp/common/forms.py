"""How Django forms render: `{{ form }}` gives our fields with label, help and errors. And numbers in addresses and
forms."""

from __future__ import annotations

from django.forms.renderers import TemplatesSetting

#: Of the number of a row.
MOST_DIGITS = 18


def number_in(text: str) -> int | None:
    """The whole number in an address or a form; None for other texts, and for more digits than the number of a row can
    have: of thousands `int` makes no number at all."""
    return int(text) if text.isdecimal() and len(text) <= MOST_DIGITS else None


class FormRenderer(TemplatesSetting):
    form_template_name = "components/_form.html"
    field_template_name = "components/_field.html"
