"""Calibrated verdicts: probabilities and the share of ties fitted to human verdicts on held-out groups. No torch.

Explained in docs/explanation/evaluators/comparative.md#calibration.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

from scoring.ml.evaluators.comparative.verdicts import Floats, Signs, decide_signs, measure_lean, softmax

#: Human verdicts and groups that a calibration needs.
LEAST_PAIRS, LEAST_GROUPS = 30, 5
#: Parts of the groups that are left out in turn for the figures of the card.
FOLDS = 5
#: The least temperature: of a network that knows nothing on the held-out pairs.
LEAST_SCALE = 1e-3
# Probabilities below this count as this: a logarithm must be finite.
_FLOOR = 1e-9


@dataclass(frozen=True)
class Calibration:
    """From logits of better over worse z and of tie over both t: logits (scale z / 2, tie + evidence t, -scale z / 2).

    This is Davidson's (1970) model of ties with a temperature and with the network's own evidence for a tie. A pair
    whose p(better) and p(worse) differ by at most `threshold` is called tied.
    """

    scale: float
    tie: float
    evidence: float
    threshold: float

    def calibrate(self, probabilities: Floats) -> Floats:
        """Return calibrated probabilities (n, 3) of worse, tie, better from those of the network."""
        lean, tie = measure_logits(probabilities)
        return _calibrated(np.array([self.scale, self.tie, self.evidence]), lean, tie)

    def as_dict(self) -> dict[str, float]:
        """The four numbers, for an artefact."""
        return asdict(self)


def measure_logits(probabilities: Floats) -> tuple[Floats, Floats]:
    """Return ln p(better) - ln p(worse), and ln p(tie) - (ln p(better) + ln p(worse)) / 2, both (n,)."""
    worse, tie, better = np.log(np.maximum(probabilities, _FLOOR)).T
    return better - worse, tie - (better + worse) / 2


def _calibrated(numbers: Floats, lean: Floats, tie: Floats) -> Floats:
    scale, level, evidence = numbers
    return softmax(np.stack([-scale * lean / 2, level + evidence * tie, scale * lean / 2], axis=1))


def fit_calibration(probabilities: Floats, targets: Floats) -> Calibration:
    """Return the calibration with the least cross-entropy of `targets`, whose share of ties is that of the targets.

    `probabilities` and `targets` are (n, 3): the network's, and the shares of human verdicts worse, tie, better.
    """
    lean, tie = measure_logits(probabilities)
    both = measure_lean(targets)

    def loss(numbers: Floats) -> tuple[float, Floats]:
        result = _calibrated(numbers, lean, tie)
        value = -float((targets * np.log(np.maximum(result, _FLOOR))).sum(axis=1).mean())
        rest = result - targets
        slope = np.array([
            -(lean / 2 * (both - measure_lean(result))).mean(), rest[:, 1].mean(), (rest[:, 1] * tie).mean(),
        ])  # fmt: skip
        return value, slope

    # A negative scale would turn the verdicts of the network round, and 0 would leave no order of the pairs.
    found = minimize(
        loss, np.array([1.0, 0.0, 1.0]), jac=True, method="L-BFGS-B", bounds=[(LEAST_SCALE, 20), (-20, 20), (0, 20)]
    )
    scale, level, evidence = (float(value) for value in found.x)
    fitted = _calibrated(found.x, lean, tie)
    return Calibration(scale, level, evidence, choose_threshold(fitted, float((decide_signs(targets) == 0).mean())))


def choose_threshold(probabilities: Floats, tied: float) -> float:
    """Return the threshold with which a share `tied` of pairs with calibrated `probabilities` (n, 3) is called tied."""
    lean = np.sort(np.abs(measure_lean(probabilities)))
    n = round(tied * len(lean))
    return float(lean[n - 1]) if n else 0.0


def fit_with_figures(
    probabilities: Floats, targets: Floats, groups: Sequence[str]
) -> tuple[Calibration, Mapping[str, float]] | None:
    """Return the calibration, and its figures on groups that it was not fitted to; None for too few pairs or groups.

    `probabilities` and `targets` (n, 3), `groups` (n,) of the pairs. The figures are those of `describe_verdicts`.
    """
    parts = np.unique(np.asarray(groups), return_inverse=True)[1].reshape(-1) % FOLDS
    if len(targets) < LEAST_PAIRS or len(set(groups)) < LEAST_GROUPS:
        return None
    found, signs, usual = np.empty_like(probabilities), np.zeros(len(targets), np.int8), np.empty_like(probabilities)
    for part in np.unique(parts):
        held = parts == part
        one = fit_calibration(probabilities[~held], targets[~held])
        found[held] = one.calibrate(probabilities[held])
        signs[held] = decide_signs(found[held], one.threshold)
        usual[held] = targets[~held].mean(axis=0)
    return fit_calibration(probabilities, targets), describe_verdicts(found, signs, targets, usual)


def describe_verdicts(probabilities: Floats, signs: Signs, targets: Floats, usual: Floats) -> dict[str, float]:
    """Return the figures of verdicts against the shares of human verdicts.

    `probabilities` (n, 3) with verdicts `signs` (n,), `targets` (n, 3), `usual` (n, 3) the class frequencies.
    `log_loss` and `log_loss_of_frequencies`: three classes; `called_tied` and `people_call_tied`: shares of all pairs.
    Of pairs that people decided: `coverage`, the share that is called better or worse; `right_if_called`, the share of
    these that is right; `right_if_forced`, the share that is right by the likelier of better and worse.
    """
    truth = decide_signs(targets)
    decided = truth != 0
    called = decided & (signs != 0)
    forced = np.sign(measure_lean(probabilities))
    return {
        "log_loss": _log_loss(probabilities, targets),
        "log_loss_of_frequencies": _log_loss(usual, targets),
        "called_tied": _share(signs == 0),
        "people_call_tied": _share(truth == 0),
        "coverage": _share(called[decided]),
        "right_if_called": _share((signs == truth)[called]),
        "right_if_forced": _share(np.where(forced == 0, 0.5, forced == truth)[decided]),
    }


def _log_loss(probabilities: Floats, targets: Floats) -> float:
    return -float((targets * np.log(np.maximum(probabilities, _FLOOR))).sum(axis=1).mean())


def _share(values: npt.NDArray[Any]) -> float:
    return float(values.mean()) if len(values) else float("nan")
