"""The shared state of an import's checks, how they report faulty rows, and the comparison with stored values."""

import json
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from annotation.parsers import KEPT_FAULTS, Faults, canonical, encode_row
from annotation.parsers.fields import NO_STEP
from evalapp.accounts.models import Project
from evalapp.translation import gettext as _

from .import_names import Lookalikes
from .import_staging import FAULTY, Staging

Message = str | Callable[..., str]


def same_text(text: str, stored_text: str) -> bool:
    """Whether two JSON texts are equal in value."""
    return text == stored_text or is_same_json(text, json.loads(stored_text))


def is_same_json(text: str | None, value: Any) -> bool:
    """Whether staged JSON and a stored value are equal, on every database."""
    if text is None or text == "{}":
        return value is None if text is None else value == {}
    return encode_row(canonical(json.loads(text))) == encode_row(canonical(value))


class Check:
    """The shared state of an import's checks: project, staging file, errors, and whether rows may be replaced."""

    def __init__(
        self,
        project: Project,
        staging: Staging,
        faults: Faults,
        replace: bool,
        tick: Callable[[str], None],
        documents: dict[str, Any] | None = None,
        lost: dict[str, str] | None = None,
    ) -> None:
        self.project = project
        self.staging = staging
        self.faults = faults
        self.replace = replace
        self.tick = tick
        #: Contents of files with a single object, by kind; `dataset.json` is checked elsewhere.
        self.documents = documents or {}
        #: The place of a row that cannot be identified, by table.
        self.lost = lost or {}
        self.lookalikes = Lookalikes(project, staging)
        staging.execute("CREATE TEMP TABLE IF NOT EXISTS bad (n INTEGER PRIMARY KEY, a, b, c)")
        #: Whether each row of a file is reported once, see `report_rows_once`.
        self.reports_rows = False

    def report_rows_once(self, faulty: Iterable[tuple[int, int]]) -> None:
        """For files by a mapping, whose rows become many parts that often share an error. `faulty`: the rows (number of
        the file, line) that have been reported already."""
        self.reports_rows = True
        self.staging.execute("CREATE TEMP TABLE IF NOT EXISTS faulty (file, line, PRIMARY KEY (file, line))")
        self.staging.many("INSERT OR IGNORE INTO faulty VALUES (?, ?)", list(faulty))

    def fail(self, table: str, where: str, field: str, message: Message, extra: str = "") -> int:
        """Mark every row of the upload that matches `where` as faulty. `extra`: up to three expressions that are passed
        to `message`. In both, the table is `t`."""
        staging = self.staging
        values = [part.strip() for part in extra.split("|")] if extra else []
        columns = ", ".join((values + ["NULL"] * 3)[:3])
        staging.execute("DELETE FROM bad")
        staging.execute(
            f"INSERT INTO bad SELECT t.n, {columns} FROM {table} t WHERE t.file IS NOT NULL"
            f" AND t.act <> '{FAULTY}' AND ({where})"
        )
        count = staging.value("SELECT count(*) FROM bad")
        if not count:
            return 0
        staging.execute(f"UPDATE {table} SET act = '{FAULTY}' WHERE n IN (SELECT n FROM bad)")
        reported = self._keep_first(table) if self.reports_rows else count
        before = self.faults.count
        alike = "PARTITION BY t.file, bad.a, bad.b, bad.c"
        sql = (
            "SELECT file, json_group_array(line), max(total), a, b, c FROM (SELECT t.file, t.line, bad.n,"
            f" bad.a, bad.b, bad.c, row_number() OVER ({alike} ORDER BY bad.n) AS k, count(*) OVER ({alike}) AS total"
            f" FROM bad JOIN {table} t USING (n) ORDER BY bad.n) WHERE k <= 3 GROUP BY file, a, b, c"
            " ORDER BY file, min(n)"
        )
        seen: Counter[int] = Counter()
        text = ""
        for file, lines, total, *facts in staging.stream(sql):
            # For very many rows only the count matters, because a message may need a database query.
            if seen[file] < KEPT_FAULTS:
                text = message if isinstance(message, str) else message(*facts[: len(values)])
            seen[file] += 1
            first, *others = sorted(json.loads(lines))
            self.faults.add(staging.name(file), first, field, text, others, total)
        self.faults.count = before + reported
        return int(count)

    def _keep_first(self, table: str) -> int:
        """Keeps the first part in `bad` of each row that has no error yet; returns their number."""
        staging = self.staging
        staging.execute(
            f"DELETE FROM bad WHERE n NOT IN (SELECT min(n) FROM bad JOIN {table} t USING (n) GROUP BY t.file, t.line)"
            f" OR EXISTS (SELECT 1 FROM {table} t JOIN faulty USING (file, line) WHERE t.n = bad.n)"
        )
        staging.execute(f"INSERT INTO faulty SELECT t.file, t.line FROM bad JOIN {table} t USING (n)")
        return int(staging.value("SELECT count(*) FROM bad"))

    def perhaps(self, *tables: str) -> str:
        """A hint for a row that refers to a missing one, if that may be a faulty row."""
        places = [self.lost[table] for table in tables if table in self.lost]
        if not places:
            return ""
        return _(" It may be in %(place)s, which is faulty itself. Correct that first.", place=places[0])

    def fail_row(self, table: str, n: int, field: str, message: str) -> None:
        file, line = self.staging.execute(f"SELECT file, line FROM {table} WHERE n = ?", [n]).fetchone()
        if not self.reports_rows or self._is_first(file, line):
            self.faults.add(self.staging.name(file), line, field, message)
        self.staging.execute(f"UPDATE {table} SET act = '{FAULTY}' WHERE n = ?", [n])

    def _is_first(self, file: int, line: int) -> bool:
        """Whether a row has no error yet."""
        return self.staging.execute("INSERT OR IGNORE INTO faulty VALUES (?, ?)", [file, line]).rowcount == 1

    def settle(self, table: str, decisions: list[tuple[str, int | None, int]]) -> None:
        """Write (act, id, n)."""
        self.staging.many(f"UPDATE {table} SET act = ?, id = ? WHERE n = ?", decisions)


