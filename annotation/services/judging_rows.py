"""Hand-written SQL for the two most frequent requests: get the next assignment, submit an answer. The ORM is three
times slower (docs/decisions/statements-on-the-hot-path.md). All functions run inside the caller's transaction, on
PostgreSQL and SQLite.

Locks are always taken in the same order: first the member's row, which serialises the requests of one annotator (two
tabs, a double click), then one assignment or slot, by a conditional update."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import orjson

from annotation.selectors.judging import get_shown_state
from evalapp.accounts.models import User
from evalapp.accounts.roles import ROLES_FOR
from evalapp.accounts.selectors import may_enter

from .statements import Statement, is_postgres, loads, parse_moment, run

# ---- the annotator ----------------------------------------------------------------------------------------

_WHO = """c.id, c.created_at, c.revision, c.state, s.role, s.pseudonym, s.campaigns IS NULL,
 m.id, m.seed, m.practised, m.given, m.done, m.skipped, m.seconds, m.hired"""


@dataclass(slots=True)
class MemberContext:
    """An annotator in a campaign. The counters of the member's row are current, because it is locked; the states of
    campaign and role are those before the wait for that lock."""

    campaign_id: int
    stamp: Any
    revision: int
    campaign_state: str
    role: str
    pseudonym: str
    every_campaign: bool
    member_id: int
    seed: int
    practised: int
    given: int
    done: int
    skipped: int
    seconds: float
    hired: bool
    user_id: int = 0


def lock_member(cursor: Any, campaign_id: int, user_id: int) -> MemberContext | None:
    lock = " FOR UPDATE OF m" if is_postgres(cursor) else ""
    run(
        cursor,
        f"""SELECT {_WHO} FROM annotation_campaign c
 JOIN annotation_campaignmember m ON m.campaign_id = c.id AND m.annotator_id = %s
 JOIN accounts_project p ON p.id = c.project_id AND p.deleting_at IS NULL
 JOIN accounts_membership s ON s.project_id = c.project_id AND s.user_id = %s
 WHERE c.id = %s{lock}""",
        [user_id, user_id, campaign_id],
    )
    row = cursor.fetchone()
    return MemberContext(*row, user_id=user_id) if row else None


def join_member(cursor: Any, campaign_id: int, user_id: int, seed_of: Callable[[int], int]) -> bool:
    """Add a user to an opened campaign if their role and their invitation allow it. Otherwise False;
    `judging.join_campaign` gives the reason. Two statements, because a whole class may join at the same time."""
    roles = sorted(ROLES_FOR["annotate"])
    marks = ", ".join(["%s"] * len(roles))
    run(
        cursor,
        f"""SELECT c.seed, c.project_id, s.campaigns IS NULL FROM annotation_campaign c
 JOIN accounts_project p ON p.id = c.project_id AND p.deleting_at IS NULL
 JOIN accounts_membership s ON s.project_id = c.project_id AND s.user_id = %s
 WHERE c.id = %s AND c.state <> 'draft' AND s.role IN ({marks})""",
        [user_id, campaign_id, *roles],
    )
    row = cursor.fetchone()
    if row is None or not (
        row[2] or may_enter(user=User(pk=user_id), project_id=row[1], campaign=f"judging:{campaign_id}")
    ):
        return False
    run(
        cursor,
        """INSERT INTO annotation_campaignmember (campaign_id, annotator_id, seed, practised, given, done, skipped,
 seconds, joined_at, hired) VALUES (%s, %s, %s, 0, 0, 0, 0, 0, %s,
 EXISTS (SELECT 1 FROM annotation_participant WHERE user_id = %s))
 ON CONFLICT (campaign_id, annotator_id) DO NOTHING""",
        [campaign_id, user_id, seed_of(row[0]), datetime.now(UTC), user_id],
    )
    return True


@dataclass(slots=True)
class LockedAssignment:
    """An assignment with everything that storing its answer needs. `state` and `version` are those before the wait for
    the member's row: whoever writes checks them again in that statement, or reads the row again."""

    id: int
    public: str
    unit_id: int
    repeat_number: int
    order_number: int
    swapped: bool
    state: str
    version: int
    opened_at: Any
    unit_kind: str
    output_a: int
    output_b: int | None
    reference: int | None
    expected: Any
    why: str
    propensity: float | None
    who: MemberContext

    @property
    def needs_slot(self) -> bool:
        """Whether the answer needs a slot to count. Practice, control items and repeats have no slot."""
        return self.unit_kind == "normal" and not self.repeat_number


