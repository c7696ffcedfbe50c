"""Judges: how near a run comes to the rate that an endpoint allows, and how fast stored answers are read. Prints JSON.

    python benchmarks/language_model_judges.py [--answers 20000 100000] [--requests 800] [--runs 3]

The endpoint is a process of its own that answers every request after 200 ms; 16 requests at once allow 80 answers/s.
Answers are stored in a temporary SQLite file as in a run.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
AT_ONCE, DELAY = 16, 0.2


async def serve() -> None:
    """Answer each request after the delay; print the port first."""
    top = [{"token": str(k), "logprob": math.log(p)} for k, p in ((4, 0.6), (5, 0.2), (3, 0.15), (1, 0.05))]
    top += [{"token": f"word{k}", "logprob": -12.0} for k in range(16)]
    content = {
        "model": "bench-1", "usage": {"prompt_tokens": 120, "completion_tokens": 1},
        "choices": [{
            "message": {"content": "4"}, "finish_reason": "stop",
            "logprobs": {"content": [{"token": "4", "logprob": -0.5, "top_logprobs": top}]},
        }],
    }  # fmt: skip
    body = json.dumps(content).encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                request = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
                length = int(request.split("content-length:")[1].split("\r\n")[0])
                await reader.readexactly(length)
                await asyncio.sleep(DELAY)
                writer.write(head + body)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, limit=1 << 20)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


def fill(n: int) -> Any:
    """A project with `n` outputs of ten systems, 200 characters each."""
    from annotation.models import Aspect, Item, Output, System
    from evalapp.accounts.models import Project

    project = Project.objects.create(slug=f"p{n}", name="Bench", texts_may_leave=True)
    Aspect.objects.create(project=project, name="quality", low=1, high=5)
    systems = [System.objects.create(project=project, name=f"s{k}") for k in range(10)]
    items = Item.objects.bulk_create(
        (Item(project=project, key=f"i{k}", context=["How are you today?"], group=f"g{k}") for k in range(n // 10)),
        batch_size=5_000,
    )
    Output.objects.bulk_create(
        (
            Output(project=project, item=item, system=system, text=f"{item.key} {system.name} ".ljust(200, "x"))
            for item in items
            for system in systems
        ),
        batch_size=5_000,
    )
    return project


def make_run(project: Any, config: dict[str, Any]) -> Any:
    from evalapp.common.models import Run
    from evalapp.common.runner import RunContext

    return RunContext(Run.objects.create(project=project, kind="judge", params={}, state="running"))


def measure_rate(n: int, config: dict[str, Any]) -> float:
    """Return the share of the ideal rate while `n` requests are sent and their answers stored."""
    from scoring.pipelines.judge_sending import Sending
    from scoring.selectors.judged_units import iterate_units
    from scoring.selectors.judges import get_endpoint, make_judge

    project = fill(n)
    judge = make_judge(config)
    requests = [one for units in iterate_units(project, judge, config) for unit in units for one in unit.requests]
    sending = Sending(make_run(project, config), get_endpoint("bench"), None)
    began = time.perf_counter()
    answers = sending.ask(requests)
    seconds = time.perf_counter() - began
    assert len(answers) == n
    project.delete()
    return math.ceil(n / AT_ONCE) * DELAY / seconds


def measure_reading(n: int, config: dict[str, Any], runs: int) -> dict[str, Any]:
    """Return the seconds, on the clock and of the processor, to make the prompts of `n` outputs and read their stored
    answers and ratings."""
    from scoring.models import Evaluator, JudgeAnswer
    from scoring.selectors.judge_answers import iterate_answered, make_reader
    from scoring.selectors.judged_units import collect_values, iterate_units
    from scoring.selectors.judges import make_judge

    project = fill(n)
    judge = make_judge(config)
    top = [[str(k), math.log(p)] for k, p in ((4, 0.6), (5, 0.2), (3, 0.15), (1, 0.05))]
    top += [[f"word{k}", -12.0] for k in range(16)]
    answer = {"text": "4", "finish": "stop", "refused": False, "tokens": [["4", top]]}
    for units in iterate_units(project, judge, config):
        rows = [
            JudgeAnswer(
                project=project, endpoint="bench", digest=one.digest, model="bench-1", answer=answer, cost=0,
                characters=one.n_characters, prompt_tokens=120, completion_tokens=1, seconds=DELAY,
            )
            for unit in units for one in unit.requests
        ]  # fmt: skip
        JudgeAnswer.objects.bulk_create(rows, batch_size=2_000)
    row = Evaluator.objects.create(
        project=project, slug="j", name="judge", kind="judge", options=config, record={"model": "bench-1"}
    )
    taken, processor = [], []
    gc.freeze()  # as at the beginning of each run
    for _run in range(runs):
        began, began_processor, read = time.perf_counter(), time.process_time(), 0
        reader = make_reader(row)
        for units, answers in iterate_answered(row, reader):
            settled = [reader.settle(unit.orders, answers) for unit in units]
            read += sum(entry.value > 3 for entry in collect_values(units, settled).values())
        taken.append(time.perf_counter() - began)
        processor.append(time.process_time() - began_processor)
        assert read == n
    return {"n": n, "clock": summarise(taken), "processor": summarise(processor)}


def summarise(values: list[float]) -> dict[str, Any]:
    return {"values": values, "median": statistics.median(values)}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--answers", type=int, nargs="+", default=[20_000, 100_000])
    parser.add_argument("--requests", type=int, default=800)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        asyncio.run(serve())
        return
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"EVALAPP_DATA": folder, "DJANGO_SETTINGS_MODULE": "evalapp.settings.base"}
        server = subprocess.Popen([sys.executable, __file__, "--serve"], stdout=subprocess.PIPE, text=True)
        try:
            assert server.stdout is not None
            url = f"http://127.0.0.1:{int(server.stdout.readline())}/v1"
            os.environ["JUDGE_ENDPOINTS"] = json.dumps({"bench": {"url": url, "models": ["b"], "at_once": AT_ONCE}})
            import django

            django.setup()
            from django.core.management import call_command

            call_command("migrate", verbosity=0)
            config = {
                "endpoint": "bench", "model": "b", "kind": "pointwise", "template": "plain", "references": "",
                "question": "How good is it?", "low": 1.0, "high": 5.0, "step": 1.0, "labels": {}, "guidelines": "",
                "method": "logprobs", "temperature": 0.0, "samples": 1, "pairs": "", "examples": 0, "seed": 13,
                "aspect": "quality", "campaign": "",
            }  # fmt: skip
            from scoring.ml.judges import TEMPLATES

            config["template_text"] = TEMPLATES["plain"].text
            shares = [measure_rate(options.requests, config) for _run in range(options.runs)]
            reading = [measure_reading(n, config, options.runs) for n in options.answers]
        finally:
            server.terminate()
    print(json.dumps({
        "share of the ideal rate": summarise(shares),
        "seconds to read": reading,
        "load": os.getloadavg()[0],
    }, indent=2))  # fmt: skip


if __name__ == "__main__":
    main()
