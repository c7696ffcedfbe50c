"""Forms of accounts, projects and members. The rules are in the services."""

import re
from collections.abc import Callable
from typing import Any, TypeVar

from django import forms
from django.contrib.auth.forms import AuthenticationForm, PasswordChangeForm, PasswordResetForm, SetPasswordForm
from django.utils.text import slugify
from django.utils.translation import gettext_lazy as _

from evalapp.common.errors import EvalappError
from evalapp.common.event_kinds import MAIL_GROUPS, MAILS_OFF

from .mails import send_later
from .models import Project, User
from .roles import ROLES_FOR, SCOPES, Role
from .selectors import active_tokens

T = TypeVar("T")
ROLE_HELP = {
    Role.OWNER: _("Owner: everything, including members and deletion"),
    Role.RESEARCHER: _("Researcher: data, campaigns, runs, results"),
    Role.ANNOTATOR: _("Annotator: judges without seeing which system wrote a text"),
    Role.VIEWER: _("Viewer: reads data and results"),
}


def add_faults(form: forms.Form, error: EvalappError) -> None:
    """Show the error of a service at the fields that caused it, or above the form."""
    faults = [fault for fault in error.faults if fault.field in form.fields]
    for fault in faults:
        form.add_error(fault.field, fault.message)
    if not faults:
        form.add_error(None, error.detail)


def submit(form: forms.Form, service: Callable[..., T]) -> T | None:
    """Call `service` with the values of a valid form and return its result. Returns None if the form is not bound or
    has errors; errors of the service are shown in the form."""
    if form.is_bound and form.is_valid():
        try:
            return service(**form.cleaned_data)
        except EvalappError as error:
            add_faults(form, error)
    return None


#: Latin letters that do not consist of a letter and an accent, as short names write them; app.js has the same.
LATIN = str.maketrans({
    "ß": "ss", "ẞ": "ss", "æ": "ae", "Æ": "ae", "œ": "oe", "Œ": "oe", "ø": "o", "Ø": "o", "ł": "l", "Ł": "l", "đ": "d",
    "Đ": "d", "ð": "d", "Ð": "d", "þ": "th", "Þ": "th", "ı": "i",
})  # fmt: skip


class SignInForm(AuthenticationForm):
    error_messages = {
        "invalid_login": _("Wrong user name or password. Both are case-sensitive."),
        "inactive": _("This account has been deactivated."),
    }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["username"].label = _("User name")

    def clean_username(self) -> str:
        """Return the normalised user name; unchanged for accounts that were created before names were normalised."""
        name: str = self.cleaned_data["username"]
        typed = self.data.get(self.add_prefix("username"), "").strip()
        return typed if typed != name and User.objects.filter(username=typed).exists() else name


