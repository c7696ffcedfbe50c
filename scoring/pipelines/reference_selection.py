"""Automatic selection of references (Gao et al. 2021): for each item, a model that has not seen its group selects among
the candidates. Results are collected in a file and stored as one set at the end. A retried run continues with the file
and arrives at the same set."""

from __future__ import annotations

import json
import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from annotation.models import Item, ReferenceSet
from evalapp.common.runner import RunContext
from evalapp.names import natural_key

from ..models import SELECTED, Evaluator
from ..selectors.candidates import OUTPUTS, Candidate, open_source, parse_origin
from ..selectors.inputs import get_reference_set, input_hash, read_references
from ..selectors.training import find_trained
from ..services.reference_selection import (
    PREVIEW_ITEMS,
    NewSet,
    ReferenceSelection,
    list_set_names,
    require_free_names,
    store_reference_sets,
)
from .publishing import list_members
from .score import load_trained
from .shared import refuse_scoring_errors, work_folder

if TYPE_CHECKING:
    from scoring.ml import Item as MLItem
    from scoring.ml.evaluators.ream.annotate import Annotation
    from scoring.ml.evaluators.ream.evaluator import Ream

CHUNK = 50


def run(context: RunContext, **params: Any) -> dict[str, Any]:
    """The job `select-references`."""
    options = ReferenceSelection(**params)
    names = list_set_names(options.into, options.controls)
    stored = ReferenceSet.objects.filter(project=context.project, name=options.into, meta__run=context.run.pk).first()
    folder = work_folder(context.run)
    if stored is None:
        require_free_names(context.project, names)
        with refuse_scoring_errors():
            selection = Selection(context, options, folder / "selected.jsonl")
            selection.select()
            stored = _store(selection)
    # An earlier attempt may have stored the set, but not reached this line.
    shutil.rmtree(folder, ignore_errors=True)
    url = f"/projects/{context.project.slug}/references/{stored.name}/"
    return {"references": stored.name, "sets": names, **stored.meta["counts"], "url": url}


def preview(context: RunContext, **params: Any) -> dict[str, Any]:
    """The job `preview-references`: a few items with every step; nothing is stored."""
    with refuse_scoring_errors():
        selection = Selection(context, ReferenceSelection(**params), None, max_items=PREVIEW_ITEMS)
        selection.select()
    rows = sorted(selection.rows(), key=lambda row: natural_key(row.key))
    return {**selection.counts, "notes": selection.notes, "items": [vars(row) for row in rows]}


@dataclass
class SelectedItem:
    """The selection for one item; a line of the file. `references` are [text, meta]."""

    pk: int
    key: str
    hash: int
    references: list[tuple[str, dict[str, Any]]]
    random: list[str]
    n_start: int
    n_candidates: int
    before: float | None
    after: float | None
    in_training: bool
    steps: list[dict[str, Any]]

    @property
    def start(self) -> list[tuple[str, dict[str, Any]]]:
        return self.references[: self.n_start]


def count_rows(rows: Iterable[SelectedItem]) -> dict[str, Any]:
    """Return totals over items, and means over the items that had an initial reference."""
    names = ("items", "n_references", "added", "looked_at", "without_candidates", "in_training")
    totals: Counter[str] = Counter(dict.fromkeys(names, 0))
    before: list[float] = []
    after: list[float] = []
    for row in rows:
        n = len(row.references)
        values = (1, n, n - row.n_start, row.n_candidates, int(not row.n_candidates), int(row.in_training))
        totals.update(dict(zip(names, values, strict=True)))
        if row.before is not None and row.after is not None:
            before.append(row.before)
            after.append(row.after)
    means = {"mean_before": before, "mean_after": after}
    return {**totals, **{name: sum(values) / len(values) if values else None for name, values in means.items()}}


