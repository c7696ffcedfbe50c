"""The transport solver compared with a network simplex, the one-dimensional closed form and linear assignment."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from scipy.stats import wasserstein_distance

from scoring.ml.baselines import transport
from scoring.ml.baselines.transport import Problem, transport_costs


def random_problem(rng: np.random.Generator, n: int, m: int) -> Problem:
    supply, demand = rng.random(n) + 0.05, rng.random(m) + 0.05
    return Problem(supply / supply.sum(), demand / demand.sum(), rng.random((n, m)))


def by_network_simplex(problem: Problem, scale: int = 10**6) -> float:
    """The same problem in integers, as networkx needs them; the last mass absorbs the rounding."""
    sides = []
    for masses in (problem.supply, problem.demand):
        whole = np.rint(masses * scale).astype(int)
        whole[-1] += scale - whole.sum()
        sides.append(whole)
    costs = np.rint(problem.cost * scale).astype(int)
    graph = nx.DiGraph()
    for i, mass in enumerate(sides[0]):
        graph.add_node(("s", i), demand=-int(mass))
    for j, mass in enumerate(sides[1]):
        graph.add_node(("d", j), demand=int(mass))
    for (i, j), cost in np.ndenumerate(costs):
        graph.add_edge(("s", i), ("d", j), weight=int(cost))
    return nx.network_simplex(graph)[0] / scale**2


def test_by_hand():
    # .3 + .7 against .5 + .5: .3 stays at cost 1, .2 moves from the second to the first at 5, .5 at 2.
    problem = Problem(np.array([0.3, 0.7]), np.array([0.5, 0.5]), np.array([[1.0, 9.0], [5.0, 2.0]]))
    assert transport_costs([problem])[0] == pytest.approx(0.3 * 1 + 0.2 * 5 + 0.5 * 2, abs=1e-12)
    one = Problem(np.array([1.0]), np.array([0.25, 0.75]), np.array([[2.0, 4.0]]))
    assert transport_costs([one])[0] == pytest.approx(3.5)
    assert transport_costs([]).shape == (0,)


def test_equals_a_network_simplex():
    rng = np.random.default_rng(1)
    problems = [random_problem(rng, *rng.integers(1, 9, 2)) for _ in range(20)]
    expected = [by_network_simplex(problem) for problem in problems]
    np.testing.assert_allclose(transport_costs(problems), expected, rtol=0, atol=1e-5)


def test_equals_the_closed_form_on_a_line():
    rng = np.random.default_rng(2)
    problems, expected = [], []
    for _ in range(20):
        one, two = rng.normal(size=rng.integers(2, 30)), rng.normal(size=rng.integers(2, 30))
        plain = random_problem(rng, len(one), len(two))
        problems.append(plain._replace(cost=np.abs(one[:, None] - two[None, :])))
        expected.append(wasserstein_distance(one, two, plain.supply, plain.demand))
    np.testing.assert_allclose(transport_costs(problems), expected, rtol=0, atol=1e-9)


def test_equals_assignment_with_equal_masses_and_any_blocks(monkeypatch):
    rng = np.random.default_rng(3)
    costs = [rng.random((size, size)) for size in (2, 5, 12, 40)]
    problems = [Problem(np.full(len(c), 1 / len(c)), np.full(len(c), 1 / len(c)), c) for c in costs]
    expected = [cost[linear_sum_assignment(cost)].mean() for cost in costs]
    np.testing.assert_allclose(transport_costs(problems), expected, rtol=0, atol=1e-9)
    monkeypatch.setattr(transport, "BLOCK_UNKNOWNS", 1)
    np.testing.assert_allclose(transport_costs(problems), expected, rtol=0, atol=1e-9)
