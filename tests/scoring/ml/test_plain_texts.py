"""Scores of plain lists, arrays and Series equal those of records; faults name argument and place; aliases."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sacrebleu.metrics.bleu import BLEU

from scoring.ml import InvalidRecords, Record, UnknownEvaluator, catalogue, load

OUTPUTS = ["the cat sat on the mat", "a dog", ""]
REFERENCES = ["the cat sat on a mat", "the dog ran", "no"]
SEVERAL = [["the cat sat on a mat", "a cat sat"], ["the dog ran"], ["no", "never"]]
SOURCES = ["where is the cat", "who ran", "yes?"]


def test_lists_equal_records_and_sacrebleu():
    metric = load("bleu")
    records = [Record(text, refs) for text, refs in zip(OUTPUTS, SEVERAL, strict=True)]
    np.testing.assert_array_equal(metric.score(OUTPUTS, SEVERAL), metric.score(records))
    by_set = [[refs[place] if place < len(refs) else None for refs in SEVERAL] for place in range(2)]
    expected = BLEU(force=True).corpus_score(OUTPUTS, by_set).score
    assert metric.system_score(OUTPUTS, SEVERAL) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    "make", [tuple, np.array, lambda texts: np.array(texts, dtype=object), lambda t: pd.Series(t, index=[7, 7, 9])]
)
def test_every_kind_of_column_is_equal(make):
    metric = load("chrf")
    expected = metric.score(OUTPUTS, REFERENCES)
    np.testing.assert_array_equal(metric.score(make(OUTPUTS), make(REFERENCES)), expected)
    assert metric.system_score(make(OUTPUTS), make(REFERENCES)) == metric.system_score(OUTPUTS, REFERENCES)


def test_a_table_of_references_may_have_gaps():
    frame = pd.DataFrame({"first": REFERENCES, "second": ["a cat sat", None, np.nan]})
    expected = [["the cat sat on a mat", "a cat sat"], ["the dog ran"], ["no"]]
    np.testing.assert_array_equal(load("chrf").score(OUTPUTS, frame), load("chrf").score(OUTPUTS, expected))


def test_sources_and_contexts_are_read():
    metric = load("overlap")
    records = [Record(text, source=source) for text, source in zip(OUTPUTS, SOURCES, strict=True)]
    np.testing.assert_array_equal(metric.score(OUTPUTS, sources=SOURCES), metric.score(records))
    turns = [["where", "is the cat"], "who ran", ["yes?"]]
    records = [Record(text, context=[turn] if isinstance(turn, str) else turn) for text, turn in zip(OUTPUTS, turns)]  # noqa: B905
    np.testing.assert_array_equal(metric.score(OUTPUTS, contexts=turns), metric.score(records))


def test_a_missing_reference_leaves_no_score():
    assert np.isnan(load("chrf").score(OUTPUTS, ["the cat", None, float("nan")])).tolist() == [False, True, True]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ((OUTPUTS, REFERENCES[:2]), ["references", "2", "3"]),
        ((OUTPUTS[:2], REFERENCES), ["references", "3", "2"]),
        ((OUTPUTS, [REFERENCES, REFERENCES]), ["references", "list(zip(*references))"]),
        ((["a", None], REFERENCES[:2]), ["hypotheses[1]"]),
        ((["a", 3.5], REFERENCES[:2]), ["hypotheses[1]", "float"]),
        ((OUTPUTS, "the cat"), ["references", "str"]),
        ((OUTPUTS, ["a", ["b", 4], "c"]), ["references[1][1]", "int"]),
        (("the cat", REFERENCES), ["list"]),
        (([Record("a", ["b"])], ["b"]), ["references"]),
    ],
)
def test_faults_name_argument_and_place(arguments, named):
    with pytest.raises(InvalidRecords) as caught:
        load("chrf").score(*arguments)
    assert all(part in str(caught.value) for part in named), str(caught.value)


@pytest.mark.parametrize(
    ("alias", "name", "options"),
    [
        ("bleu", "bleu-corpus", {}), ("BLEU", "bleu-corpus", {}), ("Bleu_4", "bleu-4", {}), ("chrF", "chrf", {}),
        ("chrF++", "chrf", {"word_order": 2}), ("rougeL", "rouge-l", {}), ("METEOR", "meteor", {}),
    ],
)  # fmt: skip
def test_aliases(alias, name, options):
    assert load(alias).signature == load(name, **options).signature


def test_an_unknown_name_lists_near_ones_also_of_aliases():
    with pytest.raises(UnknownEvaluator) as caught:
        load("blue")
    assert "bleu-corpus" in caught.value.near


ROOT = Path(__file__).resolve().parents[3]
METRICS = [entry.name for entry in catalogue() if not entry.learns and entry.loads_by_name]


@pytest.mark.parametrize("name", METRICS)
def test_texts_without_what_a_metric_needs_are_refused(name):
    """They would all be undefined, and a notebook shows only nan."""
    metric = load(name)
    for call in (metric.score, metric.system_score):
        if "references" in metric.entry.needs:
            with pytest.raises(InvalidRecords, match=rf"{name} cannot score a text with no references: .*references="):
                call(["a text", "another one"])
            with pytest.raises(InvalidRecords, match="no references"):
                call(["a text", "another one"], [None, " "])
    if "references" in metric.entry.needs and name != "perplexity":  # which learns from those of other texts
        # Single texts may lack their references, and records keep their reasons.
        values = metric.score(["a short text", "another one"], ["a short text", None])
        assert np.isnan(values).tolist() == [False, True]
        assert np.isnan(metric.score([Record("a text")])).all()
    assert metric.score([]).shape == (0,)


def test_texts_without_context_are_refused():
    with pytest.raises(InvalidRecords, match=r"overlap cannot score a text with no context or source: .*contexts="):
        load("overlap").score(["a text"])
    assert not np.isnan(load("overlap").score(["a text"], sources=["a source"])).any()


@pytest.mark.parametrize("call", ['load("bertscore").score(["a"], ["a"])', 'load("maude-base")', 'load("lab/model")'])
def test_missing_packages_name_the_extra(call):
    """Also how to install torch without the libraries for GPUs."""
    program = f"""
import importlib.util, sys
import scoring.ml.errors as errors
errors.find_spec = lambda name: None
from scoring.ml import ScoringError, load
try:
    {call}
except ScoringError as error:
    sys.exit(str(error))
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert "pip install 'evalapp[torch]' (without the libraries for GPUs: uv pip install" in done.stderr
