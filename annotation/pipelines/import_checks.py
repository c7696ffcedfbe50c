"""Checks of an import that involve several rows: duplicate keys, missing references, values out of range, and stored
rows. They only read the main database and write the staging file."""

import json

from annotation.models import Item, Output, System, Unit, WritingCampaign, WritingUnit
from annotation.models.data import ORIGINAL
from annotation.parsers.fields import NO_STEP
from annotation.selectors import stored
from evalapp.translation import gettext as _

from .import_faults import Check, explain_other_content, is_same_json, report_twice, same_text
from .import_staging import FAULTY, KNOWN, MENTIONED, NEW, REPLACE, SAME

_KEYS = {
    "systems": ("key",),
    "items": ("key",),
    "dialogues": ("key",),
    "outputs": ("item", "system", "step"),
}


def duplicates(check: Check) -> None:
    """Duplicate keys in the upload: the first row counts, later ones are faulty."""
    for table, key in _KEYS.items():
        columns = ", ".join(key)
        check.staging.execute(f"CREATE INDEX {table}_key ON {table} ({columns})")
        report_twice(check, table, key, "1")
        check.tick(f"{table}: keys")


def systems(check: Check, kinds: dict[str, str]) -> None:
    """Compare declared systems with stored ones; add systems that outputs and dialogues name; set kinds given as
    options."""
    staging = check.staging
    staging.execute("ALTER TABLE systems ADD COLUMN declared INTEGER DEFAULT 1")
    mentions = " UNION ".join(
        f"SELECT {column} AS s FROM {table} WHERE {column} IS NOT NULL"
        for table, column in (
            ("outputs", "system"), ("dialogues", "system"), ("ratings", "system"), ("comparisons", "a"),
            ("comparisons", "b"), ("scores", "system"),
        )
    )  # fmt: skip
    staging.execute(
        f"INSERT INTO systems (act, key, kind, meta, declared) SELECT '{KNOWN}', s, 'machine', '{{}}', 0"
        f" FROM ({mentions}) WHERE s NOT IN (SELECT key FROM systems)"
    )
    staging.many(
        f"INSERT INTO systems (act, key, kind, meta, declared) SELECT '{KNOWN}', ?1, 'machine', '{{}}', 0"
        " WHERE NOT EXISTS (SELECT 1 FROM systems WHERE key = ?1)",
        [(name,) for name in kinds],
    )
    forced = set(kinds)
    staging.many("UPDATE systems SET kind = ?, declared = 1 WHERE key = ?", [(k, n) for n, k in kinds.items()])
    if System.objects.filter(project=check.project).exists():
        for batch in staging.batches("SELECT n, key, kind, meta, act, file FROM systems WHERE n > ? ORDER BY n"):
            _match_systems(check, batch, forced)
    # A system without a declaration is created as a machine.
    staging.execute(
        f"UPDATE systems SET act = '{MENTIONED}' WHERE act = '{KNOWN}' AND id IS NULL AND (key IN"
        " (SELECT system FROM outputs) OR key IN (SELECT system FROM dialogues WHERE system IS NOT NULL))"
    )
    for (name,) in staging.execute(
        f"SELECT key FROM systems WHERE act = '{KNOWN}' AND id IS NULL AND declared = 1 AND file IS NULL"
    ).fetchall():
        check.faults.add(
            "",
            None,
            "system_kind",
            _("The system “%(name)s” has no outputs or dialogues, so its kind cannot be set.", name=name),
        )


def _match_systems(check: Check, batch: list[tuple], forced: set[str]) -> None:
    known = stored.systems(check.project, [row[1] for row in batch])
    decisions: list[tuple[str, int | None, int]] = []
    for n, key, kind, meta, act, file in batch:
        old = known.get(key)
        if old is None or act == FAULTY:
            continue
        same = old.kind == kind and (file is None or is_same_json(meta, old.meta)) and old.declared
        if file is None:
            decisions.append((KNOWN if key not in forced or same else REPLACE, old.id, n))
        elif same:
            decisions.append((SAME, old.id, n))
        elif check.replace or not old.declared or (key in forced and is_same_json(meta, old.meta)):
            decisions.append((REPLACE, old.id, n))
        else:
            check.fail_row("systems", n, "kind", explain_other_content(_("The system “%(key)s”", key=key)))
    check.settle("systems", decisions)


