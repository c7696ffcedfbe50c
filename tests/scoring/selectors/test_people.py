"""Human judgements as columns: each step is a separate system, dialogues are left out, the order is stable."""

from __future__ import annotations

import numpy as np
import pytest

from annotation.models import Aspect, Assignment, Comparison, Dialogue, Output, Rating
from annotation.services.filters import create_filter, withdraw_filter
from annotation.services.judging import get_next_assignment
from evalapp.common.errors import BadInput, Conflict, NotThere
from evalapp.stats.ranking.bias import side_bias
from evalapp.versions import signed, split_version
from scoring.boards.data.project_judgements import load_comparisons, load_ratings
from scoring.boards.systems.query import SystemsQuery
from scoring.selectors.aspects import choose_aspect
from scoring.selectors.exports import leaderboard
from scoring.services.leaderboards import get_leaderboard
from tests.annotation.services.judging_helpers import open_for, send
from tests.factories import make_items, make_outputs, make_ratings
from tests.scoring.boards.computing import compute_table

pytestmark = pytest.mark.django_db


@pytest.fixture
def aspect(cast):
    outputs = make_outputs(cast.project, make_items(cast.project, 3))
    return make_ratings(cast.project, outputs)


def test_columns(cast, aspect):
    ratings = load_ratings(cast.project, aspect)
    assert len(ratings) == 12
    assert [unit.label for unit in ratings.units.units] == ["sys-a", "sys-b"]
    assert set(ratings.cluster) == {0, 1, 2}
    places = list(zip(ratings.item, ratings.system, ratings.value, ratings.rater, strict=True))
    assert places == sorted(places)
    assert list(ratings.rater[:2]) == [0, 1]


def test_system_at_a_step_is_a_separate_system(cast, aspect):
    output = Output.objects.filter(system__name="sys-a").first()
    later = Output.objects.create(project=cast.project, item=output.item, system=output.system, step=900, text="x")
    Rating.objects.create(project=cast.project, output=later, aspect=aspect, rater="r0", value=2)
    labels = [unit.label for unit in load_ratings(cast.project, aspect).units.units]
    assert sorted(labels) == ["sys-a", "sys-a @ 900", "sys-b"]


def test_ratings_of_dialogues_are_excluded(cast, aspect):
    dialogue = Dialogue.objects.create(project=cast.project, key="d1", turns=["a", "b"])
    Rating.objects.create(project=cast.project, dialogue=dialogue, aspect=aspect, rater="r0", value=2)
    assert len(load_ratings(cast.project, aspect)) == 12


def test_no_ratings_at_all(cast):
    empty = Aspect.objects.create(project=cast.project, name="empty", low=1, high=5)
    ratings = load_ratings(cast.project, empty)
    assert len(ratings) == 0
    assert ratings.units.wanted("machine").shape == (0,)
    assert ratings.value.dtype == np.float64


def test_choosing_an_aspect(cast, aspect):
    Aspect.objects.create(project=cast.project, name="first but unrated", low=1, high=5, position=0)
    Aspect.objects.filter(pk=aspect.pk).update(position=1)
    assert choose_aspect(cast.project, "", judged_by="ratings") == aspect
    with pytest.raises(NotThere, match="first but unrated, quality"):
        choose_aspect(cast.project, "nonsense", judged_by="ratings")
    with pytest.raises(BadInput, match="no comparisons of outputs yet"):
        choose_aspect(cast.project, "", judged_by="comparisons")


def test_named_filter_excludes_raters_but_keeps_their_ratings(cast, aspect):
    create_filter(project=cast.project, user=None, name="without-r1", raters=["r1"], reason="always in a hurry")
    kept = load_ratings(cast.project, aspect, filter="without-r1")
    assert (len(kept), kept.n_filtered) == (6, 6)
    assert [kept.raters[code] for code in set(kept.rater)] == ["r0"]
    assert len(load_ratings(cast.project, aspect)) == Rating.objects.filter(aspect=aspect).count() == 12
    outputs = Output.objects.filter(project=cast.project).order_by("system", "item")
    for rater in ("r0", "r1"):
        Comparison.objects.create(
            project=cast.project, output_a=outputs[0], output_b=outputs[3], aspect=aspect, rater=rater, verdict="a"
        )
    compared = load_comparisons(cast.project, aspect, turing=False, filter="without-r1")
    assert (len(compared.item), compared.n_filtered, compared.raters[compared.rater[0]]) == (1, 1, "r0")


