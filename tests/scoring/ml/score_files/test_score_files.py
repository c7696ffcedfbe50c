"""`evalapp score`: values equal those of the peers on the same files; every fault is named; nothing heavy is loaded."""

from __future__ import annotations

import gzip
import io
import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bert_score import BERTScorer
from rouge_score.rouge_scorer import RougeScorer
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from evalapp.stats.ranking.paired_systems import SystemTests, compare_systems
from scoring.boards import recompute
from scoring.ml import load
from scoring.ml.score_files.command import main

ROOT = Path(__file__).resolve().parents[4]
WORDS = ["the", "cat", "sat", "on", "a", "mat", ",", "you", "tea", "!", "it's", "$3.50", "yes.", "(no)", "naïve", "犬"]
N = 40


def make_lines(seed: int, n: int = N, words: list[str] = WORDS) -> list[str]:
    rng = random.Random(seed)
    return [" ".join(rng.choices(words, k=rng.randint(2, 14))) for _ in range(n)]


def write(name: str, lines: list[str]) -> str:
    Path(name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="")
    return name


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """Two systems, one better, and two references; with an empty output, odd white space and Windows line ends."""
    monkeypatch.chdir(tmp_path)
    ref, other = make_lines(1), make_lines(2)
    rng = random.Random(3)
    good = [" ".join(w if rng.random() < 0.8 else rng.choice(WORDS) for w in line.split()) for line in ref]
    weak = [" ".join(w if rng.random() < 0.4 else rng.choice(WORDS) for w in line.split()) for line in ref]
    weak[3], weak[5], good[7] = "", " the\tcat\u2028sat  ", "a cat\r"
    lines = {"good.txt": good, "weak.txt": weak, "ref.txt": ref, "other.txt": other}
    for name, rows in lines.items():
        write(name, rows)
    return lines


