"""Reliabilities during writing: a `ream` (or the models of its folds) with cached sets.

An edit costs one pass of the encoder and one step of the attention, whatever the size of the set.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, cast

import numpy as np
import torch

from scoring.ml.base import Evaluator
from scoring.ml.cross_fitted import CrossFitted
from scoring.ml.errors import ScoringError
from scoring.ml.evaluators.ream.evaluator import Ream
from scoring.ml.evaluators.ream.incremental import GrownSet
from scoring.ml.evaluators.ream.network import ReamNetwork
from scoring.ml.evaluators.ream.vectors import PairEncoder, Vectors
from scoring.ml.training.record import name_group
from scoring.ml.types import Record

#: References in all cached sets, each about 16 bytes times the encoder's width: 60 MB for 384.
NODES_KEPT = 10_000
#: Texts read at a time; the time limit is checked between two batches.
AT_A_TIME = 4
#: Cached ratings of texts per set.
VALUES_KEPT = 1000


class Key(NamedTuple):
    """A set of references of a query, in any order, for one model."""

    context: tuple[str, ...]
    source: str | None
    texts: tuple[str, ...]
    member: int


@dataclass(frozen=True, slots=True)
class ReliabilityUpdate:
    """Reliabilities of a set, of the set with a text being written, and with each candidate; None if there is nothing
    to rate: the empty set, a blank text, or references not all read in time. `left` texts were not read in time; the
    next call continues there. `notes` are for users."""

    now: float | None
    with_text: float | None
    candidates: dict[str, float | None]
    left: int
    notes: tuple[str, ...]


class CachedSet(NamedTuple):
    """A set's state in one model, and its values with one more text."""

    grown: GrownSet
    values: dict[str, float]


