"""The upload page's guide: the tables that people bring, their columns, and a sample file of each."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from django.utils.translation import gettext_lazy as _

SAMPLES = Path(__file__).parent / "samples"


class Column(NamedTuple):
    name: str
    meaning: Any
    is_needed: bool = False


class Table(NamedTuple):
    name: str
    meaning: Any
    columns: tuple[Column, ...]

    @property
    def sample(self) -> str:
        return f"{self.name}.csv"


_ITEM = Column("item", _("id of the item"), True)
_SYSTEM = Column("system", _("name of the system"), True)
_META = Column("meta", _("a JSON object with anything else, for filters and analyses"))
_STEP = Column("step", _("training step of the system, for checkpoints"))
_SIMULATED = Column("simulated", _("true if a program made the judgement; it is marked wherever it appears"))
_RATER = Column("rater", _("name or number of the person"), True)
_ASPECT = Column("aspect", _("what was judged, for example fluency"), True)

TABLES = (
    Table(
        "items",
        _("what the systems were given"),
        (
            Column("id", _("your own id of the item"), True),
            Column("context", _("a text, or a JSON list of turns, oldest first")),
            Column("source", _("the input of data-to-text or translation, if there is one")),
            Column("references", _("a text by people, or a JSON list of several")),
            Column("group", _("items that belong together, such as one story; training never splits a group")),
            _META,
        ),
    ),
    Table(
        "outputs",
        _("what the systems wrote"),
        (
            _ITEM,
            _SYSTEM,
            Column("text", _("the output; may be empty"), True),
            _STEP,
            _META,
        ),
    ),
    Table(
        "ratings",
        _("ratings that you have already"),
        (
            _ITEM,
            _SYSTEM,
            Column("dialogue", _("id of a dialogue, instead of item and system, if the whole dialogue was rated")),
            _RATER,
            _ASPECT,
            Column("value", _("a number; higher is better"), True),
            _STEP,
            _SIMULATED,
            _META,
        ),
    ),
    Table(
        "comparisons",
        _("comparisons of two outputs that you have already"),
        (
            _ITEM,
            Column("system_a", _("the first system"), True),
            Column("system_b", _("the second system, or a reference: {\"reference\": 0}"), True),
            _RATER,
            _ASPECT,
            Column("verdict", _("a, b, tie, both_bad or cannot_decide"), True),
            Column("step_a", _("training step of the first system")),
            Column("step_b", _("training step of the second system")),
            _SIMULATED,
            _META,
        ),
    ),
    Table(
        "scores",
        _("scores of metrics and models that you have already"),
        (
            Column("item", _("id of the item; leave it out for the score of a whole system")),
            _SYSTEM,
            Column("evaluator", _("name of the metric or model"), True),
            Column("score", _("a number; empty: the evaluator has no score for this output"), True),
            Column("reference_set", _("the references that it compared with, such as original")),
            Column("higher_is_better", _("false for error rates and distances, whose scores are negated")),
            Column("signature", _("version and settings of the evaluator, for papers")),
            Column("aspect", _("the aspect, if the evaluator scores several")),
            Column("note", _("why there is no score")),
            _STEP,
        ),
    ),
    Table(
        "dialogues",
        _("whole dialogues"),
        (
            Column("id", _("your own id of the dialogue"), True),
            Column("turns", _("a JSON list of turns, oldest first"), True),
            Column("system", _("the system that took part")),
            Column("speakers", _("a JSON list with a speaker for each turn")),
            _META,
        ),
    ),
)  # fmt: skip


def find_sample(name: str) -> Path | None:
    """Return the sample file with this name; None if there is none."""
    return next((SAMPLES / table.sample for table in TABLES if table.sample == name), None)
