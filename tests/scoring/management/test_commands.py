"""The commands from outside: JSON on stdout, progress on stderr, exit codes."""

from __future__ import annotations

import json
import shlex
from collections import defaultdict
from io import StringIO
from typing import Any

import numpy as np
import pytest
from django.core.management import CommandError, call_command

from annotation.models import Comparison, Item, Output, Reference, ReferenceSet, System
from annotation.services.filters import create_filter
from evalapp.common.models import Run
from evalapp.stats.resampling.bootstrap import NO_WIDTH
from scoring.models import ScoreSet
from tests.factories import make_items, make_outputs, make_ratings
from tests.scoring.training import train

pytestmark = pytest.mark.django_db


def command(name: str, *arguments: str) -> dict[str, Any]:
    out = StringIO()
    call_command(name, *arguments, "--json", stdout=out, stderr=StringIO())
    return json.loads(out.getvalue())


def call_text(name: str, *arguments: str) -> str:
    out = StringIO()
    call_command(name, *arguments, stdout=out, stderr=StringIO())
    return out.getvalue()


def test_evaluators_lists_the_promised_names():
    names = {row["name"] for row in command("evaluators")["evaluators"]}
    promised = "length overlap random bleu-1 bleu-2 bleu-3 bleu-4 bleu-avg bleu-star bleu-corpus token-f1 chrf rouge-l"
    assert set(promised.split()) | {"distinct-1", "distinct-2", "bertscore"} <= names
    assert "length" in call_text("evaluators")


def test_score_here_needs_no_worker(cast):
    make_outputs(cast.project, make_items(cast.project, 2))
    found = command("score", "length", "--project", "alpha", "--here")
    assert (found["scored"], found["state"]) == (4, "succeeded")
    assert "4 unchanged" in call_text("score", "length", "--project", "alpha", "--here")


def test_score_explains_outputs_without_a_score(cast):
    items = make_items(cast.project, 3)
    make_outputs(cast.project, items)
    Reference.objects.filter(item__in=items[1:]).delete()
    bare = Output.objects.filter(item__in=items[1:]).count()
    assert f"  {bare} undefined: no references" in call_text("score", "chrf", "--project", "alpha", "--here")


def test_trained_evaluator_is_applied_by_the_printed_command(toy):
    fast = ("--set", "frozen=true", "--set", "epochs=1", "--verbosity", "0")
    told = call_text("train", "toy", "--project", "alpha", "--folds", "1", "--name", "mine", "--here", *fast)
    words = shlex.split(told.partition("Apply it with: ")[2].splitlines()[0])
    assert words == ["evalapp", "score", "mine", "--project", "alpha"]
    assert command(*words[1:], "--here")["state"] == "succeeded"


def test_training_data_are_named_with_its_scores(toy, settings, tmp_path):
    settings.ARTEFACTS_DIR = tmp_path
    evaluator = train(toy.project, folds=1)
    told = call_text("score", evaluator.slug, "--project", "alpha", "--here")
    assert "22 belong to groups it learned from" in told
    told = call_text("systems", "alpha", "--by", evaluator.slug)
    assert f"22 scores are on items in the training data of {evaluator.slug}." in told


def test_score_detached_waits_in_the_queue(cast):
    make_outputs(cast.project, make_items(cast.project, 2))
    found = command("score", "random", "--project", "alpha", "--set", "seed=5", "--detach")
    assert found["state"] == "queued"
    assert Run.objects.get(pk=found["run"]).params["options"] == {"seed": 5}


def test_score_against_a_named_set(cast):
    items = make_items(cast.project, 2)
    make_outputs(cast.project, items)
    better = ReferenceSet.objects.create(project=cast.project, name="better")
    for item in items:
        Reference.objects.create(set=better, item=item, position=0, text=f"sys-a says something to {item.key}.")
    command("score", "token-f1", "--project", "alpha", "--references", "better", "--here")
    score_set = ScoreSet.objects.get()
    assert score_set.references == "better"
    assert score_set.full_signature.endswith(f"|refs:better|data:{score_set.data_hash}")
    assert score_set.summary[0]["mean"] == pytest.approx(1.0)


def test_set_without_references_for_the_outputs_is_refused_at_once(cast):
    make_outputs(cast.project, make_items(cast.project, 2))
    ReferenceSet.objects.create(project=cast.project, name="bare")
    with pytest.raises(CommandError, match="reference set bare") as caught:
        command("score", "chrf", "--project", "alpha", "--references", "bare", "--here")
    assert (caught.value.returncode, Run.objects.count(), ScoreSet.objects.count()) == (2, 0, 0)


