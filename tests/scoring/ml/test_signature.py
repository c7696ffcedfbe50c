"""Signatures in the style of sacrebleu."""

from __future__ import annotations

import hashlib

from scoring.ml import load
from scoring.ml.signature import VERSION, SignatureField, file_hash, render, text_hash


def test_render_long_and_short():
    fields = [SignatureField("nrefs", "#", "var"), SignatureField("tok", "tok", "13a")]
    assert render("x", fields) == f"x|nrefs:var|tok:13a|v:{VERSION}"
    assert render("x", fields, short=True) == f"x|#:var|tok:13a|v:{VERSION}"


def test_bleu_star_signature():
    assert load("bleu-star").signature == "bleu-star|nrefs:var|case:mixed|eff:yes|tok:13a|smooth:exp|v:0.2.0.dev0"
    assert load("bleu-star").short_signature == "bleu-star|#:var|c:mixed|e:yes|tok:13a|s:exp|v:0.2.0.dev0"


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
