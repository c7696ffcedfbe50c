"""What the two pages about ream share: the questions, the rated part of a set, cross-fitted models that both may use,
pools of candidates, and a metric against people with chosen references.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from store import Given, Result, Store, arguments, drawn, forget, publish, store_of, work_folder

from evalapp.stats.correlation.meta_evaluation import CorrelationSettings, correlate
from evalapp.stats.resampling.bootstrap import Bootstrap
from scoring.ml import Dataset, Item, Record, cross_fit, load, read_dataset
from scoring.ml.cross_fitted import CrossFitted
from scoring.ml.evaluators.ream.evaluator import Ream
from scoring.ml.training.gold import rated_records
from scoring.ml.training.record import group_of

METRICS = ("bleu-star", "bertscore")
SEEDS = (13, 14, 15, 16, 17)
FOLDS = 5
SIZES = "1,2,3,5,7,10"
#: Fewer sets and epochs than the evaluator's own defaults, so that a training takes minutes; told on the pages.
SETTINGS: dict[str, Any] = {"combinations": 10, "epochs": 20}
#: Candidates of an item: so many of its own references, and at most so many answers to other items.
OWN_CANDIDATES, STRANGERS = 40, 20


@dataclass(frozen=True)
class Question:
    """A set of data, one aspect, the systems left out, and how ratings are made comparable."""

    name: str
    folder: str
    aspect: str
    without: tuple[str, ...] = ()
    ratings: str = "raw"
    remark: str = ""


QUESTIONS = (
    Question("dstc7_dev", "dstc7_dev", "relevance", ("Human",), remark="with the controls Constant and Random"),
    Question(
        "dstc7_dev-machines",
        "dstc7_dev",
        "relevance",
        ("Human", "Constant", "Random"),
        remark="without the controls Constant and Random",
    ),
    Question("e2e", "e2e", "quality", ratings="rank", remark="the rated part; people by mean rank within a task"),
    Question(
        "dailydialog_multiref", "dailydialog_multiref", "overall", ("human",), remark="100 items: intervals, no claim"
    ),
)


def make_page(
    name: str,
    about: str,
    compute: Callable[[Given, Store, Question], None],
    page: Callable[[Given, Store], list[str]],
    more: Mapping[str, Callable[[Given, Store], None]] | None = None,
) -> None:
    """A whole script: compute what is wanted of each question and of the parts in `more`, then write the page from all
    that is there."""
    more = more or {}
    given = arguments(about, seeds=SEEDS, parts=[*(question.name for question in QUESTIONS), *more])
    store = store_of(given, name, "ream")
    if not given.page_only:
        for question in QUESTIONS:
            if given.wants(question.name):
                compute(given, store, question)
        for extra, part in more.items():
            if given.wants(extra):
                part(given, store)
    publish(given, name, page(given, store))


def sections(of_question: Callable[[Question], list[str]]) -> Iterator[str]:
    """The lines of all questions, each under its heading."""
    for question in QUESTIONS:
        yield from ("", f"## {question.folder}, {question.aspect}: {question.remark}", "")
        yield from of_question(question)


def found_of(given: Given, store: Store, question: Question) -> dict[str, list[Result]]:
    """The results of a question by metric, those of all seeds."""
    return {metric: store.of(f"{question.name}/{metric}", given.seeds) for metric in METRICS}


def size_line(question: Question, items: int, outputs: int) -> str:
    without = f"Without {', '.join(question.without)}. " if question.without else ""
    return f"{without}{items} items, {outputs} outputs."


def rated_part(given: Given, question: Question) -> Dataset:
    """Items with references, rated outputs only, without the systems left out."""
    data = drawn(read_dataset(given.data / question.folder), given, quick=24)
    rated = {(r.item, r.system) for r in data.ratings if r.aspect == question.aspect}
    items = tuple(item for item in data.items if any(text.strip() for text in item.references))
    known = {item.id for item in items}
    keys = {key for key in rated if key[0] in known and key[1] not in question.without}
    return replace(
        data,
        items=items,
        outputs=tuple(row for row in data.outputs if (row.item, row.system) in keys),
        ratings=tuple(
            row for row in data.ratings if row.aspect == question.aspect and (row.item, row.system) in keys
        ),
        comparisons=(),
    )  # fmt: skip


def training_folder(given: Given, question: Question, metric: str, seed: int) -> Any:
    """Where the checkpoints of one cross-fitting stand until it is saved."""
    return work_folder(given, "ream", question.name, metric, seed)


def cross_fitted(given: Given, data: Dataset, question: Question, metric: str, seed: int) -> CrossFitted:
    """The models of all folds: those that were saved, or else trained and saved. Both pages read the same ones."""
    checkpoints = training_folder(given, question, metric, seed)
    folder = given.out / "models" / checkpoints.name
    if (folder / "evaluator.json").is_file():
        found = load(folder, verify=False)
    else:
        options: dict[str, Any] = {**SETTINGS, "sizes": SIZES, "metric": metric, "ratings": question.ratings}
        if given.quick:
            options |= {"epochs": 1, "combinations": 2}
        # Vectors of texts depend on neither metric nor seed, and both questions about a set read the same ones.
        shared = work_folder(given, "ream", question.folder, "texts")
        shared.mkdir(parents=True, exist_ok=True)
        checkpoints.mkdir(parents=True, exist_ok=True)
        if not (checkpoints / "shared").exists():
            (checkpoints / "shared").symlink_to(shared, target_is_directory=True)
        found = cross_fit(
            "ream", data, folds=2 if given.quick else FOLDS, seed=seed, aspect=question.aspect, encoder=given.encoder,
            folder=checkpoints, **options,
        )  # fmt: skip
        found.save_pretrained(folder)
        forget(checkpoints)
    assert isinstance(found, CrossFitted)
    return found


def unseen_by(data: Dataset, member: Ream) -> list[Item]:
    return [item for item in data.items if group_of(item.group, item.id) not in member.trained_on]


def part_of(data: Dataset, items: Sequence[Item]) -> Dataset:
    known = {item.id for item in items}
    return replace(
        data,
        items=tuple(items),
        outputs=tuple(row for row in data.outputs if row.item in known),
        ratings=tuple(row for row in data.ratings if row.item in known),
    )


@dataclass(frozen=True)
class Pool:
    """What an item may take its references from: its own, and answers to other items."""

    item: Item
    own: tuple[str, ...]
    strangers: tuple[str, ...]

    @property
    def texts(self) -> list[str]:
        return [*self.own, *self.strangers]


def own_references(item: Item) -> tuple[str, ...]:
    """Each text once, blank ones left out."""
    return tuple(dict.fromkeys(text for text in item.references if text.strip()))


def make_pools(data: Dataset, items: Sequence[Item], rng: np.random.Generator) -> list[Pool]:
    """For each item its own references (at most `OWN_CANDIDATES`) and as many answers to other items (at most
    `STRANGERS`)."""
    every = [(item.id, text) for item in data.items for text in item.references if text.strip()]
    pools = []
    for item in items:
        texts = own_references(item)
        own = [texts[int(place)] for place in rng.permutation(len(texts))[:OWN_CANDIDATES]]
        others: list[str] = []
        for place in rng.permutation(len(every))[: 4 * STRANGERS]:
            other, text = every[int(place)]
            if other != item.id and text not in item.references and len(others) < min(STRANGERS, len(own)):
                others.append(text)
        pools.append(Pool(item, tuple(own), tuple(others)))
    return pools


def with_people(
    data: Dataset, question: Question, metric: str, references: Mapping[str, tuple[str, ...]]
) -> dict[str, Any]:
    """The metric against people with these references: over all outputs, and within items."""
    rated = rated_records(data, question.aspect, question.ratings)  # type: ignore[arg-type]
    keep = [place for place, record in enumerate(rated.records) if references.get(record.item)]
    records: list[Record] = [replace(rated.records[p], references=references[rated.records[p].item]) for p in keep]
    human = rated.means()[keep]
    values = load(metric).evaluate(records).values
    item = np.array([record.item for record in records], dtype=object)
    system = np.array([record.system for record in records], dtype=object)
    cluster = np.array([group_of(record.group, record.item) for record in records], dtype=object)
    pooled = correlate(
        values,
        human,
        item,
        system,
        bootstrap=Bootstrap(cluster=cluster),
        settings=CorrelationSettings(coefficients=("pearson", "kendall")),
    )
    within = correlate(
        values,
        human,
        item,
        system,
        bootstrap=Bootstrap(cluster=cluster),
        settings=CorrelationSettings(grouping="item", coefficients=("pearson",)),
    )
    return {
        "pearson": pooled["pearson"].as_dict(),
        "kendall": pooled["kendall"].as_dict(),
        "within": within["pearson"].as_dict(),
        "n_references": float(np.mean([len(chosen) for chosen in references.values()])),
    }
