"""Database triggers that maintain `Item.judged` for ratings and comparisons, so that it is correct for every writer
(judging, imports, undo) and judging needs no further query.

Deleting ratings or comparisons locks the project's row exclusively (`lock_promotion`); writing them takes a shared
lock until the commit, before the item is read. So neither misses the other, and annotators do not wait for each other.
`ensure_triggers` is called after every migration, because SQLite drops the triggers of a table that it rebuilds."""

from typing import Any

#: The column with the output of the judged item, by table.
WATCHED = {"annotation_rating": "output_id", "annotation_comparison": "output_a_id"}
EVENTS = ("added", "gone")

FILL = """UPDATE annotation_item SET judged = {true} WHERE id IN (
 SELECT o.item_id FROM annotation_rating r JOIN annotation_output o ON o.id = r.output_id
 UNION SELECT o.item_id FROM annotation_comparison c JOIN annotation_output o ON o.id = c.output_a_id)"""
_UNJUDGED = """NOT EXISTS (SELECT 1 FROM annotation_output o JOIN annotation_rating r ON r.output_id = o.id
  WHERE o.item_id = annotation_item.id)
 AND NOT EXISTS (SELECT 1 FROM annotation_output o JOIN annotation_comparison c ON c.output_a_id = o.id
  WHERE o.item_id = annotation_item.id)"""

# Few and many rows are handled separately, so that each has its own query plan. Items are updated one by one: a join
# with rows without statistics could get a very bad plan. `::int` stops the planner from using the indexes of judged and
# unjudged items, which it believes to be empty. An item that is already judged is not locked.
_POSTGRES = (
    """CREATE OR REPLACE FUNCTION {table}_added() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  few bigint[];
  one bigint;
BEGIN
  PERFORM 1 FROM accounts_project WHERE id = ANY (ARRAY(SELECT DISTINCT f.project_id FROM fresh f)) FOR KEY SHARE;
  few := ARRAY(SELECT f.{column} FROM fresh f LIMIT 20);
  IF cardinality(few) < 20 THEN
    UPDATE annotation_item SET judged = true WHERE judged::int = 0
      AND id = ANY (ARRAY(SELECT o.item_id FROM annotation_output o WHERE o.id = ANY (few)));
  ELSE
    FOR one IN SELECT DISTINCT o.item_id FROM fresh f JOIN annotation_output o ON o.id = f.{column} LOOP
      UPDATE annotation_item SET judged = true WHERE id = one AND judged::int = 0;
    END LOOP;
  END IF;
  RETURN NULL;
END $$""",
    """CREATE OR REPLACE FUNCTION {table}_gone() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  one bigint;
BEGIN
  FOR one IN SELECT DISTINCT o.item_id FROM gone g JOIN annotation_output o ON o.id = g.{column} LOOP
    UPDATE annotation_item SET judged = false WHERE id = one AND judged::int = 1 AND {unjudged};
  END LOOP;
  RETURN NULL;
END $$""",
    "CREATE OR REPLACE TRIGGER {table}_added AFTER INSERT ON {table} REFERENCING NEW TABLE AS fresh"
    " FOR EACH STATEMENT EXECUTE FUNCTION {table}_added()",
    "CREATE OR REPLACE TRIGGER {table}_gone AFTER DELETE ON {table} REFERENCING OLD TABLE AS gone"
    " FOR EACH STATEMENT EXECUTE FUNCTION {table}_gone()",
)
_SQLITE = (
    "CREATE TRIGGER IF NOT EXISTS {table}_added AFTER INSERT ON {table} WHEN NEW.{column} IS NOT NULL BEGIN"
    " UPDATE annotation_item SET judged = 1 WHERE NOT judged"
    " AND id = (SELECT item_id FROM annotation_output WHERE id = NEW.{column}); END",
    "CREATE TRIGGER IF NOT EXISTS {table}_gone AFTER DELETE ON {table} WHEN OLD.{column} IS NOT NULL BEGIN"
    " UPDATE annotation_item SET judged = 0 WHERE judged"
    " AND id = (SELECT item_id FROM annotation_output WHERE id = OLD.{column}) AND {unjudged}; END",
)


def fill(connection: Any) -> None:
    """Set `judged` from the existing rows; for the migration that adds the column."""
    with connection.cursor() as cursor:
        cursor.execute(FILL.format(true="true" if connection.vendor == "postgresql" else "1"))


def ensure_triggers(connection: Any) -> None:
    """Create the triggers if one is missing."""
    with connection.cursor() as cursor:
        if stand(connection):
            return
        for table, column in WATCHED.items():
            for statement in _POSTGRES if connection.vendor == "postgresql" else _SQLITE:
                cursor.execute(statement.format(table=table, column=column, unjudged=_UNJUDGED))


def stand(connection: Any) -> bool:
    """Whether all triggers exist."""
    wanted = {f"{table}_{event}" for table in WATCHED for event in EVENTS}
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            tables = ", ".join(f"to_regclass('{table}')" for table in WATCHED)
            cursor.execute(f"SELECT tgname FROM pg_trigger WHERE NOT tgisinternal AND tgrelid IN ({tables})")
        else:
            cursor.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")
        return wanted <= {name for (name,) in cursor.fetchall()}


def drop_triggers(connection: Any) -> None:
    with connection.cursor() as cursor:
        for table in WATCHED:
            for event in EVENTS:
                if connection.vendor == "postgresql":
                    cursor.execute(f"DROP TRIGGER IF EXISTS {table}_{event} ON {table}")
                    cursor.execute(f"DROP FUNCTION IF EXISTS {table}_{event}()")
                else:
                    cursor.execute(f"DROP TRIGGER IF EXISTS {table}_{event}")


def after_migrate(*, using: str, **_: Any) -> None:
    from django.db import connections

    connection = connections[using]
    with connection.cursor() as cursor:
        columns = {column.name for column in connection.introspection.get_table_description(cursor, "annotation_item")}
    if "judged" in columns:  # not after migrating backwards
        ensure_triggers(connection)
