"""Systems by games in a run: an evaluator compares their texts for some items once, games are simulated from its
verdicts, or from what it expects of them, and the order is held against people's. Nothing is stored but the result, so
it may run twice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from evalapp.common.errors import BadInput
from evalapp.common.runner import RunContext
from evalapp.side_figures import collect_failures, side_figure
from scoring.boards.systems.games import Met, systems_by_games

from ..selectors.game_texts import Texts, compare_with_people, draw_texts
from ..selectors.games import METHOD, data_stamp, find_judge
from ..services.games import GamesWishes
from .score import load_trained

if TYPE_CHECKING:
    from scoring.ml.evaluators.comparative.systems import Encounters


def run(context: RunContext, **params: Any) -> dict[str, Any]:
    """The job `games`; the table of systems is its result."""
    from scoring.ml import ScoringError

    wishes, project = GamesWishes(**params), context.project
    stamp = data_stamp(project)  # before anything is read: what comes meanwhile makes the result old
    context.progress(0, None, "texts", "reading")
    texts = draw_texts(
        project, subset=wishes.systems, references=wishes.references, items=wishes.items, seed=wishes.seed
    )
    judge = find_judge(project, wishes.evaluator)
    context.progress(0, texts.n_pairs, "pairs of texts", "loading")
    try:
        found = load_trained(judge, wishes.options)
        compared = _compare(context, found, texts, wishes.seed)
    except ScoringError as error:
        raise BadInput(str(error)) from error
    context.progress(texts.n_pairs, texts.n_pairs, "pairs of texts", "playing")
    with collect_failures() as failed:
        table = _table(context, wishes, judge, found, compared, texts)
    if failed:
        table["failed"] = failed
    context.log(f"Signature: {table['signature']}")
    tail = f"&systems={wishes.systems}" if wishes.systems != "all" else ""
    return {
        "project": project.slug,
        "evaluator": judge.slug,
        "judge": judge.pk,
        "table": {"project": project.slug, "lang": project.lang, "stamp": stamp, **table},
        "url": f"/projects/{project.slug}/systems/?by={judge.slug}&method={METHOD}{tail}",
    }


def _table(
    context: RunContext, wishes: GamesWishes, judge: Any, found: Any, compared: Encounters, texts: Texts
) -> dict[str, Any]:
    """The table of systems, with how far its order is people's."""
    table = systems_by_games(
        _met(found, compared, texts),
        {"by": judge.slug, "systems": wishes.systems, "ratings": "", "items": wishes.items},
        evaluator={"slug": judge.slug, "signature": found.signature, "aspect": ""},
        tie=found.tie_rule,
        seeds=wishes.seeds,
        seed=wishes.seed,
    )
    if texts.without:
        table["findings"].append(f"Without an output for these items: {', '.join(texts.without)}.")
    if found.unknown_tokens is not None:
        read = (text for records in texts.systems.values() for record in records for text in found.texts_read(record))
        table["findings"] += [f"{said}." for said in [found.unknown_tokens.describe(read)] if said]
    context.progress(texts.n_pairs, texts.n_pairs, "pairs of texts", "reading what people said")
    table["extras"]["people"] = []
    with side_figure("How far the order is that of people"):
        table["extras"]["people"] = compare_with_people(context.project, table)
    return table


def _compare(context: RunContext, judge: Any, texts: Texts, seed: int) -> Encounters:
    from scoring.ml.evaluators.comparative.systems import PairJudge

    if not isinstance(judge, PairJudge):
        raise BadInput("This evaluator compares no texts.")

    def report(done: int, total: int) -> None:
        context.progress(done, total, "pairs of texts", "comparing")

    return judge.encounters(texts.systems, seed=seed, progress=report)


def _met(judge: Any, compared: Encounters, texts: Texts) -> Met:
    """The verdicts as columns. Of several folds' models as one, a group counts as seen where all of them saw it: else
    those that did not are the ones that judged."""
    from scoring.ml.types import training_names

    numbers = {unit.label: number for number, unit in enumerate(texts.units.units)}
    codes = np.array([numbers[name] for name in compared.systems], dtype=np.int64)
    groups = {record.item: record.group for records in texts.systems.values() for record in records}
    learned: frozenset[str] = getattr(judge, "trained_on", frozenset())
    seen = {item: not learned.isdisjoint(training_names(group, item)) for item, group in groups.items()}
    return Met(
        texts.units,
        first=codes[list(compared.first)],
        second=codes[list(compared.second)],
        sign=compared.verdicts.signs.astype(np.int64),
        item=compared.items,
        cluster=[training_names(groups[item], item)[0] for item in compared.items],
        in_training=[seen[item] for item in compared.items],
        n_truncated=int(compared.verdicts.truncated.sum()),
        swap_consistency=compared.verdicts.swap_consistency,
        score=compared.scores,
    )
