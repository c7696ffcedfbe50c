"""Stores a checked import: one transaction that copies every staged row into the project's tables, saves what it
replaces, and marks the upload as done."""

import json
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any

from django.db import transaction
from django.db.models import Max, Model
from django.utils import timezone

from annotation.models import (
    Aspect,
    Comparison,
    CorpusPair,
    Dialogue,
    Item,
    Output,
    Rating,
    Reference,
    ReferenceSet,
    System,
    Upload,
    UploadChange,
)
from annotation.models.data import ORIGINAL
from annotation.parsers.fields import NO_STEP
from annotation.parsers.kinds import DatasetRow
from annotation.services.bulk import insert_rows, reserve_ids, split_by_size, update_rows
from annotation.services.texts import MANY, forget_texts, prepare_search_later
from evalapp.accounts.models import Project
from evalapp.names import natural_key

from . import import_results, import_written
from .import_staging import MENTIONED, NEW, REPLACE, Staging

_BATCH = 5000


class Promotion:
    """Call `run` inside a transaction. `tick(rows)` gets the number of stored rows."""

    def __init__(
        self,
        upload: Upload,
        staging: Staging,
        dataset: DatasetRow | None,
        tick: Callable[[int], None],
        documents: Mapping[str, Any] | None = None,
    ) -> None:
        self.documents = documents or {}
        self.upload = upload
        self.project = upload.project
        self.staging = staging
        self.dataset = dataset
        self.tick = tick
        self.done = 0

    def run(self) -> None:
        self._systems()
        self._aspects()
        self._items()
        self._dialogues()
        self._outputs()
        self._ratings()
        self._comparisons()
        self._corpus()
        import_written.store(self)
        import_results.store(self)
        self._forget_texts()
        if self.dataset is not None:
            self._describe(self.dataset)

    # ---- helpers --------------------------------------------------------------------------------------------

    def _counted(self, rows: Iterator[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
        for row in rows:
            self.done += 1
            if self.done % 1000 == 0:
                self.tick(self.done)
            yield row

    def _give_ids(self, table: str, model: type[Model]) -> None:
        """Reserve primary keys for all new rows and write them to the staging file, before rows are inserted."""
        sql = f"SELECT n FROM {table} WHERE n > ? AND act IN ('{NEW}', '{MENTIONED}') ORDER BY n"
        for batch in self.staging.batches(sql, _BATCH):
            ids = reserve_ids(model, len(batch))
            self.staging.many(
                f"UPDATE {table} SET id = ? WHERE n = ?", list(zip(ids, (n for (n,) in batch), strict=True))
            )

    def _insert(self, model: type[Model], columns: str, sql: str) -> None:
        insert_rows(model, columns.split(), self._counted(self.staging.stream(sql)))

    def _insert_in_order(self, model: type[Model], columns: str, sql: str) -> None:
        """Like `_insert`, with `order_key`; `sql` selects the name that it is made from first."""
        rows = ((natural_key(row[0]), *row) for row in self._counted(self.staging.stream(sql)))
        insert_rows(model, ["order_key", *columns.split()], rows)

    def _replace(self, table: str, model: type[Model], columns: str, sql: str) -> list[int]:
        """Overwrite rows; `sql` selects the values in the order of `columns`, then the primary key. The previous
        content is saved as `UploadChange`."""
        names = columns.split()
        fields = [model._meta.get_field(name).attname for name in names]
        changed: list[int] = []
        for batch in split_by_size(self.staging.stream(sql), 500):
            ids = [row[-1] for row in batch]
            before = {row.pop("id"): row for row in model.objects.filter(pk__in=ids).values("id", *fields)}  # type: ignore[attr-defined]
            UploadChange.objects.bulk_create(
                UploadChange(upload=self.upload, table=table, row=id, before=before[id]) for id in ids
            )
            columns_in_table = [model._meta.get_field(name).column for name in names]
            update_rows(model, columns_in_table, batch)
            changed += ids
            self.done += len(batch)
            self.tick(self.done)
        return changed

    # ---- tables ---------------------------------------------------------------------------------------------

    def _systems(self) -> None:
        self._give_ids("systems", System)
        where = f"act = '{NEW}' OR act = '{MENTIONED}'"
        self._insert_in_order(
            System,
            "name id project_id kind meta declared upload_id",
            f"SELECT key, id, {self.project.pk}, kind, meta, declared, {self.upload.pk} FROM systems WHERE {where}",
        )
        self._replace(
            "systems",
            System,
            "kind meta declared",
            f"SELECT kind, meta, 1, id FROM systems WHERE act = '{REPLACE}' AND file IS NOT NULL",
        )
        self._replace(
            "systems",
            System,
            "kind declared",
            f"SELECT kind, 1, id FROM systems WHERE act = '{REPLACE}' AND file IS NULL",
        )

    def _aspects(self) -> None:
        self._give_ids("aspects", Aspect)
        self._insert(
            Aspect,
            "id project_id name low high position meta upload_id",
            f"SELECT id, {self.project.pk}, key, low, high, position, meta, {self.upload.pk} FROM aspects"
            f" WHERE act IN ('{NEW}', '{MENTIONED}') ORDER BY n",
        )
        self._replace(
            "aspects", Aspect, "low high meta", f"SELECT low, high, meta, id FROM aspects WHERE act = '{REPLACE}'"
        )

    def _items(self) -> None:
        staging = self.staging
        self._give_ids("items", Item)
        self._insert_in_order(
            Item,
            "key id project_id context source group meta upload_id",
            f"SELECT key, id, {self.project.pk}, context, source, grp, meta, {self.upload.pk} FROM items"
            f" WHERE act = '{NEW}' ORDER BY n",
        )
        if not staging.has("items", "file IS NOT NULL"):
            return
        original, _ = ReferenceSet.objects.get_or_create(project=self.project, name=ORIGINAL)
        insert_rows(
            Reference,
            ["set_id", "item_id", "position", "text", "meta"],
            self._references(original.pk, f"SELECT id, refs FROM items WHERE act = '{NEW}' AND nrefs > 0 ORDER BY n"),
        )
        if staging.has("items", f"act = '{REPLACE}'"):
            self._replace_references(original)
            self._replace(
                "items",
                Item,
                "context source group meta",
                f"SELECT context, source, grp, meta, id FROM items WHERE act = '{REPLACE}' ORDER BY n",
            )

    def _references(self, set_id: int, sql: str) -> Iterator[tuple[Any, ...]]:
        for item, texts in self.staging.stream(sql):
            for position, text in enumerate(json.loads(texts)):
                yield set_id, item, position, text, "{}"

    def _replace_references(self, original: ReferenceSet) -> None:
        sql = f"SELECT n, id, refs FROM items WHERE n > ? AND act = '{REPLACE}' ORDER BY n"
        for batch in self.staging.batches(sql, 500):
            old: dict[int, list[str]] = {id: [] for _, id, _ in batch}
            stored = Reference.objects.filter(set=original, item_id__in=old).order_by("item_id", "position")
            for item, text in stored.values_list("item_id", "text"):
                old[item].append(text)
            changed = {id: json.loads(refs) for _, id, refs in batch if json.loads(refs) != old[id]}
            UploadChange.objects.bulk_create(
                UploadChange(upload=self.upload, table="references", row=id, before={"texts": old[id]})
                for id in changed
            )
            Reference.objects.filter(set=original, item_id__in=changed).delete()
            Reference.objects.bulk_create(
                Reference(set=original, item_id=item, position=position, text=text)
                for item, texts in changed.items()
                for position, text in enumerate(texts)
            )

    def _dialogues(self) -> None:
        self._give_ids("dialogues", Dialogue)
        join = "FROM dialogues d LEFT JOIN systems s ON s.key = d.system"
        self._insert_in_order(
            Dialogue,
            "key id project_id turns speakers system_id meta upload_id",
            f"SELECT d.key, d.id, {self.project.pk}, d.turns, d.speakers, s.id, d.meta, {self.upload.pk} {join}"
            f" WHERE d.act = '{NEW}' ORDER BY d.n",
        )
        self._replace(
            "dialogues",
            Dialogue,
            "turns speakers system meta",
            f"SELECT d.turns, d.speakers, s.id, d.meta, d.id {join} WHERE d.act = '{REPLACE}' ORDER BY d.n",
        )

    def _outputs(self) -> None:
        step = f"nullif(o.step, {NO_STEP})"
        judged = any(self.staging.has(table) for table in ("ratings", "comparisons", "scores"))
        if judged:
            self._give_ids("outputs", Output)
        columns = f"{self.project.pk}, i.id, s.id, {step}, o.text, o.meta, {self.upload.pk}"
        join = "FROM outputs o JOIN items i ON i.key = o.item JOIN systems s ON s.key = o.system"
        self._insert(
            Output,
            ("id " if judged else "") + "project_id item_id system_id step text meta upload_id",
            f"SELECT {'o.id, ' if judged else ''}{columns} {join} WHERE o.act = '{NEW}' ORDER BY o.n",
        )
        self._replace(
            "outputs", Output, "text meta", f"SELECT text, meta, id FROM outputs WHERE act = '{REPLACE}' ORDER BY n"
        )

    def _ratings(self) -> None:
        self._insert(
            Rating,
            "project_id output_id dialogue_id aspect_id rater value simulated meta upload_id",
            f"SELECT {self.project.pk}, o.id, d.id, a.id, r.rater, r.value, r.simulated, r.meta, {self.upload.pk}"
            " FROM ratings r LEFT JOIN outputs o ON o.n = r.out LEFT JOIN dialogues d ON d.n = r.dia"
            f" JOIN aspects a ON a.n = r.asp WHERE r.act = '{NEW}' ORDER BY r.n",
        )
        self._replace(
            "ratings",
            Rating,
            "value simulated meta",
            f"SELECT value, simulated, meta, id FROM ratings WHERE act = '{REPLACE}' ORDER BY n",
        )

    def _comparisons(self) -> None:
        self._insert(
            Comparison,
            "project_id output_a_id output_b_id reference aspect_id rater verdict simulated meta upload_id",
            f"SELECT {self.project.pk}, o.id, p.id, c.reference, a.id, c.rater, c.verdict, c.simulated, c.meta,"
            f" {self.upload.pk} FROM comparisons c JOIN outputs o ON o.n = c.out LEFT JOIN outputs p ON p.n = c.out_b"
            f" JOIN aspects a ON a.n = c.asp WHERE c.act = '{NEW}' ORDER BY c.n",
        )
        self._replace(
            "comparisons",
            Comparison,
            "verdict simulated meta",
            f"SELECT verdict, simulated, meta, id FROM comparisons WHERE act = '{REPLACE}' ORDER BY n",
        )

    def _corpus(self) -> None:
        last = CorpusPair.objects.filter(project=self.project).aggregate(last=Max("position"))["last"]
        first = 0 if last is None else last + 1
        self._insert(
            CorpusPair,
            "project_id position query response meta upload_id",
            f"SELECT {self.project.pk}, {first} - 1 + row_number() OVER (ORDER BY n), query, response, meta,"
            f" {self.upload.pk} FROM corpus WHERE act = '{NEW}' ORDER BY n",
        )
        self._replace("corpus", CorpusPair, "meta", f"SELECT meta, id FROM corpus WHERE act = '{REPLACE}' ORDER BY n")

    def _forget_texts(self) -> None:
        """Outputs name their items, so every item whose texts may have changed is staged with its key."""
        changed = f"act IN ('{NEW}', '{REPLACE}')"
        if not self.staging.has("items", changed) and not self.staging.has("outputs", changed):
            return
        keys = [key for (key,) in islice(self.staging.stream("SELECT key FROM items WHERE id IS NOT NULL"), MANY + 1)]
        forget_texts(project=self.project, keys=keys if len(keys) <= MANY else None)
        prepare_search_later(project=self.project)

    def _describe(self, dataset: DatasetRow) -> None:
        project = Project.objects.get(pk=self.project.pk)
        before = {name: getattr(project, name) for name in (*dataset.fields, "meta")}
        for name, value in dataset.fields.items():
            setattr(project, name, value)
        project.meta = described(project.meta, dataset)
        after = {name: getattr(project, name) for name in before}
        if after == before:
            return
        UploadChange.objects.create(upload=self.upload, table="project", row=project.pk, before=before)
        project.save(update_fields=list(after))
        self.upload.project = self.project = project


def described(meta: dict[str, Any], dataset: DatasetRow) -> dict[str, Any]:
    """The project's meta after importing `dataset`; other members of the file are stored under `dataset`."""
    return {**meta, "dataset": {**meta.get("dataset", {}), **dataset.meta}}


def promote(
    upload: Upload,
    staging: Staging,
    dataset: DatasetRow | None,
    counts: dict,
    tick: Callable[[int], None],
    documents: Mapping[str, Any] | None = None,
) -> None:
    """Store everything or nothing."""
    with transaction.atomic():
        Promotion(upload, staging, dataset, tick, documents).run()
        changed = Upload.objects.filter(pk=upload.pk, state=Upload.State.CHECKING).update(
            state=Upload.State.DONE, counts=counts, finished_at=timezone.now()
        )
        assert changed == 1, "two processes promoted one upload"
