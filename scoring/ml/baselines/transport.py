"""Exact optimal transport between small distributions, many problems at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from scoring.ml.base import Floats

# Unknowns that the solver gets at a time: its start costs as much as several small problems, and a larger
# program is slower than its parts. From 1,024 to 16,384 hardly anything changes for texts of ten to twenty words.
BLOCK_UNKNOWNS = 4096


class Problem(NamedTuple):
    """Masses to be moved from (n,) to (m,) at a cost (n, m) each; both sides sum to 1, no mass is 0."""

    supply: Floats
    demand: Floats
    cost: Floats


def transport_costs(problems: Sequence[Problem]) -> Floats:
    """(problems,) the least cost of each, min over F >= 0 of sum F * cost with row sums supply, column sums demand.

    Exact up to the solver's tolerance (1e-7): the linear programs of multiple problems form one block-diagonal program
    for the dual simplex of HiGHS.
    """
    values = np.empty(len(problems))
    block: list[int] = []
    unknowns = 0
    for place, problem in enumerate(problems):
        if min(problem.cost.shape) == 1:  # only one plan is possible
            values[place] = problem.supply @ problem.cost @ problem.demand
            continue
        if block and unknowns + problem.cost.size > BLOCK_UNKNOWNS:
            values[block] = _solve([problems[i] for i in block])
            block, unknowns = [], 0
        block.append(place)
        unknowns += problem.cost.size
    if block:
        values[block] = _solve([problems[i] for i in block])
    return values


def _solve(problems: Sequence[Problem]) -> Floats:
    from scipy import sparse
    from scipy.optimize import linprog

    rows, right = [], []
    n_rows = 0
    for supply, demand, cost in problems:
        n, m = cost.shape
        source, target = np.divmod(np.arange(n * m), m)
        # The last column sum follows from the others; without it the rows are independent.
        rows.append(np.stack([n_rows + source, np.where(target < m - 1, n_rows + n + target, -1)]))
        right += [supply / supply.sum(), (demand / demand.sum())[:-1]]
        n_rows += n + m - 1
    entries = np.concatenate(rows, axis=1)
    unknowns = np.broadcast_to(np.arange(entries.shape[1]), entries.shape)
    kept = entries >= 0
    matrix = sparse.csc_array((np.ones(int(kept.sum())), (entries[kept], unknowns[kept])), (n_rows, entries.shape[1]))
    costs = np.concatenate([problem.cost.ravel() for problem in problems])
    result = linprog(costs, A_eq=matrix, b_eq=np.concatenate(right), method="highs-ds", options={"presolve": False})
    ends = np.cumsum([problem.cost.size for problem in problems])
    return np.add.reduceat(result.x * costs, np.concatenate([[0], ends[:-1]]))