class LiveReliability:
    """Rates reference sets, query after query. Raises `ScoringError` for an evaluator that is not a `ream`.

    With a cross-fitted evaluator, models that did not see the item's group rate it (their mean if there are several);
    all models if each one saw it.
    """

    def __init__(self, evaluator: Evaluator, nodes: int = NODES_KEPT) -> None:
        result = evaluator.members if isinstance(evaluator, CrossFitted) else (evaluator,)
        if not all(isinstance(member, Ream) for member in result):
            detail = f"{evaluator.name} says nothing about the reliability of references; choose one trained as ream."
            raise ScoringError(detail)
        self.evaluator, self.members, self.nodes = evaluator, [cast(Ream, member) for member in result], nodes
        share_encoder(self.members)
        self._sets: OrderedDict[Key, CachedSet] = OrderedDict()
        self._groups: dict[str, str] = {}

    @cached_property
    def signature(self) -> str:
        """The evaluator's signature."""
        return self.evaluator.signature

    def regroup(self, groups: Mapping[str, str]) -> None:
        """Set the present groups of items, by the names used in training, replacing earlier ones. A model that saw an
        item in another group does not rate it as new."""
        if groups != self._groups:
            self._groups = dict(groups)
            for member in self.members:
                member.regroup(groups)

    def rate(self, query: Record, sets: Sequence[Sequence[str]]) -> list[float | None]:
        """s(q, R) of each set; None for an empty one. A set that extends the first one by a single text is computed as
        a step from it, as during writing."""
        cleaned = [_clean(texts) for texts in sets]
        base = cleaned[0] if cleaned else []
        result: list[float | None] = []
        for texts in cleaned:
            more = [text for text in texts if text not in set(base)]
            if base and len(more) == 1 and len(texts) == len(base) + 1:
                result.append(self._with_each(query, base, more)[0])
            else:
                result.append(self._now(query, texts))
        return result

    def write(
        self,
        query: Record,
        references: Sequence[str],
        text: str = "",
        candidates: Sequence[str] = (),
        in_time: Callable[[], bool] = lambda: True,
    ) -> ReliabilityUpdate:
        """The reliability now, with the text, and with each candidate, in this order, while `in_time()`. Cached texts
        cost nothing; each call reads at least some of the others."""
        base = _clean(references)
        wanted = [each for each in _clean(candidates) if each not in base]
        left = self._read(query, base, in_time)
        if left:
            note = f"the references are being read: {len(base) - left} of {len(base)}"
            return ReliabilityUpdate(None, None, {}, left + len(wanted), (note,))
        now = self._now(query, base)
        with_text: float | None = None
        if text.strip():
            with_text = now if text in base else self._with_each(query, base, [text])[0]
        self._read(query, wanted, in_time)
        reached = [each for each in wanted if self._knows(query, each)]
        result: dict[str, float | None] = {each: now for each in _clean(candidates) if each in base}
        result |= dict(zip(reached, self._with_each(query, base, reached), strict=True))
        return ReliabilityUpdate(now, with_text, result, len(wanted) - len(reached), tuple(self._notes(query, text)))

    def chosen(self, query: Record) -> list[int]:
        """The models that rate this query."""
        group = name_group(query.group, query.item)
        unseen = [number for number, member in enumerate(self.members) if group not in member.trained_on]
        return unseen or list(range(len(self.members)))

    def _notes(self, query: Record, text: str) -> Iterator[str]:
        group = name_group(query.group, query.item)
        members = [self.members[number] for number in self.chosen(query)]
        if any(group in member.trained_on for member in members):
            yield "the evaluator learned from this item, so its rating is not independent"
        elif len(members) > 1:
            yield f"mean of the {len(members)} models that did not learn from this item"
        if text.strip():
            pair = replace(query, text=text, references=())
            if members[0].pair_encoder.vectors([pair])[1][0]:
                yield "the text and its context are longer than the evaluator reads; it read the beginning of the text"

    def _now(self, query: Record, texts: Sequence[str]) -> float | None:
        if not texts:
            return None
        return _mean(self._set(query, texts, number).grown.value() for number in self.chosen(query))

    def _with_each(self, query: Record, base: Sequence[str], texts: Sequence[str]) -> list[float | None]:
        """s(q, R + r) of each text r that is not in R."""
        if not texts:
            return []
        rows = []
        for number in self.chosen(query):
            known = self._set(query, base, number)
            new = [text for text in texts if text not in known.values]
            if new:
                if len(known.values) > VALUES_KEPT:
                    known.values.clear()
                    new = list(texts)
                values = known.grown.with_each(self._vectors(query, new, number)).tolist()
                known.values.update(zip(new, values, strict=True))
            rows.append([known.values[text] for text in texts])
        return [None if math.isnan(value) else float(value) for value in np.mean(rows, axis=0)]

    def _set(self, query: Record, texts: Sequence[str], number: int) -> CachedSet:
        """The set's state in this model, computed if it is not cached."""
        key = Key(query.context, query.source, tuple(sorted(texts)), number)
        result = self._sets.get(key)
        if result is None:
            network = cast(ReamNetwork, self.members[number].network)
            result = CachedSet(GrownSet.of(network, self._vectors(query, key.texts, number)), {})
            self._sets[key] = result
        self._sets.move_to_end(key)
        kept = sum(len(each.grown) for each in self._sets.values())
        while kept > self.nodes and len(self._sets) > 1:
            kept -= len(self._sets.popitem(last=False)[1].grown)
        return result

    def _read(self, query: Record, texts: Sequence[str], in_time: Callable[[], bool]) -> int:
        """Read texts that are not cached, at least a few; returns the number of texts left."""
        new = [text for text in texts if not self._knows(query, text)]
        done = 0
        while done < len(new) and (done == 0 or in_time()):
            for number in self.chosen(query):
                self._vectors(query, new[done : done + AT_A_TIME], number)
            done += AT_A_TIME
        return max(0, len(new) - done)

    def _vectors(self, query: Record, texts: Sequence[str], number: int) -> torch.Tensor:
        member = self.members[number]
        pairs = [replace(query, text=text, references=()) for text in texts]
        vectors: Vectors = member.pair_encoder.vectors(pairs)[0]
        parameter = next(member.network.parameters())
        return torch.from_numpy(vectors).to(parameter.device, parameter.dtype)

    def _knows(self, query: Record, text: str) -> bool:
        pair = replace(query, text=text, references=())
        return all(self.members[number].pair_encoder.knows(pair) for number in self.chosen(query))


def share_encoder(members: Sequence[Ream]) -> None:
    """Let `members` with the same frozen encoder and reading settings share cached pairs."""
    shared: dict[tuple[object, ...], PairEncoder] = {}
    for member in members:
        if member.settings["tune_encoder"] or member.artefact.encoder is None:
            continue
        names = ("layer", "pooling", "max_length", "inputs", "pairing")
        key = (member.artefact.encoder.weights, member.device, *(member.settings.get(name) for name in names))
        if key in shared:
            member.pair_encoder = shared[key]
        else:
            shared[key] = member.pair_encoder


def _clean(texts: Iterable[str]) -> list[str]:
    """Without blanks and repeats, as `Ream.reliabilities` reads a set."""
    return list(dict.fromkeys(text for text in texts if text.strip()))


def _mean(values: Iterable[float]) -> float | None:
    value = float(np.mean(list(values)))
    return None if math.isnan(value) else value
