"""Automatic annotation (Gao et al. 2021) in a worker: for each item read its candidates, let the model that did not see
its group choose, note it in a file; at the end store the whole set at once. An attempt after a lost one goes on with
what the file has and comes to the same set."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.conf import settings

from annotation.models import Item, ReferenceSet
from evalapp.common.errors import BadInput
from evalapp.common.runner import RunContext
from evalapp.names import natural_key

from ..models import Evaluator
from ..selectors.candidates import OUTPUTS, Candidate, Origin, open_source, parse_origin, references_of_items
from ..selectors.inputs import get_reference_set, input_hash
from ..selectors.training import find_trained
from ..services.annotating import (
    PREVIEW_ITEMS,
    AnnotateWishes,
    NewSet,
    make_sure_of_names,
    names_made,
    store_reference_sets,
    wishes_of,
)
from .publishing import members_of
from .score import load_trained

if TYPE_CHECKING:
    from scoring.ml import Item as MLItem
    from scoring.ml.evaluators.ream.annotate import Annotation
    from scoring.ml.evaluators.ream.evaluator import Ream

CHUNK = 50
JUDGED = (
    "The candidates are outputs that are judged themselves: a metric with these references favours the systems they "
    "came from. Do not compare those systems with it."
)


def run(context: RunContext, **params: Any) -> dict[str, Any]:
    """The job `annotate`."""
    from scoring.ml import ScoringError

    wishes = wishes_of(params)
    made = ReferenceSet.objects.filter(project=context.project, name=wishes.into, meta__run=context.run.pk).first()
    folder = Path(settings.ARTEFACTS_DIR) / "work" / str(context.run.pk)
    if made is None:
        make_sure_of_names(context.project, names_made(wishes.into, wishes.controls))
        try:
            work = _Work(context, wishes, folder / "annotated.jsonl")
            work.choose()
            made = _store(work)
        except ScoringError as error:
            raise BadInput(str(error)) from error
    # Also where an earlier attempt was lost between its rows and this line.
    shutil.rmtree(folder, ignore_errors=True)
    url = f"/projects/{context.project.slug}/references/{made.name}/"
    return {
        "references": made.name,
        "sets": names_made(wishes.into, wishes.controls),
        **made.meta["counts"],
        "url": url,
    }


def preview(context: RunContext, **params: Any) -> dict[str, Any]:
    """The job `annotate-preview`: a few items with every step, nothing stored."""
    from scoring.ml import ScoringError

    try:
        work = _Work(context, wishes_of(params), None, most_items=PREVIEW_ITEMS)
        work.choose()
    except ScoringError as error:
        raise BadInput(str(error)) from error
    rows = sorted(work.rows(), key=lambda row: natural_key(row.key))
    return {**work.counts.as_dict(), "notes": work.notes, "items": [row.as_dict() for row in rows]}


@dataclass
class Chosen:
    """What was chosen for one item; a line of the file. `references` are [text, meta]."""

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

    def as_dict(self) -> dict[str, Any]:
        return dict(self.__dict__)

    @property
    def start(self) -> list[tuple[str, dict[str, Any]]]:
        return self.references[: self.n_start]


@dataclass
class Counts:
    """Sums over items, as people are told them."""

    items: int = 0
    n_references: int = 0
    added: int = 0
    looked_at: int = 0
    without_candidates: int = 0
    in_training: int = 0
    before: list[float] = field(default_factory=list)
    after: list[float] = field(default_factory=list)

    def add(self, row: Chosen) -> None:
        self.items += 1
        self.n_references += len(row.references)
        self.added += len(row.references) - row.n_start
        self.looked_at += row.n_candidates
        self.without_candidates += not row.n_candidates
        self.in_training += row.in_training
        if row.before is not None and row.after is not None:
            self.before.append(row.before)
            self.after.append(row.after)

    def as_dict(self) -> dict[str, Any]:
        """Means over items that had a reference at the start."""
        names = ("items", "n_references", "added", "looked_at", "without_candidates", "in_training")
        means = {f"mean_{name}": _mean(getattr(self, name)) for name in ("before", "after")}
        return {**{name: getattr(self, name) for name in names}, **means}


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


class Judge:
    """A trained `ream` that chooses for each item by a model that did not see its group, where there is one."""

    def __init__(self, evaluator: Evaluator) -> None:
        self.slug = evaluator.slug
        found = load_trained(evaluator, {})
        self.signature = found.signature
        self.metric = str(evaluator.options.get("metric", ""))
        self.members: list[Ream] = list(members_of(found))  # type: ignore[arg-type]

    def member_for(self, group: str) -> tuple[Ream, bool]:
        """The first model that did not see the group; the first of all, and True, when each one did."""
        unseen = [member for member in self.members if group not in member.trained_on]
        return (unseen or self.members)[0], not unseen

    def choose(self, item: MLItem, texts: Sequence[str], wishes: AnnotateWishes) -> tuple[Annotation, bool]:
        from scoring.ml.training.record import name_group

        member, seen = self.member_for(name_group(item.group, item.id))
        (found,) = member.annotate(
            [item], [texts], most=wishes.max, min_gain=wishes.min_gain, greedy=wishes.greedy, start=wishes.start,
            seed=wishes.seed,
        )  # fmt: skip
        return found, seen

    def rate(self, item: MLItem, texts: Sequence[str]) -> float:
        """The reliability of these references, by the model that chooses for the item."""
        from scoring.ml import Record
        from scoring.ml.training.record import name_group

        member, _ = self.member_for(name_group(item.group, item.id))
        query = Record("", context=item.context, source=item.source, item=item.id)
        return float(member.reliabilities(query, [list(texts)])[0])


class _Work:
    """One pass over the items; lines go to `file`, or stay in memory without one."""

    def __init__(
        self, context: RunContext, wishes: AnnotateWishes, file: Path | None, most_items: int | None = None
    ) -> None:
        self.context, self.wishes, self.file = context, wishes, file
        context.progress(0, None, "items", "loading")
        self.origin: Origin = parse_origin(wishes.candidates)
        self.references = get_reference_set(context.project, wishes.references)
        slugs = [slug for slug in (wishes.evaluator, wishes.mix) if slug]
        self.judges = [Judge(find_trained(context.project, slug)) for slug in slugs]
        for judge in self.judges:
            context.log(f"{judge.slug}: {judge.signature}")
        self.source = open_source(
            context.project, self.origin, references=self.references, most=wishes.per_item, turns=wishes.turns,
            systems=wishes.systems,
        )  # fmt: skip
        self.keys = self._items(most_items)
        self.counts = Counts()
        self.memory: list[Chosen] = []
        self.kept: dict[int, tuple[int, int]] = {}
        if file is not None:
            file.parent.mkdir(parents=True, exist_ok=True)
            self._read_kept(file)

    @property
    def notes(self) -> list[str]:
        """What people should know of the result, a sentence each."""
        found = [JUDGED] if self.origin.kind == OUTPUTS else []
        counts = self.counts
        if counts.in_training:
            found.append(
                f"{counts.in_training} items are of groups the evaluator learned from: its reliabilities of them are "
                "too good. Train it with folds, and each item is judged by a model that did not see it."
            )
        if counts.without_candidates:
            found.append(f"{counts.without_candidates} items had no candidate and keep what they began with.")
        return found + self.source.notes

    def _items(self, most: int | None) -> list[int]:
        """Numbers of the items that are wanted, in order; a sample is drawn by the seed."""
        rows = Item.objects.filter(project=self.context.project).order_by("pk")
        if self.wishes.items:
            rows = rows.filter(key__in=self.wishes.items)
        found = list(rows.values_list("pk", flat=True))
        for wanted in (self.wishes.sample, most):
            if wanted is not None and wanted < len(found):
                found = sorted(random.Random(f"{self.wishes.seed}:sample").sample(found, wanted))
        return found

    def _read_kept(self, file: Path) -> None:
        """What an earlier attempt had chosen: where each item's line stands; a half line at the end is cut off."""
        if not file.is_file():
            file.touch()
            return
        good = 0
        with file.open("rb") as lines:
            for line in lines:
                if not line.endswith(b"\n"):
                    break
                row = json.loads(line)
                self.kept[row["pk"]] = (row["hash"], good)
                good += len(line)
        with file.open("rb+") as lines:
            lines.truncate(good)
        if self.kept:
            self.context.log(f"{len(self.kept)} items were chosen by an earlier attempt.")

    def choose(self) -> None:
        """Every item that has no line yet, or whose texts changed since."""
        total = len(self.keys)
        self.context.progress(0, total, "items", "choosing")
        for at in range(0, total, CHUNK):
            rows = list(Item.objects.filter(pk__in=self.keys[at : at + CHUNK]).order_by("pk"))
            references = references_of_items(self.references, rows)
            candidates = self.source.of(rows, references)
            for place, row in enumerate(rows, start=1):
                self._choose_one(row, references.get(row.pk, []), candidates.get(row.pk, []))
                self.context.progress(at + place, total, "items", "choosing")
        for chosen in self.rows():
            self.counts.add(chosen)

    def _choose_one(self, row: Item, own: list[str], candidates: list[Candidate]) -> None:
        from scoring.ml import Item as MLItem
        from scoring.ml.evaluators.ream.annotate import mix

        texts = [candidate.text for candidate in candidates]
        digest = input_hash(
            (row.context, row.source, row.group, own, texts, [judge.signature for judge in self.judges])
        )
        if self.kept.get(row.pk, (None,))[0] == digest:
            return
        item = MLItem(row.key, tuple(map(str, row.context)), row.source, tuple(own), row.group)
        made = [judge.choose(item, texts, self.wishes) for judge in self.judges]
        annotations = [annotation for annotation, _ in made]
        whole, after = annotations[0], annotations[0].reliability
        if len(annotations) > 1:
            (whole,) = mix([annotations[0]], [annotations[1]])
            after = self.judges[0].rate(item, whole.references) if whole.references else after
        sources = {candidate.text: candidate.source for candidate in reversed(candidates)}
        chosen = Chosen(
            pk=row.pk, key=row.key, hash=digest,
            references=self._described(whole, annotations, sources),
            random=self._random(row.key, whole, texts),
            n_start=len(whole.start), n_candidates=len(set(texts) - set(whole.start)),
            before=_before(annotations[0]),
            after=after if whole.references else None,
            in_training=any(seen for _, seen in made),
            steps=[
                {
                    "candidate": step.candidate, "before": round(step.before, 6), "after": round(step.after, 6),
                    "accepted": step.accepted, "evaluator": judge.slug, "source": sources.get(step.candidate, {}),
                }
                for judge, annotation in zip(self.judges, annotations, strict=True) for step in annotation.trace
            ],
        )  # fmt: skip
        self._keep(chosen)

    def _described(
        self, whole: Annotation, annotations: Sequence[Annotation], sources: Mapping[str, dict[str, Any]]
    ) -> list[tuple[str, dict[str, Any]]]:
        """Every reference with where it comes from, what it gained, and by whom it was chosen."""
        gains: dict[str, dict[str, Any]] = {}
        for judge, annotation in zip(self.judges, annotations, strict=True):
            for step in annotation.trace:
                if step.accepted:
                    gains.setdefault(
                        step.candidate,
                        {
                            "gain": round(step.after - step.before, 6), "after": round(step.after, 6),
                            "evaluator": judge.slug, "signature": judge.signature,
                        },
                    )  # fmt: skip
        start = {"source": {"kind": "start", "set": self.wishes.references}}
        return [
            (text, start if text in whole.start else {"source": sources.get(text, {}), **gains.get(text, {})})
            for text in whole.references
        ]

    def _random(self, key: str, whole: Annotation, texts: Sequence[str]) -> list[str]:
        """As many candidates as were chosen, drawn by the seed without looking: the control of this item."""
        left = [text for text in dict.fromkeys(texts) if text.strip() and text not in whole.start]
        return random.Random(f"{self.wishes.seed}:random:{key}").sample(left, min(len(whole.added), len(left)))

    def _keep(self, chosen: Chosen) -> None:
        if self.file is None:
            self.memory.append(chosen)
            return
        line = json.dumps(chosen.as_dict(), ensure_ascii=False, separators=(",", ":"), allow_nan=False) + "\n"
        with self.file.open("ab") as lines:
            self.kept[chosen.pk] = (chosen.hash, lines.tell())
            lines.write(line.encode("utf-8", "surrogatepass"))

    def rows(self) -> Iterator[Chosen]:
        """What was chosen, in the order of the items."""
        if self.file is None:
            yield from self.memory
            return
        with self.file.open("rb") as lines:
            for pk in self.keys:
                if pk in self.kept:
                    lines.seek(self.kept[pk][1])
                    yield Chosen(**json.loads(lines.readline()))