@pytest.mark.parametrize(
    ("arguments", "says", "code"),
    [
        (("score", "lenght", "--project", "alpha", "--here"), "Did you mean length", 2),
        (("score", "length", "--project", "alpha", "--here"), "no outputs yet", 1),
        (("score", "length", "--project", "beta"), "no project “beta”", 2),
        (("score", "chrf", "--project", "alpha", "--references", "none"), "none", 2),
        (("train", "maud", "--project", "alpha"), "Did you mean maude", 2),
        (("select_references", "alpha", "--evaluator", "nosuch", "--into", "new"), "nosuch", 2),
        (("systems", "alpha"), "no ratings of outputs yet", 1),
        (("systems", "alpha", "--by", "length"), "has been applied", 2),
        (("systems", "alpha", "--by", "nosuch"), "nosuch", 2),
        (("meta", "alpha", "--aspect", "nosuch"), "nosuch", 2),
        (("meta", "alpha", "--references", "nosuch"), "nosuch", 2),
        # Incompatible arguments are an error for any data.
        (("meta", "alpha", "--level", "system", "--grouping", "item"), "use the grouping none", 2),
    ],
)
def test_mistakes_suggest_a_remedy_and_unknown_names_are_usage_errors(cast, arguments, says, code):
    with pytest.raises(CommandError, match=says) as caught:
        command(*arguments)
    assert caught.value.returncode == code, caught.value


def test_only_working_methods_are_offered(cast):
    with pytest.raises(CommandError, match="invalid choice: 'elo'"):
        command("systems", "alpha", "--method", "elo")


def test_subsets_exclude_kinds(scored):
    System.objects.filter(name="sys-a").update(kind="reference")
    System.objects.filter(name="sys-b").update(kind="control")
    names = {
        subset: {row["system"] for row in command("systems", "alpha", "--systems", subset)["rows"]}
        for subset in ("all", "no-reference", "machine")
    }
    assert names == {"all": {"sys-a", "sys-b", "sys-c"}, "no-reference": {"sys-b", "sys-c"}, "machine": {"sys-c"}}
    counts = {s: command("meta", "alpha", "--systems", s)["n_outputs"] for s in ("all", "no-reference", "machine")}
    assert counts == {"all": 24, "no-reference": 16, "machine": 8}


def test_meta_has_baselines_and_signatures(scored):
    found = command("meta", "alpha", "--ratings", "rank")
    rows = {row["evaluator"]: row for row in found["rows"]}
    assert {"length", "overlap", "random", "token-f1"} == set(rows)
    assert "|ratings:rank|" in found["signature"]
    assert rows["length"]["signature"].startswith("length|tok:words")
    assert rows["overlap"]["kendall"]["value"] is None
    low, high = rows["random"]["spearman"]["low"], rows["random"]["spearman"]["high"]
    assert low < rows["random"]["spearman"]["value"] < high
    assert "sentinel" in call_text("meta", "alpha")


def test_win_rate_and_m1_by_hand(scored):
    """sys-a beats sys-b twice and ties once: (1 + 1 + 1/2) / 3; against the reference it is better, worse, undecided: 2
    of 3 better or equal."""
    aspect = scored.project.aspects.get()
    outputs = {(o.item_id, o.system.name): o for o in Output.objects.select_related("system")}
    items = sorted({item for item, _ in outputs})[:3]
    for item, verdict in zip(items, ("a", "a", "tie"), strict=True):
        Comparison.objects.create(
            project=scored.project, output_a=outputs[item, "sys-a"], output_b=outputs[item, "sys-b"],
            aspect=aspect, rater="r", verdict=verdict,
        )  # fmt: skip
    for item, verdict in zip(items, ("a", "b", "cannot_decide"), strict=True):
        Comparison.objects.create(
            project=scored.project, output_a=outputs[item, "sys-a"], reference=0, aspect=aspect, rater="r",
            verdict=verdict, simulated=True,
        )  # fmt: skip
    rates = {row["system"]: row for row in command("systems", "alpha", "--method", "win-rate")["rows"]}
    assert rates["sys-a"]["value"] == pytest.approx(2.5 / 3)
    assert rates["sys-b"]["value"] == pytest.approx(0.5 / 3)
    assert rates["sys-a"]["shares"]["win"] == pytest.approx(2 / 3)
    found = command("systems", "alpha", "--method", "m1")
    assert [row["value"] for row in found["rows"]] == pytest.approx([2 / 3])
    assert found["n_simulated"] == 3
    # Two more prefer the second text: four of five judgements, three of three outputs.
    for rater in ("q", "s"):
        Comparison.objects.create(
            project=scored.project, output_a=outputs[items[1], "sys-a"], reference=0, aspect=aspect, rater=rater,
            verdict="a",
        )  # fmt: skip
    found, by_output = (command("systems", "alpha", "--method", "m1", "--per", per) for per in ("judgement", "output"))
    assert [table["rows"][0]["value"] for table in (found, by_output)] == pytest.approx([4 / 5, 1])
    assert by_output["signature"].startswith("method:m1-output|")
    with pytest.raises(CommandError, match="Only the method m1"):
        command("systems", "alpha", "--per", "output")


