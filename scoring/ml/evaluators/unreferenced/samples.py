"""The training set as numbers: every distinct text has a row; contexts, replies and false replies refer to rows.

The false replies of each true reply and the examples of each batch are drawn for every epoch by its own generator. No
torch, no encoder.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from scoring.ml.encodings import Ints, ragged_places
from scoring.ml.evaluators.unreferenced.conversations import Conversation, flatten
from scoring.ml.evaluators.unreferenced.corruption import TRIES, corrupt

Floats32: TypeAlias = npt.NDArray[np.float32]
Tick: TypeAlias = Callable[[int, int], object]
Rng: TypeAlias = Callable[[str], np.random.Generator]
SYNTACTIC = ("word_drop", "word_order", "word_repeat")
#: From another conversation: a true reply, a model's reply, a true reply translated there and back.
SEMANTIC = ("rand_utt", "model_false", "rand_back")
KINDS = {"all": (*SYNTACTIC, *SEMANTIC), "syntax": SYNTACTIC, "semantics": SEMANTIC}
#: Batches are cut from windows of this many batches, sorted by length, to reduce padding.
WINDOW = 32


class TextTable:
    """Distinct texts in order of first appearance; `left` marks texts that are truncated at their beginning."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.left: list[bool] = []
        self._rows: dict[tuple[str, bool], int] = {}

    def __len__(self) -> int:
        return len(self.texts)

    def add(self, text: str, *, left: bool = False) -> int:
        """The row of a text."""
        row = self._rows.setdefault((text, left), len(self.texts))
        if row == len(self.texts):
            self.texts.append(text)
            self.left.append(left)
        return row


@dataclass(frozen=True)
class Pool:
    """Replies to draw from: their rows and the numbers of the groups they come from."""

    rows: Ints
    groups: Ints


@dataclass(frozen=True)
class ContextRows:
    """Contexts of a batch, concatenated: context j owns `lengths[j]` of `rows`. Example i answers the first
    `position[i]` turns of context `owner[i]`."""

    rows: Ints
    lengths: Ints
    owner: Ints
    position: Ints


@dataclass(frozen=True)
class Samples:
    """n true replies. The context of reply i is `context_rows[starts[i] : starts[i] + lengths[i]]`.

    `broken[kind]` (n, variants) and `paraphrase` (n,) are rows, -1 for none. With `shared`, replies of a conversation
    share its beginning, so that a batch may read a conversation once for all.
    """

    context_rows: Ints
    starts: Ints
    lengths: Ints
    conversation: Ints
    group: Ints
    reply: Ints
    broken: Mapping[str, Ints] = field(default_factory=dict)
    pools: Mapping[str, Pool] = field(default_factory=dict)
    paraphrase: Ints | None = None
    shared: bool = True

    def __len__(self) -> int:
        return len(self.reply)

    @property
    def kinds(self) -> tuple[str, ...]:
        """Its kinds of false replies."""
        return (*self.broken, *self.pools)


@dataclass(frozen=True)
class Replies:
    """True and false replies of n examples: `rows` and `weights` (n, replies), `targets` (replies,) 1 = true.

    A reply of weight 0 is none; its row is 0."""

    rows: Ints
    weights: Floats32
    targets: Floats32


@dataclass(frozen=True)
class GeneratedTexts:
    """Texts that models made, by conversation and turn: replies to the context, and true replies in other words;
    `outputs` are (group, text) of machine outputs in the data."""

    generated: Mapping[tuple[int, int], str] = field(default_factory=dict)
    back_translated: Mapping[tuple[int, int], str] = field(default_factory=dict)
    outputs: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True)
class SampleOptions:
    """The kinds of false replies, how many variants of each broken reply, and whether one equal to its original
    counts; `flat` joins each context into one text."""

    kinds: Sequence[str]
    flat: bool = False
    variants: int = 1
    keep_identical: bool = False


