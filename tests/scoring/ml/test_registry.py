"""The catalogue, loading by name and from a folder, options, and that none of it needs torch."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

from scoring.ml import InvalidOption, Record, ScoringError, UnknownEvaluator, catalogue, load

RECORDS = [
    Record("the cat sat on the mat .", ("the cat is on the mat .", "there is a cat"), ("where is the cat ?",)),
    Record("i like tea", ("i like coffee",), ("what do you like ?",)),
]


def test_names_are_the_promised_ones_and_unique():
    names = [entry.name for entry in catalogue()]
    assert len(set(names)) == len(names)
    promised = {"length", "overlap", "random", "bleu-1", "bleu-2", "bleu-3", "bleu-4", "bleu-avg", "bleu-star",
                "bleu-corpus", "token-f1", "chrf", "rouge-l", "distinct-1", "distinct-2"}  # fmt: skip
    assert promised <= set(names)


def test_entries_explain_themselves():
    for entry in catalogue():
        assert entry.summary.endswith(".")
        assert entry.kind in ("sentinel", "baseline", "trained")
        assert entry.kind == "sentinel" or entry.citation
        for option in entry.options:
            assert option.help.endswith(".")
            assert option.default is None or option.parse(entry.name, option.default) == option.default


def test_unknown_name_lists_near_ones():
    with pytest.raises(UnknownEvaluator, match="Did you mean bleu-star") as caught:
        load("bleu_star")
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
def test_bad_option_values_are_refused(name, options, message):
    with pytest.raises(InvalidOption, match=message):
        load(name, **options)


def test_option_texts_from_forms_are_understood():
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


def test_broken_artifact_is_told(tmp_path):
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
