"""Queries for the benchmarks of metrics: replies and references, recombined from real texts or from built-in
sentences."""

from __future__ import annotations

import json
import os
import platform
import random
import statistics
from pathlib import Path
from typing import Any

OWN = """I was thinking about going to the lake this weekend, if the weather holds.
That sounds lovely, do you want some company or is it a family trip?
We usually take the early train because the later one is always full.
No, I have never been there, but my sister says the food is worth the drive.
Could you tell me when the museum opens on Sundays?
It opens at ten, and the first hour is free for students.
He said he would call back before 5.30, but I have not heard anything yet.
The green chair costs 49.50 and the blue one is twice as much!
Well, that's a pity; I had hoped you could stay until Monday.
She plays the violin in a small orchestra, mostly older music.
Please bring your own cup, we do not have enough for everybody.
I don't mind waiting, the view from up here is great.
How did you like the second half of the film?
Honestly, I fell asleep after twenty minutes, so I can't say.
My neighbour keeps bees and gives us two jars of honey every year.
The printer is out of paper again, and I cannot find a new pack.
Turn left after the bridge, then it is the third house on the right.
I would rather cook at home tonight, the restaurant was too loud.""".splitlines()


def read_texts(folder: Path | None) -> list[str]:
    """Outputs and references of an interchange folder (plain JSONL), or the sentences above."""
    if folder is None:
        return OWN
    texts = set()
    for line in (folder / "items.jsonl").read_text(encoding="utf-8").splitlines():
        texts.update(json.loads(line)["references"])
    for line in (folder / "outputs.jsonl").read_text(encoding="utf-8").splitlines():
        texts.add(json.loads(line)["text"])
    return sorted(text for text in texts if text.strip())


def make_queries(texts: list[str], n: int, hypotheses: int, references: int, seed: int):
    """n queries of distinct texts: the beginning of a text joined to the end of another."""
    rng = random.Random(seed)

    def draw(count: int) -> list[str]:
        found: dict[str, None] = {}
        while len(found) < count:
            one, two = rng.choice(texts).split(), rng.choice(texts).split()
            words = one[: rng.randint(1, len(one))] + two[rng.randint(0, len(two)) :]
            found[" ".join(words)] = None
        return list(found)

    return [(draw(hypotheses), draw(references)) for _ in range(n)]


def spread(values: list[float]) -> dict[str, float]:
    """Minimum, median and maximum over runs."""
    return {"min": min(values), "median": statistics.median(values), "max": max(values)}


def machine() -> dict[str, Any]:
    return {
        "cores": len(os.sched_getaffinity(0)),
        "processor": platform.processor() or platform.machine(),
        "load": round(os.getloadavg()[0], 1),
    }
