"""A project's leaderboards and files when the server gives unusual answers."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import httpx
import pytest

from evalapp.client import Client, InvalidArgument, Leaderboard, UnexpectedAnswer

RUN = {"id": 7, "project": "p", "kind": "rank", "title": "Rank", "state": "succeeded", "attempt": 1}
TABLE = {"rows": [], "signature": "s", "is_current": True}


def client(answer) -> Client:
    return Client("http://house.test", "t", transport=httpx.MockTransport(answer))


def board(*answers) -> Leaderboard:
    """A leaderboard from a server that gives these answers to requests for the table."""
    left = list(answers)

    def answer(request: httpx.Request) -> httpx.Response:
        if "/leaderboards/" not in request.url.path:
            return httpx.Response(200, json=RUN if "/runs/" in request.url.path else {"slug": "p"})
        return httpx.Response(200, json=left.pop(0) if len(left) > 1 else left[0])

    with client(answer) as here:
        return here.project("p").leaderboard()


@pytest.mark.parametrize("answers", [({"run": 7}, TABLE), ({"run": 7}, {"run": 8}, TABLE), (TABLE,)])
def test_table_is_polled_until_ready(answers):
    assert board(*answers).rows == []


@pytest.mark.parametrize("answer", [{"run": None}, {"run": 7}, {}, []])
def test_table_that_never_arrives_is_an_unexpected_answer(answer):
    """Earlier versions raised a KeyError at the first access to its rows."""
    with pytest.raises(UnexpectedAnswer, match="neither rows nor a run"):
        board(answer)


def test_concurrent_downloads_of_one_file_do_not_interfere(tmp_path):
    """Both are half done at the same moment; once, one renamed the other's temporary file away."""
    half = threading.Barrier(2, timeout=20)

    def content() -> Iterator[bytes]:
        yield b"first "
        half.wait()
        yield b"second"

    def answer(request: httpx.Request) -> httpx.Response:
        if "/files/" in request.url.path:
            return httpx.Response(200, content=content())
        files = [{"name": "items.jsonl", "bytes": 12}]
        made = {"id": 1, "format": "jsonl", "state": "succeeded", "files": files}
        return httpx.Response(200, json={"slug": "p"} if request.url.path.endswith("/p/") else made)

    faults: list[Exception] = []

    def download() -> None:
        try:
            with client(answer) as here:
                here.project("p").export(wait=False).download(tmp_path)
        except Exception as error:
            faults.append(error)

    threads = [threading.Thread(target=download) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert faults == []
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("items.jsonl", b"first second")]


CELL = {"value": 0.5, "low": 0.4, "high": 0.6, "n": 9, "note": ""}


@pytest.mark.parametrize(
    ("heads", "names"),
    [
        ({"kind": "matrix"}, ["a", "b"]),
        ({"kind": "aspects", "aspects": [{"aspect": "quality"}, {"aspect": "signature"}]}, ["quality", "signature"]),
        ({"kind": "slices", "parts": [{"name": "news", "n": 5}, {"name": "chat", "n": 4}]}, ["news", "chat"]),
        ({"kind": "pairs", "columns": [{"name": "decided pairs"}, {"name": "less length"}]}, None),
    ],
)
def test_table_cells_become_columns_by_name(heads, names):
    pandas = pytest.importorskip("pandas")
    rows = [
        {"evaluator": "a", "signature": "a|v:1", "cells": [None, CELL]},
        {"evaluator": "b", "signature": "b|v:1", "cells": [CELL, None]},
    ]
    frame = board({**TABLE, **heads, "rows": rows}).to_pandas()
    first, second = names or ["decided pairs", "less length"]
    assert "cells" not in frame.columns
    assert frame["signature"].tolist() == ["a|v:1", "b|v:1"]
    assert frame[f"{second}.value"][0] == frame[f"{first}.value"][1] == 0.5
    assert pandas.isna(frame[f"{first}.value"][0])
    assert frame[f"{first}.n"][1] == 9


def test_download_does_not_mix_with_other_tables(tmp_path):
    files = [{"name": "items.jsonl", "bytes": 3}]

    def answer(request: httpx.Request) -> httpx.Response:
        if "/files/" in request.url.path:
            return httpx.Response(200, content=b"{}\n")
        return httpx.Response(200, json={"id": 7, "format": "jsonl", "state": "succeeded", "files": files, "slug": "p"})

    with client(answer) as here:
        export = here.project("p").export(wait=False)
        (tmp_path / "notes.txt").write_text("mine")
        assert export.download(tmp_path) == export.download(tmp_path) == [tmp_path / "items.jsonl"]
        # Comparisons of another project would be taken for this project's.
        (tmp_path / "comparisons.jsonl").write_text("")
        (tmp_path / "items.jsonl").write_text("kept")
        with pytest.raises(InvalidArgument, match=r"comparisons\.jsonl"):
            export.download(tmp_path)
        assert (tmp_path / "items.jsonl").read_text() == "kept"


@pytest.mark.parametrize("models", [1, 2])
def test_training_curve_has_a_row_for_each_step_of_each_model(models):
    logs = [[{"step": 10, "epoch": 1.0, "loss": 0.5 + k}, {"step": 20, "epoch": 2.0, "loss": 0.4}] for k in range(2)]

    def answer(request: httpx.Request) -> httpx.Response:
        trained = {"models": [{"log": log} for log in [*logs[:models], None][: models + (models > 1)]]}
        return httpx.Response(200, json=trained if "/trained/ridge-1/" in request.url.path else {"slug": "p"})

    with client(answer) as here:
        rows = here.project("p").training_curve("ridge-1")
    if models == 1:
        assert rows == logs[0]
    else:
        assert [(row["model"], row["step"]) for row in rows] == [
            ("fold-0", 10), ("fold-0", 20), ("fold-1", 10), ("fold-1", 20),
        ]  # fmt: skip


def test_asynchronous_programs_wait_in_a_thread():
    """As docs/how-to/python-client.md says; the callback reports each poll, and other coroutines go on."""
    states = ["queued", "running", "running", "succeeded"]
    polls: list[str] = []
    ticks: list[int] = []

    def answer(request: httpx.Request) -> httpx.Response:
        state = states.pop(0) if len(states) > 1 else states[0]
        return httpx.Response(200, json={**RUN, "state": state, "progress": {"done": 1, "total": 4, "unit": "rows"}})

    async def tick() -> None:
        while True:
            ticks.append(1)
            await asyncio.sleep(0.01)

    async def main() -> str:
        with client(answer) as here:
            run, ticking = here.run(7), asyncio.create_task(tick())
            await asyncio.to_thread(run.wait, progress=lambda step: polls.append(step.phase))
            ticking.cancel()
            return run.state

    assert asyncio.run(main()) == "succeeded"
    assert len(polls) >= 2
    assert len(ticks) >= 2