class AccountForm(forms.ModelForm):
    mails = forms.MultipleChoiceField(
        label=_("E-mails about my projects"),
        choices=list(MAIL_GROUPS.items()),
        required=False,
        widget=forms.CheckboxSelectMultiple,
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.switched_off = self.instance.preferences.get(MAILS_OFF, [])
        self.initial["mails"] = [group for group in MAIL_GROUPS if group not in self.switched_off]
        if not self.instance.memberships.filter(role__in=ROLES_FOR["read"]).exists():
            del self.fields["mails"]

    def clean(self) -> dict[str, Any]:
        """Return the values of `update_account`: the choice of mails is one of the preferences."""
        values = super().clean() or self.cleaned_data
        if (chosen := values.pop("mails", None)) is not None:
            switched_off = [group for group in MAIL_GROUPS if group not in chosen]
            if switched_off != self.switched_off:
                values["preferences"] = {**self.instance.preferences, MAILS_OFF: switched_off}
        return values

    class Meta:
        model = User
        fields = ["first_name", "email"]
        labels = {"first_name": _("Name"), "email": _("E-mail")}
        help_texts = {
            "first_name": _("Shown to the members of your projects. Empty: your user name."),
            "email": _(
                "For resetting the password and e-mails about your projects; visible to the owners of your projects."
            ),
        }


class KeepTokens(forms.Form):
    """Asks users with API tokens who set a new password whether the tokens stay valid."""

    keep_tokens = forms.BooleanField(
        required=False,
        label=_("Keep my API tokens"),
        help_text=_(
            "Otherwise all tokens are revoked, and programs that use them stop working. Keep them only if no one else "
            "can have seen them."
        ),
    )

    def __init__(self, user: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(user, *args, **kwargs)
        if not active_tokens(user).exists():
            del self.fields["keep_tokens"]


class PasswordForm(KeepTokens, PasswordChangeForm):
    field_order = ["old_password", "new_password1", "new_password2", "keep_tokens"]


class ResetForm(PasswordResetForm):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["email"].label = _("E-mail")

    def send_mail(
        self, subject: str, body: str, context: dict[str, Any], sender: str | None, to: str, **_options: Any
    ) -> None:
        send_later(subject, body, context, sender, to)


class NewPasswordForm(KeepTokens, SetPasswordForm):
    field_order = ["new_password1", "new_password2", "keep_tokens"]


class JoinForm(forms.Form):
    """A new account by invitation."""

    username = forms.CharField(
        label=_("User name"),
        max_length=150,
        help_text=_("Letters, digits and @ . + - _"),
        widget=forms.TextInput(attrs={"autocomplete": "username", "autocapitalize": "none"}),
    )
    email = forms.EmailField(
        label=_("E-mail"),
        required=False,
        help_text=_("Only used to reset the password."),
        widget=forms.EmailInput(attrs={"autocomplete": "email"}),
    )
    password = forms.CharField(
        label=_("Password"),
        strip=False,
        help_text=_("At least 10 characters."),
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
    )


class TokenForm(forms.Form):
    name = forms.CharField(
        label=_("Name"), max_length=100, help_text=_("Where the token is used, for example “training script”.")
    )
    scopes = forms.MultipleChoiceField(
        label=_("Scopes"), choices=list(SCOPES.items()), widget=forms.CheckboxSelectMultiple, initial=["read"]
    )
    project = forms.ModelChoiceField(
        queryset=Project.objects.none(), required=False, empty_label=_("All my projects"), label=_("Project")
    )
    days = forms.IntegerField(label=_("Valid for (days)"), initial=90, min_value=1, max_value=365)

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["project"].queryset = Project.objects.visible_to(user).order_by("name")


class ProjectForm(forms.ModelForm):
    class Meta:
        model = Project
        fields = ["name", "task", "lang", "licence", "source", "notes", "texts_may_leave"]
        labels = {
            "name": _("Name"),
            "task": _("Task"),
            "lang": _("Language of the texts"),
            "licence": _("Licence of the data"),
            "source": _("Source of the data"),
            "notes": _("Notes"),
        }
        help_texts = {
            "task": _("What the systems do: dialogue, data-to-text, translation, ..."),
            "lang": _("A language tag, such as en or de."),
            "texts_may_leave": _(
                "Judges at the endpoints of this installation get items, outputs, guidelines and, as examples, ratings."
            ),
        }
        widgets = {
            "licence": forms.TextInput,
            "source": forms.TextInput,
            "notes": forms.Textarea(attrs={"rows": 4}),
        }


class NewProjectForm(ProjectForm):
    slug = forms.CharField(
        label=_("Short name"),
        max_length=63,
        required=False,
        help_text=_(
            "Used in addresses and commands: a-z, 0-9 and hyphens. It cannot be changed later. Empty: from the name."
        ),
        widget=forms.TextInput(attrs={"autocapitalize": "none", "spellcheck": "false", "data-slug-of": "id_name"}),
    )
    field_order = ["name", "slug"]

    class Meta(ProjectForm.Meta):
        fields = ["name", "task", "lang", "notes"]

    def clean_slug(self) -> str:
        """Return the short name, derived from the name if it is empty."""
        name = self.cleaned_data.get("name", "")
        slug: str = self.cleaned_data["slug"] or slugify(name.translate(LATIN))[:63].strip("-_")
        if not slug and name:
            raise forms.ValidationError(_("Enter a short name: the name has no letters from a to z."))
        return slug


class DeleteForm(forms.Form):
    confirmation = forms.CharField(
        label=_("Short name of the project"),
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )


class CloseForm(forms.Form):
    """Asks for the password, or for the user name of an account without one."""

    password = forms.CharField(
        label=_("Your password"), strip=False, widget=forms.PasswordInput(attrs={"autocomplete": "current-password"})
    )

    def __init__(self, user: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not user.has_usable_password():
            self.fields["password"].label = _("Your user name")
            self.fields["password"].widget = forms.TextInput(attrs={"autocomplete": "off"})


class InvitationForm(forms.Form):
    role = forms.ChoiceField(
        label=_("Role"),
        choices=[(role.value, text) for role, text in ROLE_HELP.items()],
        initial=Role.ANNOTATOR,
        widget=forms.RadioSelect,
    )
    label = forms.CharField(
        label=_("Label"), required=False, max_length=100, help_text=_("A note for you: who gets this invitation.")
    )
    email = forms.CharField(
        label=_("E-mail addresses"),
        required=False,
        max_length=20_000,
        help_text=_(
            "One a line; each gets a mail with a link for one person. Empty: you get a link and send it yourself."
        ),
        widget=forms.Textarea(attrs={"rows": 3, "autocapitalize": "none", "spellcheck": "false"}),
    )
    max_uses = forms.IntegerField(
        label=_("Number of people"),
        initial=1,
        min_value=1,
        max_value=10_000,
        help_text=_("For a link that you send yourself."),
    )
    days = forms.IntegerField(label=_("Valid for (days)"), initial=14, min_value=1, max_value=365)
    landing = forms.CharField(
        label=_("First page"),
        required=False,
        max_length=200,
        help_text=_(
            "A page of this site, such as /my/. Empty: the start page. The page of a campaign limits annotators to "
            "that campaign."
        ),
    )

    def __init__(self, *args: Any, may_mail: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not may_mail:
            self.fields["email"].disabled = True
            self.fields["email"].help_text = _(
                "This site sends no mail: create a link and send it yourself, or ask an administrator to set EMAIL_URL."
            )

    def clean_email(self) -> list[str]:
        """Return the addresses."""
        return [address for address in re.split(r"[\s,;]", self.cleaned_data["email"]) if address]


class RoleForm(forms.Form):
    role = forms.ChoiceField(choices=Role.choices)
    all_campaigns = forms.BooleanField(required=False)