def score(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main([*arguments, "--json"]) == 0
    result: dict[str, Any] = json.loads(capsys.readouterr().out)
    return result


def values(result: dict[str, Any]) -> list[list[float]]:
    """The scores by metric and system."""
    return [[row["score"] for row in metric["systems"]] for metric in result["metrics"]]


@pytest.mark.parametrize("references", [["ref.txt"], ["ref.txt", "other.txt"]])
def test_bleu_and_chrf_equal_sacrebleu(capsys, files, references):
    metrics = ["bleu", "bleu-corpus:lowercase=yes", "bleu:tokenize=char", "bleu:lang=zh", "chrf", "chrF++"]
    found = score(capsys, "-i", "good.txt", "weak.txt", "-r", *references, "-m", *metrics)
    peers = [
        BLEU(force=True), BLEU(lowercase=True, force=True), BLEU(tokenize="char", force=True),
        BLEU(tokenize="zh", force=True), CHRF(), CHRF(word_order=2),
    ]  # fmt: skip
    refs = [files[name] for name in references]
    expected = [[peer.corpus_score(files[name], refs).score for name in ("good.txt", "weak.txt")] for peer in peers]
    np.testing.assert_allclose(values(found), expected, rtol=0, atol=1e-9)
    assert [metric["name"] for metric in found["metrics"]] == metrics
    assert found["references"] == len(references)


def test_rouge_l_equals_rouge_score(capsys, files):
    write("ascii.txt", [line.replace("犬", "dog").replace("ï", "i") for line in files["ref.txt"]])
    write("system.txt", [line.replace("犬", "dog").replace("ï", "i") for line in files["weak.txt"]])
    found = score(capsys, "-i", "system.txt", "-r", "ascii.txt", "-m", "rougeL")
    peer = RougeScorer(["rougeL"], use_stemmer=False)
    pairs = zip(*(Path(name).read_text().split("\n")[:-1] for name in ("ascii.txt", "system.txt")), strict=True)
    expected = np.mean([peer.score(ref, hyp)["rougeL"].fmeasure for ref, hyp in pairs])
    assert values(found) == [[pytest.approx(expected, abs=1e-9)]]


def test_bertscore_equals_bert_score(capsys, tiny_encoder):
    folder = tiny_encoder("bert")
    hyps, refs = (make_lines(seed, 12, ["the", "cat", "sat", "on", "mat", "tea", "yes", "!"]) for seed in (1, 2))
    write("h.txt", hyps)
    write("h2.txt", refs[::-1])
    write("r.txt", refs)
    found = score(capsys, "-i", "h.txt", "h2.txt", "-r", "r.txt", "-m", f"BERTScore:encoder={folder},layer=3")
    peer = BERTScorer(model_type=folder, num_layers=3, device="cpu", nthreads=0)
    for row, texts in zip(found["metrics"][0]["systems"], (hyps, refs[::-1]), strict=True):
        parts = peer.score(texts, refs, batch_size=1)
        expected = dict(zip(("precision", "recall", "f1"), (float(part.mean()) for part in parts), strict=True))
        assert row["components"] == pytest.approx(expected, abs=1e-5)
        assert row["score"] == pytest.approx(expected["f1"], abs=1e-5)


def test_a_saved_evaluator_scores_as_itself(capsys, files):
    evaluator = load("chrf", char_order=3)
    evaluator.save_pretrained("mine")
    found = score(capsys, "-i", "good.txt", "-r", "ref.txt", "-m", "./mine")
    assert values(found) == [[evaluator.system_score(files["good.txt"], files["ref.txt"])]]
    assert found["metrics"][0]["signature"] == evaluator.signature


def test_pairs_are_tested_and_letters_shown(capsys, files):
    write("again.txt", files["good.txt"])
    arguments = ["-i", "good.txt", "weak.txt", "again.txt", "-r", "ref.txt", "-m", "bleu", "rouge-l", "distinct-1"]
    for test in ("bootstrap", "permutation"):
        found = score(capsys, *arguments, "--paired", test)
        for metric in found["metrics"][:2]:
            rows, p = metric["systems"], {(pair["a"], pair["b"]): pair["p_holm"] for pair in metric["pairs"]}
            assert [row["letters"] for row in rows] == ["a", "b", "a"]
            assert p["good.txt", "weak.txt"] < 0.01
            assert p["good.txt", "again.txt"] == 1
            assert all(row["low"] < row["score"] < row["high"] for row in rows)
        assert "pairs" not in found["metrics"][2]
        assert [note for note in found["notes"] if note.startswith("distinct-1")]
        assert found == score(capsys, *arguments, "--paired", test)


def test_groups_of_segments_are_drawn_whole(capsys, files):
    """As many draws, intervals and p as if each document were one segment; segments without name are documents."""
    names = ["news one", "news two", "news three", "chat", "", "", "shop"]
    write("documents.txt", [names[k % 7] for k in range(N)])
    arguments = ["-i", "good.txt", "weak.txt", "-r", "ref.txt", "-m", "rouge-l"]
    for test in ("bootstrap", "permutation"):
        found = score(capsys, *arguments, "--paired", test, "--groups", "documents.txt")
        documents = [names[k % 7] or k for k in range(N)]
        statistics = []
        for name in ("good.txt", "weak.txt"):
            values = load("rouge-l").score(files[name], files["ref.txt"])
            statistics.append(np.column_stack([np.nan_to_num(values), ~np.isnan(values)]))
        sums = [
            np.array([rows[[k for k in range(N) if documents[k] == document]].sum(0)
                      for document in dict.fromkeys(documents)])
            for rows in statistics
        ]  # fmt: skip
        expected = compare_systems(sums, lambda rows: rows[..., 0] / rows[..., 1], tests=SystemTests(test))
        assert found["groups"] == len(set(documents))
        [metric] = found["metrics"]
        assert [pair["p"] for pair in metric["pairs"]] == [expected.p[0, 1]]
        for row, estimate in zip(metric["systems"], expected.estimates, strict=True):
            assert (row["low"], row["high"]) == pytest.approx((estimate.low, estimate.high))
    assert main([*arguments, "--intervals", "--groups", "documents.txt"]) == 0
    assert f"resamples of {len(set(documents))} groups of {N} segments" in capsys.readouterr().out


def test_few_segments_say_why_they_are_not_tested(capsys, files):
    for name in ("good", "weak", "ref"):
        write(f"{name}-4.txt", files[f"{name}.txt"][:4])
    assert main(["-i", "good-4.txt", "weak-4.txt", "-r", "ref-4.txt", "-m", "bleu", "--paired", "bootstrap"]) == 0
    printed = capsys.readouterr()
    assert "[" not in printed.out
    assert "not tested: 4 segments" in printed.err
    assert "no interval: 4 segments" in printed.err


def test_table_latex_and_segments(capsys, files):
    write("a_1.txt", files["good.txt"])
    arguments = ["-i", "a_1.txt", "weak.txt", "-r", "ref.txt", "-m", "bleu", "rouge-l"]
    assert main([*arguments, "--paired", "bootstrap", "--segments", "out.tsv", "--digits", "3"]) == 0
    printed = capsys.readouterr()
    bleu = load("bleu")
    expected = bleu.system_score(files["good.txt"], files["ref.txt"])
    rows = {line.split()[0]: line.split() for line in printed.out.splitlines() if line}
    assert rows["a_1.txt"][1] == f"{expected:.3f}"
    assert bleu.signature in rows
    assert "weak.txt" in printed.err  # an empty output
    table = [line.split("\t") for line in Path("out.tsv").read_text().splitlines()]
    assert table[0] == ["segment", "system", "bleu", "rouge-l"]
    assert len(table) == 1 + 2 * N
    np.testing.assert_array_equal(
        [float(row[2]) for row in table[1 : N + 1]], bleu.score(files["good.txt"], files["ref.txt"])
    )
    assert main([*arguments, "--latex"]) == 0
    latex = capsys.readouterr().out
    assert rf"a\_1.txt & ${expected:.2f}$ & " in latex
    assert f"% {bleu.signature}" in latex


def test_stdin_json_lines_tabs_and_encodings(capsys, files, monkeypatch):
    several = [[one, two] for one, two in zip(files["ref.txt"], files["other.txt"], strict=True)]
    write("refs.jsonl", [json.dumps(texts) for texts in several])
    write("refs.tsv", ["\t".join(texts) for texts in several])
    Path("wide.txt").write_text("\n".join(files["other.txt"]) + "\n", encoding="utf-16")
    expected = values(score(capsys, "-i", "good.txt", "-r", "ref.txt", "other.txt"))
    assert values(score(capsys, "-i", "good.txt", "-r", "refs.jsonl")) == expected
    assert values(score(capsys, "-i", "good.txt", "-r", "refs.tsv", "--tabs")) == expected
    content = io.BytesIO(Path("good.txt").read_bytes())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(content))
    from_stdin = score(capsys, "-i", "-", "-r", "ref.txt", "other.txt")
    assert (values(from_stdin), from_stdin["systems"]) == (expected, ["stdin"])
    Path("wide-good.txt").write_text("\n".join(files["good.txt"]) + "\n", encoding="utf-16")
    one = values(score(capsys, "-i", "wide-good.txt", "-r", "wide.txt", "--encoding", "utf-16"))
    assert one == values(score(capsys, "-i", "good.txt", "-r", "other.txt"))


