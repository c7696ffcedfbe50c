"""The comparative evaluator: training, verdicts between texts, scores of texts, skill ratings of systems.

Explained in docs/explanation/evaluators/comparative.md.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import asdict
from functools import cached_property
from typing import Any, cast

import numpy as np

from evalapp.stats.ranking.glicko2 import TieRule
from evalapp.translation import gettext as _
from scoring.ml.artefact import Artefact
from scoring.ml.base import Floats, Partial, Progress
from scoring.ml.catalogue import PAPER, Entry, OptionValue
from scoring.ml.encoders.separate import Inputs, map_inputs
from scoring.ml.encodings import Ints
from scoring.ml.errors import ArtefactError, InvalidCall, InvalidOption
from scoring.ml.evaluators.comparative.calibration import Calibration
from scoring.ml.evaluators.comparative.inputs import Form, PairReader
from scoring.ml.evaluators.comparative.material import Material, get_material
from scoring.ml.evaluators.comparative.network import ComparativeNetwork
from scoring.ml.evaluators.comparative.origins import describe_origins, describe_shared_texts
from scoring.ml.evaluators.comparative.others import ALONE, HIGHEST, LOWEST, count_wins, draw_others
from scoring.ml.evaluators.comparative.skill import rate_texts
from scoring.ml.evaluators.comparative.systems import PairJudge
from scoring.ml.evaluators.comparative.training import (
    calibrate,
    choose_references,
    network_sizes,
    time_training,
    train_network,
)
from scoring.ml.evaluators.comparative.verdicts import (
    OUTCOMES,
    Outcome,
    Verdicts,
    count_points,
    decide_signs,
    expected_points,
    score_signs,
    softmax,
    swap_consistency,
    symmetrise,
)
from scoring.ml.network import check_architecture
from scoring.ml.signature import SignatureField, text_hash
from scoring.ml.trained import TrainedEvaluator
from scoring.ml.training.checks import describe_truncation
from scoring.ml.training.frame import PROBE_ROWS, TrainingResult, make_artefact
from scoring.ml.training.head import HEAD
from scoring.ml.training.job import FitJob, Plan
from scoring.ml.training.record import list_groups
from scoring.ml.types import Record, check_records

#: The paper's range of a score: 50 references, 3 points each.
MOST_POINTS = 150.0
PLAYS_FOR_EACH = 50
# Pairs of texts and references compared at a time.
_PAIRS_AT_A_TIME = 16_384


class Comparative(TrainedEvaluator, PairJudge):
    """`compare` says which of two texts is better; `score` measures texts against common references or rates their
    skill; `rank` rates systems with Glicko-2."""

    network_class = ComparativeNetwork

    def __init__(self, entry: Entry, artefact: Artefact, options: Mapping[str, OptionValue] | None = None) -> None:
        super().__init__(entry, artefact, options)
        if self.outcome == "expected" and self.options["tie_rule"] is not None:
            text = _(
                "says what a draw counts, and of expected outcomes none is a draw: leave it out, or give "
                "outcome=verdict with it"
            )
            raise InvalidOption(self.name, "tie_rule", text)

    @classmethod
    def plan(cls, job: FitJob) -> Plan:
        material = get_material(job)
        check_architecture(job.encoder)
        network_sizes(job, material.tie)
        phases = material.phases()
        cut = []
        for phase in phases:
            pairs = phase.draw(0, 0, min(PROBE_ROWS, phase.n_pairs))
            looked_at = material.reader.pairs([p.a for p in pairs], [p.b for p in pairs])
            single = None if job.flag("comparison") else material.reader.singles([p.a for p in pairs])
            cut.append((single or looked_at).truncated)
        steps = 0 if job.text("stages") == HEAD else sum(phase.steps for phase in phases)
        words = job.optional_integer("words")
        limit = f"{material.reader.tokenizer.max_length} tokens" + (
            "" if words is None else f" or {words} words a text"
        )
        nouns = "pairs of texts" if job.flag("comparison") else "texts"
        notes = (*material.notes, *_origins(job, material), *describe_truncation(np.concatenate(cut), nouns, limit))
        return Plan(material.examples(), steps, None, notes, measure=lambda: time_training(job, material))

    @classmethod
    def train(cls, job: FitJob) -> Artefact:
        material = get_material(job)
        network, result, notes = train_network(job, material)
        aspects = (material.aspect,) if material.aspect is not None else ()
        references = choose_references(material.train, material, job.integer("references"), job.rng("references"))
        state = {
            "references": [asdict(record) for record in references],
            "classes": ["worse", "tie", "better"],
            # The outcome is stored so that a later change of the profile does not change scores and signature.
            "outcome": "verdict" if job.profile == PAPER else "expected",
        }
        learned = TrainingResult(
            network,
            result,
            material.examples(),
            list_groups(material.train),
            list_groups(material.dev),
            aspects=aspects,
            state=state,
            notes=notes,
            simulated=material.human.simulated if material.human is not None else 0,
        )
        artefact = make_artefact(job, learned)
        judge = cls(job.entry, artefact, job.entry.parse_options({"device": job.text("train_device")}))
        return calibrate(job, material, artefact, judge.judge)

    # How it is applied

    @cached_property
    def reader(self) -> PairReader:
        """Tokenises pairs as in training."""
        settings = self.settings
        return PairReader(
            self.source,
            form=cast(Form, str(settings["form"])),
            inputs=str(settings["inputs"]),
            max_length=self.max_length,
            words=cast("int | None", settings["words"]),
            texts=self.classifier.texts,
        )

    @property
    def symmetric(self) -> bool:
        """Whether pairs are read in both directions."""
        chosen = self.options["symmetric"]
        return self.artefact.profile != PAPER if chosen is None else bool(chosen)

    @cached_property
    def calibration(self) -> Calibration | None:
        """The calibration of its verdicts, fixed in training; None if it has none."""
        numbers = self.artefact.state.get("calibration")
        return None if numbers is None else Calibration(**numbers)

    @property
    def threshold(self) -> float | None:
        """The difference of p(better) and p(worse) up to which a pair is tied; None if the most likely class counts."""
        return None if self.calibration is None else self.calibration.threshold

    @property
    def mirrors(self) -> bool:
        return self.symmetric or self.classifier.single

    @property
    def outcome(self) -> Outcome:
        result = self.options["outcome"] or self.artefact.state.get("outcome", "verdict")
        if result not in OUTCOMES:
            text = f"says outcome: {result!r}, which is not one of {', '.join(OUTCOMES)}; copy it again"
            raise ArtefactError(self.name, text)
        return cast(Outcome, result)

    @property
    def tie_rule(self) -> TieRule:
        chosen = self.options["tie_rule"]
        if self.outcome == "expected":
            return "half"
        return cast(TieRule, chosen or ("paper" if self.artefact.profile == PAPER else "half"))

    @cached_property
    def references(self) -> tuple[Record, ...]:
        """The common machine-written texts that single texts are measured against, fixed in training."""
        kept = [Record(**row) for row in self.artefact.state["references"]]
        limit = self.options["n_references"]
        return tuple(kept if limit is None else kept[: int(cast(int, limit))])

    @property
    def depends_on_batch(self) -> bool:
        return self.option_text("by") != "references"

    @property
    def scale(self) -> tuple[float | None, float | None]:
        return (LOWEST, HIGHEST) if self.option_text("by") == "others" else super().scale

    @property
    def worst(self) -> float:
        return LOWEST if self.option_text("by") == "others" else super().worst

    @property
    def grain(self) -> float:
        """One comparison with a reference won instead of lost; expected points are continuous."""
        if self.classifier.single or not self.references or self.outcome == "expected":
            return 0.0
        return float(self._scaled(np.ones(1))[0]) / len(self.references)

    def own_fields(self) -> list[SignatureField]:
        by = self.option_text("by")
        fields = [
            SignatureField("form", "f", str(self.settings["form"])),
            SignatureField("sym", "sy", "yes" if self.symmetric else "no"),
            SignatureField("by", "by", by),
            *self.feature_fields,
        ]
        expected = self.outcome == "expected"
        if self.calibration is not None:
            numbers = ":".join(f"{value:.4g}" for value in self.calibration.as_dict().values())
            fields.append(SignatureField("calibration", "cal", numbers))
        if expected and (by != "references" or not self.classifier.single):
            fields.append(SignatureField("outcome", "oc", self.outcome))
        if by == "skill":
            plays = self.options["plays"]
            fields += [
                *([] if expected else [SignatureField("tie", "t", self.tie_rule)]),
                SignatureField("plays", "pl", "50n" if plays is None else str(plays)),
                SignatureField("draws", "dr", str(self.options["seed"])),
            ]
        elif by == "others":
            fields.append(SignatureField("draws", "dr", str(self.options["seed"])))
        else:
            if not self.classifier.single:
                texts = (repr((record.context, record.source, record.text)) for record in self.references)
                fields.append(SignatureField("refs", "r", f"{len(self.references)}@{text_hash(texts)}"))
            fields.append(SignatureField("points", "po", self.option_text("points")))
        return fields

    def identity(self, record: Record) -> Hashable:
        return (record.text, record.context, record.source)

    def undefined(self, record: Record) -> str:
        if self.option_text("by") == "references" and not self.references and not self.classifier.single:
            return "no machine-written texts to measure against were in its training data"
        return ""

    # Pairs

    def judge(self, a: Sequence[Record], b: Sequence[Record], *, progress: Progress | None = None) -> Verdicts:
        """The verdicts on a[i] against b[i] with probabilities, swap consistency and truncation.

        A blank text is worse than any other; two blank ones are tied. `progress(done, total)` counts pairs.
        """
        check_records(a, "compare()")
        check_records(b, "compare()")
        if len(a) != len(b):
            raise InvalidCall(self.name, "compare", f"needs two lists of equal length, found {len(a)} and {len(b)}")
        pairs = list(zip(a, b, strict=True))
        probabilities = np.zeros((len(pairs), 3))
        truncated = np.zeros(len(pairs), dtype=np.bool_)
        filled = np.array([(bool(x.text.strip()), bool(y.text.strip())) for x, y in pairs]).reshape(-1, 2)
        blank = ~filled.all(axis=1)
        probabilities[blank, 1 + filled[blank, 0].astype(int) - filled[blank, 1].astype(int)] = 1.0
        rows = np.flatnonzero(~blank)
        chosen = [pairs[row] for row in rows.tolist()]
        consistency: float | None = None
        if self.classifier.single:
            probabilities[rows], truncated[rows] = self._by_single(chosen, progress)
        else:
            probabilities[rows], truncated[rows], consistency = self._by_pairs(chosen, progress)
            if self.calibration is not None and len(rows):
                probabilities[rows] = self.calibration.calibrate(probabilities[rows])
        signs = decide_signs(probabilities, self.threshold)
        return Verdicts(signs, probabilities, consistency, truncated, self.threshold)

    @property
    def classifier(self) -> ComparativeNetwork:
        """The network, typed."""
        return cast(ComparativeNetwork, self.network)

    def _score(self, items: Sequence[Any], tokenize: Callable[..., Any], progress: Progress | None) -> tuple[Any, Any]:
        engine, network = self.make_engine(self.reader.pad_id), self.classifier

        def run(inputs: Inputs, report: Callable[[float], object]) -> Any:
            return map_inputs(engine, inputs, network.infer, network.read_texts, network.judge_features, report=report)

        return engine.score(items, tokenize, network.infer, progress=progress, run=run)

    def _by_pairs(
        self, pairs: Sequence[tuple[Record, Record]], progress: Progress | None
    ) -> tuple[Floats, Any, float | None]:
        both = [*pairs, *((b, a) for a, b in pairs)] if self.symmetric else list(pairs)

        def tokenize(rows: Sequence[tuple[Record, Record]]) -> Any:
            return self.reader.pairs([first for first, _ in rows], [second for _, second in rows])

        n = len(pairs)
        report = None if progress is None else _halved(progress, n, len(both))
        logits, cut = self._score(both, tokenize, report)
        result = softmax(logits.double().numpy()) if len(both) else np.zeros((0, 3))
        if not self.symmetric:
            return result, cut, None
        consistency = swap_consistency(result[:n], result[n:]) if n else None
        return symmetrise(result[:n], result[n:]), cut[:n] | cut[n:], consistency

    def _singles(self, records: Sequence[Record], progress: Progress | None) -> tuple[Floats, Any]:
        """Without comparison: the logit of "written by a person", and truncation."""
        logits, cut = self._score(list(records), self.reader.singles, progress)
        return logits.double().numpy(), cut

    def _by_single(self, pairs: Sequence[tuple[Record, Record]], progress: Progress | None) -> tuple[Floats, Any]:
        """Without comparison: p(better) = sigma(z_a - z_b), never a tie."""
        n = len(pairs)
        both = [a for a, _ in pairs] + [b for _, b in pairs]
        logits, cut = self._singles(both, None if progress is None else _halved(progress, n, len(both)))
        better = _sigmoid(logits[:n] - logits[n:])
        return np.stack([1 - better, np.zeros(n), better], axis=1), cut[:n] | cut[n:]

    # Single texts

    def measure(self, records: Sequence[Record], progress: Progress) -> Partial:
        by = self.option_text("by")
        if by != "references":
            return self._by_skill(records, progress) if by == "skill" else self._by_others(records, progress)
        if self.classifier.single:
            logits, cut = self._singles(records, progress)
            return Partial(self._scaled(_sigmoid(logits)), cut)
        references = self.references
        at_a_time = max(1, _PAIRS_AT_A_TIME // len(references))
        shares = np.zeros(len(records))
        truncated = np.zeros(len(records), dtype=np.bool_)
        for start in range(0, len(records), at_a_time):
            part = records[start : start + at_a_time]
            firsts = [record for record in part for _ in references]
            verdicts = self.judge(
                firsts, list(references) * len(part), progress=_report_part(progress, start, part, records)
            )
            each = (
                count_points(verdicts.signs) if self.outcome == "verdict" else expected_points(verdicts.probabilities)
            )
            points = each.reshape(len(part), len(references))
            shares[start : start + len(part)] = points.sum(axis=1) / (3.0 * len(references))
            truncated[start : start + len(part)] = verdicts.truncated.reshape(points.shape).any(axis=1)
        return Partial(self._scaled(shares), truncated)

    def _by_others(self, records: Sequence[Record], progress: Progress) -> Partial:
        """1 plus the wins over four other texts."""
        n = len(records)
        pairs = draw_others(records, self.option_int("seed"))
        verdicts = self.judge(
            [records[place] for place, _other in pairs], [records[other] for _place, other in pairs],
            progress=lambda done, total: progress(done * n // max(total, 1), n),
        )  # fmt: skip
        won = verdicts.probabilities[:, 2] if self.outcome == "expected" else (verdicts.signs == 1).astype(np.float64)
        values = count_wins(pairs, won, n)
        cut = np.zeros(n, dtype=np.bool_)
        cut[[place for (place, _other), truncated in zip(pairs, verdicts.truncated, strict=True) if truncated]] = True
        return Partial(values, cut, reasons=dict.fromkeys(np.flatnonzero(np.isnan(values)).tolist(), ALONE))

    def _scaled(self, shares: Floats) -> Floats:
        return shares if self.option_text("points") == "share" else shares * MOST_POINTS

    def _by_skill(self, records: Sequence[Record], progress: Progress) -> Partial:
        """Rate each text as a player in `plays` games between random texts."""
        n, seed, plays = len(records), self.option_int("seed"), self.options["plays"]

        def judge(ours: Ints, theirs: Ints) -> tuple[Floats, Any]:
            verdicts = self.judge_from_either_side(
                [records[row] for row in ours.tolist()], [records[row] for row in theirs.tolist()], seed,
                lambda done, total: progress(done * n // max(total, 1), n),
            )  # fmt: skip
            expected = self.counted(verdicts)
            return (score_signs(verdicts.signs) if expected is None else expected), verdicts.truncated

        # Texts are numbered by content, so that the games do not depend on the order of rows.
        order = np.array(sorted(range(n), key=lambda row: repr(self.identity(records[row]))), dtype=np.int64)
        n_games = PLAYS_FOR_EACH * n if plays is None else int(cast(int, plays))
        return rate_texts(order, n_games, seed, self.tie_rule, judge)


def _origins(job: FitJob, material: Material) -> list[str]:
    """Notes about human and machine texts, if it learns from them or would if both were present."""
    if job.text("strong") == "no":
        return []
    both = describe_shared_texts(job.train, material.samples) if material.strong is not None else ""
    return [describe_origins(job.train), *([both] if both else [])]


def _sigmoid(logits: Floats) -> Floats:
    return np.asarray(0.5 * (1.0 + np.tanh(logits / 2)))


def _halved(progress: Progress, n: int, total: int) -> Progress:
    return lambda done, _: progress(done * n // max(total, 1), n)


def _report_part(progress: Progress, start: int, part: Sequence[Record], records: Sequence[Record]) -> Progress:
    return lambda done, total: progress(start + done * len(part) // max(total, 1), len(records))
