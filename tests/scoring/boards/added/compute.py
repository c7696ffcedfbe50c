"""The table from the data."""

from __future__ import annotations

import numpy as np

from scoring.boards.base import Data, Progress, Table
from scoring.boards.metrics.compute import load_people
from tests.scoring.boards.added.query import CountsQuery


def compute(data: Data, query: CountsQuery, progress: Progress | None = None) -> Table:
    aspect, people = load_people(data, query)
    rows = []
    for score_set in query.select_sets(data, aspect.name):
        one = data.load_scored(score_set, people.output)
        n = int(np.isfinite(one.metric).sum())
        cell = {"value": n / len(people), "low": None, "high": None, "n": len(people), "note": ""}
        about = {"evaluator": one.evaluator, "name": one.name, "kind": one.kind, "signature": one.signature}
        rows.append({**about, "is_sentinel": one.is_sentinel, "score_set": one.score_set, "cells": [cell]})
    return {
        "kind": "counts", "aspect": aspect.name, "systems": query.systems, "references": query.references,
        "ratings": query.ratings, "evaluators": query.chosen, "signature": f"counts|aspect:{aspect.name}",
        "n_items": len(np.unique(people.item)), "n_simulated": people.n_simulated, "note": "", "rows": rows,
    }  # fmt: skip