def test_packed_files_are_unpacked(capsys, files, monkeypatch):
    expected = values(score(capsys, "-i", "good.txt", "-r", "ref.txt"))
    write("refs.jsonl", [json.dumps([text]) for text in files["ref.txt"]])
    for name in ("good.txt", "refs.jsonl"):
        Path(f"{name}.gz").write_bytes(gzip.compress(Path(name).read_bytes()))
    found = score(capsys, "-i", "good.txt.gz", "-r", "refs.jsonl.gz")
    assert values(found) == expected
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(Path("good.txt.gz").read_bytes())))
    assert values(score(capsys, "-i", "-", "-r", "ref.txt")) == expected


def test_sources_contexts_and_missing_references(capsys, files):
    write("gaps.txt", ["" if place in (2, 9) else line for place, line in enumerate(files["ref.txt"])])
    found = score(capsys, "-i", "good.txt", "-r", "gaps.txt", "-m", "bleu", "rouge-l")
    kept = [place for place in range(N) if place not in (2, 9)]
    expected = BLEU(force=True).corpus_score(
        [files["good.txt"][k] for k in kept], [[files["ref.txt"][k] for k in kept]]
    )
    assert values(found)[0] == [pytest.approx(expected.score, abs=1e-9)]
    assert any("gaps.txt" in note and "line 3" in note for note in found["notes"])
    by_source = score(capsys, "-i", "good.txt", "-s", "ref.txt", "-m", "overlap")
    assert values(by_source) == values(score(capsys, "-i", "good.txt", "-c", "ref.txt", "-m", "overlap"))


