"""How Django forms render: `{{ form }}` gives our fields with label, help and errors."""

from __future__ import annotations

from django.forms.renderers import TemplatesSetting


class FormRenderer(TemplatesSetting):
    form_template_name = "components/_form.html"
    field_template_name = "components/_field.html"
