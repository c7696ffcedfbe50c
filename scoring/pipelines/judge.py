"""Let a language model judge the outputs of a project.

Every answer is stored before its request gives way to another, and is found again by the hash of the request: a run
that was cancelled, lost or stopped by its budget continues where it ended and pays nothing twice. The model id that the
server reports is part of the signature; if it changes during a run, the run ends with that message.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from django.utils import timezone
from django.utils.translation import gettext as _

from evalapp.common.errors import BadInput
from evalapp.common.runner import RunContext
from scoring.ml.judges.injections import attack
from scoring.ml.judges.reader import Reader, make_key

from ..models import Evaluator, Score, ScoreSet
from ..selectors import inputs
from ..selectors.judged_units import (
    ITEMS_READ,
    AnswerFigures,
    OutputValues,
    Unit,
    choose_examples,
    collect_values,
    iterate_units,
)
from ..selectors.judges import (
    find_model,
    get_endpoint,
    load_answers,
    make_judge,
    measure_answers,
    refuse_leaving,
    split_keys,
)
from ..selectors.run_results import make_score_address
from ..selectors.score_sets import why_undefined
from ..selectors.summaries import summarise_scores
from ..services.columns import cache_columns
from ..services.judges import open_judge, open_judge_set, update_record
from ..services.leaderboards import renew_leaderboards
from ..services.scores import NewScore, finish_score_set, store_scores, take_score_sets
from .judge_sending import Sending
from .shared import is_seen, refuse_scoring_errors

if TYPE_CHECKING:
    from scoring.ml import Record

#: Prompts that the dry check shows, and characters of each.
SHOWN, SHOWN_CHARACTERS = 3, 4_000


def run(
    context: RunContext,
    *,
    slug: str,
    config: dict[str, Any],
    budget: float | None,
    injections: int = 0,
    minutes: float | None = None,
) -> dict[str, Any]:
    """The job `judge`; its result has the numbers of requests, tokens, cost and undefined scores."""
    endpoint = get_endpoint(config["endpoint"])
    refuse_leaving(context.project, endpoint)
    with refuse_scoring_errors():
        judging = Judging(context, slug, config, Sending(context, endpoint, budget, minutes=minutes))
        judging.judge_outputs()
        attacked = judging.try_injections(injections) if injections else {}
    score_set = judging.score_set
    if score_set is None:
        raise BadInput(
            _("There is no answer. The log of the run has the reasons; a larger budget allows more requests.")
        )
    finish_score_set(
        score_set=score_set, data_hash=judging.data.text, systems=[], summary=summarise_scores(score_set),
        scored_at=judging.began,
    )  # fmt: skip
    cache_columns(score_set)
    renew_leaderboards(project=context.project, run=context.run)
    context.log(f"Signature: {score_set.full_signature}")
    undefined = why_undefined(score_set) if score_set.n_undefined else {}
    for reason, count in undefined.items():
        context.log(f"{count:,} of {score_set.n_scores:,} outputs have no score: {reason}.")
    return {
        "evaluator": slug,
        "score_set": score_set.pk,
        "signature": score_set.full_signature,
        **judging.sending.figures,
        "outputs": score_set.n_scores,
        "without_answer": judging.n_open,
        "undefined": score_set.n_undefined,
        **({"why_undefined": undefined} if undefined else {}),
        **judging.answers.orders,
        **({"injections": attacked} if attacked else {}),
        **({"controls": len(judging.with_controls)} if judging.with_controls else {}),
        "in_training": score_set.n_in_training,
        "url": make_score_address(score_set),
    }


def check(
    context: RunContext,
    *,
    config: dict[str, Any],
    budget: float | None,
    injections: int = 0,
    minutes: float | None = None,
) -> dict[str, Any]:
    """The job `judge-check`: what the run would send and cost, estimated from stored answers of the endpoint where
    there are any, and three prompts. Nothing is sent."""
    endpoint = get_endpoint(config["endpoint"])
    judge = make_judge(config, choose_examples(context.project, config) if config["examples"] else ())
    prompts, model = [], ""
    n_requests = n_stored = characters = characters_of_all = n_units = 0
    for units in iterate_units(context.project, judge, config, ITEMS_READ):
        requests = {make_key(one): one for unit in units for one in unit.requests}
        model = model or find_model(context.project, endpoint.name, requests.values())
        stored = load_answers(context.project, endpoint.name, model, list(requests.values())) if model else {}
        n_units += len(units)
        n_requests += len(requests)
        n_stored += len(stored)
        characters_of_all += sum(one.n_characters for one in requests.values())
        characters += sum(one.n_characters for key, one in requests.items() if key not in stored)
        prompts += [unit.requests[0].messages[-1][1][:SHOWN_CHARACTERS] for unit in units[: SHOWN - len(prompts)]]
        context.progress(n_units, None, "units", "reading")
    means = measure_answers(context.project, endpoint.name)
    n_missing = n_requests - n_stored
    if n_requests:
        # Attacked texts are a little longer than others.
        characters += round(injections * (characters_of_all / n_requests + 60))
        n_missing += injections
    prompt_tokens = round(characters / means["characters_per_token"])
    completion_tokens = round(n_missing * means["answer_tokens"])
    cost = endpoint.compute_cost(prompt_tokens, completion_tokens)
    seconds = n_missing * means["answer_seconds"] / endpoint.at_once
    names = ("endpoint", "model", "template", "method", "aspect", "question", "low", "high", "campaign")
    return {
        **{name: config[name] for name in names},
        "units": n_units, "requests": n_missing, "stored": n_stored, "prompt_tokens": prompt_tokens,
        "completion_tokens": completion_tokens, "cost": cost,
        "seconds": seconds, "may_send": bool(endpoint.folder) or context.project.texts_may_leave,
        "within_budget": (budget is None or cost <= budget) and (minutes is None or seconds <= 60 * minutes),
        "prompts": prompts,
    }  # fmt: skip


class Judging:
    """One pass over the outputs of a project with a judge."""

    def __init__(self, context: RunContext, slug: str, config: dict[str, Any], sending: Sending) -> None:
        self.context, self.slug, self.config, self.project = context, slug, config, context.project
        row = Evaluator.objects.filter(project=self.project, slug=slug, kind=Evaluator.Kind.JUDGE).first()
        self.record: dict[str, Any] = {} if row is None else dict(row.record)
        if config["examples"] and "examples" not in self.record:
            self.record["examples"] = choose_examples(self.project, config)
        examples = self.record.get("examples", [])
        self.judge = make_judge(config, examples)
        self.reader = Reader(self.judge)
        self.trained_on = frozenset(row["group"] or f"item:{row['item']}" for row in examples)
        self.sending = sending
        sending.model = self.record.get("model", "")
        name = config["references"]
        self._references = inputs.get_reference_set(self.project, name) if name else None
        #: Later changes may be missed by this pass.
        self.began = timezone.now()
        self.data = inputs.DataHash()
        self.answers = AnswerFigures()
        self.score_set: ScoreSet | None = None
        #: Outputs whose texts have control tokens of chat models.
        self.with_controls: set[int] = set()
        #: Outputs without all answers, because the budget ended.
        self.n_open = 0

    def judge_outputs(self) -> None:
        for units in iterate_units(self.project, self.judge, self.config):
            requests = [request for unit in units for request in unit.requests]
            answers = self.sending.ask(requests)
            repairs = self.reader.list_repairs(requests, answers)
            repaired = self.sending.ask(list(repairs.values())) if repairs else {}
            for key, request in repairs.items():
                if make_key(request) in repaired:
                    answers[key] = repaired[make_key(request)]
            if self.sending.model and self.score_set is None:
                self._open()
            settled = [self.reader.settle(unit.orders, answers) for unit in units]
            for samples in settled:
                self.answers.add(samples)
            self._count_controls(units)
            self._store(units, collect_values(units, settled))
        if self.score_set is not None:
            update_record(
                evaluator=self.score_set.evaluator, **self.answers.as_dict(), controls=len(self.with_controls)
            )

    def _count_controls(self, units: Sequence[Unit]) -> None:
        for unit in units:
            for output, record in ((unit.output, unit.record), (unit.other, unit.other_record)):
                if output is not None and record is not None and self.judge.has_controls(record):
                    self.with_controls.add(output)

    def try_injections(self, n: int) -> dict[str, Any]:
        """Judge the first `n` scored texts again, each with an attack, and store how the ratings change."""
        if self.score_set is None:
            return {}
        rows: list[tuple[Record, float]] = []
        for chunk in inputs.iterate_inputs(self.project, references=self._references, items=n):
            stored = Score.objects.filter(score_set=self.score_set, output__in=[row.output for row in chunk])
            values = dict(stored.filter(value__isnull=False).values_list("output", "value"))
            rows += [(row.record, values[row.output]) for row in chunk if row.output in values]
            if len(rows) >= n:
                break
        rows = rows[:n]
        attacked = [
            self.judge.make_request(
                replace(record, text=attack(record.text, self.judge.rubric, place, self.judge.controls))
            )
            for place, (record, _value) in enumerate(rows)
        ]
        answers = self.sending.ask(attacked)
        changes = []
        for request, (_record, value) in zip(attacked, rows, strict=True):
            reading = self.reader.read(answers[make_key(request)]) if make_key(request) in answers else None
            if reading is not None and reading.value is not None:
                changes.append(reading.value - value)
        found = {
            "tried": len(rows), "rated": len(changes), "changed": sum(abs(change) > 1 for change in changes),
            "mean_change": sum(changes) / len(changes) if changes else None,
        }  # fmt: skip
        update_record(evaluator=self.score_set.evaluator, injections=found)
        return found

    def _open(self) -> None:
        config, model, run = self.config, self.sending.model, self.context.run
        record = {**self.record, "model": model}
        evaluator = open_judge(run=run, slug=self.slug, config=config, record=record)
        more = {name: str(config[name]) for name in ("samples", "pairs") if config[name] not in (1, "")}
        signature = self.judge.make_signature(model, **more)
        score_set = open_judge_set(run=run, evaluator=evaluator, signature=signature)
        other = take_score_sets(score_sets=[score_set], run=run)
        if other is not None:
            text = _("Run %(run)s is asking the same judge. Retry this run when that one has ended.")
            raise BadInput(text % {"run": other.pk})
        self.score_set = score_set

    def _store(self, units: Sequence[Unit], values: dict[int, OutputValues]) -> None:
        """Store the scores that differ from the stored ones."""
        if self.score_set is None:
            return
        records: dict[int, Record] = {}
        for unit in units:
            records[unit.output] = unit.record
            if unit.other is not None and unit.other_record is not None:
                records[unit.other] = unit.other_record
        rows = Score.objects.filter(score_set=self.score_set).values_list("output", "input_hash", "value", "note")
        stored = {output: found for keys in split_keys([*records]) for output, *found in rows.filter(output__in=keys)}
        changed = []
        for output, entry in values.items():
            if entry.n_open:
                self.n_open += 1
                continue
            score = self._make_score(output, records[output], entry)
            self.data.add(records[output], score.input_hash)
            value = None if math.isnan(score.value) else score.value
            if stored.get(output) != [score.input_hash, value, score.note]:
                changed.append(score)
        store_scores(score_set=self.score_set, scores=changed)

    def _make_score(self, output: int, record: Record, entry: OutputValues) -> NewScore:
        return NewScore(
            output=output,
            value=entry.value,
            note=entry.reason[:200],
            input_hash=inputs.input_hash(tuple(entry.requests)),
            is_empty=not record.text.strip(),
            is_truncated=False,
            in_training=is_seen(self.trained_on, record.group, record.item),
        )
