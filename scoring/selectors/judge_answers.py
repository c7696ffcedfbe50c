"""The stored answers of a judge with what they are about and how they are read, for downloads and reports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from evalapp.accounts.models import Project
from evalapp.common.errors import BadInput, NotThere
from evalapp.common.models import Run
from evalapp.names import natural_key

from ..models import Evaluator, JudgeAnswer
from .judged_units import ITEMS_READ, Unit, iterate_units
from .judges import load_answers, make_judge, split_keys

if TYPE_CHECKING:
    from scoring.ml.judges.reader import Key, Reader


def find_judge(project: Project, slug: str) -> Evaluator:
    """Return the judge of this slug. Raises `NotThere` with the known names, `BadInput` for another evaluator."""
    row = Evaluator.objects.filter(project=project, slug=slug).first()
    if row is not None and not row.is_judge:
        raise BadInput(_("%(name)s is not a judge, so it has no answers of a language model.") % {"name": slug})
    if row is None:
        rows = Evaluator.objects.filter(project=project, kind=Evaluator.Kind.JUDGE)
        known = ", ".join(rows.values_list("slug", flat=True)[:20])
        text = _("There is no judge “%(name)s” in %(project)s. There are: %(known)s.")
        raise NotThere(text % {"name": slug, "project": project.slug, "known": known or _("none yet")})
    return row


def list_asked_answers(evaluator: Evaluator) -> QuerySet[JudgeAnswer]:
    """Return the stored answers that runs of this judge asked for. Other judges may use them, too."""
    runs = Run.objects.filter(project=evaluator.project, kind="judge", params__slug=evaluator.slug)
    return JudgeAnswer.objects.filter(project=evaluator.project, run__in=runs.values("pk"))


def make_reader(evaluator: Evaluator) -> Reader:
    """Return the reader of a stored judge's answers. Raises `BadInput` for an imported judge with examples, whose
    prompts are not known here."""
    from scoring.ml.judges.reader import Reader

    examples = evaluator.record.get("examples", ())
    if len(examples) < evaluator.options["examples"]:
        raise BadInput(_("The examples in the prompts of %(name)s are not known here.") % {"name": evaluator.slug})
    return Reader(make_judge(evaluator.options, examples))


def iterate_answered(evaluator: Evaluator, reader: Reader) -> Iterator[tuple[list[Unit], dict[Key, Any]]]:
    """Yield what is judged with its stored answers; an answer that is no JSON is replaced by that to the repair."""
    project, options = evaluator.project, evaluator.options
    model = evaluator.record.get("model", "")
    for units in iterate_units(project, reader.judge, options, ITEMS_READ):
        requests = [request for unit in units for request in unit.requests]
        answers = load_answers(project, options["endpoint"], model, requests)
        yield units, answers | load_repairs(evaluator, reader, requests, answers)


def load_repairs(evaluator: Evaluator, reader: Reader, requests: Sequence[Any], answers: Mapping[Key, Any]) -> Any:
    """Return the stored second answers by the key of the first request."""
    from scoring.ml.judges.reader import make_key

    repairs = reader.list_repairs(requests, answers)
    if not repairs:
        return {}
    model = evaluator.record.get("model", "")
    second = load_answers(evaluator.project, evaluator.options["endpoint"], model, list(repairs.values()))
    return {key: second[make_key(one)] for key, one in repairs.items() if make_key(one) in second}


def iterate_answer_rows(evaluator: Evaluator, reader: Reader) -> Iterator[dict[str, Any]]:
    """Yield a row for each stored answer: its text or pair, prompt hash, answer, reading, tokens, cost and seconds.

    A pair has two rows per sample, in both orders; `value` is the preference for the text shown first, or its reward by
    a reward model. Answers to texts that have changed since are left out.
    """
    from scoring.ml.judges.reader import make_key

    model, endpoint = evaluator.record.get("model", ""), evaluator.options["endpoint"]
    for units, answers in iterate_answered(evaluator, reader):
        stored = JudgeAnswer.objects.filter(project=evaluator.project, endpoint=endpoint, model=model)
        facts = _load_facts(stored, [digest for digest, _repeat in answers])
        for unit in units:
            for sample in unit.orders:
                for place, request in enumerate(sample):
                    answer = answers.get(make_key(request))
                    if answer is not None:
                        row = _describe_unit(unit, place)
                        reading = reader.read(answer)
                        yield row | {
                            "sample": request.repeat, "request": request.digest, "model": model, "text": answer.text,
                            "value": reading.value, "verdict": reading.verdict, "share": reading.share,
                            "reason": reading.reason, "finish": answer.finish, "refused": answer.refused,
                            **facts.get(make_key(request), {}),
                            "tokens": answer.as_json()["tokens"],
                        }  # fmt: skip


def _load_facts(stored: Any, digests: Sequence[str]) -> dict[Key, dict[str, Any]]:
    names = ("characters", "prompt_tokens", "completion_tokens", "cost", "seconds")
    result: dict[Key, dict[str, Any]] = {}
    for keys in split_keys(digests):
        rows = stored.filter(digest__in=keys).values_list("digest", "repeat", *names)
        result |= {(digest, repeat): dict(zip(names, rest, strict=True)) for digest, repeat, *rest in rows}
    return result


def _describe_unit(unit: Unit, place: int) -> dict[str, Any]:
    """Return the text, or the pair in the order in which the request at this `place` shows it."""
    first, second = unit.record, unit.other_record
    if second is not None and place == 1:
        first, second = second, first
    if second is None:
        return {"item": first.item, "system": first.system, "step": first.step}
    return {
        "item": first.item, "system_a": first.system, "step_a": first.step, "system_b": second.system,
        "step_b": second.step,
    }  # fmt: skip


def iterate_exported_answers(*, project: Project) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield ("judge_answers", row) of every judge whose prompts are known here, for an export; see
    `iterate_answer_rows`."""
    judges = Evaluator.objects.filter(project=project, kind=Evaluator.Kind.JUDGE)
    for evaluator in sorted(judges, key=lambda judge: natural_key(judge.slug)):
        if len(evaluator.record.get("examples", ())) < evaluator.options["examples"]:
            continue
        for row in iterate_answer_rows(evaluator, make_reader(evaluator)):
            first = {name.removesuffix("_a"): value for name, value in row.items()}
            yield "judge_answers", {"evaluator": evaluator.slug, **first}
