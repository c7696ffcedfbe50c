"""Forms for creating a corpus and adding to it."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from evalapp.accounts.models import Project

from .models import Corpus, CorpusPart
from .selectors.derived import count_rows
from .services.corpora import DERIVED

FILE = CorpusPart.Kind.FILE.value


def add_faults(form: forms.Form, error: Any) -> None:
    """Show the faults of an error at their fields, or above the form."""
    placed = False
    for fault in error.faults:
        name = "source_kind" if fault.field == "derive" else fault.field
        if name in form.fields:
            form.add_error(name, fault.message)
            placed = True
    if not placed:
        form.add_error(None, error.detail)


class AddForm(forms.Form):
    """The source of new pairs: a file, or rows of the project."""

    source_kind = forms.ChoiceField(label=_("Source of the pairs"), widget=forms.RadioSelect, initial=FILE)
    file = forms.FileField(
        label=_("File"),
        required=False,
        allow_empty_file=True,
        help_text=_(
            'corpus.jsonl with rows <code>{"query": "...", "response": "..."}</code>, or CSV or TSV with these '
            "columns, plain or gzip. Additional columns are stored; licence and source of a row override those below."
        ),
    )

    def __init__(self, *args: Any, project: Project, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        words = {
            CorpusPart.Kind.DIALOGUES.value: _("each turn of the project's dialogues with the turn after it"),
            CorpusPart.Kind.CORPUS.value: _("the rows of corpus.jsonl that were uploaded to the project"),
            CorpusPart.Kind.ITEMS.value: _("the last turn of each item with each of its references"),
        }
        kinds = [
            (
                kind,
                _("%(words)s (%(n)s %(kind)s)") % {"words": words[kind], "n": f"{count:,}", "kind": _(DERIVED[kind])},
            )
            for kind in DERIVED
            if (count := count_rows(project, kind))
        ]
        self.fields["source_kind"].choices = [(FILE, _("a file")), *kinds]  # type: ignore[attr-defined]

    def clean(self) -> dict[str, Any]:
        given = super().clean() or {}
        if given.get("source_kind") == FILE and not given.get("file"):
            self.add_error("file", _("Choose a file."))
        return given


class CorpusForm(AddForm):
    """A new corpus with its first part."""

    field_order = ("name", "source_kind", "file", "language", "tokenizer", "licence", "source", "shared")

    name = forms.SlugField(label=_("Name"), max_length=63, help_text=_("a-z, 0-9 and hyphens, for example daily-talk."))
    language = forms.CharField(label=_("Language"), max_length=20, help_text=_("A code such as en, de, zh or pt-BR."))
    tokenizer = forms.ChoiceField(
        label=_("Tokenizer"),
        required=False,
        choices=[("", _("default for the language")), *Corpus.Tokenizer.choices],
        help_text=_("Words for scripts with spaces, characters for Chinese, Japanese and Thai."),
    )
    licence = forms.CharField(
        label="Licence",
        max_length=500,
        required=False,
        help_text=_("Shown with every candidate and stored with every reference."),
    )
    source = forms.CharField(
        label=_("Source"), max_length=500, required=False, help_text=_("Origin of the pairs: a name or an address.")
    )
    shared = forms.BooleanField(
        label=_("Share with all projects of this installation"),
        required=False,
        help_text=_("All members of any project can then search it."),
    )

    def __init__(self, *args: Any, project: Project, may_share: bool, **kwargs: Any) -> None:
        super().__init__(*args, project=project, **kwargs)
        self.fields["language"].initial = project.lang
        self.fields["licence"].initial = project.licence[:500]
        if not may_share:
            del self.fields["shared"]
        self.order_fields(self.field_order)
