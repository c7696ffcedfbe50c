"""The catalogue, loading by name and from a folder, options, all without importing torch."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

from scoring.ml import InvalidOption, PairEvaluator, Record, ScoringError, UnknownEvaluator, catalogue, load
from scoring.ml.registry import get_entry

RECORDS = [
    Record("the cat sat on the mat .", ("the cat is on the mat .", "there is a cat"), ("where is the cat ?",)),
    Record("i like tea", ("i like coffee",), ("what do you like ?",)),
]


def test_names_are_promised_and_unique():
    names = [entry.name for entry in catalogue()]
    assert len(set(names)) == len(names)
    promised = {"length", "overlap", "random", "bleu-1", "bleu-2", "bleu-3", "bleu-4", "bleu-avg", "bleu-star",
                "bleu-corpus", "token-f1", "chrf", "rouge-l", "distinct-1", "distinct-2"}  # fmt: skip
    assert promised <= set(names)


def test_entries_have_descriptions():
    for entry in catalogue():
        assert entry.summary.endswith(".")
        assert entry.kind in ("sentinel", "baseline", "trained")
        assert entry.kind == "sentinel" or entry.citation
        for option in entry.options:
            assert option.help.endswith(".")
            assert option.default is None or option.parse(entry.name, option.default) == option.default


def test_unknown_name_lists_near_ones():
    with pytest.raises(UnknownEvaluator, match="bleu-star") as caught:
        load("bleu-stra")
    assert "bleu-star" in caught.value.near


def test_unknown_option_lists_the_existing_ones():
    with pytest.raises(InvalidOption, match="it has: seed"):
        load("random", sed=3)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("bleu-star", {"smooth": "magic"}, "must be one of exp"),
        ("chrf", {"char_order": 0}, "at least 1"),
        ("chrf", {"char_order": "six"}, "whole number"),
        ("meteor", {"alpha": 1.5}, "at most 1"),
        ("bleu-star", {"lowercase": "perhaps"}, "true or false"),
        ("rouge-l", {"beta": True}, "must be a number"),
        ("rouge-l", {"beta": "nan"}, "must be a number"),
        ("chrf", {"char_order": 2.5}, "whole number"),
        ("chrf", {"char_order": 10**400}, "whole number"),
    ],
)
def test_invalid_option_values_are_refused(name, options, message):
    with pytest.raises(InvalidOption, match=message):
        load(name, **options)


WRONG = [
    ("ream", "metric", "nonsense", "one of bleu-star, token-f1"),
    ("ream", "metric", "bleurt", "one of bleu-star, token-f1"),
    ("ream", "sizes", "a,b", "must be whole numbers from 1 with commas between, not “a,b”"),
    ("ream", "sizes", "", "must be whole numbers"),
    ("ream", "sizes", "0,1", "must be whole numbers from 1"),
    ("ream", "negatives", "foo", "must be among remove, add, replace"),
    ("ream", "train_device", "foo", "must be auto, cpu, cuda or cuda:N, not “foo”"),
    ("shared-bert", "beta", "0.3,2", "must be share, grid, or numbers between 0 and 1"),
    ("shared-bert", "beta", "high", "must be share, grid, or numbers between 0 and 1"),
    ("perception", "learning_rates", "1e-5,x", "must be numbers above 0, up to 1"),
    ("perception", "learning_rates", "1e-5,30", "must be numbers above 0, up to 1"),
    ("comparative", "smoothing", "1", "must be less than 1"),
]


@pytest.mark.parametrize(("name", "option", "value", "message"), WRONG)
def test_training_options_are_refused_before_data_are_read(name, option, value, message):
    """Once, only a worker's dry check found them, one at a time."""
    with pytest.raises(InvalidOption, match=message) as caught:
        get_entry(name).parse_train_options("recommended", {option: value})
    assert caught.value.option == option


def test_valid_options_are_unchanged():
    given = {"sizes": "1, 3,5", "negatives": "remove, add", "train_device": "cuda:1", "metric": "chrf"}
    assert given.items() <= get_entry("ream").parse_train_options("recommended", given).items()
    for beta in ("share", "grid", ".3,.2"):
        assert get_entry("shared-bert").parse_train_options("paper", {"beta": beta})["beta"] == beta
    rates = get_entry("perception").parse_train_options("paper", {"learning_rates": "1e-5, 3e-5"})["learning_rates"]
    assert rates == "1e-5, 3e-5"


def test_all_invalid_options_are_reported_at_once():
    wrong = {"metric": "nonsense", "sizes": "a,b", "negatives": "foo", "nothing": 1}
    with pytest.raises(InvalidOption) as caught:
        get_entry("ream").parse_train_options("recommended", wrong)
    assert {fault.option for fault in caught.value.faults} == set(wrong)
    for name in wrong:
        assert repr(name) in str(caught.value)


def test_no_evaluator_accepts_a_missing_device():
    options = [
        (entry, option)
        for entry in catalogue()
        for option in (*entry.options, *entry.train_options)
        if option.name.endswith("device")
    ]
    assert len(options) > 10
    for entry, option in options:
        assert option.parse(entry.name, "cuda:0") == "cuda:0"
        with pytest.raises(InvalidOption, match="cuda:N"):
            option.parse(entry.name, "gpu")


def test_ream_takes_every_metric_that_compares_with_one_reference():
    """A metric without a default model, such as BLEURT, is left out."""
    for entry in catalogue():
        is_class = isinstance(entry.build, type)
        assert entry.pairwise == (is_class and issubclass(entry.build, PairEvaluator)), entry.name
    (metric,) = (option for option in get_entry("ream").train_options if option.name == "metric")
    assert [entry.name for entry in catalogue() if entry.pairwise and entry.loads_by_name] == list(metric.choices)
    assert not get_entry("bleurt").loads_by_name
    assert metric.choices[:2] == ("bleu-star", "token-f1")


def test_option_texts_from_forms_are_parsed():
    assert load("bleu-star", lowercase="yes", smooth_value="0.5").options["lowercase"] is True
    assert load("chrf", word_order="2").options["word_order"] == 2
    assert load("chrf", word_order=2.0).options["word_order"] == 2


@pytest.mark.parametrize("name", [e.name for e in catalogue() if "encoder" not in e.needs])
def test_saved_and_loaded_again_scores_the_same(name, tmp_path):
    evaluator = load(name)
    evaluator.save_pretrained(tmp_path / "out")
    again = load(tmp_path / "out")
    assert again.signature == evaluator.signature
    np.testing.assert_array_equal(again.score(RECORDS), evaluator.score(RECORDS))


def test_options_survive_saving_and_may_be_overridden(tmp_path):
    load("chrf", word_order=2).save_pretrained(tmp_path)
    assert load(tmp_path).options["word_order"] == 2
    assert load(tmp_path, beta=1).signature.count("nw:2|beta:1") == 1


def test_broken_artifact_is_reported(tmp_path):
    (tmp_path / "evaluator.json").write_text(json.dumps({"options": {}}), encoding="utf-8")
    with pytest.raises(ScoringError, match="not a saved evaluator"):
        load(tmp_path)


def test_neither_torch_nor_django_is_imported():
    program = (
        "import sys\n"
        "from scoring.ml import Record, catalogue, load\n"
        "catalogue(); load('bleu-star').score([Record('a b', ('a c',))])\n"
        "bad = {'torch', 'transformers', 'django', 'sacrebleu', 'nltk'} & set(sys.modules)\n"
        "sys.exit(', '.join(sorted(bad)) or 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