def lock_assignment(cursor: Any, public: str, user_id: int) -> LockedAssignment | None:
    lock = " FOR UPDATE OF m" if is_postgres(cursor) else ""
    run(
        cursor,
        f"""SELECT a.id, a.public, a.unit_id, a.repeat_number, a.order_number, a.side_swapped, a.state,
 a.version, a.opened_at, u.kind, u.output_a_id, u.output_b_id, r.position, u.expected, u.why, a.propensity, {_WHO}
 FROM annotation_assignment a
 JOIN annotation_unit u ON u.id = a.unit_id
 JOIN annotation_campaign c ON c.id = a.campaign_id
 JOIN accounts_project p ON p.id = c.project_id AND p.deleting_at IS NULL
 JOIN annotation_campaignmember m ON m.campaign_id = a.campaign_id AND m.annotator_id = a.annotator_id
 JOIN accounts_membership s ON s.project_id = c.project_id AND s.user_id = a.annotator_id
 LEFT JOIN annotation_reference r ON r.id = u.reference_id
 WHERE a.public = %s AND a.annotator_id = %s{lock}""",
        [public, user_id],
    )
    row = cursor.fetchone()
    if row is None:
        return None
    assignment = LockedAssignment(*row[:16], who=MemberContext(*row[16:], user_id=user_id))
    assignment.swapped, assignment.expected = bool(assignment.swapped), loads(assignment.expected)
    return assignment


# ---- assigning units ---------------------------------------------------------------------------------------

_OPEN = """SELECT a.id, a.public, a.unit_id, a.order_number, a.side_swapped, a.state, a.version, a.lease_until, a.draft,
 a.draft_version, u.kind, i.context, i.source, x.text, y.text, r.text
 FROM annotation_assignment a
 JOIN annotation_unit u ON u.id = a.unit_id
 JOIN annotation_item i ON i.id = u.item_id
 JOIN annotation_output x ON x.id = u.output_a_id
 LEFT JOIN annotation_output y ON y.id = u.output_b_id
 LEFT JOIN annotation_reference r ON r.id = u.reference_id
 WHERE """


@dataclass(slots=True)
class AssignmentView:
    """An assignment as its annotator may see it: without the system, row ids of outputs, and anything that
    distinguishes control items and repeats from other units."""

    id: int
    public: str
    unit_id: int
    number: int
    swapped: bool
    state: str
    version: int
    lease_until: datetime
    draft_json: Any
    draft_version: int
    unit_kind: str
    context_json: Any
    source: str | None
    text_a: str
    text_b: str | None
    reference: str | None

    @property
    def texts(self) -> list[str]:
        """The text, or both texts of a pair in the order of the page."""
        second = self.text_b if self.text_b is not None else self.reference
        if second is None:
            return [self.text_a]
        return [second, self.text_a] if self.swapped else [self.text_a, second]

    @property
    def context(self) -> list[str]:
        return loads(self.context_json)

    @property
    def draft(self) -> Any:
        return loads(self.draft_json)

    @property
    def is_practice(self) -> bool:
        return self.unit_kind == "practice"

    def wire(self) -> dict[str, Any]:
        """Return a dict for orjson. Context and draft are inserted as stored JSON, without parsing."""
        return {
            "id": self.public,
            "number": self.number,
            "state": get_shown_state(self.state, self.lease_until),
            "version": self.version,
            "practice": self.is_practice,
            "context": orjson.Fragment(self.context_json),
            "source": self.source,
            "texts": [{"id": name, "text": text} for name, text in zip("ab", self.texts, strict=False)],
            "draft": None if self.draft_json is None else orjson.Fragment(self.draft_json),
            "draft_version": self.draft_version,
            "lease_until": self.lease_until,
        }


def select_open(campaign_id: int, user_id: int) -> Statement:
    sql = _OPEN + "a.campaign_id = %s AND a.annotator_id = %s AND a.state = 'open' ORDER BY a.order_number"
    return sql, [campaign_id, user_id]


def fetch_assignments(cursor: Any) -> list[AssignmentView]:
    rows = [AssignmentView(*row) for row in cursor.fetchall()]
    for row in rows:
        row.swapped = bool(row.swapped)
        row.lease_until = parse_moment(row.lease_until)
    return rows


