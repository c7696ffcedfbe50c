"""Which systems the comparisons link: components that were never compared, classes without a loss between them, and
which class is above which."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from evalapp.stats.core.coding import BoolArray, IntArray, encode, identifiers, verdict_codes

#: Why a system outside the largest component has no rank.
NEVER_COMPARED = "never compared with the systems that are ranked, directly or through others"
#: Of a signature: systems outside the largest component are left out.
LARGEST_PART = "part:largest"
_NAMED = 5


@dataclass(frozen=True, slots=True)
class Connectivity:
    """How comparisons link the systems.

    `components`: systems linked by any comparison, largest first, of equally large ones that with most judgements; the
    first is the one that is ranked. Several mean that no rating compares them.
    `classes`: the strongly connected groups of the graph with an edge from winner to loser (both ways for a tie),
    largest first; between two of them one side never lost. A finite Bradley-Terry estimate of all systems exists
    only with one class (Ford 1957). `note` says what is wrong, empty if nothing is: no method ranks systems of
    different components, and between classes the models give an order, but no finite difference.
    """

    components: tuple[tuple[Any, ...], ...]
    classes: tuple[tuple[Any, ...], ...]
    note: str = ""

    @property
    def connected(self) -> bool:
        """Whether every system is linked with every other by comparisons."""
        return len(self.components) <= 1

    @property
    def strongly_connected(self) -> bool:
        """Whether all systems have finite ratings relative to each other."""
        return len(self.classes) <= 1

    def parts_only(self) -> Connectivity:
        """For a method whose values are finite whoever won: without the note on classes."""
        return replace(self, note="") if self.connected else self

    def as_dict(self) -> dict[str, Any]:
        """JSON-safe."""
        return {
            "components": [list(group) for group in self.components],
            "classes": [list(group) for group in self.classes],
            "connected": self.connected,
            "strongly_connected": self.strongly_connected,
            "note": self.note,
        }


def connectivity(system_a: ArrayLike, system_b: ArrayLike, verdict: ArrayLike) -> Connectivity:
    """The links of (n,) judgements; `both_bad` links as a tie does, `cannot_decide` not at all."""
    codes = verdict_codes(verdict)
    n = len(codes)
    both, labels = encode(
        np.concatenate([identifiers(system_a, "system_a", n), identifiers(system_b, "system_b", n)]), "system"
    )
    kept = codes < 4
    a, b, outcome = both[:n][kept], both[n:][kept], np.array([0, 2, 1, 1])[codes[kept]]
    beats = np.zeros((len(labels), len(labels)), dtype=np.bool_)
    beats[a[outcome < 2], b[outcome < 2]] = True
    beats[b[outcome > 0], a[outcome > 0]] = True
    return connectivity_of(beats, labels, np.bincount(np.concatenate([a, b]), minlength=len(labels)))


def connectivity_of(beats: BoolArray, labels: NDArray[Any], judgements: IntArray) -> Connectivity:
    """From the matrix of who did not lose to whom at least once, (systems, systems), and each system's judgements."""
    names = np.asarray(labels).tolist()
    components = _groups(beats, "weak", names, judgements)
    classes = _groups(beats, "strong", names, judgements)
    return Connectivity(components, classes, _note(components, classes))


def is_strongly_connected(beats: BoolArray) -> bool:
    """Whether one class holds all systems."""
    return len(beats) < 2 or connected_components(csr_array(beats), connection="strong")[0] == 1


def largest_component(beats: BoolArray, judgements: IntArray | None = None) -> BoolArray:
    """Mask of the most systems, at least 2, that comparisons link; of equals those with most judgements (of their
    systems), then the first; empty if none."""
    return _largest(beats, "weak", judgements)


def largest_class(beats: BoolArray, judgements: IntArray | None = None) -> BoolArray:
    """The same of systems that both won and lost against each other, directly or through others."""
    return _largest(beats, "strong", judgements)


def classes_above(beats: BoolArray) -> tuple[IntArray, BoolArray]:
    """The number of each system's strongly connected class, and (systems, systems) whether the class of the row's
    system is above the column's: it won against it or tied, directly or through others, and never the other way."""
    _, member = connected_components(csr_array(beats), connection="strong")
    reaches = beats | np.eye(len(beats), dtype=np.bool_)
    while True:
        # Chains of twice the length, until no new one is found. Sums of products in float: boolean ones are slow.
        longer = (reaches.astype(np.float32) @ reaches.astype(np.float32)) > 0
        if (longer == reaches).all():
            break
        reaches = longer
    return member.astype(np.int64), np.asarray(reaches & (member[:, None] != member[None, :]))


def _largest(beats: BoolArray, connection: str, judgements: IntArray | None) -> BoolArray:
    if not len(beats):
        return np.zeros(0, dtype=np.bool_)
    _, member = connected_components(csr_array(beats), connection=connection)
    sizes = np.bincount(member)
    seen = np.bincount(member, weights=judgements)
    # Python's max takes the first of equals, so the numbers that SciPy gives the groups do not matter.
    first = max(member.tolist(), key=lambda code: (sizes[code], seen[code]))
    return np.asarray((member == first) & (sizes.max() > 1))


def which_part(components: Sequence[Sequence[Any]]) -> str:
    """Which of several parts is ranked (`largest_component`), in words."""
    if len(components[0]) > len(components[1]):
        return "the largest part"
    return "one of them (of equally large ones that with most judgements, or else the first)"


def _groups(beats: BoolArray, connection: str, names: list[Any], judgements: IntArray) -> tuple[tuple[Any, ...], ...]:
    if not names:
        return ()
    member: IntArray = connected_components(csr_array(beats), connection=connection)[1].astype(np.int64)
    places = [np.flatnonzero(member == code) for code in range(member.max() + 1)]
    # As in `_largest`.
    places.sort(key=lambda group: (-len(group), -int(judgements[group].sum()), int(group[0])))
    return tuple(tuple(names[k] for k in group) for group in places)


def _note(components: tuple[tuple[Any, ...], ...], classes: tuple[tuple[Any, ...], ...]) -> str:
    if len(components) > 1:
        first, *others = components
        shown = "; ".join(_names(group) for group in others[: _NAMED - 1])
        more = f"; and {len(others) - _NAMED + 1} more" if len(others) >= _NAMED else ""
        if len(components[0]) < 2:
            return "no two systems were compared with a verdict that ranks them, so none is ranked"
        return (
            f"the comparisons fall into {len(components)} parts that were never compared with each other, so only "
            f"{which_part(components)} is ranked: {_names(first)}. Not ranked: {shown}{more}"
        )
    if len(classes) > 1:
        return (
            f"only {len(classes[0])} of {sum(map(len, classes))} systems both won and lost against each other, "
            "directly or by way of others; the rest won or lost every link to them, so they have a rank, but no finite "
            "rating"
        )
    return ""


def _names(group: tuple[Any, ...]) -> str:
    shown = ", ".join(map(str, group[:_NAMED]))
    return f"{shown} and {len(group) - _NAMED} more" if len(group) > _NAMED else shown
