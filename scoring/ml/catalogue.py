"""The entry of an evaluator in the catalogue, its options and profiles.

`registry.py` lists all entries. No torch here: the web process reads the catalogue.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Literal, NoReturn, TypeAlias, cast

from evalapp.translation import gettext as _
from scoring.ml.errors import InvalidOption, InvalidOptions, NotTrained, need_package
from scoring.ml.option_checks import Check

OptionValue: TypeAlias = bool | int | float | str | None
Kind: TypeAlias = Literal["sentinel", "baseline", "trained"]
Need: TypeAlias = Literal["references", "context", "encoder"]
#: The kinds of data a training reads; `judgements` are ratings or comparisons.
TrainNeed: TypeAlias = Literal["ratings", "comparisons", "judgements", "references", "outputs", "dialogues", "steps"]
PAPER, RECOMMENDED = "paper", "recommended"


@dataclass(frozen=True, slots=True)
class Option:
    """A keyword of `load(name, ...)` or `fit(name, ...)`: type, default and help text, which pages show through
    gettext."""

    name: str
    type: Literal["bool", "int", "float", "str"]
    default: OptionValue
    help: str
    choices: tuple[str, ...] = ()
    minimum: float | None = None
    #: Pages show advanced options collapsed.
    advanced: bool = False
    #: Whether it may be empty (None, an empty text or "none") although it has a default.
    optional: bool = False
    #: Whether it names a model or a folder on the scoring machine; web users may only name allowed ones.
    names_model: bool = False
    maximum: float | None = None
    #: A further check of the value.
    check: Check | None = None
    #: The error if a required option without a default is missing.
    needed: str = ""

    def parse(self, evaluator: str, value: Any) -> OptionValue:
        """Convert a value, possibly text from a form or a command line, to the option's type. Raises
        `InvalidOption`."""
        absent = value is None or (self.type != "str" and str(value).strip().lower() in ("", "none"))
        if absent and (self.optional or self.default is None):
            return None
        parsed = self._convert(evaluator, value)
        if self.choices and parsed not in self.choices:
            raise InvalidOption(evaluator, self.name, _("must be one of %(choices)s"), choices=", ".join(self.choices))
        if self.minimum is not None and isinstance(parsed, int | float) and parsed < self.minimum:
            raise InvalidOption(evaluator, self.name, _("must be at least %(minimum)s"), minimum=f"{self.minimum:g}")
        if self.maximum is not None and isinstance(parsed, int | float) and parsed > self.maximum:
            raise InvalidOption(evaluator, self.name, _("must be at most %(maximum)s"), maximum=f"{self.maximum:g}")
        if self.check is not None and (wrong := self.check(parsed)):
            raise InvalidOption(evaluator, self.name, wrong)
        return parsed

    def _convert(self, evaluator: str, value: Any) -> OptionValue:
        if self.type == "bool":
            if isinstance(value, bool):
                return value
            words = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
            if str(value).lower() in words:
                return words[str(value).lower()]
            raise InvalidOption(evaluator, self.name, _("must be true or false, found %(value)r"), value=value)
        if self.type == "str":
            return str(value)
        if isinstance(value, bool):
            raise InvalidOption(evaluator, self.name, _("must be a number, found %(value)r"), value=value)
        wrong = (
            _("must be a whole number, found %(value)r")
            if self.type == "int"
            else _("must be a number, found %(value)r")
        )
        try:
            result = int(value) if self.type == "int" else float(value)
            finite = math.isfinite(result)  # raises for more digits than a float can hold
        except (TypeError, ValueError, OverflowError) as error:
            raise InvalidOption(evaluator, self.name, wrong, value=value) from error
        # int(1.5) would be 1, and comparisons with nan are always false.
        if not finite or (isinstance(value, float) and result != value):
            raise InvalidOption(evaluator, self.name, wrong, value=value)
        return result


def must_be_trained(entry: Entry, options: dict[str, OptionValue]) -> NoReturn:
    """`Entry.build` of learned evaluators, which cannot be loaded by name. Raises `NotTrained` for the `entry`,
    whatever the `options`."""
    raise NotTrained(entry.name)


def _load_class(place: str) -> type[Any]:
    module, _, name = place.partition(":")
    need_package("torch", f"a trained evaluator ({name})")
    return cast("type[Any]", getattr(import_module(module), name))


@dataclass(frozen=True, slots=True)
class Entry:
    """An evaluator in the catalogue; pages show its summary through gettext.

    `build` makes the evaluator (a `base.Evaluator`). `scale` is the range of a score (None = open); `level` is where
    the evaluator is defined; `system_score` says whether a system's score is the mean over its texts or computed from
    all together. `options` are the options of scoring. Learned evaluators also have `implementation` and
    `cross_fitted`, the classes for one model and for one model per fold ("module:class", imported on demand),
    `train_options`, the data they need (`train_needs`) and defaults that differ by profile. `aspect`: whether it learns
    none, one or many of the rated aspects. `compares`: it has `compare` and `rank`. `judges_references`: it has
    `reliability`.
    """

    name: str
    summary: str
    scale: tuple[float | None, float | None]
    kind: Kind = "baseline"
    build: Callable[[Entry, dict[str, OptionValue]], Any] = must_be_trained
    needs: tuple[Need, ...] = ()
    options: tuple[Option, ...] = ()
    level: Literal["segment", "system"] = "segment"
    system_score: Literal["mean", "corpus"] = "mean"
    profiles: tuple[str, ...] = ()
    citation: str = ""
    #: Keys of its papers in `scoring.ml.papers`.
    papers: tuple[str, ...] = ()
    implementation: str = ""
    cross_fitted: str = "scoring.ml.cross_fitted:CrossFitted"
    train_options: tuple[Option, ...] = ()
    train_needs: tuple[TrainNeed, ...] = ()
    aspect: Literal["none", "one", "many"] = "none"
    compares: bool = False
    judges_references: bool = False
    profile_defaults: Mapping[str, Mapping[str, OptionValue]] = field(default_factory=dict)
    #: Whether a text that equals a reference gets the top of the scale.
    identical_is_best: bool = True
    #: Closes the signature. Count it up whenever a change of the code changes a score.
    revision: int = 1
    #: Name and version of the package that brings it, such as `my-metric 1.2`; "" if it is part of evalapp.
    plugin: str = ""

    @property
    def learns(self) -> bool:
        """Whether it must be trained before it can score."""
        return bool(self.implementation)

    @property
    def loads_by_name(self) -> bool:
        """Whether it can be loaded without options."""
        return not any(option.needed for option in self.options)

    @property
    def pairwise(self) -> bool:
        """Whether it compares a text with one reference at a time (`base.PairEvaluator`)."""
        return bool(getattr(self.build, "pairwise", False))

    def load_implementation(self) -> type[Any]:
        """Import `implementation`, a `trained.TrainedEvaluator`, and torch with it."""
        return _load_class(self.implementation)

    def load_cross_fitted(self) -> type[Any]:
        """Import `cross_fitted`, a `cross_fitted.CrossFitted`."""
        return _load_class(self.cross_fitted)

    def parse_options(self, given: Mapping[str, Any]) -> dict[str, OptionValue]:
        """All scoring options with their values: defaults, overridden by `given`. Raises `InvalidOption`, or
        `InvalidOptions` if several are wrong."""
        return self._parse(self.options, given, {})

    def parse_train_options(self, profile: str, given: Mapping[str, Any]) -> dict[str, OptionValue]:
        """All training options with their values: the profile's defaults, overridden by `given`.

        Raises `InvalidOption`, also for an unknown profile, or `InvalidOptions` if several are wrong.
        """
        if profile not in self.profiles:
            text = _("must be one of %(profiles)s")
            raise InvalidOption(self.name, "profile", text, profiles=", ".join(self.profiles) or "none")
        return self._parse(self.train_options, given, self.profile_defaults.get(profile, {}))

    def train_defaults(self, profile: str) -> dict[str, OptionValue]:
        """The training options of a profile."""
        return self.parse_train_options(profile, {})

    def _parse(
        self, options: tuple[Option, ...], given: Mapping[str, Any], defaults: Mapping[str, OptionValue]
    ) -> dict[str, OptionValue]:
        known = {option.name: option for option in options}
        names = ", ".join(known) or "none"
        faults = [
            InvalidOption(self.name, name, _("does not exist; it has: %(names)s"), names=names)
            for name in given
            if name not in known
        ]
        parsed: dict[str, OptionValue] = {}
        for name, option in known.items():
            try:
                value = option.parse(self.name, given[name]) if name in given else defaults.get(name, option.default)
                if option.needed and not value:
                    raise InvalidOption(self.name, name, option.needed)
                parsed[name] = value
            except InvalidOption as error:
                faults.append(error)
        if faults:
            raise faults[0] if len(faults) == 1 else InvalidOptions(faults)
        return parsed
