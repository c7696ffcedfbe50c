"""The data of a training by its options: strong, weak and human pairs, and the phases that learn from them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import cast

from evalapp.translation import gettext as _
from scoring.ml.errors import InvalidOption, TooFewData, TrainingDataError
from scoring.ml.evaluators.comparative.batches import Draw, JudgedDraw, SupervisedDraw
from scoring.ml.evaluators.comparative.human import HumanPairs, HumanSettings, estimate_taus, human_pairs
from scoring.ml.evaluators.comparative.inputs import Form, PairReader
from scoring.ml.evaluators.comparative.pairs import Pair, Samples, StrongPairs, WeakPairs
from scoring.ml.training.batches import count_texts
from scoring.ml.training.checks import refuse_nan
from scoring.ml.training.finetune import FinetuneSettings
from scoring.ml.training.frame import make_finetune_settings
from scoring.ml.training.gold import choose_aspect
from scoring.ml.training.job import FitJob
from scoring.ml.training.split import split_dataset
from scoring.ml.types import Dataset

SUPERVISED, HUMAN = "supervised", "human"
LEAST_HUMAN_PAIRS, LEAST_ITEMS = 8, 4
MOST_DRAWN = 20_000
DEV_PAIRS = 512


def get_material(job: FitJob) -> Material:
    """The material of a job, computed once for check and training."""
    return job.once("material", lambda: Material(job))


class Material:
    """The training data of a job, by its data and options. Raises `TrainingDataError` for missing data."""

    def __init__(self, job: FitJob) -> None:
        self.job = job
        self.notes: list[str] = []
        self.tie = job.flag("tie") and job.flag("comparison")
        # A calibration needs human verdicts that the network has not learned from.
        learns_ties = job.flag("calibrate") and self.tie and job.text("human") != "no"
        self.calibrated = learns_ties and bool(job.train.ratings or job.train.comparisons)
        self.train, self.dev = split_dataset(job) if self.calibrated else (job.train, job.dev)
        if job.number("smoothing") >= 1:
            raise InvalidOption(job.name, "smoothing", _("must be less than 1: at 1 nothing is left to learn"))
        if not job.flag("comparison"):
            self._only_strong()
        n_empty = sum(not output.text.strip() for output in self.train.outputs)
        if n_empty and n_empty == len(self.train.outputs):
            text = _("all %(n_empty)s outputs are empty: upload outputs with a text")
            raise TrainingDataError(job.name, text, n_empty=f"{n_empty:,}")
        if n_empty:
            self.notes.append(_("%(n_empty)s outputs are empty: left out") % {"n_empty": f"{n_empty:,}"})
        self.samples = Samples.of(self.train, job.track)
        self.strong = self._strong()
        self.weak = self._weak()
        self.aspect, self.human = self._human()
        if self.strong is None and self.weak is None and self.human is None:
            raise TrainingDataError(job.name, "there is nothing to learn from. " + " ".join(self._missing()))
        n_items = len({record.item for record in self.samples.generated + self.samples.real})
        if self.human is None and n_items < LEAST_ITEMS:
            text = _(
                "%(n_items)s items with texts are too few to learn from without people's judgements, it needs "
                "%(least_items)s: upload more items, or judgements of their outputs"
            )
            raise TooFewData(job.name, text, n_items=n_items, least_items=LEAST_ITEMS)

    def _only_strong(self) -> None:
        asked = [source for source in ("weak", "human") if self.job.text(source) == "yes"]
        if asked or self.job.text("strong") == "no":
            text = _(
                "without comparison it learns from human and machine texts only: leave strong, weak and human at auto"
            )
            raise TrainingDataError(self.job.name, text)

    def _missing(self) -> list[str]:
        said = {
            "strong": "Strong pairs need references (or outputs of human systems) and outputs of machines.",
            "weak": "Weak pairs need outputs of a system at different steps.",
            "human": "People's pairs need ratings or comparisons.",
        }
        return [text if self.job.text(name) != "no" else f"{name} is switched off." for name, text in said.items()]

    def _strong(self) -> StrongPairs | None:
        job = self.job
        if job.text("strong") == "no":
            return None
        strong = StrongPairs(self.samples, same_context=job.number("same_context"), tie=self.tie)
        if strong:
            return strong
        if job.text("strong") == "yes" or not job.flag("comparison"):
            real, generated = len(self.samples.real), len(self.samples.generated)
            text = _(
                "strong pairs need texts of both origins, found %(real)s of people and %(generated)s of "
                "machines: load references, and say with the systems' kinds which outputs people wrote"
            )
            raise TrainingDataError(job.name, text, real=real, generated=generated)
        return None

    def _weak(self) -> WeakPairs | None:
        job = self.job
        if job.text("weak") == "no" or not job.flag("comparison"):
            return None
        weak = self.find_weak_pairs(self.train, self.samples)
        if weak:
            return weak
        if weak.steps:
            result = "; ".join(f"{name}: {', '.join(map(str, steps))}" for name, steps in sorted(weak.steps.items()))
            reason = (
                f"no two checkpoints of a system are {job.number('margin'):.0%} of its training apart without both "
                f"being almost converged (steps found: {result})"
            )
        else:
            reason = "no output has a step: load outputs of a system at different training steps"
        if job.text("weak") == "yes":
            raise TrainingDataError(job.name, _("weak pairs are missing: %(reason)s"), reason=reason)
        if weak.steps:
            self.notes.append(_("no weak pairs: %(reason)s") % {"reason": reason})
        return None

    def find_weak_pairs(self, dataset: Dataset, samples: Samples) -> WeakPairs:
        """The weak pairs of a dataset under this job's options."""
        job = self.job
        return WeakPairs(
            dataset,
            samples,
            margin=job.number("margin"),
            curriculum=job.flag("curriculum"),
            same_context=job.number("same_context"),
            smoothing=job.number("smoothing"),
            tie=self.tie,
        )

    def _human(self) -> tuple[str | None, HumanPairs | None]:
        job = self.job
        judged = bool(self.train.ratings or self.train.comparisons)
        if job.text("human") == "no" or not job.flag("comparison") or (job.text("human") == "auto" and not judged):
            return None, None
        aspect = choose_aspect(job.name, self.train, job.aspect, ("ratings", "comparisons"))
        refuse_nan(job.name, job.train, [aspect])
        result = self.judged_pairs(self.train, aspect)
        if len(result.pairs) < LEAST_HUMAN_PAIRS:
            hint = self._few(aspect, result)
            if job.text("human") == "yes" or (self.strong is None and self.weak is None):
                raise TooFewData(job.name, hint)
            self.notes.append(_("no human pairs: %(hint)s") % {"hint": hint})
            return None, None
        if not result.decided:
            raise TrainingDataError(job.name, self._all_tied(aspect, len(result.pairs)))
        if result.identical:
            text = _("%(identical)s judged pairs of identical texts were left out")
            self.notes.append(text % {"identical": result.identical})
        return aspect, result

    def _few(self, aspect: str, human: HumanPairs) -> str:
        hint = _("%(n_pairs)s pairs of %(aspect)s that people judged are too few: at least %(least_human_pairs)s") % {
            "n_pairs": len(human.pairs),
            "aspect": aspect,
            "least_human_pairs": LEAST_HUMAN_PAIRS,
        }
        systems = {output.system for output in self.train.outputs}
        if len(systems) < 2 and self.job.text("rating_pairs") == "context":
            hint += ". There is one system, so no two texts share a context: set rating_pairs to rater or all"
        if human.tied:
            hint += f". {human.tied} more are ties, which tie=no leaves out"
        if human.identical:
            hint += f". {human.identical} more are of identical texts"
        if human.empty:
            hint += f". {human.empty} judged outputs are empty and in no pair"
        return hint

    def _all_tied(self, aspect: str, n_pairs: int) -> str:
        """The error if no pair is decided. A lower tau helps only if judgements differ by less than it."""
        decided = self.judged_pairs(self.train, aspect, tau=0.0).decided
        said = f"people call all {n_pairs} pairs of {aspect} tied"
        if decided:
            return f"{said} with this tau: lower tau, at tau=0 {decided} are decided"
        others = "" if self.strong is None and self.weak is None else ", or set human=no to learn from the other pairs"
        return f"{said}, whatever tau is: collect judgements that differ, or take another aspect{others}"

    def judged_pairs(self, dataset: Dataset, aspect: str, tau: float | None = None) -> HumanPairs:
        """The human pairs of a dataset under this job's options, or with another `tau`; the same for the same seed."""
        job = self.job
        if tau is None and job.options["tau"] is not None:
            tau = job.number("tau")
        settings = HumanSettings(
            job.text("ratings"),
            job.text("rating_pairs"),
            tau,
            job.integer("human_pairs"),
            self.tie,
            job.number("same_context"),
        )
        taus = estimate_taus(self.train, aspect, settings)
        return human_pairs(dataset, aspect, settings, job.rng("human pairs"), taus, job.track)

    @cached_property
    def texts(self) -> int:
        """The number of texts in a row that are read alone; 0 if the encoder reads them together."""
        contexts = any(item.context or item.source for item in self.train.items)
        return count_texts(self.job, contexts=contexts, single=not self.job.flag("comparison"))

    @cached_property
    def reader(self) -> PairReader:
        """Tokenises pairs as in this training."""
        job = self.job
        return PairReader(
            job.encoder,
            form=cast(Form, job.text("form")),
            inputs=job.text("inputs"),
            max_length=job.optional_integer("max_length"),
            words=job.optional_integer("words"),
            texts=self.texts,
        )

    @property
    def drawn_per_epoch(self) -> int:
        """The number of strong and weak pairs per epoch."""
        if self.strong is None and self.weak is None:
            return 0
        asked = self.job.optional_integer("pairs_per_epoch")
        return asked or min(MOST_DRAWN, 4 * (len(self.samples.real) + len(self.samples.generated)))

    def examples(self) -> dict[str, int]:
        """Counts for plan and card."""
        counts: dict[str, int] = {}
        if self.strong is not None:
            counts |= {"texts of people": len(self.samples.real), "texts of machines": len(self.samples.generated)}
        if self.weak is not None:
            counts["pairs of checkpoints"] = sum(len(rungs) for rungs in self.weak.rungs.values())
        if self.drawn_per_epoch:
            counts["pairs drawn for an epoch"] = self.drawn_per_epoch
        if self.human is not None:
            if self.human.compared:
                counts["compared pairs"] = self.human.compared
            if self.human.rated:
                counts["pairs from ratings"] = self.human.rated
        return counts

    def phases(self) -> list[Phase]:
        """The phases of the training, in order."""
        job, size = self.job, self.job.integer("batch_size")
        common = make_finetune_settings(job, better="macro_f1", lower_is_better=False)
        result: list[Phase] = []
        if self.drawn_per_epoch:
            n = self.drawn_per_epoch
            passes = _steps(n, size, common) / -(-n // size)
            draw = SupervisedDraw(self.strong, self.weak, n_pairs=n, epochs=passes, job=job)
            result.append(Phase(SUPERVISED, draw, n, size, common))
        if self.human is not None:
            own = common
            if result:
                own = replace(
                    common,
                    epochs=job.integer("human_epochs"),
                    learning_rate=job.number("human_learning_rate"),
                    from_head=True,
                )
            pairs = self.human.pairs
            result.append(Phase(HUMAN, JudgedDraw(pairs, job), len(pairs), size, own))
        return result

    def held_out(self, phase: str) -> list[Pair]:
        """Dev pairs of the kind that a phase learns, drawn once by seed; empty without dev data."""
        return self.job.once(f"held out for {phase}", lambda: self._held_out(phase))

    def _held_out(self, phase: str) -> list[Pair]:
        job = self.job
        if self.dev is None:
            return []
        if phase == HUMAN and self.aspect is not None:
            pairs = self.judged_pairs(self.dev, self.aspect).pairs
            if not self.tie:
                # An even split between better and worse has no correct answer but a tie.
                pairs = tuple(pair for pair in pairs if pair.target[0] != pair.target[2])
            rng = job.rng("dev:human")
            order = rng.permutation(len(pairs))[: 4 * DEV_PAIRS].tolist()
            turned = rng.random(len(order)) < 0.5
            return [pairs[n].mirrored() if turn else pairs[n] for n, turn in zip(order, turned, strict=True)]
        samples = Samples.of(self.dev, job.track)
        result: list[Pair] = []
        if self.strong is not None:
            strong = StrongPairs(samples, same_context=job.number("same_context"), tie=self.tie)
            result += strong.draw(job.rng("dev:strong"), DEV_PAIRS) if strong else []
        if self.weak is not None:
            weak = self.find_weak_pairs(self.dev, samples)
            result += weak.draw(job.rng("dev:weak"), DEV_PAIRS) if weak else []
        return result


@dataclass(frozen=True)
class Phase:
    """One fine-tuning: pairs, their number per epoch, and settings."""

    name: str
    draw: Draw
    n_pairs: int
    batch_size: int
    settings: FinetuneSettings

    @property
    def steps(self) -> int:
        """Steps of all epochs, or as many as the limit allows."""
        return _steps(self.n_pairs, self.batch_size, self.settings)


def _steps(n_pairs: int, batch_size: int, settings: FinetuneSettings) -> int:
    steps = -(-n_pairs // batch_size) * settings.epochs
    return min(steps, settings.max_steps) if settings.max_steps is not None else steps
