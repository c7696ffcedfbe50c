"""The kinds of study, and the variants of an evaluator that they compare. No torch here.

Explained in docs/explanation/evaluators/studies.md."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from evalapp.translation import gettext as _
from evalapp.translation import gettext_noop
from scoring.ml.catalogue import Entry, OptionValue
from scoring.ml.errors import InvalidOption
from scoring.ml.registry import get_entry

Options: TypeAlias = Mapping[str, OptionValue]
#: The evaluators that the papers propose.
PROPOSED = ("comparative", "ream", "perception", "shared-bert", "maude")
FULL = gettext_noop("full model")
#: The evaluator that a trained one must beat to earn its cost.
RIVAL = "ridge"


@dataclass(frozen=True)
class Variant:
    """An evaluator with `options` of its training and of `scoring`, and its name in the table.

    `needs`: options with which the training refuses data without whatever this variant leaves out; such a variant would
    equal the full model, so it is left out. `is_rival`: added to the study to be compared with; it has no options of
    its own, and is trained once.
    """

    label: str
    evaluator: str
    options: Options = field(default_factory=dict)
    scoring: Options = field(default_factory=dict)
    needs: Options = field(default_factory=dict)
    is_rival: bool = False


def _ablate(evaluator: str, *rows: tuple[Any, ...]) -> tuple[Variant, ...]:
    return (Variant(FULL, evaluator), *(Variant(row[0], evaluator, *row[1:]) for row in rows))


_OTHERS = ("bert-nli", "infersent", "ruber")
#: The variants of each evaluator, first the whole. Sources: Zhou and Xu 2020, table 5; Gu, Wu and Yu 2021, table 4;
#: Reddy 2022, tables 4 and 5; Sinha et al. 2020, section 4 and appendix C (its rivals are ablations of the context
#: encoder). Gao et al. 2021 print no ablation: the parts of the contrastive loss (equation 7).
ABLATIONS: Mapping[str, tuple[Variant, ...]] = {
    "comparative": _ablate(
        "comparative",
        (gettext_noop("w/o comparison"), {"comparison": False}),
        (gettext_noop("w/o tie option"), {"tie": False}),
        (gettext_noop("w/o strong supervision"), {"strong": "no"}, {}, {"strong": "yes"}),
        (gettext_noop("w/o weak supervision"), {"weak": "no"}, {}, {"weak": "yes"}),
        (gettext_noop("w/o human annotation"), {"human": "no"}, {}, {"human": "yes"}),
        # A random encoder has to learn, and the head with it.
        (gettext_noop("w/o pre-training"), {"pretrained": False, "stages": "together"}),
    ),
    "perception": _ablate(
        "perception",
        (gettext_noop("w/o model uncertainty"), {}, {"uncertainty": "data"}),
        (gettext_noop("w/o data uncertainty"), {"confidence": False}, {"uncertainty": "model"}),
        (gettext_noop("w/o both uncertainties"), {"confidence": False}, {"uncertainty": "none"}),
        (gettext_noop("w/o context"), {"inputs": "text"}),
    ),
    "shared-bert": _ablate("shared-bert", (gettext_noop("one encoder per aspect"), {"shared": False})),
    "maude": (
        *_ablate(
            "maude",
            (gettext_noop("w/o syntactic negatives"), {"negatives": "semantics"}),
            (gettext_noop("w/o semantic negatives"), {"negatives": "syntax"}),
        ),
        *(Variant(name, name) for name in _OTHERS),
    ),
    "ream": _ablate(
        "ream",
        (gettext_noop("w/o contrastive loss"), {"contrast": 0.0}),
        (gettext_noop("w/o removed references"), {"negatives": "add,replace"}),
        (gettext_noop("w/o added references"), {"negatives": "remove,replace"}),
        (gettext_noop("w/o replaced references"), {"negatives": "remove,add"}),
    ),
}
#: Labels of rows that are translated; all others are names.
LABELS = frozenset(row.label for rows in ABLATIONS.values() for row in rows if row.label != row.evaluator)


def _any(entry: Entry) -> bool:
    return entry.level == "segment" and entry.loads_by_name


def _learns(entry: Entry) -> bool:
    return entry.learns


@dataclass(frozen=True)
class Kind:
    """A kind of study: the evaluators it `accepts` and compares by default, and the function of `measures` that gives
    the cells of a step. `source`: the tables of papers that have this form.

    `tests`: whether the variance of the figures is split into rows and seeds. `figure`: the picture of the table.
    """

    name: str
    title: str
    summary: str
    source: str
    measure: str
    accepts: Callable[[Entry], bool]
    defaults: tuple[str, ...] = ()
    tests: bool = False
    figure: Literal["rows", "lines"] = "rows"

    @property
    def has_rival(self) -> bool:
        """Whether the figures are agreement with people, so that trained evaluators must beat the rival."""
        return self.measure in ("measure_agreement", "measure_selections", "measure_systems")

    @property
    def compares_variants(self) -> bool:
        """Whether rows are variants that were trained and tested alike, so that each is compared with the first."""
        return self.measure == "measure_agreement"


_LISTED = (
    Kind(
        "seeds",
        gettext_noop("Spread over seeds"),
        gettext_noop(
            "Trains with several seeds: mean, standard deviation, and analysis of variance between evaluators."
        ),
        "Reddy 2022, tables 4 and 5",
        "measure_agreement",
        _learns,
        ("shared-bert",),
        tests=True,
    ),
    Kind(
        "ablation",
        gettext_noop("Ablation"),
        gettext_noop("Trains an evaluator without each of its parts, and compares it with the full model."),
        "Zhou and Xu 2020, table 5; Gu, Wu and Yu 2021, table 4; Reddy 2022, tables 4 and 5",
        "measure_agreement",
        lambda entry: entry.name in ABLATIONS,
        ("shared-bert",),
        tests=True,
    ),
    Kind(
        "side-by-side",
        gettext_noop("Side by side"),
        gettext_noop(
            "Trains all evaluators on the same items and tests them, with trivial baselines, on the same others."
        ),
        "Zhou and Xu 2020, tables 1 and 2; Gu, Wu and Yu 2021, table 2",
        "measure_agreement",
        _any,
        (*PROPOSED, "ridge", "token-f1", "length", "overlap", "random"),
        tests=True,
    ),
    Kind(
        "p-sys",
        gettext_noop("Scores of systems"),
        gettext_noop(
            "Scores whole systems by discriminators with several seeds: do systems differ more than seeds do?"
        ),
        "Gu, Wu and Yu 2021, equation 14",
        "measure_systems",
        lambda entry: entry.learns and entry.system_score == "corpus",
        ("perception",),
        tests=True,
    ),
    Kind(
        "delta",
        gettext_noop("Changed replies"),
        gettext_noop("How far the score of a true reply falls when it is broken or exchanged."),
        "Sinha et al. 2020, table 1",
        "measure_deltas",
        lambda entry: entry.learns and entry.train_needs == ("dialogues",),
        ("maude",),
    ),
    Kind(
        "robustness",
        gettext_noop("Robustness"),
        gettext_noop("Scores by kind of text: by machines, paraphrased, better, and wrong with nearly the same words."),
        "Gu, Wu and Yu 2021, table 3",
        "measure_robustness",
        _any,
        ("perception", "token-f1", "bleu-1"),
    ),
    Kind(
        "selection",
        gettext_noop("Selection of checkpoints"),
        gettext_noop("How often each evaluator selects the checkpoint or variant that people prefer."),
        "Zhou and Xu 2020, table 3",
        "measure_selections",
        _any,
        ("comparative", "adem", "adversarial", "bleu-avg", "length"),
    ),
    Kind(
        "reliability",
        gettext_noop("Reliability of references"),
        gettext_noop("Predicted and measured reliability by number of references, with the error of the prediction."),
        "Gao et al. 2021, table 2 and figure 1",
        "measure_reliability",
        lambda entry: entry.judges_references,
        ("ream",),
        figure="lines",
    ),
)
KINDS: Mapping[str, Kind] = {kind.name: kind for kind in _LISTED}


def get_kind(name: str) -> Kind:
    """Return the kind of study of this `name`. Raises `InvalidOption` for an unknown one."""
    if name not in KINDS:
        raise InvalidOption(
            "study", "kind", _("must be one of %(known)s, not “%(name)s”"), known=", ".join(KINDS), name=name
        )
    return KINDS[name]


def list_variants(kind: Kind, evaluators: Sequence[str] = ()) -> tuple[Variant, ...]:
    """Return the variants that a study of this `kind` compares; without `evaluators` those of the kind. Where trained
    evaluators are compared with people, the rival is among them.

    Raises `InvalidOption` for an evaluator that this kind does not accept.
    """
    names = tuple(dict.fromkeys(evaluators)) or kind.defaults
    for name in names:
        entry = get_entry(name)
        if not kind.accepts(entry):
            known = ", ".join(other for other in _list_names() if kind.accepts(get_entry(other)))
            text = _("is not for a study of the kind %(kind)s, which takes: %(known)s")
            raise InvalidOption(name, "evaluators", text, kind=kind.name, known=known)
    if kind.name == "ablation":
        if len(names) > 1:
            raise InvalidOption(names[1], "evaluators", _("is one too many: an ablation has one evaluator"))
        variants = ABLATIONS[names[0]]
    else:
        variants = tuple(Variant(name, name) for name in names)
    if kind.has_rival and RIVAL not in names and any(get_entry(name).learns for name in names):
        return (*variants, Variant(RIVAL, RIVAL, is_rival=True))
    return variants


def _list_names() -> list[str]:
    from scoring.ml.registry import catalogue

    return [entry.name for entry in catalogue()]