def items(check: Check) -> None:
    staging = check.staging
    naming = ("ratings", "comparisons", '"references"', "attempts", "scores")
    mentions = " UNION ".join(f"SELECT item FROM {table} WHERE item IS NOT NULL" for table in naming)
    for source in ("SELECT DISTINCT item FROM outputs", mentions):
        staging.execute(
            f"INSERT INTO items (act, key) SELECT '{KNOWN}', item FROM ({source}) AS m"
            " WHERE NOT EXISTS (SELECT 1 FROM items i WHERE i.key = m.item)"
        )
    if Item.objects.filter(project=check.project).exists():
        done = 0
        known = f"SELECT n, key FROM items WHERE n > ? AND act = '{KNOWN}' ORDER BY n"
        for batch in staging.batches(known):
            ids = stored.item_ids(check.project, [key for _, key in batch])
            staging.many("UPDATE items SET id = ? WHERE n = ?", [(ids[key], n) for n, key in batch if key in ids])
        staged = f"SELECT n, key, context, source, grp, meta, refs FROM items WHERE n > ? AND act = '{NEW}' ORDER BY n"
        for batch in staging.batches(staged):
            _match_items(check, batch)
            done += len(batch)
            check.tick("items: compared with those stored")
        if staging.has("comparisons", "reference IS NOT NULL"):
            for batch in staging.batches(known.replace("key", "id")):
                counts = stored.count_references([id for _, id in batch if id])
                staging.many("UPDATE items SET nrefs = ? WHERE n = ?", [(counts.get(id, 0), n) for n, id in batch])
    for table in ("outputs", *naming):
        check.fail(
            table,
            f"t.item IN (SELECT key FROM items WHERE act = '{KNOWN}' AND id IS NULL)",
            "item",
            lambda key: (
                _("There is no item “%(key)s”, neither in this upload nor stored.", key=key)
                + (check.lookalikes.suggest("items", key) or check.perhaps("items"))
            ),
            "t.item",
        )
    check.tick("items: checked")


def _match_items(check: Check, batch: list[tuple]) -> None:
    known = stored.items(check.project, [row[1] for row in batch])
    references = stored.read_original_references([old.id for old in known.values()])
    decisions: list[tuple[str, int | None, int]] = []
    changed: list[tuple[int, str, int, bool, bool]] = []
    for n, key, context, source, group, meta, refs in batch:
        old = known.get(key)
        if old is None:
            continue
        same_text = json.loads(context) == old.context and source == old.source
        same_references = json.loads(refs) == references.get(old.id, [])
        if same_text and same_references and group == old.group and is_same_json(meta, old.meta):
            decisions.append((SAME, old.id, n))
        elif not check.replace:
            check.fail_row("items", n, "id", explain_other_content(_("The item “%(key)s”", key=key)))
        else:
            changed.append((n, key, old.id, same_text, same_references))
    if changed:
        ids = [row[2] for row in changed]
        judged = stored.find_judged_items(ids)
        in_campaigns = set(Unit.objects.filter(item_id__in=ids).values_list("item_id", flat=True))
        compared = stored.find_compared_items(ids) | in_campaigns
        written, against = _written_for(ids)
        for n, key, id, same_text, same_references in changed:
            if (not same_text and id in written) or (not same_references and id in against):
                check.fail_row(
                    "items",
                    n,
                    "id",
                    _("A writing campaign uses the item “%(key)s”, so it cannot be replaced.", key=key),
                )
            elif (not same_text and id in judged | in_campaigns) or (not same_references and id in compared):
                check.fail_row(
                    "items",
                    n,
                    "id",
                    _("Outputs of the item “%(key)s” have been judged, so it cannot be replaced.", key=key),
                )
            else:
                decisions.append((REPLACE, id, n))
    check.settle("items", decisions)


def _written_for(ids: list[int]) -> tuple[set[int], set[int]]:
    """Items of writing campaigns with an original. Under a constraint the original is read for every text, while other
    campaigns start with a copy."""
    units = WritingUnit.objects.filter(item_id__in=ids)
    against = units.filter(campaign__kind=WritingCampaign.Kind.CONSTRAINT, campaign__start_set__name=ORIGINAL)
    return set(units.values_list("item_id", flat=True)), set(against.values_list("item_id", flat=True))


def outputs(check: Check) -> None:
    staging = check.staging
    if not Output.objects.filter(project=check.project).exists():
        return
    sql = (
        "SELECT o.n, i.id, s.id, o.step, o.text, o.meta, o.item, o.system FROM outputs o JOIN items i ON i.key = o.item"
        " JOIN systems s ON s.key = o.system WHERE o.n > ? AND o.act = 'new' AND i.id IS NOT NULL AND s.id IS NOT NULL"
        " ORDER BY o.n"
    )
    for batch in staging.batches(sql):
        _match_outputs(check, batch)
        check.tick("outputs: compared with those stored")
    _known_outputs(check)


