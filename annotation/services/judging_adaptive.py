"""Adaptive choice of pairs: which pair of systems the next unit of a comparison campaign is taken from. What the
judgements say so far is kept in memory by campaign and read on from the last judgement; the choice itself is
`evalapp.stats.planning.adaptive`. Everything runs inside the caller's transaction, under the member's lock.

Only whole units are begun here: their further slots are handed out as in any campaign, so that the overlap stays a rule
of the database. A process may be behind by the judgements of the last moments; what it chose by is what is recorded."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any

import numpy as np

from annotation.allocation.streams import draw
from annotation.selectors.judging_sheet import Sheet
from evalapp.stats.planning.adaptive import NextPair, PairState, choose_pair

from . import judging_rows
from .judging_rows import Who

#: Campaigns whose state a process keeps.
KEPT = 32
#: Judgements read again each time: those of transactions that were still under way at the last look.
READ_AGAIN = 60
#: Free slots of begun units that are looked at before another unit is begun.
LOOKED_AT = 100
POINTS = {"a": 1.0, "b": 0.0, "tie": 0.5, "both_bad": 0.5}

_states: OrderedDict[tuple[int, str], CampaignState] = OrderedDict()
_lock = threading.Lock()


class CampaignState:
    """What a process knows of one campaign: points of every pair, and which pairs still wait in the pool."""

    def __init__(self, campaign_id: int, n_players: int, aspect: str) -> None:
        self.campaign_id, self.n_players, self.aspect = campaign_id, n_players, aspect
        self.pairs = PairState(n_players)
        self.available = np.zeros((n_players, n_players), dtype=bool)
        self.last = 0
        self.counted: dict[int, tuple[int, float]] = {}
        self.lock = threading.Lock()
        self.begun = False

    def choose(self, cursor: Any, sheet: Sheet, rng: np.random.Generator, busy: set[int]) -> NextPair | None:
        """The next pair but those that others are taking this moment, after reading on; None where the pool is empty.
        Asks the database for no lock while it holds its own."""
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
        """A pair has left the pool for good."""
        with self.lock:
            self.available[a, b] = False

    def _read_on(self, cursor: Any) -> None:
        """The first time everything, and what there is in the pool."""
        if not self.begun:
            cursor.execute(
                "SELECT DISTINCT pair FROM annotation_slot WHERE campaign_id = %s AND state = 'pool'",
                [self.campaign_id],
            )
            for (pair,) in cursor.fetchall():
                self.available[divmod(pair, self.n_players)] = True
            self.begun = True
        judging_rows.run(
            cursor,
            """SELECT j.id, j.assignment_id, j.answer, a.side_swapped, s.pair FROM annotation_judgement j
 JOIN annotation_assignment a ON a.id = j.assignment_id JOIN annotation_slot s ON s.id = a.slot_id
 WHERE j.campaign_id = %s AND j.id > %s ORDER BY j.id""",
            [self.campaign_id, max(self.last - READ_AGAIN, 0)],
        )
        for number, assignment, answer, swapped, pair in cursor.fetchall():
            self.last = max(self.last, number)
            points = POINTS.get(judging_rows.loads(answer).get(self.aspect))
            if points is not None and pair is not None:
                self._count(assignment, pair, 1.0 - points if swapped else points)

    def _count(self, assignment: int, pair: int, points: float) -> None:
        """Once for each assignment; a revised answer takes the place of the earlier one."""
        a, b = divmod(pair, self.n_players)
        before = self.counted.get(assignment)
        if before == (pair, points):
            return
        if before is not None:
            self.pairs.points[a, b] -= before[1]
            self.pairs.points[b, a] -= 1.0 - before[1]
        self.counted[assignment] = (pair, points)
        self.pairs.add(a, b, points)


def state_of(sheet: Sheet) -> CampaignState:
    key = (sheet.campaign_id, sheet.stamp)
    with _lock:
        state = _states.get(key)
        if state is None:
            state = _states[key] = CampaignState(sheet.campaign_id, sheet.n_players, sheet.form.aspects[0].name)
            while len(_states) > KEPT:
                _states.popitem(last=False)
        _states.move_to_end(key)
    return state


def claim_or_begin(cursor: Any, who: Who, sheet: Sheet, order: int, start: int) -> tuple[int, int, bool] | None:
    """A free slot of a unit that was begun, or a unit begun for this person. Of the free slots only some are looked at:
    who is far ahead of the others has had all of them, and would look in vain at thousands."""
    return _claim_begun(cursor, who, start) or begin_unit(cursor, who, sheet, order)


def _claim_begun(cursor: Any, who: Who, start: int) -> tuple[int, int, bool] | None:
    skip = " FOR UPDATE OF s SKIP LOCKED" if judging_rows.is_postgres(cursor) else ""
    for compare in (">=", "<"):
        judging_rows.run(
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


def begin_unit(cursor: Any, who: Who, sheet: Sheet, order: int) -> tuple[int, int, bool] | None:
    """Take a unit of the pair of systems that tells most out of the pool, for this person: slot, unit, swapped. None
    once as many units were begun as the plan asks for, or the pool is empty."""
    campaign = [who.campaign_id]
    judging_rows.run(cursor, "SELECT begun_count < unit_count FROM annotation_campaign WHERE id = %s", campaign)
    if not cursor.fetchone()[0]:
        return None
    rng = np.random.default_rng([draw(who.seed, "pair", order)])
    state, counted = state_of(sheet), False
    busy: set[int] = set()
    while found := state.choose(cursor, sheet, rng, busy):
        if not counted:
            # From here to the commit others wait who begin a unit, too; nobody begins one too many.
            judging_rows.run(
                cursor,
                """UPDATE annotation_campaign SET begun_count = begun_count + 1
 WHERE id = %s AND begun_count < unit_count""",
                campaign,
            )
            counted = cursor.rowcount == 1
            if not counted:
                return None
        a, b = min(found.a, found.b), max(found.a, found.b)
        pair = a * state.n_players + b
        claim = _claim(cursor, who.campaign_id, pair, found.propensity)
        if claim is not None:
            return claim
        # Units that others hold this moment come back where their transaction does not end well.
        busy.add(pair)
        if not _waits(cursor, who.campaign_id, pair):
            state.note_empty(a, b)
    if counted:
        judging_rows.run(cursor, "UPDATE annotation_campaign SET begun_count = begun_count - 1 WHERE id = %s", campaign)
    return None


def _claim(cursor: Any, campaign_id: int, pair: int, propensity: float) -> tuple[int, int, bool] | None:
    """The first slot of a unit of this pair; its other slots are free from now on."""
    skip = " FOR UPDATE SKIP LOCKED" if judging_rows.is_postgres(cursor) else ""
    judging_rows.run(
        cursor,
        f"""UPDATE annotation_slot SET state = 'taken' WHERE state = 'pool' AND id = (
 SELECT id FROM annotation_slot WHERE campaign_id = %s AND pair = %s AND state = 'pool' AND number = 0
 ORDER BY rank LIMIT 1{skip}) RETURNING id, unit_id, swapped""",
        [campaign_id, pair],
    )
    row = cursor.fetchone()
    if row is None:
        return None
    judging_rows.run_batch(
        cursor,
        [
            ("UPDATE annotation_slot SET state = 'free' WHERE unit_id = %s AND state = 'pool'", [row[1]]),
            ("UPDATE annotation_unit SET propensity = %s WHERE id = %s", [propensity, row[1]]),
        ],
    )
    return row[0], row[1], bool(row[2])


def _waits(cursor: Any, campaign_id: int, pair: int) -> bool:
    """Whether a unit of this pair still stands in the pool, held by somebody or not."""
    judging_rows.run(
        cursor,
        "SELECT 1 FROM annotation_slot WHERE campaign_id = %s AND pair = %s AND state = 'pool' AND number = 0 LIMIT 1",
        [campaign_id, pair],
    )
    return cursor.fetchone() is not None


def forget(campaign_id: int) -> None:
    """For tests and for a campaign whose judgements were taken back."""
    with _lock:
        for key in [key for key in _states if key[0] == campaign_id]:
            del _states[key]