def _before(annotation: Annotation) -> float | None:
    """The reliability of the start; of an item that nothing was tried for it is that of the whole."""
    if not annotation.start:
        return None
    return annotation.trace[0].before if annotation.trace else annotation.reliability


def _store(work: _Work) -> ReferenceSet:
    """The set and its controls, all at once."""
    wishes, context = work.wishes, work.context
    total = work.counts.n_references
    stored = 0

    def told(rows: Iterator[Any], tick: int) -> Iterator[Any]:
        nonlocal stored
        for row in rows:
            stored += tick
            if stored % 100 == 0:
                context.progress(min(stored, total), total, "references", "storing")
            yield row

    def references(of: Callable[[Chosen], Sequence[tuple[str, dict[str, Any]]]]) -> Iterator[Any]:
        return (
            (chosen.pk, place, text, meta)
            for chosen in work.rows()
            for place, (text, meta) in enumerate(of(chosen))
        )  # fmt: skip

    meta = _describe(work)
    sets = [
        NewSet(
            wishes.into, meta, told(references(lambda chosen: chosen.references), 1),
            told(((c.pk, c.before, c.after, c.in_training, c.steps) for c in work.rows()), 0),
        )
    ]  # fmt: skip
    if wishes.controls:
        of = {"of": wishes.into, "run": context.run.pk, "references": wishes.references}
        raw, drawn = names_made(wishes.into, True)[1:]
        sets.append(NewSet(raw, {"kind": "raw", **of}, references(lambda chosen: chosen.start)))
        sets.append(
            NewSet(
                drawn, {"kind": "random", **of, "candidates": wishes.candidates, "seed": wishes.seed},
                references(lambda c: [*c.start, *((text, {"source": {"kind": "random"}}) for text in c.random)]),
            )
        )  # fmt: skip
    context.check()
    made = store_reference_sets(project=context.project, actor=context.user, sets=sets)
    for note in work.notes:
        context.log(note)
    return made[0]


def _describe(work: _Work) -> dict[str, Any]:
    """What stands with the set: by whom, from what, how, and how much."""
    wishes = work.wishes
    how = ("references", "start", "max", "min_gain", "greedy", "seed", "per_item", "turns", "sample", "candidates")
    return {
        "kind": "annotate",
        "run": work.context.run.pk,
        "evaluator": wishes.evaluator,
        "mix": wishes.mix,
        "metrics": [judge.metric for judge in work.judges],
        "signatures": [judge.signature for judge in work.judges],
        **{name: getattr(wishes, name) for name in how},
        **({"systems": list(wishes.systems)} if wishes.systems else {}),
        "holds_judged_outputs": work.origin.kind == OUTPUTS,
        "notes": work.notes,
        "counts": work.counts.as_dict(),
    }
