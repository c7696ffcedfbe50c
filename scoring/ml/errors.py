"""The errors of `scoring.ml`. Each has its facts as fields and names the way out in its message."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec

from evalapp.extras import explain_install, find_extra
from evalapp.translation import gettext as _


class ScoringError(ValueError):
    """Base of all errors that users of the library can cause and fix."""


class DatasetError(ScoringError):
    """A row or file of an interchange folder that cannot be read."""

    def __init__(self, file: str, line: int | None, message: str) -> None:
        self.file, self.line, self.message = file, line, message
        place = file if line is None else f"{file}:{line}"
        super().__init__(f"{place}: {message}")


class UnknownEvaluator(ScoringError):
    """Neither a name in the catalogue nor a folder of a saved evaluator."""

    def __init__(self, name: str, near: Sequence[str]) -> None:
        self.name, self.near = name, tuple(near)
        hint = f" Did you mean {', '.join(near)}?" if near else ""
        super().__init__(
            f"There is no evaluator named {name!r} and no folder of that name holds a saved one.{hint} "
            "scoring.ml.catalogue() lists all names."
        )


class InvalidOption(ScoringError):
    """An option the evaluator does not have, or a value it cannot take. `values` are filled into the message."""

    def __init__(self, evaluator: str, option: str, message: str, **values: object) -> None:
        message = message % values if values else message
        self.evaluator, self.option, self.message = evaluator, option, message
        text = _("%(evaluator)s: option %(option)r %(message)s")
        super().__init__(text % {"evaluator": evaluator, "option": option, "message": message})
        #: All invalid options.
        self.faults: tuple[InvalidOption, ...] = (self,)


class InvalidCall(InvalidOption):
    """A call that does not fit this kind of evaluator or its data; `option` is the name of the call."""

    def __init__(self, evaluator: str, call: str, message: str) -> None:
        super().__init__(evaluator, call, message)
        self.args = (f"{evaluator}: {call}() {message}",)


class InvalidRecords(ScoringError, TypeError):
    """An argument that is not a list of records, or not a dataset."""


class InvalidOptions(InvalidOption):
    """Several invalid options; `option` is the first."""

    def __init__(self, faults: Sequence[InvalidOption]) -> None:
        first, *rest = faults
        said = "".join(f"; option {fault.option!r} {fault.message}" for fault in rest)
        super().__init__(first.evaluator, first.option, f"{first.message}{said}")
        self.faults = tuple(faults)


class MissingPackage(ScoringError, ImportError):
    """A package of another extra that is not installed. `what` needs it."""

    def __init__(self, package: str, what: str) -> None:
        self.package = package
        super().__init__(f"{what} needs {package}, which is not installed. {explain_install(find_extra(package))}")


def need_package(package: str, what: str) -> None:
    """Raise `MissingPackage` if `package`, which `what` needs, is not installed."""
    if find_spec(package) is None:
        raise MissingPackage(package, what)


class EncoderError(ScoringError):
    """An encoder that is not on this machine, or that may not be loaded."""

    def __init__(self, encoder: str, message: str) -> None:
        self.encoder = encoder
        super().__init__(f"encoder {encoder!r}: {message}")


class NotTrained(ScoringError):
    """A learned evaluator that was requested by its name alone."""

    def __init__(self, evaluator: str, shipped: Sequence[str] = ()) -> None:
        self.evaluator = evaluator
        hint = f" Trained already: load({shipped[0]!r})." if shipped else ""
        super().__init__(
            f"{evaluator} has to be trained first: fit({evaluator!r}, dataset) gives one, and load() takes the "
            f"folder that its save_pretrained wrote.{hint}"
        )


class TrainingDataError(ScoringError):
    """Data an evaluator cannot learn from; raised before any training starts. `values` are filled into the message."""

    def __init__(self, evaluator: str, message: str, **values: object) -> None:
        self.evaluator = evaluator
        message = message % values if values else message
        super().__init__(
            _("%(evaluator)s cannot be trained: %(message)s") % {"evaluator": evaluator, "message": message}
        )


class TooFewData(TrainingDataError):
    """Data of the right kind, but not enough; the caller that held out a part can say so."""


class TrainingDiverged(ScoringError):
    """A training whose weights are no longer finite."""

    def __init__(self, evaluator: str) -> None:
        self.evaluator = evaluator
        super().__init__(
            f"{evaluator}: the training diverged: its weights are no longer finite. Use a smaller learning_rate, or "
            "train_dtype=fp32 instead of bf16."
        )


class ProcessDied(ScoringError):
    """One process of a shared training failed; the others were ended."""

    def __init__(self, evaluator: str, number: int, of: int, how: str, last_lines: str) -> None:
        self.evaluator, self.number, self.of, self.last_lines = evaluator, number, of, last_lines
        said = f" Its last lines:\n{last_lines}" if last_lines else ""
        super().__init__(
            f"{evaluator}: process {number} of the {of} that share the training {how}. Checkpoints are kept; a restart "
            f"continues from the last one.{said}"
        )


class ArtefactError(ScoringError):
    """A folder that lacks files of a saved evaluator, or whose files do not fit each other."""

    def __init__(self, folder: str, message: str) -> None:
        self.folder = folder
        super().__init__(f"{folder}: {message}")


class HubError(ScoringError):
    """A model on the hub that cannot be fetched or sent."""

    def __init__(self, model: str, message: str) -> None:
        self.model = model
        super().__init__(f"{model}: {message}")