def test_table_names_its_filter_and_a_withdrawn_one_is_refused(cast, aspect):
    made = create_filter(project=cast.project, user=None, name="without-r1", raters=["r1"], reason="hurry")
    whole = get_leaderboard(project=cast.project, query=SystemsQuery())
    query = SystemsQuery(filter="without-r1")
    table = get_leaderboard(project=cast.project, query=query).table
    assert table["signature"] == signed(f"{split_version(whole.table['signature'])[0]}|filter:without-r1@{made.digest}")
    assert table["filter"] == {"name": "without-r1", "raters": 1, "digest": made.digest, "reason": "hurry"}
    assert (table["n_raters"], whole.table["n_raters"]) == (1, 2)
    exported = [entry["params"]["filter"] for entry in leaderboard(project=cast.project)["tables"]]
    assert sorted(exported) == ["", "without-r1"]
    withdraw_filter(row=made, user=None)
    with pytest.raises(Conflict, match="withdrawn"):
        get_leaderboard(project=cast.project, query=query)
    assert [entry["params"]["filter"] for entry in leaderboard(project=cast.project)["tables"]] == [""]


def test_adaptively_chosen_comparisons_can_be_weighted_by_probability(cast, aspect):
    outputs = list(Output.objects.filter(project=cast.project).order_by("item", "system"))
    for number, (a, b) in enumerate(zip(outputs[::2], outputs[1::2], strict=True)):
        for rater, verdict, meta in (("r0", "ab"[number == 0], {"propensity": 0.25}), ("r1", "b", {})):
            Comparison.objects.create(
                project=cast.project, output_a=a, output_b=b, aspect=aspect, rater=rater, verdict=verdict, meta=meta
            )
    Comparison.objects.filter(rater="r0", verdict="b").update(meta={"propensity": 0.5})
    loaded = load_comparisons(cast.project, aspect, turing=False, propensity=True)
    assert loaded.propensity is not None
    assert sorted(loaded.propensity[np.isfinite(loaded.propensity)]) == [0.25, 0.25, 0.5]
    assert load_comparisons(cast.project, aspect, turing=False).propensity is None
    plain, weighed = (
        get_leaderboard(project=cast.project, query=SystemsQuery(method="bradley-terry", weights=weights)).table
        for weights in ("none", "propensity")
    )
    assert "weights:no" in plain["signature"]
    assert "weights:yes" in weighed["signature"]
    # sys-a won 2 of 6; with weights 4, 4, 2 (scaled to mean 1: 1.2, 1.2, .6) 2.4 of 6.
    value = {row["system"]: row["value"] for row in weighed["rows"]}
    assert value["sys-a"] - value["sys-b"] == pytest.approx(400 * np.log10(2.4 / 3.6))


def test_side_of_a_comparison_is_the_displayed_one(cast):
    """The first shown text wins six of seven times, whichever system the unit names first."""
    campaign = open_for(cast, "pairwise", items=30, overlap=2)
    shown = []
    for user in (cast.annotator, cast.owner):
        while found := get_next_assignment(user=user, campaign_id=campaign.pk).shown:
            assignment = Assignment.objects.select_related("unit").get(public=found.public)
            outputs = [assignment.unit.output_a, assignment.unit.output_b]
            first, second = reversed(outputs) if assignment.side_swapped else outputs
            verdict = "a" if len(shown) % 7 else "b"
            shown.append((first.system.name, second.system.name, first.item_id, verdict))
            send(user, campaign, found.public, verdict)
    aspect = Aspect.objects.get(project=cast.project, name="pairwise-quality")
    swapped = Assignment.objects.filter(side_swapped=True).count()
    assert 0 < Comparison.objects.filter(meta__swapped=True).count() == swapped < len(shown) == 60
    columns = load_comparisons(cast.project, aspect, turing=False)
    assert int((columns.verdict == "a").sum()) == 51
    outputs_by_pk = Output.objects.in_bulk(columns.output_a.tolist())
    named = [columns.units.units[code].name for code in columns.system_a]
    assert [outputs_by_pk[pk].system.name for pk in columns.output_a.tolist()] == named
    table = compute_table(cast.project, SystemsQuery(aspect=aspect.name, method="win-rate"))
    # Who is shown what depends on the database's numbers, so the figure is compared with that of the texts shown here.
    first, second, item, verdict = zip(*shown, strict=True)
    bias = side_bias(first, second, verdict, item=item)
    assert bias.raw.value == 51 / 60
    assert table["extras"]["side_bias"]["value"] == pytest.approx(bias.estimate.value)
