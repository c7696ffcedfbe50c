"""Notes of the dry check on origins: texts that count as written by people, by machines, or by both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from scoring.ml.evaluators.comparative.pairs import Samples
from scoring.ml.types import Dataset

NAMED = 5


def describe_origins(dataset: Dataset) -> str:
    """Return a note that lists the systems of a `dataset` that count as human, as machine and as neither, by their
    kinds."""
    kinds = {system.id: system.kind for system in dataset.systems}
    people, machines, neither = (
        sorted({o.system for o in dataset.outputs if o.text.strip() and kinds.get(o.system, "machine") in some})
        for some in (("human", "reference"), ("machine",), ("control",))
    )
    references = ["the references"] if any(t.strip() for item in dataset.items for t in item.references) else []
    said = f"counted as human: {_named([*references, *people])}; as machine-written: {_named(machines)}"
    return f"texts {said}; as neither: {_named(neither)}" if neither else f"texts {said}"


def describe_shared_texts(dataset: Dataset, samples: Samples) -> str:
    """Return a note about machine texts in `samples` that equal a reference of their item in the `dataset`, and how to
    change the system's kind; empty if there are none."""
    references = {item.id: {_plain(text) for text in item.references} for item in dataset.items}
    equal = Counter(r.system for r in samples.generated if _plain(r.text) in references.get(r.item, ()))
    if not equal:
        return ""
    systems = sorted(equal, key=lambda name: (-equal[name], name))
    subject = systems[0] if len(systems) == 1 else "one of the systems"
    shares = _named([f"{equal[name]:,} of {name}" for name in systems])
    return (
        f"{equal.total():,} machine texts equal a reference of their item, so they are learned as both human and "
        f"machine-written ({shares}). If {subject} is human, set the system's kind: on the page Items, Systems; "
        f'with evalapp load --system-kind "{systems[0]}=human"; with PATCH /api/v1/systems/ID/'
    )


def _plain(text: str) -> str:
    return " ".join(text.split())


def _named(names: Sequence[str]) -> str:
    """The first names and the number of further ones."""
    if not names:
        return "none"
    more = len(names) - NAMED
    # A single further name is as short as its count.
    return ", ".join(names) if more < 2 else f"{', '.join(names[:NAMED])} and {more:,} more"