def make_samples(
    conversations: Sequence[Conversation],
    table: TextTable,
    options: SampleOptions,
    *,
    rng: Rng,
    made: GeneratedTexts | None = None,
    tick: Tick = lambda done, total: None,
) -> Samples:
    """Return all true replies of the `conversations` with their broken forms; new texts are added to `table`.

    `options` has the kinds, `made` the texts of models. `rng(purpose)` returns a generator. `tick(done, total)` counts
    replies.
    """
    kinds, variants, keep_identical = options.kinds, options.variants, options.keep_identical
    result = _true_replies(conversations, table, options.flat)
    n = len(result.reply)
    broken: dict[str, Ints] = {}
    wanted = [kind for kind in SYNTACTIC if kind in kinds]
    for turn, kind in enumerate(wanted):
        rows = np.full((n, variants), -1, dtype=np.int64)
        generator = rng(kind)
        for place, reply in enumerate(result.reply):
            for variant in range(variants):
                text = corrupt(table.texts[reply], kind, generator, keep_identical=keep_identical)
                rows[place, variant] = -1 if text is None else table.add(text)
            if place % 256 == 0:
                tick(turn * n + place, len(wanted) * n)
        broken[kind] = rows
    made = made or GeneratedTexts()
    place_of = {key: place for place, key in enumerate(_keys(conversations))}
    pools: dict[str, Pool] = {}
    if "rand_utt" in kinds:
        pools["rand_utt"] = Pool(result.reply, result.group)
    for kind, texts in (("model_false", made.generated), ("rand_back", made.back_translated)):
        if kind in kinds and texts:
            places = np.array([place_of[key] for key in texts], dtype=np.int64)
            pools[kind] = Pool(np.array([table.add(text) for text in texts.values()]), result.group[places])
    if "model_false" in kinds and made.outputs:
        pools["model_false"] = _add_outputs(pools.get("model_false"), made.outputs, conversations, table)
    paraphrase = None
    if made.back_translated:
        paraphrase = np.full(n, -1, dtype=np.int64)
        for key, text in made.back_translated.items():
            paraphrase[place_of[key]] = table.add(text)
    return Samples(
        result.context_rows, result.starts, result.lengths, result.conversation, result.group, result.reply,
        broken, pools, paraphrase, result.shared,
    )  # fmt: skip


def _add_outputs(
    pool: Pool | None, outputs: Sequence[tuple[str, str]], conversations: Sequence[Conversation], table: TextTable
) -> Pool:
    """The pool with the machine outputs; groups without a conversation get numbers of their own."""
    numbers: dict[str, int] = {}
    for group in (*(one.group for one in conversations), *(group for group, _text in outputs)):
        numbers.setdefault(group, len(numbers))
    rows = np.array([table.add(text) for _group, text in outputs])
    groups = np.array([numbers[group] for group, _text in outputs])
    if pool is None:
        return Pool(rows, groups)
    return Pool(np.concatenate([pool.rows, rows]), np.concatenate([pool.groups, groups]))


def _keys(conversations: Sequence[Conversation]) -> list[tuple[int, int]]:
    return [(number, turn) for number, one in enumerate(conversations) for turn in range(one.first, len(one.turns))]


def _true_replies(conversations: Sequence[Conversation], table: TextTable, flat: bool) -> Samples:
    context: list[int] = []
    rows: list[tuple[int, int, int, int, int]] = []
    groups: dict[str, int] = {}
    for number, one in enumerate(conversations):
        group = groups.setdefault(one.group, len(groups))
        texts = [table.add(turn) for turn in one.turns] if not flat else []
        begin = len(context)
        context += texts
        for turn in range(one.first, len(one.turns)):
            if flat:
                reply = table.add(one.turns[turn])
                rows.append((len(context), 1, number, group, reply))
                context.append(table.add(flatten(one.turns[:turn]), left=True))
            else:
                rows.append((begin, turn, number, group, texts[turn]))
    columns = np.array(rows, dtype=np.int64).reshape(-1, 5).T
    starts, lengths, conversation, group_rows, reply_rows = (np.ascontiguousarray(column) for column in columns)
    return Samples(
        np.array(context, dtype=np.int64), starts, lengths, conversation, group_rows, reply_rows, shared=not flat
    )