class Selector:
    """A trained `ream`. For each item it uses a model that was not trained on the item's group, if there is one."""

    def __init__(self, evaluator: Evaluator) -> None:
        self.slug = evaluator.slug
        loaded = load_trained(evaluator, {})
        self.signature = loaded.signature
        self.metric = str(evaluator.options.get("metric", ""))
        self.members: list[Ream] = list(list_members(loaded))  # type: ignore[arg-type]

    def member_for(self, group: str) -> tuple[Ream, bool]:
        """Return the first model that was not trained on the group; if all were, the first model and True."""
        unseen = [member for member in self.members if group not in member.trained_on]
        return (unseen or self.members)[0], not unseen

    def select(self, item: MLItem, texts: Sequence[str], options: ReferenceSelection) -> tuple[Annotation, bool]:
        """Return the selection for an item, and whether the model was trained on its group."""
        from scoring.ml.training.record import name_group

        member, is_seen = self.member_for(name_group(item.group, item.id))
        (annotation,) = member.annotate(
            [item], [texts], most=options.max, min_gain=options.min_gain, greedy=options.greedy, start=options.start,
            seed=options.seed,
        )  # fmt: skip
        return annotation, is_seen

    def predict_reliability(self, item: MLItem, texts: Sequence[str]) -> float:
        """Return the reliability of the references, by the model that selects for the item."""
        from scoring.ml import Record
        from scoring.ml.training.record import name_group

        member, _seen = self.member_for(name_group(item.group, item.id))
        query = Record("", context=item.context, source=item.source, item=item.id)
        return float(member.reliabilities(query, [list(texts)])[0])