def claim_slot(cursor: Any, campaign_id: int, user_id: int, start: int) -> tuple[int, int, bool] | None:
    """Take the first free slot with rank >= `start` (else from the beginning) whose unit this annotator has not had.
    A single conditional update that changes at most one row. Returns (slot id, unit id, swapped)."""
    skip = " FOR UPDATE OF f SKIP LOCKED" if is_postgres(cursor) else ""
    for compare in (">=", "<"):
        run(
            cursor,
            f"""UPDATE annotation_slot SET state = 'taken' WHERE state = 'free' AND id = (
 SELECT f.id FROM annotation_slot f
 WHERE f.campaign_id = %s AND f.state = 'free' AND f.rank {compare} %s
 AND NOT EXISTS (SELECT 1 FROM annotation_assignment h WHERE h.unit_id = f.unit_id AND h.annotator_id = %s
 AND h.state <> 'expired')
 ORDER BY f.rank LIMIT 1{skip}) RETURNING id, unit_id, swapped""",
            [campaign_id, start, user_id],
        )
        row = cursor.fetchone()
        if row:
            return row[0], row[1], bool(row[2])
    return None


def insert_assignment(
    *, who: MemberContext, unit_id: int, slot_id: int | None, repeat: int, order: int, swapped: bool, now: datetime,
    lease_until: datetime,
) -> Statement:  # fmt: skip
    """Insert an assignment with its unit's propensity, or reopen this annotator's expired one with its draft. The
    sides of a reopened pair stay as they were: the draft, or an answer not yet sent by the browser, refers to them."""
    sql = """INSERT INTO annotation_assignment (campaign_id, unit_id, slot_id, annotator_id, public, repeat_number,
 order_number, side_swapped, state, version, lease_until, opened_at, draft_version, skip_reason, propensity)
 VALUES (%s, %s, %s, %s, %s, %s, %s, %s, 'open', 0, %s, %s, 0, '',
 (SELECT propensity FROM annotation_unit WHERE id = %s))
 ON CONFLICT (unit_id, repeat_number, annotator_id) DO UPDATE SET state = 'open', slot_id = excluded.slot_id,
 lease_until = excluded.lease_until"""
    values = [who.campaign_id, unit_id, slot_id, who.user_id, secrets.token_urlsafe(12), repeat, order, swapped]
    return sql, [*values, lease_until, now, unit_id]


def select_new(unit_id: int, repeat: int, user_id: int) -> Statement:
    return _OPEN + "a.unit_id = %s AND a.repeat_number = %s AND a.annotator_id = %s", [unit_id, repeat, user_id]


def count_given(who: MemberContext, practice: bool) -> Statement:
    column = "practised" if practice else "given"
    return f"UPDATE annotation_campaignmember SET {column} = {column} + 1 WHERE id = %s", [who.member_id]


def keep_draft(
    cursor: Any, assignment: LockedAssignment, version: int, draft_json: str, now: datetime, lease_until: datetime
) -> tuple[str, int | None] | None:
    """Save a draft if its version is still `version`, and renew the lease of an unanswered assignment. Returns the
    assignment's state and slot, or None if another request saved the draft first."""
    run(
        cursor,
        """UPDATE annotation_assignment SET draft = %s, draft_version = draft_version + 1, draft_saved_at = %s,
 lease_until = CASE WHEN state IN ('open', 'expired') THEN %s ELSE lease_until END WHERE id = %s AND draft_version = %s
 RETURNING state, slot_id""",
        [draft_json, now, lease_until, assignment.id, version],
    )
    row = cursor.fetchone()
    return (row[0], row[1]) if row else None


# ---- answering --------------------------------------------------------------------------------------------


def take_answer(cursor: Any, assignment: LockedAssignment, now: datetime) -> bool:
    """Mark an open assignment as submitted. Returns False if it is no longer open or lacks a slot that it needs: it may
    have been expired and reopened since it was read."""
    slot = " AND slot_id IS NOT NULL" if assignment.needs_slot else ""
    run(
        cursor,
        f"""UPDATE annotation_assignment SET state = 'submitted', version = version + 1, submitted_at = %s, draft = NULL
 WHERE id = %s AND state = 'open'{slot}""",
        [now, assignment.id],
    )
    return cursor.rowcount == 1


@dataclass(slots=True)
class Answer:
    """A validated answer: `shown` with the sides of the page, `plain` with the sides of the unit."""

    submission: str  # 32 hexadecimal digits
    shown: dict[str, Any]
    plain: dict[str, Any]
    body_hash: str
    note: str = ""
    seconds: float | None = None
    replaces: int | None = None
    passed: bool | None = None
    extra: bool = False