def explain_other_content(what: str) -> str:
    return _("%(what)s is stored with other content. Use replace to overwrite it, or give it another key.", what=what)


def describe_missing(name: str, item: str, step: int) -> str:
    if step == NO_STEP:
        return _("“%(name)s” has no output for the item “%(item)s”.", name=name, item=item)
    return _("“%(name)s” has no output of step %(step)d for the item “%(item)s”.", name=name, item=item, step=step)


def report_twice(check: Check, table: str, key: tuple[str, ...], where: str) -> None:
    columns = ", ".join(key)
    staging = check.staging
    staging.execute("DROP TABLE IF EXISTS temp.twice")
    staging.execute(
        f"CREATE TEMP TABLE twice AS SELECT min(n) AS first, {columns} FROM {table}"
        f" WHERE file IS NOT NULL AND {where} GROUP BY {columns} HAVING count(*) > 1"
    )
    if not staging.has("temp.twice"):
        return
    on = " AND ".join(f"t.{name} IS d.{name}" for name in key)
    check.fail(
        table,
        f"EXISTS (SELECT 1 FROM twice d WHERE {on} AND t.n > d.first)",
        "id" if key == ("key",) else "",
        lambda file, line: _(
            "The same key is already used in %(name)s:%(line)s. Remove one of the two rows.",
            name=staging.name(file),
            line=line,
        ),
        f"(SELECT f.file FROM twice d JOIN {table} f ON f.n = d.first WHERE {on})"
        f" | (SELECT f.line FROM twice d JOIN {table} f ON f.n = d.first WHERE {on})",
    )
