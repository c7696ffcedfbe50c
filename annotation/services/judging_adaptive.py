"""Adaptive pair selection: the pair of systems for the next unit of a comparison campaign. Results so far are cached
in memory by campaign and updated from the last judgement on; `evalapp.stats.planning.adaptive` selects the pair.
Everything runs in the caller's transaction, under the lock of the member.

This module starts units; their other slots are assigned as in any campaign, so that the database enforces the overlap.
A process may not know the latest judgements yet; the probability that it used is the one that is stored."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any

import numpy as np

from annotation.allocation.streams import draw
from annotation.selectors.judging_sheet import Sheet
from evalapp.stats.planning.adaptive import NextPair, PairState, choose_pair

from .judging_rows import MemberContext
from .statements import is_postgres, loads, run, run_batch

#: The number of campaigns that a process caches.
KEPT = 32
#: Judgements that are read again, because their transactions may have been open at the last time.
READ_AGAIN = 60
#: The number of free slots of started units to try before another unit is started.
LOOKED_AT = 100
POINTS = {"a": 1.0, "b": 0.0, "tie": 0.5, "both_bad": 0.5}

_states: OrderedDict[tuple[int, str], CampaignState] = OrderedDict()
_lock = threading.Lock()


class CampaignState:
    """Cached results of a campaign: the points of each pair, and the pairs that are still in the pool."""

    def __init__(self, campaign_id: int, n_players: int, aspect: str) -> None:
        self.campaign_id, self.n_players, self.aspect = campaign_id, n_players, aspect
        self.pairs = PairState(n_players)
        self.available = np.zeros((n_players, n_players), dtype=bool)
        self.last = 0
        self.counted: dict[int, tuple[int, float]] = {}
        self.lock = threading.Lock()
        self.begun = False

    def choose(self, cursor: Any, sheet: Sheet, rng: np.random.Generator, busy: set[int]) -> NextPair | None:
        """The next pair, except those in `busy` that others are taking; None if the pool is empty. Takes no database
        lock while it holds its own."""
        floor = sheet.options["adaptive_floor"] if sheet.options["adaptive"] else 1.0
        with self.lock:
            self._read_on(cursor)
            available = self.available
            if busy:
                available = available.copy()
                for pair in busy:
                    available[divmod(pair, self.n_players)] = False
            if not available.any():
                return None
            goal = sheet.options["adaptive_goal"]
            return choose_pair(self.pairs, rng, floor=floor, goal=goal, available=available)

    def note_empty(self, a: int, b: int) -> None:
        """Note that no unit of the pair is left in the pool."""
        with self.lock:
            self.available[a, b] = False

    def _read_on(self, cursor: Any) -> None:
        """Read new judgements, and the first time all judgements and the pool."""
        if not self.begun:
            cursor.execute(
                "SELECT DISTINCT pair FROM annotation_slot WHERE campaign_id = %s AND state = 'pool'",
                [self.campaign_id],
            )
            for (pair,) in cursor.fetchall():
                self.available[divmod(pair, self.n_players)] = True
            self.begun = True
        run(
            cursor,
            """SELECT j.id, j.assignment_id, j.answer, a.side_swapped, s.pair FROM annotation_judgement j
 JOIN annotation_assignment a ON a.id = j.assignment_id JOIN annotation_slot s ON s.id = a.slot_id
 WHERE j.campaign_id = %s AND j.id > %s ORDER BY j.id""",
            [self.campaign_id, max(self.last - READ_AGAIN, 0)],
        )
        for number, assignment, answer, swapped, pair in cursor.fetchall():
            self.last = max(self.last, number)
            points = POINTS.get(loads(answer).get(self.aspect))
            if points is not None and pair is not None:
                self._count(assignment, pair, 1.0 - points if swapped else points)

    def _count(self, assignment: int, pair: int, points: float) -> None:
        """Count an answer; a revised answer replaces the previous one."""
        a, b = divmod(pair, self.n_players)
        before = self.counted.get(assignment)
        if before == (pair, points):
            return
        if before is not None:
            self.pairs.points[a, b] -= before[1]
            self.pairs.points[b, a] -= 1.0 - before[1]
        self.counted[assignment] = (pair, points)
        self.pairs.add(a, b, points)


def get_state(sheet: Sheet) -> CampaignState:
    key = (sheet.campaign_id, sheet.stamp)
    with _lock:
        state = _states.get(key)
        if state is None:
            state = _states[key] = CampaignState(sheet.campaign_id, sheet.n_players, sheet.form.aspects[0].name)
            while len(_states) > KEPT:
                _states.popitem(last=False)
        _states.move_to_end(key)
    return state


def claim_or_begin(
    cursor: Any, who: MemberContext, sheet: Sheet, order: int, start: int
) -> tuple[int, int, bool] | None:
    """A free slot of a started unit, or a newly started unit. Only some free slots are tried: an annotator far ahead of
    the others has had all units, and would search thousands in vain."""
    return _claim_begun(cursor, who, start) or begin_unit(cursor, who, sheet, order)


def _claim_begun(cursor: Any, who: MemberContext, start: int) -> tuple[int, int, bool] | None:
    skip = " FOR UPDATE OF s SKIP LOCKED" if is_postgres(cursor) else ""
    for compare in (">=", "<"):
        run(
            cursor,
            f"""UPDATE annotation_slot SET state = 'taken' WHERE state = 'free' AND id = (
 SELECT s.id FROM annotation_slot s WHERE s.id IN (SELECT f.id FROM annotation_slot f
 WHERE f.campaign_id = %s AND f.state = 'free' AND f.rank {compare} %s ORDER BY f.rank LIMIT {LOOKED_AT})
 AND NOT EXISTS (SELECT 1 FROM annotation_assignment h WHERE h.unit_id = s.unit_id AND h.annotator_id = %s
 AND h.state <> 'expired')
 ORDER BY s.rank LIMIT 1{skip}) RETURNING id, unit_id, swapped""",
            [who.campaign_id, start, who.user_id],
        )
        row = cursor.fetchone()
        if row:
            return row[0], row[1], bool(row[2])
    return None


def begin_unit(cursor: Any, who: MemberContext, sheet: Sheet, order: int) -> tuple[int, int, bool] | None:
    """Start a unit of the most informative pair of systems: slot, unit, swapped. None if the planned number of units is
    reached or the pool is empty."""
    campaign = [who.campaign_id]
    run(cursor, "SELECT begun_count < unit_count FROM annotation_campaign WHERE id = %s", campaign)
    if not cursor.fetchone()[0]:
        return None
    rng = np.random.default_rng([draw(who.seed, "pair", order)])
    state, counted = get_state(sheet), False
    busy: set[int] = set()
    while choice := state.choose(cursor, sheet, rng, busy):
        if not counted:
            # Until the commit, others who start a unit wait here, so the planned number is never exceeded.
            run(
                cursor,
                """UPDATE annotation_campaign SET begun_count = begun_count + 1
 WHERE id = %s AND begun_count < unit_count""",
                campaign,
            )
            counted = cursor.rowcount == 1
            if not counted:
                return None
        a, b = min(choice.a, choice.b), max(choice.a, choice.b)
        pair = a * state.n_players + b
        claim = _claim(cursor, who.campaign_id, pair, choice.propensity)
        if claim is not None:
            return claim
        # Units that others have locked return to the pool if their transaction fails.
        busy.add(pair)
        if not _is_in_pool(cursor, who.campaign_id, pair):
            state.note_empty(a, b)
    if counted:
        run(cursor, "UPDATE annotation_campaign SET begun_count = begun_count - 1 WHERE id = %s", campaign)
    return None


def _claim(cursor: Any, campaign_id: int, pair: int, propensity: float) -> tuple[int, int, bool] | None:
    """The first slot of a unit of this pair; the unit's other slots become free."""
    skip = " FOR UPDATE SKIP LOCKED" if is_postgres(cursor) else ""
    run(
        cursor,
        f"""UPDATE annotation_slot SET state = 'taken' WHERE state = 'pool' AND id = (
 SELECT id FROM annotation_slot WHERE campaign_id = %s AND pair = %s AND state = 'pool' AND number = 0
 ORDER BY rank LIMIT 1{skip}) RETURNING id, unit_id, swapped""",
        [campaign_id, pair],
    )
    row = cursor.fetchone()
    if row is None:
        return None
    run_batch(
        cursor,
        [
            ("UPDATE annotation_slot SET state = 'free' WHERE unit_id = %s AND state = 'pool'", [row[1]]),
            ("UPDATE annotation_unit SET propensity = %s WHERE id = %s", [propensity, row[1]]),
        ],
    )
    return row[0], row[1], bool(row[2])


def _is_in_pool(cursor: Any, campaign_id: int, pair: int) -> bool:
    """Whether a unit of this pair is still in the pool, locked or not."""
    run(
        cursor,
        "SELECT 1 FROM annotation_slot WHERE campaign_id = %s AND pair = %s AND state = 'pool' AND number = 0 LIMIT 1",
        [campaign_id, pair],
    )
    return cursor.fetchone() is not None


def forget(campaign_id: int) -> None:
    """Drop the cache of a campaign, for tests and after its judgements were deleted."""
    with _lock:
        for key in [key for key in _states if key[0] == campaign_id]:
            del _states[key]
