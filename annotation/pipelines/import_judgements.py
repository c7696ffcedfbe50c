"""Checks of an import for aspects, ratings, comparisons and the corpus: the judged output, the scale, and stored
rows."""

import hashlib
import json
from collections.abc import Callable
from typing import Any

from annotation.models import Aspect, Comparison, CorpusPair, Rating
from annotation.models.data import OBSERVED, STATED
from annotation.parsers.fields import NO_STEP
from annotation.parsers.kinds import AspectRow, DatasetRow
from annotation.selectors import stored
from evalapp.translation import gettext as _

from .import_faults import Check, describe_missing, explain_other_content, is_same_json, report_twice, same_text
from .import_staging import FAULTY, KNOWN, MENTIONED, NEW, REPLACE, SAME

MAX_ASPECTS = 1000


def aspects(check: Check, dataset: DatasetRow | None, dataset_file: int | None) -> None:
    """Stored aspects, those of dataset.json and, only in a project without declarations, those that ratings and
    comparisons name, with the observed range."""
    staging = check.staging
    scales = stored.read_stated_scales(check.project)
    stored_rows = {aspect.name: aspect for aspect in Aspect.objects.filter(project=check.project)}
    declared = [row.name for row in dataset.aspects] if dataset else []
    rows: list[tuple[Any, ...]] = []
    position = max((aspect.position for aspect in stored_rows.values()), default=-1) + 1
    for row in dataset.aspects if dataset else []:
        old = stored_rows.get(row.name)
        act = _match_aspect(check, row, old, scales, staging.name(dataset_file))
        id, place = (None, position) if old is None else (old.pk, old.position)
        rows.append((dataset_file, act, id, row.name, row.low, row.high, json.dumps(row.meta), place))
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
                _(
                    "The project has no aspect “%(name)s” (only %(choices)s). Add it to dataset.json.",
                    name=name,
                    choices=", ".join(names),
                )
                + (check.lookalikes.suggest("aspects", name) or check.perhaps("dataset"))
            ),
            "t.aspect",
        )
    check.tick("aspects: checked")


def _match_aspect(
    check: Check, row: AspectRow, old: Aspect | None, scales: dict[int, tuple[float, float]], file: str
) -> str:
    """The action for a declared aspect, given the stored one. `scales` are those that campaigns state."""
    if not row.is_whole:
        return FAULTY
    if old is None:
        return NEW
    scale, meta, stored_meta = (row.low, row.high), json.dumps(row.meta), stored.make_meta(old, scales)
    same_scale = (old.low, old.high) == scale
    # Exports of older versions did not mark scales that a campaign states.
    unmarked = {name: value for name, value in stored_meta.items() if name != STATED}
    if same_scale and (is_same_json(meta, stored_meta) or is_same_json(meta, unmarked)):
        return SAME
    campaign_scale = scales.get(old.pk, scale)
    is_open = old.meta.get(OBSERVED) and (same_scale or not old.meta.get(STATED))
    if not check.replace and not is_open:
        message = explain_other_content(_("The aspect “%(name)s”", name=row.name))
    elif _outside(old, row.low, row.high):
        message = _("Stored ratings of “%(name)s” are outside its new scale. Keep a scale that includes them.")
        message %= {"name": row.name}
    elif campaign_scale != scale:
        message = _("A campaign uses “%(name)s” with the scale %(low)g to %(high)g. Keep this scale.")
        message %= {"name": row.name, "low": campaign_scale[0], "high": campaign_scale[1]}
    else:
        return REPLACE
    check.faults.add(file, None, "aspects", message)
    return FAULTY


def _outside(aspect: Aspect, low: float | None, high: float | None) -> bool:
    rows = Rating.objects.filter(aspect=aspect)
    if low is None or high is None:
        return rows.exists()
    return rows.filter(value__lt=low).exists() or rows.filter(value__gt=high).exists()


def _observe(check: Check, position: int, asked: frozenset[int]) -> None:
    """Infer the range of aspects from ratings. Aspects of campaigns, here or in the exporting installation, keep the
    scale that raters see."""
    staging = check.staging
    observed = staging.execute(
        "SELECT aspect, min(value), max(value) FROM ratings WHERE act <> 'faulty' GROUP BY aspect UNION ALL"
        " SELECT aspect, NULL, NULL FROM comparisons WHERE act <> 'faulty' AND aspect NOT IN"
        f" (SELECT aspect FROM ratings) GROUP BY aspect ORDER BY 1 LIMIT {MAX_ASPECTS + 1}"
    ).fetchall()
    if len(observed) > MAX_ASPECTS:
        check.faults.add(
            "",
            None,
            "aspect",
            _("There are more than %(n)d aspects. Check that this is the right column.", n=MAX_ASPECTS),
        )
        return
    for name, low, high in observed:
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
    """Find the output or dialogue of each judgement."""
    for table, system, step, out in (
        ("ratings", "system", "step", "out"),
        ("comparisons", "a", "step_a", "out"),
        ("comparisons", "b", "step_b", "out_b"),
    ):
        _find_outputs(check, table, system, step, out)
        _report_missing(check, table, system, step, out)
        check.tick(f"{table}: outputs found")
    check.staging.execute(
        "UPDATE ratings SET dia = (SELECT n FROM dialogues d WHERE d.key = ratings.dialogue) WHERE dialogue IS NOT NULL"
    )
    check.fail(
        "comparisons",
        "t.reference IS NOT NULL AND t.reference >= (SELECT coalesce(nrefs, 0) FROM items i WHERE i.key = t.item"
        f" AND i.act <> '{FAULTY}')",
        "system_b",
        lambda n, item: _("The item “%(item)s” has no reference %(n)d (counted from 0).", item=item, n=n),
        "t.reference | t.item",
    )
    check.fail(
        "comparisons",
        "t.out IS NOT NULL AND t.out = t.out_b",
        "system_b",
        _("An output is compared with itself. Name two systems, or two steps of a system."),
    )