FAULTS = {
    "a file that does not exist": (["-i", "none.txt", "-r", "ref.txt"], ["none.txt"]),
    "a folder": (["-i", ".", "-r", "ref.txt"], [".:"]),
    "different line counts": (["-i", "short.txt", "-r", "ref.txt"], ["ref.txt:40", "short.txt 39"]),
    "an empty file": (["-i", "good.txt", "-r", "empty.txt"], ["empty.txt"]),
    "only empty references": (["-i", "good.txt", "-r", "blank.txt"], ["blank.txt"]),
    "only empty outputs": (["-i", "blank.txt", "-r", "ref.txt"], ["blank.txt"]),
    "wrong encoding": (["-i", "latin.txt", "-r", "ref.txt"], ["latin.txt:2", "0xEF", "--encoding"]),
    "a damaged gzip file": (["-i", "cut.txt.gz", "-r", "ref.txt"], ["cut.txt.gz", "damaged"]),
    "UTF-16": (["-i", "wide.txt", "-r", "ref.txt"], ["wide.txt", "--encoding utf-16"]),
    "an unknown encoding": (["-i", "good.txt", "--encoding", "klingon"], ["klingon"]),
    "broken JSON": (["-i", "broken.jsonl", "-r", "ref.txt"], ["broken.jsonl:2"]),
    "several texts of a system": (["-i", "several.jsonl", "-r", "ref.txt"], ["several.jsonl:1"]),
    "an unknown metric": (["-i", "good.txt", "-r", "ref.txt", "-m", "blue"], ["blue", "bleu-corpus"]),
    "a metric that must be trained": (["-i", "good.txt", "-r", "ref.txt", "-m", "ream"], ["ream"]),
    "no saved evaluator": (["-i", "good.txt", "-r", "ref.txt", "-m", "./none"], ["./none", "evaluator.json"]),
    "an unknown option": (["-i", "good.txt", "-r", "ref.txt", "-m", "chrf:word=2"], ["word", "word_order"]),
    "an option without value": (["-i", "good.txt", "-r", "ref.txt", "-m", "chrf:word_order"], ["option=value"]),
    "no references": (["-i", "good.txt", "-m", "chrf"], ["chrf", "-r"]),
    "no context": (["-i", "good.txt", "-m", "overlap"], ["overlap", "-c", "-s"]),
    "a system twice": (["-i", "good.txt", "good.txt", "-r", "ref.txt"], ["good.txt"]),
    "stdin twice": (["-i", "-", "-r", "-"], ["standard input"]),
    "one system to test": (["-i", "good.txt", "-r", "ref.txt", "--paired", "bootstrap"], ["--paired"]),
    "groups without tests": (["-i", "good.txt", "-r", "ref.txt", "--groups", "ref.txt"], ["--groups", "--paired"]),
    "too few groups": (
        ["-i", "good.txt", "-r", "ref.txt", "--intervals", "--groups", "short.txt"],
        ["ref.txt:40", "short.txt 39"],
    ),
    "an unwritable file": (["-i", "good.txt", "-r", "ref.txt", "--segments", "no/out.tsv"], ["no/out.tsv"]),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_named_with_status_2(capsys, files, fault):
    write("short.txt", files["good.txt"][:-1])
    write("empty.txt", [])
    write("blank.txt", [" "] * N)
    Path("cut.txt.gz").write_bytes(gzip.compress(b"yes\n" * N)[:-9])
    Path("latin.txt").write_bytes(b"yes\nna\xefve\n")
    Path("wide.txt").write_text("yes\n", encoding="utf-16")
    write("broken.jsonl", ['"a"', "b", *['"c"'] * (N - 2)])
    write("several.jsonl", ['["a", "b"]', *['"c"'] * (N - 1)])
    arguments, named = FAULTS[fault]
    assert main(arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert all(part in printed.err for part in named), printed.err
    assert main([*arguments, "--json"]) == 2
    found = json.loads(capsys.readouterr().out)
    assert (found["error"], found["detail"] in printed.err) == ("bad-input", True)
    assert all(printed.err.startswith(each["file"]) for each in found["errors"])


@pytest.mark.parametrize("name", ["good.txt", "ref.txt", "./ref.txt"])
def test_scores_of_segments_replace_no_file_that_is_read(capsys, files, name):
    before = Path(name).read_bytes()
    assert main(["-i", "good.txt", "-r", "ref.txt", "--segments", name]) == 2
    assert "is one of the files that are read" in capsys.readouterr().err
    assert Path(name).read_bytes() == before


@pytest.mark.parametrize("wrong", [["--seed", "-1"], ["--seed", "9" * 30], ["--resamples", "99999999999"]])
def test_numbers_beyond_their_limits_are_wrong_usage(capsys, files, wrong):
    with pytest.raises(SystemExit, match="2"):
        main(["-i", "good.txt", "weak.txt", "-r", "ref.txt", "--paired", "bootstrap", *wrong])
    assert "is not a whole number from" in capsys.readouterr().err


@pytest.mark.parametrize("wrong", [["--seed", "-1"], ["--resamples", "0"]])
def test_recomputation_has_the_same_limits(capsys, wrong):
    with pytest.raises(SystemExit, match="2"):
        recompute.main(["folder", *wrong])
    assert "is not a whole number from" in capsys.readouterr().err


def test_deeply_nested_json_is_a_fault(capsys, files):
    write("deep.jsonl", ["[" * 100_000])
    assert main(["-i", "deep.jsonl", "-r", "deep.jsonl"]) == 2
    assert "deep.jsonl:1: is not JSON" in capsys.readouterr().err


def test_lexical_metrics_load_neither_django_nor_torch():
    code = (
        "import sys; from scoring.ml.score_files.command import main\n"
        "status = main(['-i', 'good.txt', 'weak.txt', '-r', 'ref.txt', '--paired', 'bootstrap', '--json'])\n"
        "heavy = {'torch', 'django', 'transformers', 'pandas', 'scipy', 'pydantic', 'httpx'} & set(sys.modules)\n"
        "sys.exit(f'{heavy} were imported' if heavy else status)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300, env={"PYTHONPATH": str(ROOT)}
    )
    assert done.returncode == 0, done.stderr[-800:]
    assert json.loads(done.stdout)["segments"] == N
