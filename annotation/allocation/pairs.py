"""Balanced designs for comparisons: which pairs of systems are compared on which items, and on which side."""

import heapq
import math
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations

Pair = tuple[int, int]


def schedule_pairs(systems: int) -> list[Pair]:
    """All unordered pairs of 0..systems-1, ordered so that in every prefix the appearances of any two systems
    differ by at most one.

    Even: the circle method, whose rounds are perfect matchings. Odd: Walecki's Hamiltonian cycles, each walked
    as two near-perfect matchings that meet at the vertex left over (B. Alspach, "The wonderful Walecki
    construction", 2008)."""
    if systems < 2:
        return []
    if systems % 2 == 0:
        last = systems - 1
        rounds = []
        for turn in range(last):
            rounds.append((last, turn))
            rounds += [((turn + k) % last, (turn - k) % last) for k in range(1, systems // 2)]
        return [_sorted(pair) for pair in rounds]
    ring = systems - 1
    pairs: list[Pair] = []
    for turn in range(ring // 2):
        zigzag = [0]
        for step in range(1, ring // 2 + 1):
            zigzag.append(step)
            if ring - step != step:
                zigzag.append(ring - step)
        cycle = [ring] + [(vertex + turn) % ring for vertex in zigzag]
        first = [(cycle[k], cycle[k + 1]) for k in range(0, systems - 1, 2)]
        second = [(cycle[k], cycle[(k + 1) % systems]) for k in range(1, systems, 2)]
        # After `first` the last vertex of the cycle has one game less: it opens the second matching.
        closing = (cycle[-1], cycle[0])
        pairs += [_sorted(pair) for pair in [*first, closing, *second]]
    return pairs


def _sorted(pair: Pair) -> Pair:
    return (min(pair), max(pair))


def choose_pairs(items: Sequence[Sequence[int]], wanted: int | None, *, seed: int) -> list[tuple[int, int, int]]:
    """Comparisons (item, a, b) with a < b. `items[i]` lists the systems that have an output for item i.

    All of them if `wanted` is None or too large. Otherwise `wanted` different ones, determined by `seed`, such that the
    counts of pairs of systems, of systems, and of items each differ by at most one if every system has every item (and
    otherwise as little as missing outputs allow)."""
    available = [sorted(set(row)) for row in items]
    total = sum(len(row) * (len(row) - 1) // 2 for row in available)
    if wanted is None or wanted >= total:
        return [(index, a, b) for index, row in enumerate(available) for a, b in combinations(row, 2)]
    names = sorted({system for row in available for system in row})
    rng = random.Random(seed)
    rng.shuffle(names)
    sequence = [_sorted((names[a], names[b])) for a, b in schedule_pairs(len(names))]
    complete = all(len(row) == len(names) for row in available)
    chosen = _cycle(sequence, len(items), rng) if complete else _by_need(sequence, available, rng)
    return [comparison for comparison, _ in zip(chosen, range(wanted), strict=False)]


def _cycle(sequence: list[Pair], items: int, rng: random.Random) -> Iterator[tuple[int, int, int]]:
    """Pairs and items in fixed cycles; items shift by one whenever both cycles end together, so that every (pair, item)
    occurs once."""
    order = list(range(items))
    rng.shuffle(order)
    period = math.lcm(len(sequence), items)
    for turn in range(len(sequence) * items):
        a, b = sequence[turn % len(sequence)]
        yield order[(turn + turn // period) % items], a, b


def _by_need(sequence: list[Pair], available: list[list[int]], rng: random.Random) -> Iterator[tuple[int, int, int]]:
    """With missing outputs: pairs in turn, each on the least used item that has both systems."""
    holders: dict[int, set[int]] = {}
    for index, row in enumerate(available):
        for system in row:
            holders.setdefault(system, set()).add(index)
    used = [0] * len(available)
    queues: dict[Pair, list[tuple[int, float, int]]] = {}
    for a, b in sequence:
        queues[a, b] = [(0, rng.random(), index) for index in sorted(holders[a] & holders[b])]
        heapq.heapify(queues[a, b])
    played: Counter[int] = Counter()
    while any(queues.values()):
        for pair in sequence:
            queue = queues[pair]
            while queue and queue[0][0] != used[queue[0][2]]:
                _, tie, index = heapq.heappop(queue)
                heapq.heappush(queue, (used[index], tie, index))
            if queue:
                _, _, index = heapq.heappop(queue)
                used[index] += 1
                played.update(pair)
                yield index, *pair


def draw_sides(groups: Sequence[object], *, seed: int) -> list[bool]:
    """For each unit, whether its first slot has the sides exchanged. Within a group (a pair of systems) every second
    unit has, in random order. If slot n is exchanged when flip XOR n is odd, each system of a pair is on each side
    equally often, up to one, with any overlap."""
    members: dict[object, list[int]] = {}
    for index, group in enumerate(groups):
        members.setdefault(group, []).append(index)
    rng = random.Random(seed)
    flips = [False] * len(groups)
    for group in sorted(members, key=repr):
        rows = members[group]
        rng.shuffle(rows)
        start = rng.random() < 0.5
        for place, index in enumerate(rows):
            flips[index] = (place % 2 == 1) ^ start
    return flips
