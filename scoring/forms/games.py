"""The form that lets an evaluator rank the systems by games, below the table of systems by that evaluator."""

from __future__ import annotations

from django import forms

from annotation.models.data import ORIGINAL
from evalapp.common.params import bounds
from scoring.services.games import ITEMS, SEEDS, GamesWishes

#: What a game counts, as people choose it: words, and the evaluator's options. A rule of draws needs draws.
COUNTS: dict[str, tuple[str, dict[str, str]]] = {
    "": ("as the evaluator’s profile says", {}),
    "expected": ("what is expected: p(better) + p(tie) / 2", {"outcome": "expected"}),
    "half": ("the verdict, a draw half a win", {"outcome": "verdict", "tie_rule": "half"}),
    "paper": ("the verdict, a draw a tenth of a win or loss (the paper)", {"outcome": "verdict", "tie_rule": "paper"}),
}


def _number(name: str, initial: int, label: str, help_text: str) -> forms.IntegerField:
    low, high = bounds(GamesWishes, name)
    return forms.IntegerField(initial=initial, min_value=low, max_value=high, label=label, help_text=help_text)


class GamesForm(forms.Form):
    """What `GamesWishes` asks, for people; which evaluator, systems and references stands above the table."""

    by = forms.CharField(widget=forms.HiddenInput, max_length=200)
    systems = forms.CharField(widget=forms.HiddenInput, max_length=20, required=False)
    references = forms.CharField(widget=forms.HiddenInput, max_length=200, required=False)
    items = _number(
        "items", ITEMS, "Items, at most", "Drawn by the seed, the same for all systems. Twice as many, twice the time."
    )  # fmt: skip
    seeds = _number(
        "seeds", SEEDS, "Simulations", "The verdicts are made once; games are drawn from them so many times."
    )
    seed = _number("seed", 13, "Seed", "Draws the items and the games.")
    counts = forms.ChoiceField(
        choices=[(name, words) for name, (words, _) in COUNTS.items()], required=False, label="A game counts"
    )

    @property
    def wishes(self) -> GamesWishes:
        given = self.cleaned_data
        options = COUNTS[given["counts"]][1]
        return GamesWishes(
            given["by"], given["systems"] or "all", given["references"] or ORIGINAL, {**options}, given["items"],
            given["seeds"], given["seed"],
        )  # fmt: skip
