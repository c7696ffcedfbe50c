"""Reliability during writing: the cost of an edit compared with one bare encoder pass over that pair, in the warm
worker; and the waiting time of ten concurrent annotators over real HTTP. Prints JSON.

    python benchmarks/live_reliability.py [--references 200] [--edits 60] [--runs 5] [--data FOLDER]
    python benchmarks/live_reliability.py --http [--annotators 10] [--seconds 30]

Inside: a request goes through the worker's complete work between Redis and Redis (JSON, warm model, tokens, encoder,
attention, JSON); the bare pass is transformers' own encoder on prepared tensors. Both see the same pairs alternately,
in one process. Attention weights are random, which does not change the arithmetic.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from _texts import machine, make_queries, read_texts, spread  # noqa: E402
from _writing import WritingInstallation, sign_in_client, start_writing_installation  # noqa: E402


def quantile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def list_editor_states(text: str, n: int) -> list[str]:
    """Return the content of the editor at n pauses while the text is typed."""
    words = text.split()
    return [" ".join(words[: max(1, round(len(words) * (k + 1) / n))]) for k in range(n)]


def make_edits(texts: list[str], n: int, references: int, seed: int) -> tuple[list[str], list[str]]:
    """The references of a set, and n states of the editor: complete texts and their beginnings."""
    ((written, known),) = make_queries(texts, 1, -(-n // 4), references, seed)
    return known, [state for text in written for state in list_editor_states(text, 4)][:n]


# ---- inside the worker ------------------------------------------------------------------------------------


def measure_worker(options: argparse.Namespace) -> dict[str, Any]:
    import django
    import torch

    torch.set_num_threads(options.threads)
    with tempfile.TemporaryDirectory(prefix="evalapp-live-") as folder:
        os.environ["EVALAPP_DATA"] = folder
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", "evalapp.settings")
        django.setup()
        from django.conf import settings

        from scoring.live.answering import execute, warm_models
        from scoring.ml.encoders.source import find_encoder
        from tests.scoring.ml.evaluators.ream.untrained import untrained

        Path(settings.ARTEFACTS_DIR, "1").mkdir(parents=True)
        untrained(find_encoder(options.encoder), heads=4, metric="bleu-star").save_pretrained(
            Path(settings.ARTEFACTS_DIR, "1", "rater")
        )
        texts = read_texts(options.data)
        context = [random.Random(options.seed).choice(texts)]
        source = {"folder": "1/rater", "slug": "rater"}
        item = {"context": context, "source": None, "key": "i1", "group": ""}

        def request(references: list[str], text: str, candidates: list[str]) -> str:
            return json.dumps(
                {
                    "kind": "writing", "source": source, "options": {}, "item": item, "references": references,
                    "text": text, "candidates": candidates,
                }
            )  # fmt: skip

        def answer(body: str) -> dict[str, Any]:
            return json.loads(json.dumps(execute(json.loads(body), lambda: None)))

        started = time.perf_counter()
        answer(request([], "a", []))
        loaded = time.perf_counter() - started
        evaluator: Any = warm_models().get(source, {}, lambda: None)
        ratios: dict[str, list[float]] = {"p50": [], "p95": []}
        rows: dict[str, list[float]] = {"edit": [], "bare": [], "new set": [], "candidates": []}
        for run in range(options.runs):
            known, states = make_edits(texts, options.edits, options.references, options.seed + run)
            started, left = time.perf_counter(), 1
            while left:
                left = answer(request(known, "", []))["left"]
            rows["new set"].append(1000 * (time.perf_counter() - started))
            ours, bare = time_edits(evaluator, request, answer, known, states, context)
            for name, share in (("p50", 0.5), ("p95", 0.95)):
                ratios[name].append(quantile(ours, share) / quantile(bare, share))
            rows["edit"] += ours
            rows["bare"] += bare
            ((_, candidates),) = make_queries(texts, 1, 1, 100, options.seed + 100 + run)
            started, left = time.perf_counter(), 1
            while left:
                left = answer(request(known, "", candidates))["left"]
            rows["candidates"].append(1000 * (time.perf_counter() - started))
    return {
        "benchmark": "live reliability, inside the worker",
        "machine": machine(),
        "threads": options.threads,
        "encoder": evaluator.artefact.encoder.short_name,
        "references": options.references,
        "edits": options.edits,
        "runs": options.runs,
        "edit / bare pass, p50": spread(ratios["p50"]),
        "edit / bare pass, p95": spread(ratios["p95"]),
        "ms": {
            name: {"p50": round(statistics.median(found), 2), "p95": round(quantile(found, 0.95), 2)}
            for name, found in rows.items()
        },
        "loading_seconds": round(loaded, 2),
        "aims": {"p50": 1.3, "p95": 2.0},
    }


def time_edits(
    evaluator: Any, request: Any, answer: Any, known: list[str], states: list[str], context: list[str]
) -> tuple[list[float], list[float]]:
    """Milliseconds of each edit and of the bare pass over the same pair, alternately."""
    import torch

    from scoring.ml.encoders.loading import load_model
    from scoring.ml.engine import collate
    from scoring.ml.types import Record

    encoder = evaluator.pair_encoder
    model = load_model(encoder.source)
    ours, bare = [], []
    for number, state in enumerate(states):
        tokens = encoder.tokenize([Record(state, context=tuple(context))]).encodings
        batch = collate(tokens, encoder.tokenizer.pad_id, "cpu")
        inputs = {"input_ids": batch.input_ids, "attention_mask": batch.attention_mask}
        if batch.token_type_ids is not None:
            inputs["token_type_ids"] = batch.token_type_ids
        body = request(known, state, [])
        for which in ("ours", "bare") if number % 2 else ("bare", "ours"):
            started = time.perf_counter()
            if which == "ours":
                assert answer(body)["with_text"] is not None
                ours.append(1000 * (time.perf_counter() - started))
            else:
                with torch.inference_mode():
                    model(**inputs)
                bare.append(1000 * (time.perf_counter() - started))
    return ours, bare


# ---- ten annotators ---------------------------------------------------------------------------------------


async def write(
    installation: WritingInstallation,
    person: dict[str, Any],
    states: list[str],
    options: argparse.Namespace,
    end: float,
) -> dict:
    """One person in a loop: a pause, a request, its answer. Milliseconds of each, and the number without a score."""
    import asyncio

    import httpx

    path = f"/my/writing/{person['public']}/score/"
    times, without = [], 0
    async with sign_in_client(installation, person, httpx.AsyncClient) as client:
        await asyncio.sleep(random.random() * options.pause)
        number = 0
        while time.perf_counter() < end:
            body = {"ticket": time.time_ns() // 1_000_000, "text": states[number % len(states)]}
            number += 1
            started = time.perf_counter()
            answer = await client.post(path, json=body)
            times.append(1000 * (time.perf_counter() - started))
            answer.raise_for_status()
            without += answer.json()["with_text"] is None
            await asyncio.sleep(options.pause)
    return {"times": times, "without": without}


async def write_together(installation: WritingInstallation, options: argparse.Namespace) -> list[dict[str, Any]]:
    import asyncio

    end = time.perf_counter() + options.seconds
    texts = read_texts(options.data)
    states = [make_edits(texts, 400, 1, options.seed + 1000 + number)[1] for number in range(len(installation.people))]
    return await asyncio.gather(
        *(
            write(installation, person, own, options, end)
            for person, own in zip(installation.people, states, strict=True)
        )
    )


def warm_up(installation: WritingInstallation) -> float:
    """Request scores until all annotators have one, so that the worker has loaded the model and the references. Return
    the seconds."""
    import httpx

    started = time.perf_counter()
    for person in installation.people:
        with sign_in_client(installation, person, httpx.Client) as client:
            for number in range(1000):
                body = {"ticket": number, "text": "a"}
                found = client.post(f"/my/writing/{person['public']}/score/", json=body).json()
                if found["with_text"] is not None:
                    break
                if "being read" not in found["note"]:
                    time.sleep(0.5)
            else:
                raise SystemExit(f"still no score: {found}")
    return time.perf_counter() - started


def measure_http(options: argparse.Namespace) -> dict[str, Any]:
    import asyncio

    with start_writing_installation(options.annotators, options.references, options.seed, options.data) as found:
        warm = warm_up(found)
        rounds = []
        for _ in range(options.rounds):
            used = found.cpu_seconds()
            parts = asyncio.run(write_together(found, options))
            times = [value for part in parts for value in part["times"]]
            cost = {name: now - used[name] for name, now in found.cpu_seconds().items()}
            rounds.append(
                {
                    "n": len(times),
                    "p50_ms": round(quantile(times, 0.5), 1),
                    "p95_ms": round(quantile(times, 0.95), 1),
                    "max_ms": round(max(times), 1),
                    "cpu_ms_each": {name: round(1000 * value / len(times), 1) for name, value in cost.items()},
                    "without_score": sum(part["without"] for part in parts),
                    "load": round(os.getloadavg()[0], 1),
                }
            )
    return {
        "benchmark": "live reliability, over HTTP",
        "machine": machine(),
        "annotators": options.annotators,
        "references": options.references,
        "pause_seconds": options.pause,
        "seconds": options.seconds,
        "warm_up_seconds": round(warm, 1),
        "rounds": rounds,
        "p95_ms": spread([row["p95_ms"] for row in rounds]),
        "aim_p95_ms": 500,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="an interchange folder; without it own sentences")
    parser.add_argument("--encoder", help="name or folder; the default one otherwise")
    parser.add_argument("--references", type=int, default=200)
    parser.add_argument("--edits", type=int, default=60)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=13)
    parser.add_argument("--http", action="store_true", help="ten annotators at once instead")
    parser.add_argument("--annotators", type=int, default=10)
    parser.add_argument("--pause", type=float, default=0.3, help="seconds between an answer and the next question")
    parser.add_argument("--seconds", type=float, default=20, help="of a round")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    print(json.dumps(measure_http(options) if options.http else measure_worker(options), indent=1))


if __name__ == "__main__":
    main()
