"""Imports named reference sets and texts written elsewhere, from references.jsonl and attempts.jsonl: checks against
stored rows, and storing. A file never changes anything that was made here."""

import json
from collections.abc import Iterable
from typing import Any

from annotation.models import AttemptElsewhere, Reference, ReferenceSet, WrittenElsewhere
from annotation.parsers.kinds import NO_PLACE
from annotation.parsers.writer import ATTEMPT_TIMES, WRITTEN_TIMES
from annotation.selectors import stored_written as stored
from annotation.services.bulk import insert_rows
from evalapp.translation import gettext as _
from evalapp.translation import gettext_noop

from .import_faults import Check, explain_other_content, is_same_json, report_twice, same_text
from .import_staging import NEW, REPLACE, SAME

#: The staged table, quoted because its name is an SQL keyword.
TABLE = '"references"'

_STORED_ELSEWHERE = gettext_noop(
    "The text of submission %(submission)s is already stored in this project. Remove one of the two rows."
)
#: (act, id, told, told_act, n)
_Decision = tuple[str, int | None, int | None, str | None, int]


# ---- check ------------------------------------------------------------------------------------------------


def is_same_row(encoded: str, stored: Iterable[str | None], times: tuple[str, ...]) -> bool:
    """Whether the row equals a stored one, or one without its times, which most exports leave out."""
    known = [row for row in stored if row is not None]
    if encoded in known:
        return True
    values = json.loads(encoded)
    if any(values.get(name) is not None for name in times):
        return False

    def rest(row: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in row.items() if name not in times}

    return any(rest(values) == rest(json.loads(row)) for row in known)


def references(check: Check) -> None:
    staging = check.staging
    if not staging.has(TABLE):
        return
    staging.execute(f"CREATE INDEX references_key ON {TABLE} (name, item, position)")
    staging.execute(f"CREATE INDEX references_submission ON {TABLE} (submission)")
    report_twice(check, TABLE, ("name", "item", "position"), f"position <> {NO_PLACE}")
    report_twice(check, TABLE, ("submission",), "submission IS NOT NULL")
    staging.execute(f"UPDATE {TABLE} SET told_act = '{NEW}' WHERE act = '{NEW}' AND written IS NOT NULL")
    if stored.has_any(check.project):
        sets = stored.sets(check.project)
        sql = (
            "SELECT r.n, r.name, i.id, r.position, r.text, r.meta, r.written, r.submission, r.item"
            f" FROM {TABLE} r JOIN items i ON i.key = r.item WHERE r.n > ? AND r.act = '{NEW}' ORDER BY r.n"
        )
        for batch in staging.batches(sql):
            _Match(check, sets, batch).run()
            check.tick("references: compared with those stored")
    check.tick("references: checked")