def draw_replies(
    samples: Samples,
    rng: np.random.Generator,
    *,
    positive_weight: float | None = None,
    paraphrased: float = 0.0,
    keep_identical: bool = False,
) -> Replies:
    """Draw a false reply of each kind for every true reply of the `samples`, by `rng`.

    `positive_weight` None gives the true replies of a row together the weight of its false ones. With probability
    `paraphrased`, a back-translation is added as a second true reply. A drawn reply is never from the example's own
    group, and equals its true reply only with `keep_identical`.
    """
    n = len(samples)
    columns: list[Ints] = [samples.reply]
    weights: list[npt.NDArray[Any]] = [np.ones(n)]
    if samples.paraphrase is not None and paraphrased > 0:
        columns.append(samples.paraphrase)
        weights.append((samples.paraphrase >= 0) & (rng.random(n) < paraphrased))
    n_true = len(columns)
    for rows in samples.broken.values():
        chosen = rows[np.arange(n), rng.integers(rows.shape[1], size=n)]
        columns.append(chosen)
        weights.append(chosen >= 0)
    for pool in samples.pools.values():
        drawn, allowed = _draw_from(pool, samples, rng, keep_identical)
        columns.append(drawn)
        weights.append(allowed)
    rows = np.stack(columns, axis=1)
    weight = np.stack([np.asarray(column, dtype=np.float32) for column in weights], axis=1)
    targets = np.zeros(len(columns), dtype=np.float32)
    targets[:n_true] = 1
    if positive_weight is None:
        share = weight[:, n_true:].sum(axis=1) / weight[:, :n_true].sum(axis=1)
        weight[:, :n_true] *= share[:, None]
    else:
        weight[:, :n_true] *= positive_weight
    return Replies(np.maximum(rows, 0), weight, targets)


def _draw_from(
    pool: Pool, samples: Samples, rng: np.random.Generator, keep_identical: bool
) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """A row of the pool for each example and whether it is allowed; rows that are not are redrawn a few times."""
    places = rng.integers(len(pool.rows), size=len(samples))

    def faulty() -> npt.NDArray[np.bool_]:
        same: npt.NDArray[np.bool_] = pool.groups[places] == samples.group
        return same if keep_identical else same | (pool.rows[places] == samples.reply)

    for _ in range(TRIES):
        wrong = np.flatnonzero(faulty())
        if not wrong.size:
            break
        places[wrong] = rng.integers(len(pool.rows), size=wrong.size)
    return pool.rows[places], ~faulty()


def cut_batches(samples: Samples, batch_size: int, rng: np.random.Generator, *, whole: bool, sort: bool) -> list[Ints]:
    """Return the examples of each batch of an epoch of `samples`, about `batch_size` replies each, in an order drawn by
    `rng`.

    `whole` keeps the replies of a conversation together. `sort` puts contexts of similar length together.
    """
    owner = samples.conversation if whole else np.arange(len(samples))
    units, first, counts = np.unique(owner, return_index=True, return_counts=True)
    # Replies of a conversation are adjacent, and the last one has the longest context.
    longest = samples.lengths[first + counts - 1]
    order = rng.permutation(len(units))
    if sort:
        size = max(1, round(WINDOW * batch_size / max(1.0, float(counts.mean()))))
        windows = [order[start : start + size] for start in range(0, len(order), size)]
        order = np.concatenate([window[np.argsort(longest[window], kind="stable")] for window in windows])
    before = np.cumsum(counts[order]) - counts[order]
    cuts = np.flatnonzero(np.diff(before // batch_size)) + 1
    batches = [ragged_places(first[part], counts[part]) for part in np.split(order, cuts)]
    return [batches[place] for place in rng.permutation(len(batches))] if sort else batches


def select_contexts(samples: Samples, examples: Ints) -> ContextRows:
    """Return the contexts of the `examples` of the `samples`; a shared conversation is read once, up to the last turn
    needed."""
    starts, lengths = samples.starts[examples], samples.lengths[examples]
    if not samples.shared:
        rows = samples.context_rows[ragged_places(starts, lengths)]
        return ContextRows(rows, lengths, np.arange(len(examples)), lengths)
    begins, owner = np.unique(starts, return_inverse=True)
    needed = np.zeros(len(begins), dtype=np.int64)
    np.maximum.at(needed, owner, lengths)
    return ContextRows(samples.context_rows[ragged_places(begins, needed)], needed, owner, lengths)