def insert_judgement(assignment: LockedAssignment, answer: Answer, version: int, now: datetime) -> Statement:
    sql = """INSERT INTO annotation_judgement (campaign_id, assignment_id, annotator_id, version, current, submission,
 replaces, answer, body_hash, note, seconds, extra, passed, created_at)
 VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"""
    values = [
        assignment.who.campaign_id, assignment.id, assignment.who.user_id, version, True, answer.submission,
        answer.replaces, orjson.dumps(answer.shown).decode(), answer.body_hash, answer.note, answer.seconds,
        answer.extra, answer.passed, now,
    ]  # fmt: skip
    return sql, values


def count_done(assignment: LockedAssignment, seconds: float | None, now: datetime) -> Statement:
    done = 0 if assignment.unit_kind == "practice" else 1
    sql = "UPDATE annotation_campaignmember SET done = done + %s, seconds = seconds + %s, last_at = %s WHERE id = %s"
    return sql, [done, (seconds or 0.0) * done, now, assignment.who.member_id]


_JUDGEMENT = "(SELECT id FROM annotation_judgement WHERE submission = %s)"


def upsert_results(
    assignment: LockedAssignment, answer: Answer, *, project_id: int, kind: str, aspect_ids: dict[str, int], rater: str
) -> list[Statement]:
    """Return statements that store the answer as ratings or comparisons. Uploaded rows of the same rater stay."""
    if assignment.unit_kind == "control" and not answer.extra:
        return _no_results(assignment, answer, kind, aspect_ids, rater)
    if assignment.unit_kind != "normal" or answer.extra:
        return []
    if assignment.repeat_number:
        rater = f"{rater}#{assignment.repeat_number + 1}"
    if kind == "likert":
        place = f"(%s, %s, NULL, %s, %s, %s, %s, %s, {_JUDGEMENT}, NULL)"
        given = {} if assignment.propensity is None else {"propensity": assignment.propensity}
        meta = orjson.dumps(given).decode()
        sql = (
            "INSERT INTO annotation_rating (project_id, output_id, dialogue_id, aspect_id, rater, value, simulated,"
            f" meta, judgement, upload_id) VALUES {', '.join([place] * len(answer.plain))}"
            " ON CONFLICT (output_id, aspect_id, rater) WHERE output_id IS NOT NULL DO UPDATE SET"
            " value = excluded.value, judgement = excluded.judgement WHERE annotation_rating.judgement IS NOT NULL"
        )
        rows = [
            (project_id, assignment.output_a, aspect_ids[name], rater, value, False, meta, answer.submission)
            for name, value in answer.plain.items()
        ]
        return [(sql, [value for row in rows for value in row])]
    column = "output_b_id" if assignment.reference is None else "reference"
    details: dict[str, Any] = {} if assignment.propensity is None else {"propensity": assignment.propensity}
    if assignment.swapped and assignment.reference is None:
        # The verdict refers to the sides of the unit; position bias is computed from the sides of the page.
        details["swapped"] = True
    meta = orjson.dumps(details).decode()
    sql = (
        "INSERT INTO annotation_comparison (project_id, output_a_id, output_b_id, reference, aspect_id, rater, verdict,"
        f" simulated, meta, judgement, upload_id) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, {_JUDGEMENT}, NULL)"
        f" ON CONFLICT (output_a_id, {column}, aspect_id, rater) WHERE {column} IS NOT NULL DO UPDATE SET"
        " verdict = excluded.verdict, judgement = excluded.judgement WHERE annotation_comparison.judgement IS NOT NULL"
    )
    return [
        (
            sql,
            [
                project_id, assignment.output_a, assignment.output_b, assignment.reference, aspect_ids[name],
                rater, value, False, meta, answer.submission,
            ],
        )
        for name, value in answer.plain.items()
    ]  # fmt: skip


def _no_results(
    assignment: LockedAssignment, answer: Answer, kind: str, aspect_ids: dict[str, int], rater: str
) -> list[Statement]:
    """Answers to control items are not stored as ratings. Execute as many statements as for other units, without
    effect, so that the response time does not reveal a control item."""
    table, output = ("annotation_rating", "output_id") if kind == "likert" else ("annotation_comparison", "output_a_id")
    sql = (
        f"UPDATE {table} SET simulated = simulated WHERE {output} = %s AND aspect_id = %s AND rater = %s"
        f" AND judgement = {_JUDGEMENT}"
    )
    names = list(answer.plain)[:1] if kind == "likert" else list(answer.plain)
    return [(sql, [assignment.output_a, aspect_ids[name], rater, answer.submission]) for name in names]