@pytest.mark.parametrize("name", ["bleu-corpus", "chrf", "perplexity", "distinct-1"])
def test_system_value_equals_the_library(scored, score, name):
    from scoring.ml import load
    from scoring.selectors.inputs import get_reference_set, iterate_inputs

    project = scored.project
    # Whole batches of items without outputs.
    Item.objects.bulk_create(Item(project=project, key=f"z{k:02}", context=["x"], group=f"z{k}") for k in range(40))
    score(project, name)
    stored = {(row["system"], row["step"]): row for row in ScoreSet.objects.get(evaluator__slug=name).systems}
    records = defaultdict(list)
    for chunk in iterate_inputs(project, references=get_reference_set(project, "original")):
        for row in chunk:
            records[row.record.system, row.record.step].append(row.record)
    assert set(stored) == set(records)
    for key, texts in records.items():
        evaluator = load(name)
        assert stored[key]["value"] == pytest.approx(evaluator.system_score(texts), rel=1e-9)
        assert stored[key]["n"] == len(texts)
        # Texts can be resampled if the score follows from sums. If all resamples agree, there is no interval: without
        # words shared with others, every word is equally likely for an n-gram model.
        sums = evaluator.system_statistics(texts)
        is_same = sums is not None and np.ptp(evaluator.from_sums(sums)) < 1e-9
        assert is_same == (NO_WIDTH in stored[key].get("note", ""))
        assert (stored[key]["low"] is None) == (sums is None or is_same)


def test_older_values_get_intervals_when_scored_again(scored, score):
    score(scored.project, "chrf")
    sets = ScoreSet.objects.filter(evaluator__slug="chrf")
    rows = sets.get().systems
    sets.update(systems=[{name: row[name] for name in ("system", "step", "value", "n")} for row in rows])
    score(scored.project, "chrf")
    assert sets.get().systems == rows


def test_system_level_metric_has_its_own_value(scored, score):
    score(scored.project, "bleu-corpus")
    own = {row["system"]: row["value"] for row in ScoreSet.objects.get(evaluator__slug="bleu-corpus").systems}
    found = command("systems", "alpha", "--by", "bleu-corpus")
    assert {row["system"]: row["value"] for row in found["rows"]} == pytest.approx(own)
    assert all(row["low"] <= row["value"] <= row["high"] for row in found["rows"])
    assert all("rests on" in row["note"] for row in found["rows"])  # from few groups
    assert found["n_clusters"] > 1
    score(scored.project, "distinct-1")
    found = command("systems", "alpha", "--by", "distinct-1")
    assert all(row["low"] is None and "not computed from sums" in row["note"] for row in found["rows"])
    rows = {row["evaluator"]: row for row in command("meta", "alpha", "--level", "system")["rows"]}
    assert "held fixed" in rows["bleu-corpus"]["note"]
    assert rows["bleu-corpus"]["pearson"]["n"] == 3


def test_agreement_and_power(cast):
    outputs = make_outputs(cast.project, make_items(cast.project, 6))
    make_ratings(cast.project, outputs)
    found = command("agreement", "alpha")
    assert [(row["aspect"], row["judged"]) for row in found["rows"]] == [("quality", "ratings")]
    assert "quality  ratings" in call_text("agreement", "alpha")
    one = call_text("agreement", "alpha", "--aspect", "quality", "--scale", "ordinal")
    assert "Krippendorff's alpha (ordinal)" in one
    assert "24 judgements of 12 units by 2 raters" in one
    create_filter(project=cast.project, user=None, name="hasty", raters=["r1"], reason="2 s each")
    assert "Without 1 rater (filter hasty): 2 s each" in call_text("agreement", "alpha", "--filter", "hasty")
    assert "Without 1 rater" in call_text("systems", "alpha", "--filter", "hasty")
    assert command("power", "--effect", "0.6")["needed"] == 194
    assert command("power", "--effect", "0.6", "--sides", "1")["sides"] == 1
    assert "are judged for quality" in call_text("power", "alpha", "--effect", ".3", "--test", "correlation")
    with pytest.raises(CommandError, match="true share"):
        command("power", "--effect", "much")


def test_snapshot_list_has_the_signatures_of_its_tables(scored):
    taken = command("snapshot", "alpha", "take", "--name", "first")
    shown = command("snapshot", "alpha", "show", "first")
    (listed,) = command("snapshot", "alpha", "list")["results"]
    assert listed["signature"] == taken["signature"] == shown["signature"]
    assert listed["signature"].startswith("method:mean|")