def _find_outputs(check: Check, table: str, system: str, step: str, out: str) -> None:
    """Without a step it is the output without step or, if all outputs of the system have one, the only output."""
    match = f"o.item = {table}.item AND o.system = {table}.{system}"
    named = f"{table}.{system} IS NOT NULL AND {table}.item IS NOT NULL"
    check.staging.execute(
        f"UPDATE {table} SET {out} = (SELECT n FROM outputs o WHERE {match} AND o.step = {table}.{step} LIMIT 1)"
        f" WHERE {named}"
    )
    check.staging.execute(
        f"UPDATE {table} SET {out} = (SELECT n FROM outputs o WHERE {match} LIMIT 1) WHERE {named}"
        f" AND {out} IS NULL AND {step} = {NO_STEP} AND (SELECT count(*) FROM outputs o WHERE {match}) = 1"
    )


def _report_missing(check: Check, table: str, system: str, step: str, out: str) -> None:
    missing = f"t.{out} IS NULL AND t.{system} IS NOT NULL AND t.item IS NOT NULL"
    column = "system" if system == "system" else f"system_{system}"
    has_others = f"EXISTS (SELECT 1 FROM outputs o WHERE o.item = t.item AND o.system = t.{system})"
    unknown = (
        f"NOT EXISTS (SELECT 1 FROM systems s WHERE s.key = t.{system} AND (s.act <> '{KNOWN}' OR s.id IS NOT NULL))"
    )
    steps = _("“%(name)s” has outputs of different steps for the item “%(item)s”. Select one with %(column)s.")
    check.fail(
        table,
        f"{missing} AND t.{step} = {NO_STEP} AND {has_others}",
        step,
        lambda name, item: steps % {"name": name, "item": item, "column": step},
        f"t.{system} | t.item",
    )
    check.fail(
        table,
        f"{missing} AND {unknown}",
        column,
        lambda name: (
            _("There is no system “%(name)s”. It has no outputs in this upload or in the project.", name=name)
            + (check.lookalikes.suggest("systems", name) or check.perhaps("outputs", "dialogues", "systems"))
        ),
        f"t.{system}",
    )
    check.fail(
        table,
        missing,
        column,
        lambda name, item, number: describe_missing(name, item, number) + check.perhaps("outputs"),
        f"t.{system} | t.item | t.{step}",
    )


def ratings(check: Check) -> None:
    staging = check.staging
    # A faulty scale cannot be checked against.
    aspect = f"FROM aspects a WHERE a.n = t.asp AND a.act <> '{FAULTY}'"
    check.fail(
        "ratings",
        f"(SELECT a.low IS NULL {aspect})",
        "aspect",
        lambda name: _(
            "The aspect “%(name)s” has no scale (min and max are null): it can only be used in comparisons.", name=name
        ),
        "t.aspect",
    )
    check.fail(
        "ratings",
        f"t.value < (SELECT a.low {aspect}) OR t.value > (SELECT a.high {aspect})",
        "value",
        lambda value, low, high: _(
            "The value %(value)g is outside the scale from %(low)g to %(high)g.", value=value, low=low, high=high
        ),
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
        known = stored.ratings(
            {row[1] for row in batch if row[1]}, {row[2] for row in batch if row[2]}, {row[4] for row in batch}
        )
        _match_judgements(check, "ratings", batch, known, lambda rater: _("The rating by “%(rater)s”", rater=rater))


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
        known = stored.comparisons({row[1] for row in batch}, {row[5] for row in batch})
        _match_judgements(
            check, "comparisons", batch, known, lambda rater: _("The comparison by “%(rater)s”", rater=rater)
        )


def _match_judgements(
    check: Check, table: str, batch: list[tuple], known: dict[tuple, tuple], describe: Callable[[str], str]
) -> None:
    """Compare rows (n, key, value, simulated, meta) with stored ones. `describe` names the judgement of a rater."""
    decisions: list[tuple[str, int | None, int]] = []
    for n, *key, value, simulated, meta in batch:
        old = known.get(tuple(key))
        if old is None:
            continue
        id, old_value, old_simulated, old_meta, judgement = old
        if old_value == value and old_simulated == bool(simulated) and same_text(meta, old_meta):
            decisions.append((SAME, id, n))
        elif not check.replace:
            check.fail_row(table, n, "", explain_other_content(describe(key[-1])))
        elif judgement is not None:
            message = _("%(what)s was given in a campaign of this project, so it cannot be replaced.")
            check.fail_row(table, n, "", message % {"what": describe(key[-1])})
        else:
            decisions.append((REPLACE, id, n))
    check.settle(table, decisions)
    check.tick(f"{table}: compared with those stored")


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
                check.fail_row("corpus", n, "meta", explain_other_content(_("This pair")))
        check.settle("corpus", decisions)
        check.tick("corpus: compared with the stored one")


def _digest(query: str, response: str) -> bytes:
    return hashlib.blake2b(f"{len(query)}:{query}{response}".encode(), digest_size=16).digest()
