"""Checks of an import for aspects, ratings, comparisons and the corpus: the judged output, the scale, and stored
rows."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from annotation.models import Aspect, Comparison, CorpusPair, Rating
from annotation.models.data import OBSERVED, STATED
from annotation.parsers.fields import NO_STEP
from annotation.parsers.kinds import DatasetRow
from annotation.selectors import stored

from .import_checks import Check, other_content, report_twice, same_json, same_text
from .import_staging import FAULTY, KNOWN, MENTIONED, NEW, REPLACE, SAME

MAX_ASPECTS = 1000


def aspects(check: Check, dataset: DatasetRow | None, dataset_file: int | None) -> None:
    """Stored aspects, those of dataset.json and, only in a project without declarations, those that ratings and
    comparisons name, with the observed range."""
    staging = check.staging
    scales = stored.stated_scales(check.project)
    stored_rows = {aspect.name: aspect for aspect in Aspect.objects.filter(project=check.project)}
    declared = [row.name for row in dataset.aspects] if dataset else []
    rows: list[tuple[Any, ...]] = []
    position = max((aspect.position for aspect in stored_rows.values()), default=-1) + 1
    for row in dataset.aspects if dataset else []:
        old = stored_rows.get(row.name)
        meta = json.dumps(row.meta)
        act, id = NEW, None
        if not row.is_whole:
            act, id = FAULTY, None if old is None else old.pk
        elif old is not None:
            id = old.pk
            same_range, said = (old.low, old.high) == (row.low, row.high), stored.make_meta(old, scales)
            # Exports of older versions did not mark scales that a campaign states.
            older = {name: value for name, value in said.items() if name != STATED}
            act = SAME if same_range and (same_json(meta, said) or same_json(meta, older)) else REPLACE
            is_open = old.meta.get(OBSERVED) and (same_range or not old.meta.get(STATED))
            if act == REPLACE and not check.replace and not is_open:
                check.faults.add(staging.name(dataset_file), None, "aspects", other_content(f"The aspect “{row.name}”"))
                act = FAULTY
            elif act == REPLACE and _outside(old, row.low, row.high):
                check.faults.add(
                    staging.name(dataset_file),
                    None,
                    "aspects",
                    f"Stored ratings of “{row.name}” lie outside its new range. Keep the range that covers them.",
                )
                act = FAULTY
            elif act == REPLACE and scales.get(old.pk, (row.low, row.high)) != (row.low, row.high):
                low, high = scales[old.pk]
                text = f"A campaign asks for “{row.name}” from {low:g} to {high:g}. Keep this range."
                check.faults.add(staging.name(dataset_file), None, "aspects", text)
                act = FAULTY
        rows.append(
            (dataset_file, act, id, row.name, row.low, row.high, meta, position if old is None else old.position)
        )
        position += old is None
    for name, old in stored_rows.items():
        if name not in declared:
            rows.append((None, KNOWN, old.pk, name, old.low, old.high, json.dumps(old.meta), old.position))
    staging.many("INSERT INTO aspects (file, act, id, key, low, high, meta, position) VALUES (?,?,?,?,?,?,?,?)", rows)
    staging.execute("CREATE INDEX aspects_key ON aspects (key)")
    open_project = not declared and all(old.meta.get(OBSERVED) for old in stored_rows.values())
    if open_project:
        _observe(check, position, frozenset(scales))
    names = [name for (name,) in staging.execute("SELECT key FROM aspects ORDER BY position LIMIT 8").fetchall()]
    for table in ("ratings", "comparisons"):
        staging.execute(f"UPDATE {table} SET asp = (SELECT n FROM aspects a WHERE a.key = {table}.aspect)")
        check.fail(
            table,
            "t.asp IS NULL",
            "aspect",
            lambda name: (
                f"The project has no aspect “{name}” (only {', '.join(names)}). Name it in dataset.json."
                + (check.lookalikes.suggest("aspects", name) or check.perhaps("dataset"))
            ),
            "t.aspect",
        )
    check.tick("aspects: checked")


def _outside(aspect: Aspect, low: float | None, high: float | None) -> bool:
    rows = Rating.objects.filter(aspect=aspect)
    if low is None or high is None:
        return rows.exists()
    return rows.filter(value__lt=low).exists() or rows.filter(value__gt=high).exists()


def _observe(check: Check, position: int, asked: frozenset[int]) -> None:
    """Infer the range of aspects from ratings. Aspects of campaigns, here or in the exporting installation, keep the
    scale that raters see."""
    staging = check.staging
    found = staging.execute(
        "SELECT aspect, min(value), max(value) FROM ratings WHERE act <> 'faulty' GROUP BY aspect UNION ALL"
        " SELECT aspect, NULL, NULL FROM comparisons WHERE act <> 'faulty' AND aspect NOT IN"
        f" (SELECT aspect FROM ratings) GROUP BY aspect ORDER BY 1 LIMIT {MAX_ASPECTS + 1}"
    ).fetchall()
    if len(found) > MAX_ASPECTS:
        check.faults.add("", None, "aspect", f"There are more than {MAX_ASPECTS} aspects. Is the column the right one?")
        return
    for name, low, high in found:
        old = staging.execute("SELECT n, low, high, id, meta FROM aspects WHERE key = ?", [name]).fetchone()
        if old is None:
            staging.execute(
                "INSERT INTO aspects (act, key, low, high, meta, position) VALUES (?,?,?,?,?,?)",
                [MENTIONED, name, low, high, json.dumps({OBSERVED: True}), position],
            )
            position += 1
        elif low is None or old[3] in asked or json.loads(old[4]).get(STATED):
            continue
        elif old[1] is None or low < old[1] or high > old[2]:
            staging.execute(
                f"UPDATE aspects SET act = '{REPLACE}', low = ?, high = ? WHERE n = ?",
                [low if old[1] is None else min(low, old[1]), high if old[2] is None else max(high, old[2]), old[0]],
            )


def resolve(check: Check) -> None:
    """Find the output or dialogue of each judgement. Without a step it is the output without step or, if all outputs of
    the system have one, the only output."""
    staging = check.staging
    for table, system, step, out in (
        ("ratings", "system", "step", "out"),
        ("comparisons", "a", "step_a", "out"),
        ("comparisons", "b", "step_b", "out_b"),
    ):
        match = f"o.item = {table}.item AND o.system = {table}.{system}"
        asked = f"{table}.{system} IS NOT NULL AND {table}.item IS NOT NULL"
        staging.execute(
            f"UPDATE {table} SET {out} = (SELECT n FROM outputs o WHERE {match} AND o.step = {table}.{step} LIMIT 1)"
            f" WHERE {asked}"
        )
        staging.execute(
            f"UPDATE {table} SET {out} = (SELECT n FROM outputs o WHERE {match} LIMIT 1) WHERE {asked}"
            f" AND {out} IS NULL AND {step} = {NO_STEP} AND (SELECT count(*) FROM outputs o WHERE {match}) = 1"
        )
        missing = f"t.{out} IS NULL AND t.{system} IS NOT NULL AND t.item IS NOT NULL"
        on = f"o.item = t.item AND o.system = t.{system}"
        check.fail(
            table,
            f"{missing} AND t.{step} = {NO_STEP} AND EXISTS (SELECT 1 FROM outputs o WHERE {on})",
            step,
            lambda name, item, s=step: (
                f"“{name}” has outputs of several steps for the item “{item}”. Say which with {s}."
            ),
            f"t.{system} | t.item",
        )
        unknown = (
            f"NOT EXISTS (SELECT 1 FROM systems s WHERE s.key = t.{system}"
            f" AND (s.act <> '{KNOWN}' OR s.id IS NOT NULL))"
        )
        check.fail(
            table, f"{missing} AND {unknown}", "system" if system == "system" else f"system_{system}",
            lambda name: f"There is no system “{name}”: no output of this upload or stored is by it."
            + (check.lookalikes.suggest("systems", name) or check.perhaps("outputs", "dialogues", "systems")),
            f"t.{system}",
        )  # fmt: skip
        check.fail(
            table, missing, "system" if system == "system" else f"system_{system}",
            lambda name, item, number: f"“{name}” has no output{_at(number)} for the item “{item}”."
            + check.perhaps("outputs"),
            f"t.{system} | t.item | t.{step}",
        )  # fmt: skip
        check.tick(f"{table}: outputs found")
    staging.execute("UPDATE ratings SET dia = (SELECT n FROM dialogues d WHERE d.key = ratings.dialogue)"
                    " WHERE dialogue IS NOT NULL")  # fmt: skip
    check.fail(
        "comparisons",
        "t.reference IS NOT NULL AND t.reference >= (SELECT coalesce(nrefs, 0) FROM items i WHERE i.key = t.item"
        f" AND i.act <> '{FAULTY}')",
        "system_b",
        lambda n, item: f"The item “{item}” has no reference {n} (they are counted from 0).",
        "t.reference | t.item",
    )
    check.fail(
        "comparisons",
        "t.out IS NOT NULL AND t.out = t.out_b",
        "system_b",
        "An output is compared with itself. Name two systems, or two steps of one.",
    )


def _at(step: int) -> str:
    return "" if step == NO_STEP else f" of step {step}"


def ratings(check: Check) -> None:
    staging = check.staging
    # A faulty scale cannot be checked against.
    aspect = f"FROM aspects a WHERE a.n = t.asp AND a.act <> '{FAULTY}'"
    check.fail(
        "ratings",
        f"(SELECT a.low IS NULL {aspect})",
        "aspect",
        lambda name: f"The aspect “{name}” has no scale (min and max are null): it takes comparisons only.",
        "t.aspect",
    )
    check.fail(
        "ratings",
        f"t.value < (SELECT a.low {aspect}) OR t.value > (SELECT a.high {aspect})",
        "value",
        lambda value, low, high: f"The value {value:g} is outside the scale from {low:g} to {high:g}.",
        f"t.value | (SELECT a.low {aspect}) | (SELECT a.high {aspect})",
    )
    key = ("out", "dia", "asp", "rater")
    staging.execute(f"CREATE INDEX ratings_key ON ratings ({', '.join(key)})")
    report_twice(check, "ratings", key, f"act <> '{FAULTY}'")
    check.tick("ratings: checked")
    if not Rating.objects.filter(project=check.project).exists():
        return
    sql = (
        "SELECT r.n, o.id, d.id, a.id, r.rater, r.value, r.simulated, r.meta FROM ratings r"
        " LEFT JOIN outputs o ON o.n = r.out LEFT JOIN dialogues d ON d.n = r.dia JOIN aspects a ON a.n = r.asp"
        f" WHERE r.n > ? AND r.act = '{NEW}' AND a.id IS NOT NULL AND coalesce(o.id, d.id) IS NOT NULL ORDER BY r.n"
    )
    for batch in staging.batches(sql):
        found = stored.ratings(
            {row[1] for row in batch if row[1]}, {row[2] for row in batch if row[2]}, {row[4] for row in batch}
        )
        decisions: list[tuple[str, int | None, int]] = []
        for n, output, dialogue, asp, rater, value, simulated, meta in batch:
            old = found.get((output, dialogue, asp, rater))
            if old is not None:
                same = old[1] == value and old[2] == bool(simulated) and same_text(meta, old[3])
                _decide(check, "ratings", decisions, n, old[0], same, old[4], f"The rating by “{rater}”")
        check.settle("ratings", decisions)
        check.tick("ratings: compared with those stored")


def comparisons(check: Check) -> None:
    staging = check.staging
    key = ("out", "out_b", "reference", "asp", "rater")
    staging.execute(f"CREATE INDEX comparisons_key ON comparisons ({', '.join(key)})")
    report_twice(check, "comparisons", key, f"act <> '{FAULTY}'")
    check.tick("comparisons: checked")
    if not Comparison.objects.filter(project=check.project).exists():
        return
    sql = (
        "SELECT c.n, o.id, p.id, c.reference, a.id, c.rater, c.verdict, c.simulated, c.meta FROM comparisons c"
        " JOIN outputs o ON o.n = c.out LEFT JOIN outputs p ON p.n = c.out_b JOIN aspects a ON a.n = c.asp"
        f" WHERE c.n > ? AND c.act = '{NEW}' AND a.id IS NOT NULL AND o.id IS NOT NULL"
        " AND (c.out_b IS NULL OR p.id IS NOT NULL) ORDER BY c.n"
    )
    for batch in staging.batches(sql):
        found = stored.comparisons({row[1] for row in batch}, {row[5] for row in batch})
        decisions: list[tuple[str, int | None, int]] = []
        for n, a, b, reference, asp, rater, verdict, simulated, meta in batch:
            old = found.get((a, b, reference, asp, rater))
            if old is not None:
                same = old[1] == verdict and old[2] == bool(simulated) and same_text(meta, old[3])
                _decide(check, "comparisons", decisions, n, old[0], same, old[4], f"The comparison by “{rater}”")
        check.settle("comparisons", decisions)
        check.tick("comparisons: compared with those stored")


def _decide(
    check: Check, table: str, decisions: list, n: int, id: int, same: bool, judgement: int | None, what: str
) -> None:
    if same:
        decisions.append((SAME, id, n))
    elif not check.replace:
        check.fail_row(table, n, "", other_content(what))
    elif judgement is not None:
        check.fail_row(table, n, "", f"{what} was given in a campaign here; it stays as it is.")
    else:
        decisions.append((REPLACE, id, n))


def corpus(check: Check) -> None:
    """Pairs have no key: the k-th occurrence of a pair is the k-th stored one, and the rest is appended."""
    staging = check.staging
    if not staging.has("corpus") or not CorpusPair.objects.filter(project=check.project).exists():
        return
    staging.db.create_function("pair_digest", 2, _digest, deterministic=True)
    staging.execute("CREATE TABLE stored_corpus (n INTEGER PRIMARY KEY, id INTEGER, digest BLOB, meta TEXT)")
    rows = ((id, _digest(q, response), meta) for id, q, response, meta in stored.corpus(check.project))
    staging.many("INSERT INTO stored_corpus (id, digest, meta) VALUES (?,?,?)", rows)
    check.tick("corpus: compared with the stored one")
    staging.execute(
        "CREATE TABLE old_pairs AS SELECT id, digest, meta,"
        " row_number() OVER (PARTITION BY digest ORDER BY n) AS k FROM stored_corpus"
    )
    staging.execute("CREATE INDEX old_pairs_key ON old_pairs (digest, k)")
    staging.execute(
        "CREATE TABLE new_pairs AS SELECT n, digest, row_number() OVER (PARTITION BY digest ORDER BY n) AS k"
        f" FROM (SELECT n, pair_digest(query, response) AS digest FROM corpus WHERE act <> '{FAULTY}')"
    )
    sql = (
        "SELECT c.n, o.id, c.meta, o.meta FROM new_pairs p JOIN corpus c ON c.n = p.n"
        " JOIN old_pairs o ON o.digest = p.digest AND o.k = p.k WHERE c.n > ? ORDER BY c.n"
    )
    for batch in staging.batches(sql, 5000):
        decisions: list[tuple[str, int | None, int]] = []
        for n, id, meta, old in batch:
            if same_text(meta, old):
                decisions.append((SAME, id, n))
            elif check.replace:
                decisions.append((REPLACE, id, n))
            else:
                check.fail_row("corpus", n, "meta", other_content("This pair"))
        check.settle("corpus", decisions)
        check.tick("corpus: compared with the stored one")


def _digest(query: str, response: str) -> bytes:
    return hashlib.blake2b(f"{len(query)}:{query}{response}".encode(), digest_size=16).digest()
