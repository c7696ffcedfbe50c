"""Rank systems by games: an evaluator compares their texts once, games are simulated from its verdicts or expected
results, and the order is compared with human judgements. Only the result of the run is stored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from django.utils.translation import gettext as _

from evalapp.common.errors import BadInput
from evalapp.common.runner import RunContext
from evalapp.side_figures import collect_failures, side_figure
from scoring.boards.systems.games import Met, systems_by_games

from ..selectors.game_texts import Texts, compare_with_people, draw_texts
from ..selectors.games import METHOD, data_stamp, find_judge
from ..services.reports import GamesOptions
from .score import load_trained
from .shared import get_trained_on, is_seen, refuse_scoring_errors

if TYPE_CHECKING:
    from scoring.ml.evaluators.comparative.systems import Encounters


def run(context: RunContext, **params: Any) -> dict[str, Any]:
    """The job `games`; its result has the table of systems."""

    options, project = GamesOptions(**params), context.project
    stamp = data_stamp(project)  # before reading: later changes make the result outdated
    context.progress(0, None, "texts", "reading")
    texts = draw_texts(
        project, subset=options.systems, references=options.references, items=options.items, seed=options.seed
    )
    judge = find_judge(project, options.evaluator)
    context.progress(0, texts.n_pairs, "pairs of texts", "loading")
    with refuse_scoring_errors():
        scorer = load_trained(judge, options.options)
        encounters = _compare(context, scorer, texts, options.seed)
    context.progress(texts.n_pairs, texts.n_pairs, "pairs of texts", "playing")
    with collect_failures() as failed:
        table = _make_table(context, options, judge, scorer, encounters, texts)
    if failed:
        table["failed"] = failed
    context.log(f"Signature: {table['signature']}")
    tail = f"&systems={options.systems}" if options.systems != "all" else ""
    return {
        "project": project.slug,
        "evaluator": judge.slug,
        "judge": judge.pk,
        "table": {"project": project.slug, "lang": project.lang, "stamp": stamp, **table},
        "url": f"/projects/{project.slug}/systems/?by={judge.slug}&method={METHOD}{tail}",
    }


def _make_table(
    context: RunContext, options: GamesOptions, judge: Any, scorer: Any, encounters: Encounters, texts: Texts
) -> dict[str, Any]:
    """Return the table of systems, with the agreement of its order with human judgements."""
    table = systems_by_games(
        _as_columns(scorer, encounters, texts),
        {"by": judge.slug, "systems": options.systems, "ratings": "", "items": options.items},
        evaluator={"slug": judge.slug, "signature": scorer.signature, "aspect": ""},
        tie=scorer.tie_rule,
        seeds=options.seeds,
        seed=options.seed,
    )
    if texts.without:
        text = _("Systems without an output for these items: %(systems)s.")
        table["findings"].append(text % {"systems": ", ".join(texts.without)})
    if scorer.unknown_tokens is not None:
        records = (record for rows in texts.systems.values() for record in rows)
        warning = scorer.unknown_tokens.describe(text for record in records for text in scorer.texts_read(record))
        table["findings"] += [f"{warning}."] if warning else []
    context.progress(texts.n_pairs, texts.n_pairs, "pairs of texts", "reading human judgements")
    table["extras"]["people"] = []
    with side_figure(_("The agreement of the order with human judgements")):
        table["extras"]["people"] = compare_with_people(context.project, table)
    return table


def _compare(context: RunContext, judge: Any, texts: Texts, seed: int) -> Encounters:
    from scoring.ml.evaluators.comparative.systems import PairJudge

    if not isinstance(judge, PairJudge):
        raise BadInput(_("This evaluator does not compare texts."))

    def report(done: int, total: int) -> None:
        context.progress(done, total, "pairs of texts", "comparing")

    return judge.encounters(texts.systems, seed=seed, progress=report)


def _as_columns(scorer: Any, encounters: Encounters, texts: Texts) -> Met:
    """Return the verdicts as columns. In a cross-fitted evaluator, a group is seen if all models were trained on it."""
    from scoring.ml.types import training_names

    numbers = {unit.label: number for number, unit in enumerate(texts.units.units)}
    codes = np.array([numbers[name] for name in encounters.systems], dtype=np.int64)
    groups = {record.item: record.group for records in texts.systems.values() for record in records}
    trained_on = get_trained_on(scorer)
    seen = {item: is_seen(trained_on, group, item) for item, group in groups.items()}
    return Met(
        texts.units,
        first=codes[list(encounters.first)],
        second=codes[list(encounters.second)],
        sign=encounters.verdicts.signs.astype(np.int64),
        item=encounters.items,
        cluster=[training_names(groups[item], item)[0] for item in encounters.items],
        in_training=[seen[item] for item in encounters.items],
        n_truncated=int(encounters.verdicts.truncated.sum()),
        swap_consistency=encounters.verdicts.swap_consistency,
        score=encounters.scores,
    )
