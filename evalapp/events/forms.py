"""The form of a webhook. The rules are in the services."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from evalapp.common.event_kinds import EVENT_KINDS


class WebhookForm(forms.Form):
    name = forms.CharField(label=_("Name"), max_length=100)
    url = forms.CharField(
        label=_("Address"),
        max_length=500,
        help_text=_("Visible to the owners of the project only. Hosts are allowed by an administrator."),
        widget=forms.URLInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )
    events = forms.MultipleChoiceField(
        label=_("Events"),
        choices=[(kind.name, kind.label) for kind in EVENT_KINDS.values()],
        widget=forms.CheckboxSelectMultiple,
    )


class ChangedWebhookForm(WebhookForm):
    active = forms.BooleanField(label=_("Send events"), required=False)

    def __init__(self, *args: Any, webhook: Any, **kwargs: Any) -> None:
        stored = {name: getattr(webhook, name) for name in ("name", "url", "events", "active")}
        super().__init__(*args, initial=stored, **kwargs)
