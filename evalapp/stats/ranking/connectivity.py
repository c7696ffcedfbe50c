"""Connectivity of systems through comparisons: linked components, strongly connected classes, and their order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from evalapp.stats.core.coding import BoolArray, IntArray, encode, identifiers, verdict_codes

#: Reason for no rank outside the largest component.
NEVER_COMPARED = "never compared with the systems that are ranked, directly or through others"
#: Part of signatures: systems outside the largest component are left out.
LARGEST_PART = "part:largest"
_NAMED = 5


@dataclass(frozen=True, slots=True)
class Connectivity:
    """How comparisons link the systems.

    `components`: systems linked by any comparison, largest first (by judgements if equally large); only the first is
    ranked, because no rating compares systems of different components. `classes`: the strongly connected groups of
    the graph with an edge from winner to loser (both ways for a tie), largest first; between two classes one side
    never lost. A finite Bradley-Terry estimate of all systems exists only with one class (Ford 1957). `note`
    describes problems ("" if there are none): no method ranks systems of different components, and between classes
    the models give an order but no finite difference."""

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
        """Return the same without the note on classes, for methods whose values are always finite."""
        return replace(self, note="") if self.connected else self

    def as_dict(self) -> dict[str, Any]:
        """Return the connectivity as JSON-safe values."""
        return {
            "components": [list(group) for group in self.components],
            "classes": [list(group) for group in self.classes],
            "connected": self.connected,
            "strongly_connected": self.strongly_connected,
            "note": self.note,
        }


def connectivity(system_a: ArrayLike, system_b: ArrayLike, verdict: ArrayLike) -> Connectivity:
    """Return how (n,) judgements link the systems; `both_bad` links like a tie, `cannot_decide` not at all."""
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
    return find_connectivity(beats, labels, np.bincount(np.concatenate([a, b]), minlength=len(labels)))


def find_connectivity(beats: BoolArray, labels: NDArray[Any], judgements: IntArray) -> Connectivity:
    """Return the connectivity from the matrix (systems, systems) of at least one non-loss of row against column, and
    each system's number of judgements."""
    names = np.asarray(labels).tolist()
    components = _groups(beats, "weak", names, judgements)
    classes = _groups(beats, "strong", names, judgements)
    return Connectivity(components, classes, _note(components, classes))


def is_strongly_connected(beats: BoolArray) -> bool:
    """Return whether one class contains all systems."""
    return len(beats) < 2 or connected_components(csr_array(beats), connection="strong")[0] == 1


def largest_component(beats: BoolArray, judgements: IntArray | None = None) -> BoolArray:
    """Return the mask of the largest set of at least 2 systems that comparisons link; on ties the one with most
    judgements, then the first; all False if there is none."""
    return _largest(beats, "weak", judgements)


def largest_class(beats: BoolArray, judgements: IntArray | None = None) -> BoolArray:
    """Return the same for systems that both won and lost against each other, directly or through others."""
    return _largest(beats, "strong", judgements)


def classes_above(beats: BoolArray) -> tuple[IntArray, BoolArray]:
    """Return each system's strongly connected class, and (systems, systems) whether the row's class is above the
    column's: it won or tied, directly or through others, and never lost."""
    _, member = connected_components(csr_array(beats), connection="strong")
    reaches = beats | np.eye(len(beats), dtype=np.bool_)
    while True:
        # Doubles the length of chains until no new one appears. Float matrix products, because boolean ones are slow.
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
    # Python's max takes the first of equals, so the numbering of SciPy's groups does not matter.
    first = max(member.tolist(), key=lambda code: (sizes[code], seen[code]))
    return np.asarray((member == first) & (sizes.max() > 1))


def which_part(components: Sequence[Sequence[Any]]) -> str:
    """Return in words which part is ranked (`largest_component`)."""
    if len(components[0]) > len(components[1]):
        return "the largest part"
    return "one part (among equally large parts the one with most judgements, else the first)"


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