class Selection:
    """One pass over the items. Results are appended to `file`, or stay in memory if it is None."""

    def __init__(
        self, context: RunContext, options: ReferenceSelection, file: Path | None, max_items: int | None = None
    ) -> None:
        self.context, self.options, self.file = context, options, file
        context.progress(0, None, "items", "loading")
        self.origin = parse_origin(options.candidates)
        self.references = get_reference_set(context.project, options.references)
        slugs = [slug for slug in (options.evaluator, options.mix) if slug]
        self.selectors = [Selector(find_trained(context.project, slug)) for slug in slugs]
        for selector in self.selectors:
            context.log(f"{selector.slug}: {selector.signature}")
        self.source = open_source(
            context.project, self.origin, references=self.references, most=options.per_item, turns=options.turns,
            systems=tuple(options.systems),
        )  # fmt: skip
        self.items = self._list_items(max_items)
        self.counts: dict[str, Any] = {}
        self.memory: list[SelectedItem] = []
        #: For each item its hash and the position of its line in the file.
        self.lines: dict[int, tuple[int, int]] = {}
        if file is not None:
            file.parent.mkdir(parents=True, exist_ok=True)
            self._read_lines(file)

    @property
    def notes(self) -> list[str]:
        """Caveats of the result, one sentence each."""
        notes = []
        if self.origin.kind == OUTPUTS:
            text = _(
                "The candidates are outputs that are evaluated themselves: a metric with these references favours "
                "the systems that wrote them. Do not compare those systems with it."
            )
            notes.append(text)
        if n := self.counts["in_training"]:
            text = ngettext(
                "%(n)s item belongs to a group that the evaluator was trained on, so its reliability is too "
                "optimistic. Train it with folds: then each item is handled by a model that has not seen its group.",
                "%(n)s items belong to groups that the evaluator was trained on, so their reliabilities are too "
                "optimistic. Train it with folds: then each item is handled by a model that has not seen its group.",
                n,
            )
            notes.append(text % {"n": f"{n:,}"})
        if n := self.counts["without_candidates"]:
            text = ngettext(
                "%(n)s item had no candidate and has its initial references.",
                "%(n)s items had no candidate and have their initial references.",
                n,
            )
            notes.append(text % {"n": f"{n:,}"})
        return notes + self.source.notes

    def _list_items(self, max_items: int | None) -> list[int]:
        """Return the primary keys of the items to process, in order; samples are drawn by the seed."""
        rows = Item.objects.filter(project=self.context.project).order_by("pk")
        if self.options.items:
            rows = rows.filter(key__in=self.options.items)
        items = list(rows.values_list("pk", flat=True))
        for n in (self.options.sample, max_items):
            if n is not None and n < len(items):
                items = sorted(random.Random(f"{self.options.seed}:sample").sample(items, n))
        return items

    def _read_lines(self, file: Path) -> None:
        """Find the lines of an earlier attempt; an incomplete last line is cut off."""
        if not file.is_file():
            file.touch()
            return
        end = 0
        with file.open("rb") as lines:
            for line in lines:
                if not line.endswith(b"\n"):
                    break
                row = json.loads(line)
                self.lines[row["pk"]] = (row["hash"], end)
                end += len(line)
        with file.open("rb+") as lines:
            lines.truncate(end)
        if self.lines:
            self.context.log(f"{len(self.lines)} items are complete from an earlier attempt.")

    def select(self) -> None:
        """Process every item that has no line yet, or whose texts have changed since."""
        total = len(self.items)
        self.context.progress(0, total, "items", "choosing")
        for at in range(0, total, CHUNK):
            rows = list(Item.objects.filter(pk__in=self.items[at : at + CHUNK]).order_by("pk"))
            references = read_references(self.references, item__in=[row.pk for row in rows])
            candidates = self.source.of(rows, references)
            for place, row in enumerate(rows, start=1):
                self._select_one(row, references.get(row.pk, []), candidates.get(row.pk, []))
                self.context.progress(at + place, total, "items", "choosing")
        self.counts = count_rows(self.rows())

    def _select_one(self, row: Item, references: list[str], candidates: list[Candidate]) -> None:
        from scoring.ml import Item as MLItem
        from scoring.ml.evaluators.ream.annotate import mix

        texts = [candidate.text for candidate in candidates]
        signatures = [selector.signature for selector in self.selectors]
        digest = input_hash((row.context, row.source, row.group, references, texts, signatures))
        if self.lines.get(row.pk, (None,))[0] == digest:
            return
        item = MLItem(row.key, tuple(map(str, row.context)), row.source, tuple(references), row.group)
        results = [selector.select(item, texts, self.options) for selector in self.selectors]
        annotations = [annotation for annotation, _seen in results]
        whole, after = annotations[0], annotations[0].reliability
        if len(annotations) > 1:
            (whole,) = mix([annotations[0]], [annotations[1]])
            if whole.references:
                after = self.selectors[0].predict_reliability(item, whole.references)
        sources = {candidate.text: candidate.source for candidate in reversed(candidates)}
        steps = [
            {
                "candidate": step.candidate, "before": round(step.before, 6), "after": round(step.after, 6),
                "accepted": step.accepted, "evaluator": selector.slug, "source": sources.get(step.candidate, {}),
            }
            for selector, annotation in zip(self.selectors, annotations, strict=True) for step in annotation.trace
        ]  # fmt: skip
        self._append(
            SelectedItem(
                pk=row.pk, key=row.key, hash=digest,
                references=self._describe_references(whole, annotations, sources),
                random=self._draw_control(row.key, whole, texts),
                n_start=len(whole.start), n_candidates=len(set(texts) - set(whole.start)),
                before=_initial_reliability(annotations[0]),
                after=after if whole.references else None,
                in_training=any(is_seen for _annotation, is_seen in results),
                steps=steps,
            )
        )  # fmt: skip

    def _describe_references(
        self, whole: Annotation, annotations: Sequence[Annotation], sources: Mapping[str, dict[str, Any]]
    ) -> list[tuple[str, dict[str, Any]]]:
        """Return each reference with its source, its gain and the evaluator that selected it."""
        gains: dict[str, dict[str, Any]] = {}
        for selector, annotation in zip(self.selectors, annotations, strict=True):
            for step in annotation.trace:
                if step.accepted:
                    gain, after = round(step.after - step.before, 6), round(step.after, 6)
                    by = {"evaluator": selector.slug, "signature": selector.signature}
                    gains.setdefault(step.candidate, {"gain": gain, "after": after, **by})
        start = {"source": {"kind": "start", "set": self.options.references}}
        return [
            (text, start if text in whole.start else {"source": sources.get(text, {}), **gains.get(text, {})})
            for text in whole.references
        ]

    def _draw_control(self, key: str, whole: Annotation, texts: Sequence[str]) -> list[str]:
        """Draw as many candidates as were selected, at random by the seed."""
        left = [text for text in dict.fromkeys(texts) if text.strip() and text not in whole.start]
        return random.Random(f"{self.options.seed}:random:{key}").sample(left, min(len(whole.added), len(left)))

    def _append(self, selected: SelectedItem) -> None:
        if self.file is None:
            self.memory.append(selected)
            return
        line = json.dumps(vars(selected), ensure_ascii=False, separators=(",", ":"), allow_nan=False) + "\n"
        with self.file.open("ab") as lines:
            self.lines[selected.pk] = (selected.hash, lines.tell())
            lines.write(line.encode("utf-8", "surrogatepass"))

    def rows(self) -> Iterator[SelectedItem]:
        """Yield the results in the order of the items."""
        if self.file is None:
            yield from self.memory
            return
        with self.file.open("rb") as lines:
            for pk in self.items:
                if pk in self.lines:
                    lines.seek(self.lines[pk][1])
                    yield SelectedItem(**json.loads(lines.readline()))