class _Match:
    """Compares a batch of staged references with stored ones."""

    def __init__(self, check: Check, sets: dict[str, stored.StoredSet], batch: list[tuple[Any, ...]]) -> None:
        self.check = check
        self.sets = sets
        self.batch = batch
        submissions = [row[7] for row in batch if row[7] is not None]
        named = {sets[row[1]].id for row in batch if row[1] in sets}
        self.placed = stored.references(check.project, named, {row[2] for row in batch if row[2] is not None})
        self.elsewhere = stored.elsewhere(check.project, submissions)
        self.own = stored.own(check.project, submissions)

    def run(self) -> None:
        decisions: list[_Decision] = []
        for n, name, item, position, text, meta, origin, submission, key in self.batch:
            if position == NO_PLACE:
                decision = self._outside(name, item, text, meta, origin, submission, key)
            else:
                decision = self._placed(name, item, position, text, meta, origin, submission, key)
            if isinstance(decision, str):
                self.check.fail_row(TABLE, n, "", decision)
            else:
                decisions.append((*decision, n))
        self.check.staging.many(f"UPDATE {TABLE} SET act = ?, id = ?, told = ?, told_act = ? WHERE n = ?", decisions)

    def _new(self, name: str, submission: str | None) -> tuple | str:
        there = self.sets.get(name)
        if there is not None and there.made_here:
            return _(
                "The set “%(name)s” was created in this project, so files cannot add to it. Give it another name.",
                name=name,
            )
        if submission in self.own or submission in self.elsewhere:
            return _(_STORED_ELSEWHERE, submission=submission)
        return NEW, None, None, None if submission is None else NEW

    def _placed(
        self, name: str, item: int | None, position: int, text: str, meta: str, origin: str | None,
        submission: str | None, key: str,
    ) -> tuple | str:  # fmt: skip
        there = self.sets.get(name)
        old = None if there is None else self.placed.get((there.id, item, position))
        if there is None or old is None:
            return self._new(name, submission)
        known = old.own or old.told
        what = _(
            "Reference %(position)s of the item “%(key)s” in the set “%(name)s”", position=position, key=key, name=name
        )
        far = self.elsewhere.get(submission) if submission else None
        # A row without an origin does not contradict a stored one.
        same = origin is None or is_same_row(origin, (known, old.former), WRITTEN_TIMES)
        if old.text == text and same_text(meta, old.meta) and same:
            return SAME, old.id, old.told_id, None
        if not self.check.replace:
            return _(
                "%(what)s is stored with other content. Use replace to overwrite it, or give the set another name.",
                what=what,
            )
        if there.made_here or old.own is not None:
            return _("%(what)s was created in this project, so it cannot be replaced.", what=what)
        if there.written_from:
            return _("A writing campaign uses the set “%(name)s”, so it cannot be replaced.", name=name)
        if origin is None and known is not None:
            return _("%(what)s is stored with “written”, which this row lacks. Add it.", what=what)
        if submission in self.own or (far is not None and far.id != old.told_id):
            return _(_STORED_ELSEWHERE, submission=submission)
        act = None if origin == known else NEW if old.told_id is None else REPLACE
        return REPLACE, old.id, old.told_id, act

    def _outside(
        self, name: str, item: int | None, text: str, meta: str, origin: str, submission: str, key: str
    ) -> tuple | str:
        there = self.sets.get(name)
        place = (None if there is None else there.id, item, None)
        what = _("The text for the item “%(key)s” with submission %(submission)s", key=key, submission=submission)
        written, far = self.own.get(submission), self.elsewhere.get(submission)
        if written is not None:
            same = written[:3] == place and written.text == text and is_same_json(meta, written.meta)
            same = same and is_same_row(origin, (written.told, written.former), WRITTEN_TIMES)
            return (
                (SAME, None, None, None)
                if same
                else _("%(what)s belongs to a campaign of this project, so it cannot be replaced.", what=what)
            )
        if far is None or (far.set, far.item, far.reference) != place:
            return self._new(name, submission)
        if far.text == text and same_text(meta, far.meta) and is_same_row(origin, (far.told,), WRITTEN_TIMES):
            return SAME, None, far.id, None
        if not self.check.replace:
            return explain_other_content(what)
        return REPLACE, None, far.id, REPLACE


def attempts(check: Check) -> None:
    staging = check.staging
    if not staging.has("attempts"):
        return
    staging.execute("CREATE INDEX attempts_key ON attempts (submission)")
    report_twice(check, "attempts", ("submission",), "1")
    if not stored.has_any(check.project):
        return
    for batch in staging.batches(f"SELECT n, submission, row FROM attempts WHERE n > ? AND act = '{NEW}' ORDER BY n"):
        written, far = stored.attempts(check.project, [row[1] for row in batch])
        decisions: list[tuple[str, int | None, int]] = []
        for n, submission, row in batch:
            what = _("The attempt of submission %(submission)s", submission=submission)
            id, known = far.get(submission, (None, None))
            if is_same_row(row, (known, *written.get(submission, ())), ATTEMPT_TIMES):
                decisions.append((SAME, id, n))
            elif submission in written:
                check.fail_row(
                    "attempts",
                    n,
                    "submission",
                    _("%(what)s belongs to a campaign of this project, so it cannot be replaced.", what=what),
                )
            elif known is not None and check.replace:
                decisions.append((REPLACE, id, n))
            elif known is not None:
                check.fail_row("attempts", n, "submission", explain_other_content(what))
        check.settle("attempts", decisions)
        check.tick("attempts: compared with those stored")