def _match_outputs(check: Check, batch: list[tuple]) -> None:
    wanted = {(row[1], row[2], row[3]): row for row in batch}
    decisions: list[tuple[str, int | None, int]] = []
    changed: list[tuple[int, int, str, str]] = []
    for id, item, system, step, text, meta in stored.outputs({r[1] for r in batch}, {r[2] for r in batch}):
        row = wanted.get((item, system, NO_STEP if step is None else step))
        if row is None:
            continue
        if row[4] == text and same_text(row[5], meta):
            decisions.append((SAME, id, row[0]))
        elif check.replace:
            changed.append((id, row[0], row[6], row[7]))
        else:
            what = _("The output of “%(system)s” for the item “%(item)s”", system=row[7], item=row[6])
            check.fail_row("outputs", row[0], "text", explain_other_content(what))
    if changed:
        ids = [id for id, *_ in changed]
        judged = stored.judged(ids)
        for column in ("output_a_id", "output_b_id"):
            judged |= set(Unit.objects.filter(**{f"{column}__in": ids}).values_list(column, flat=True))
        for id, n, item, system in changed:
            if id in judged:
                message = _(
                    "The output of “%(system)s” for the item “%(item)s” has been judged, so it cannot be replaced.",
                    system=system,
                    item=item,
                )
                check.fail_row("outputs", n, "text", message)
            else:
                decisions.append((REPLACE, id, n))
    check.settle("outputs", decisions)


def _known_outputs(check: Check) -> None:
    """Stored outputs that ratings and comparisons of this upload refer to."""
    staging = check.staging
    mentions = " UNION ".join(
        f"SELECT item, {column} AS system FROM {table} WHERE {column} IS NOT NULL AND item IS NOT NULL"
        for table, column in (("ratings", "system"), ("comparisons", "a"), ("comparisons", "b"), ("scores", "system"))
    )
    staging.execute("DROP TABLE IF EXISTS temp.asked")
    staging.execute(
        "CREATE TEMP TABLE asked AS SELECT i.id AS item_id, s.id AS system_id, m.item, m.system"
        f" FROM ({mentions}) m JOIN items i ON i.key = m.item JOIN systems s ON s.key = m.system"
        " WHERE i.id IS NOT NULL AND s.id IS NOT NULL"
    )
    for batch in staging.batches(
        "SELECT rowid, item_id, system_id, item, system FROM asked WHERE rowid > ? ORDER BY rowid"
    ):
        wanted = {(row[1], row[2]): row[3:] for row in batch}
        outputs_read = stored.read_output_keys({row[1] for row in batch}, {row[2] for row in batch})
        staging.many(
            f"INSERT INTO outputs (act, id, item, system, step) SELECT '{KNOWN}', ?1, ?2, ?3, ?4 WHERE NOT EXISTS"
            " (SELECT 1 FROM outputs WHERE item = ?2 AND system = ?3 AND step = ?4)",
            [
                (id, *wanted[item, system], NO_STEP if step is None else step)
                for id, item, system, step in outputs_read
                if (item, system) in wanted
            ],
        )
        check.tick("outputs: found those that are judged")


def dialogues(check: Check) -> None:
    staging = check.staging
    staging.execute(
        f"INSERT INTO dialogues (act, key) SELECT '{KNOWN}', dialogue FROM (SELECT DISTINCT dialogue FROM ratings"
        " WHERE dialogue IS NOT NULL) AS m WHERE NOT EXISTS (SELECT 1 FROM dialogues d WHERE d.key = m.dialogue)"
    )
    if check.project.dialogues.exists():
        sql = "SELECT n, key, system, turns, speakers, meta, act FROM dialogues WHERE n > ? ORDER BY n"
        for batch in staging.batches(sql):
            _match_dialogues(check, batch)
            check.tick("dialogues: compared with those stored")
    check.fail(
        "ratings",
        f"t.dialogue IN (SELECT key FROM dialogues WHERE act = '{KNOWN}' AND id IS NULL)",
        "dialogue",
        lambda key: (
            _("There is no dialogue “%(key)s”, neither in this upload nor stored.", key=key)
            + (check.lookalikes.suggest("dialogues", key) or check.perhaps("dialogues"))
        ),
        "t.dialogue",
    )


def _match_dialogues(check: Check, batch: list[tuple]) -> None:
    known = stored.dialogues(check.project, [row[1] for row in batch])
    judged: set[int] = set()
    if check.replace:
        ids = [old.id for old in known.values()]
        judged = set(check.project.ratings.filter(dialogue_id__in=ids).values_list("dialogue_id", flat=True).distinct())
    decisions: list[tuple[str, int | None, int]] = []
    for n, key, system, turns, speakers, meta, act in batch:
        old = known.get(key)
        if old is None or act == FAULTY:
            continue
        if act == KNOWN:
            decisions.append((KNOWN, old.id, n))
            continue
        same = json.loads(turns) == old.turns and is_same_json(speakers, old.speakers) and system == old.system
        if same and is_same_json(meta, old.meta):
            decisions.append((SAME, old.id, n))
        elif not check.replace:
            check.fail_row("dialogues", n, "id", explain_other_content(_("The dialogue “%(key)s”", key=key)))
        elif old.id in judged:
            check.fail_row(
                "dialogues", n, "id", _("The dialogue “%(key)s” has been judged, so it cannot be replaced.", key=key)
            )
        else:
            decisions.append((REPLACE, old.id, n))
    check.settle("dialogues", decisions)