def _initial_reliability(annotation: Annotation) -> float | None:
    """Return the reliability of the initial references; without a trial that is the reliability of the whole."""
    if not annotation.start:
        return None
    return annotation.trace[0].before if annotation.trace else annotation.reliability


def _store(selection: Selection) -> ReferenceSet:
    """Store the set and its controls, all or none."""
    options, context = selection.options, selection.context
    total = selection.counts["n_references"]

    def report(rows: Iterator[Any]) -> Iterator[Any]:
        for stored, row in enumerate(rows, start=1):
            if stored % 100 == 0:
                context.progress(min(stored, total), total, "references", "storing")
            yield row

    def list_references(choose: Callable[[SelectedItem], Sequence[tuple[str, dict[str, Any]]]]) -> Iterator[Any]:
        return (
            (row.pk, place, text, meta) for row in selection.rows() for place, (text, meta) in enumerate(choose(row))
        )

    traces = ((row.pk, row.before, row.after, row.in_training, row.steps) for row in selection.rows())
    meta = _describe_set(selection)
    sets = [NewSet(options.into, meta, report(list_references(lambda row: row.references)), traces)]
    if options.controls:
        raw, drawn = list_set_names(options.into, True)[1:]
        facts = {"of": options.into, "run": context.run.pk, "references": options.references}
        more = {"candidates": options.candidates, "seed": options.seed}
        source = {"source": {"kind": "random"}}
        sets += [
            NewSet(raw, {"kind": "raw", **facts}, list_references(lambda row: row.start)),
            NewSet(
                drawn, {"kind": "random", **facts, **more},
                list_references(lambda row: [*row.start, *((text, source) for text in row.random)]),
            ),
        ]  # fmt: skip
    context.check()
    stored = store_reference_sets(project=context.project, actor=context.user, sets=sets)
    for note in selection.notes:
        context.log(note)
    return stored[0]


def _describe_set(selection: Selection) -> dict[str, Any]:
    """Return the meta of the set: evaluators, options, counts and notes."""
    options = selection.options
    names = ("references", "start", "max", "min_gain", "greedy", "seed", "per_item", "turns", "sample", "candidates")
    return {
        "kind": SELECTED,
        "run": selection.context.run.pk,
        "evaluator": options.evaluator,
        "mix": options.mix,
        "metrics": [selector.metric for selector in selection.selectors],
        "signatures": [selector.signature for selector in selection.selectors],
        **{name: getattr(options, name) for name in names},
        **({"systems": list(options.systems)} if options.systems else {}),
        "holds_judged_outputs": selection.origin.kind == OUTPUTS,
        "notes": selection.notes,
        "counts": selection.counts,
    }
