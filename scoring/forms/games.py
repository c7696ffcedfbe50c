"""The form of games by an evaluator, below its leaderboard of systems."""

from django import forms
from django.utils.translation import gettext_lazy, gettext_noop

from annotation.models.data import ORIGINAL
from scoring.forms.fields import SeedField, number_field
from scoring.services.reports import GamesOptions

#: What a game counts: label, and options of the evaluator. A rule for draws needs draws.
COUNTS: dict[str, tuple[str, dict[str, str]]] = {
    "": (gettext_noop("default of the evaluator"), {}),
    "expected": (gettext_noop("expected outcome: p(better) + p(tie) / 2"), {"outcome": "expected"}),
    "half": (gettext_noop("verdict; a draw is half a win"), {"outcome": "verdict", "tie_rule": "half"}),
    "paper": (
        gettext_noop("verdict; a draw is a tenth of a win or loss (paper)"),
        {"outcome": "verdict", "tie_rule": "paper"},
    ),
}


class GamesForm(forms.Form):
    """Options of games. Evaluator, systems and references are chosen above the table."""

    by = forms.CharField(widget=forms.HiddenInput, max_length=200)
    systems = forms.CharField(widget=forms.HiddenInput, max_length=20, required=False)
    references = forms.CharField(widget=forms.HiddenInput, max_length=200, required=False)
    items = number_field(
        GamesOptions, "items", gettext_lazy("Maximum items"),
        gettext_lazy("Sampled with the seed, the same for all systems. Time grows linearly."),
    )  # fmt: skip
    seeds = number_field(
        GamesOptions, "seeds", gettext_lazy("Simulations"),
        gettext_lazy("Verdicts are computed once; games are simulated from them."),
    )  # fmt: skip
    seed = SeedField(help_text=gettext_lazy("Samples items and games."))
    counts = forms.ChoiceField(
        choices=[(name, gettext_lazy(text)) for name, (text, _options) in COUNTS.items()],
        required=False,
        label=gettext_lazy("Outcome of a game"),
    )

    def as_options(self) -> GamesOptions:
        given = self.cleaned_data
        options = COUNTS[given["counts"]][1]
        return GamesOptions(
            given["by"], given["systems"] or "all", given["references"] or ORIGINAL, {**options}, given["items"],
            given["seeds"], given["seed"],
        )  # fmt: skip