# ---- store ------------------------------------------------------------------------------------------------


def store(promotion: Any) -> None:
    """Store references in their sets, with their origin; missing sets are created."""
    if promotion.staging.has(TABLE):
        _store_references(promotion)
    project, upload = promotion.project.pk, promotion.upload.pk
    promotion._insert(
        AttemptElsewhere,
        "project_id item_id campaign submission row upload_id",
        f"SELECT {project}, i.id, a.campaign, a.submission, a.row, {upload} FROM attempts a"
        f" JOIN items i ON i.key = a.item WHERE a.act = '{NEW}' ORDER BY a.n",
    )
    promotion._replace(
        "attempts",
        AttemptElsewhere,
        "item campaign row",
        "SELECT i.id, a.campaign, a.row, a.id FROM attempts a JOIN items i ON i.key = a.item"
        f" WHERE a.act = '{REPLACE}' ORDER BY a.n",
    )


def _store_references(promotion: Any) -> None:
    staging, project, upload = promotion.staging, promotion.project, promotion.upload
    _make_sets(promotion)
    promotion._give_ids(TABLE, Reference)
    placed = f"r.position <> {NO_PLACE}"
    join = f"FROM {TABLE} r JOIN items i ON i.key = r.item JOIN sets s ON s.name = r.name"
    promotion._insert(
        Reference,
        "id set_id item_id position text meta upload_id",
        f"SELECT r.id, s.id, i.id, r.position, r.text, r.meta, {upload.pk} {join}"
        f" WHERE r.act = '{NEW}' AND {placed} ORDER BY r.n",
    )
    promotion._replace(
        "reference",
        Reference,
        "text meta",
        f"SELECT r.text, r.meta, r.id {join} WHERE r.act = '{REPLACE}' AND {placed} ORDER BY r.n",
    )
    content = f"CASE WHEN {placed} THEN '' ELSE r.text END, CASE WHEN {placed} THEN '{{}}' ELSE r.meta END, r.written"
    insert_rows(
        WrittenElsewhere,
        ["project_id", "set_id", "item_id", "reference_id", "submission", "text", "meta", "told", "upload_id"],
        staging.stream(
            f"SELECT {project.pk}, s.id, i.id, CASE WHEN {placed} THEN r.id END, r.submission, {content}, {upload.pk}"
            f" {join} WHERE r.told_act = '{NEW}' ORDER BY r.n"
        ),
    )
    promotion._replace(
        "written",
        WrittenElsewhere,
        "submission text meta told",
        f"SELECT r.submission, {content}, r.told {join} WHERE r.told_act = '{REPLACE}' ORDER BY r.n",
    )


def _make_sets(promotion: Any) -> None:
    """Look up or create the sets that rows name, and write their ids to the staging file."""
    staging = promotion.staging
    known = {name: row.id for name, row in stored.sets(promotion.project).items()}
    names = [name for (name,) in staging.execute(f"SELECT DISTINCT name FROM {TABLE} ORDER BY name").fetchall()]
    for name in names:
        if name not in known:
            made = ReferenceSet.objects.create(project=promotion.project, name=name, upload=promotion.upload)
            known[name] = made.pk
    staging.execute("CREATE TABLE sets (name TEXT PRIMARY KEY, id INTEGER)")
    staging.many("INSERT INTO sets VALUES (?, ?)", [(name, known[name]) for name in names])
