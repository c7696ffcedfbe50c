"""Signatures in the style of sacrebleu."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from dataclasses import replace

from evalapp.versions import read_settings, split_version
from scoring.ml import load
from scoring.ml.metrics import build
from scoring.ml.signature import SignatureField, file_hash, render, text_hash


def test_render_long_and_short():
    fields = [SignatureField("nrefs", "#", "var"), SignatureField("tok", "tok", "13a")]
    assert render("x", fields, 2) == "x|nrefs:var|tok:13a|v:2"
    assert render("x", fields, 2, short=True) == "x|#:var|tok:13a|v:2"


def test_bleu_star_signature():
    assert load("bleu-star").signature == "bleu-star|nrefs:var|case:mixed|eff:yes|tok:13a|smooth:exp|v:1"
    assert load("bleu-star").short_signature == "bleu-star|#:var|c:mixed|e:yes|tok:13a|s:exp|v:1"


def test_the_signature_names_the_revision_and_not_the_version_of_the_product():
    """In a process of its own, as a later release would run it."""
    code = (
        "import evalapp\nevalapp.__version__ = '9.9.9'\nfrom scoring.ml import load\nprint(load('bleu-star').signature)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == load("bleu-star").signature
    entry = load("bleu-star").entry
    changed = build(replace(entry, revision=2), {})
    assert changed.signature == load("bleu-star").signature.removesuffix("|v:1") + "|v:2"
    assert changed.short_signature.endswith("|v:2")


def test_signatures_of_earlier_versions_stay_readable():
    """They end with the version of the product that computed the score; a revision is no such version."""
    assert split_version("chrf|nc:6|v:0.1.0") == ("chrf|nc:6", "0.1.0")
    assert split_version("chrf|nc:6|v:0.2.0.dev0") == ("chrf|nc:6", "0.2.0.dev0")
    assert split_version(load("length").signature)[1] == "1"
    assert read_settings({"ratings": "z"}, "1") == {"ratings": "z"}


def test_signature_contains_everything_that_changes_a_score():
    signatures = {
        load("bleu-star", **options).signature
        for options in ({}, {"lang": "zh"}, {"lang": "th"}, {"lowercase": True}, {"smooth": "method1"},
                        {"smooth_value": 0.2}, {"effective_order": False}, {"tokenize": "none"})
    }  # fmt: skip
    assert len(signatures) == 8
    assert load("bleu-corpus").signature.count("eff:no") == 1
    assert load("random", seed=1).signature != load("random", seed=2).signature
    assert load("distinct-1", expected=True).signature != load("distinct-1").signature


def test_same_tokeniser_same_signature():
    assert load("bleu-star", lang="zh").signature == load("bleu-star", tokenize="zh").signature


def test_text_hash_depends_on_boundaries():
    assert text_hash(["ab", "c"]) != text_hash(["a", "bc"])
    assert len(text_hash(["\ud800"])) == 8


def test_file_hash_is_sha256(tmp_path):
    (tmp_path / "f").write_bytes(b"weights")
    assert file_hash(tmp_path / "f") == hashlib.sha256(b"weights").hexdigest()
