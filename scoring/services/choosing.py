"""Campaigns about outputs that an evaluator's scores select: to align a judge with people, or as a sample with known
chances for assisted estimates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from annotation.models import Aspect, Campaign
from annotation.services.campaigns import create_campaign
from evalapp.accounts.models import Project
from evalapp.common import audit
from evalapp.common.errors import BadInput, Conflict
from evalapp.common.params import check_values, param, seed_param

from ..models import ScoreSet
from ..selectors.aspects import choose_aspect, find_campaign
from ..selectors.chosen_sets import get_set
from ..selectors.judges import read_rubric
from ..selectors.telling_outputs import (
    ScoredOutputs,
    TellingOutput,
    hide_test_ratings,
    list_telling_outputs,
    load_scored_outputs,
    predict_output_errors,
)

#: Which systems a sample is for.
GOALS = {
    "all": gettext_lazy("All systems equally"),
    "first": gettext_lazy("The first systems, so that they separate"),
}


@dataclass(frozen=True)
class AlignmentOptions:
    """Options of a campaign that aligns a judge."""

    n: int = param(40, help="Outputs of the campaign.", low=1, high=1_000)
    aspect: str = param("", help="The rated aspect; empty: that of the scores, or the first.")
    overlap: int = param(1, help="Raters of each output.", low=1, high=100)


@dataclass(frozen=True)
class SampleOptions:
    """Options of a sample that is drawn by expected error."""

    n: int = param(50, help="Outputs of each batch.", low=1, high=10_000)
    batches: int = param(4, help="Batches, into which all outputs are divided first.", low=1, high=50)
    aspect: str = param("", help="The rated aspect; empty: that of the scores, or the first.")
    overlap: int = param(1, help="Raters of each output.", low=1, high=100)
    floor: float = param(0.3, help="Share that is drawn uniformly.", low=0.2, high=1.0)
    goal: str = param(
        "all", help="all: equally many outputs of each system; first: more near the first.", choices=GOALS
    )
    after: str = param("", help="A campaign of an earlier batch, which the next one follows; empty: the first batch.")
    seed: int = seed_param()


def choose_scores(project: Project, evaluator: str, aspect: str) -> tuple[ScoreSet, Aspect]:
    """Return the newest score set of the evaluator, of the aspect if it has several, and the rated aspect."""
    score_set = get_set(project, evaluator, "")
    if aspect and score_set.aspect not in ("", aspect):
        own = ScoreSet.objects.filter(evaluator=score_set.evaluator, aspect=aspect, scored_at__isnull=False)
        score_set = own.select_related("evaluator").order_by("-scored_at").first() or score_set
    return score_set, choose_aspect(project, aspect or score_set.aspect, judged_by="ratings")


def list_proposed(project: Project, evaluator: str, options: AlignmentOptions) -> list[TellingOutput]:
    """Return the outputs that the campaign would ask about."""
    check_values(options)
    return list_telling_outputs(project, *choose_scores(project, evaluator, options.aspect), options.n)


def create_alignment_campaign(
    *, project: Project, user: Any = None, evaluator: str, options: AlignmentOptions
) -> Campaign:
    """Create the draft of a campaign about the outputs whose judgement tells most about an evaluator.

    The outputs were selected because of their errors, so that their ratings have chance 0: tables and estimates leave
    them out. They serve to read, to write a better template, and as examples.
    """
    rows = list_proposed(project, evaluator, options)
    if not rows:
        raise BadInput(_("No output of the development part has a score. Score outputs first."))
    _score_set, aspect = choose_scores(project, evaluator, options.aspect)
    outputs = [{"item": row.item, "system": row.system, "step": row.step, "chance": 0} for row in rows]
    chosen = {"reason": "alignment", "evaluator": evaluator, "aspect": aspect.name}
    name = _("Alignment of %(evaluator)s") % {"evaluator": evaluator}
    plan = {"slug": _free_slug(project, f"align-{evaluator}"), "name": name, "overlap": options.overlap}
    return _create(project, user, aspect, plan, outputs, chosen)


def create_sample_campaign(*, project: Project, user: Any = None, evaluator: str, options: SampleOptions) -> Campaign:
    """Create the draft of a campaign about outputs that are drawn by the expected error of the evaluator.

    The outputs are divided at random into parts, one for each batch; each batch draws from its own part, with chances
    that depend on the judgements so far. Raises `BadInput` if outputs were added or removed since the first batch, or
    after the last one.
    """
    from evalapp.stats.assisted.choice import deal_parts, draw_outputs

    check_values(options)
    earlier = find_campaign(project, options.after)
    chosen = _continue_sample(project, earlier, evaluator) if earlier else {}
    score_set, aspect = choose_scores(project, evaluator, str(chosen.get("aspect", options.aspect)))
    if score_set.n_in_training:
        text = _("Some outputs scored by %(name)s are in its training data. Train it with --folds 5.")
        raise BadInput(text % {"name": evaluator})
    scored = load_scored_outputs(project, score_set, aspect)
    if not chosen:
        series = _free_slug(project, f"sample-{evaluator}"[:50])
        chosen = {
            "reason": "sample", "evaluator": evaluator, "aspect": aspect.name, "series": series, "batch": 1,
            "batches": options.batches, "seed": options.seed, "outputs": scored.make_digest(), "goal": options.goal,
        }  # fmt: skip
    elif chosen["outputs"] != scored.make_digest():
        raise Conflict(_("The scored outputs have changed since the first batch. Begin a new sample."))
    units = [repr(one) for one in scored.unit]
    part = deal_parts(units, chosen["batches"], chosen["seed"])
    # The outputs that are judged already are a sample of their own.
    may = (part == chosen["batch"] - 1) & _is_open(scored)
    drawn = draw_outputs(
        predict_output_errors(hide_test_ratings(scored)), units, n=options.n, candidate=may, floor=options.floor,
        seed=chosen["seed"] + chosen["batch"], share=_share_out(scored) if chosen.get("goal") == "first" else None,
    )  # fmt: skip
    if not len(drawn.rows):
        raise BadInput(_("All outputs of this batch have been judged."))
    outputs = [
        {"item": scored.item[k], "system": scored.system[k], "step": scored.step[k], "chance": chance}
        for k, chance in zip(drawn.rows.tolist(), drawn.chance.tolist(), strict=True)
    ]
    facts = {"evaluator": evaluator, "batch": chosen["batch"], "batches": chosen["batches"]}
    name = _("Sample by %(evaluator)s, batch %(batch)d of %(batches)d") % facts
    slug = chosen["series"] if chosen["batch"] == 1 else f"{chosen['series']}-batch-{chosen['batch']}"
    plan = {"slug": slug, "name": name, "overlap": options.overlap}
    return _create(project, user, aspect, plan, outputs, chosen)


def _share_out(scored: ScoredOutputs) -> dict[object, float]:
    """Return the share of each system in the next batch, so that the first systems separate."""
    from evalapp.stats.assisted.choice import favour_first_systems
    from evalapp.stats.assisted.means import estimate_means

    units = [repr(one) for one in scored.unit]
    return favour_first_systems(estimate_means(scored.human, scored.score, scored.cluster, units))


def _is_open(scored: ScoredOutputs) -> Any:
    import numpy as np

    return ~np.isfinite(scored.human)


def _continue_sample(project: Project, campaign: Campaign, evaluator: str) -> dict[str, Any]:
    """Return what the next batch records after the newest one of the campaign's sample."""
    chosen = campaign.plan.get("chosen", {})
    if chosen.get("reason") != "sample":
        raise BadInput.for_field("after", _("This campaign is no sample by expected error."))
    if chosen["evaluator"] != evaluator:
        text = _("This sample was drawn by the expected error of %(name)s.")
        raise BadInput.for_field("after", text % {"name": chosen["evaluator"]})
    rows = Campaign.objects.filter(project=project, plan__chosen__series=chosen["series"])
    newest = max((row.plan["chosen"] for row in rows), key=lambda one: one["batch"])
    if newest["batch"] >= newest["batches"]:
        raise BadInput.for_field("after", _("All batches of this sample have been drawn."))
    return {**newest, "batch": newest["batch"] + 1}


def _free_slug(project: Project, wanted: str) -> str:
    taken = set(Campaign.objects.filter(project=project, slug__startswith=wanted).values_list("slug", flat=True))
    return next(slug for k in range(1, len(taken) + 2) if (slug := f"{wanted}-{k}") not in taken)


def _create(
    project: Project,
    user: Any,
    aspect: Aspect,
    plan: Mapping[str, Any],
    outputs: list[dict[str, Any]],
    chosen: Mapping[str, Any],
) -> Campaign:
    """Create the draft with question, scale, labels and guidelines of the newest campaign about the aspect."""
    rubric = read_rubric(project, aspect, "", is_pairwise=False)
    asked = {name: rubric[name] for name in ("question", "low", "high", "step", "labels")}
    campaign = create_campaign(
        project=project, user=user,
        plan={
            **plan, "kind": "likert", "aspects": [{"name": aspect.name, **asked}], "guidelines": rubric["guidelines"],
            "outputs": outputs, "chosen": dict(chosen),
        },
    )  # fmt: skip
    audit.record(
        verb="outputs.chosen", project=project, actor=user, object=campaign.slug, reason=chosen["reason"],
        evaluator=chosen["evaluator"], outputs=len(outputs),
    )  # fmt: skip
    return campaign
