"""What a dry check says of origins: whose texts count as people's and whose as machines', and which are both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from scoring.ml.evaluators.comparative.pairs import Samples
from scoring.ml.types import Dataset

NAMED = 5


def counted_note(dataset: Dataset) -> str:
    """The systems whose texts count as people's, as machines' and as neither, by their kinds."""
    kinds = {system.id: system.kind for system in dataset.systems}
    people, machines, neither = (
        sorted({o.system for o in dataset.outputs if o.text.strip() and kinds.get(o.system, "machine") in some})
        for some in (("human", "reference"), ("machine",), ("control",))
    )
    references = ["the references"] if any(t.strip() for item in dataset.items for t in item.references) else []
    said = f"counted as people's: {_named([*references, *people])}; as machines': {_named(machines)}"
    return f"texts {said}; as neither: {_named(neither)}" if neither else f"texts {said}"


def both_note(dataset: Dataset, samples: Samples) -> str:
    """That texts of machines equal a reference of their item, and what to do if they are no machine's; empty where
    none does."""
    references = {item.id: {_plain(text) for text in item.references} for item in dataset.items}
    equal = Counter(r.system for r in samples.generated if _plain(r.text) in references.get(r.item, ()))
    if not equal:
        return ""
    systems = sorted(equal, key=lambda name: (-equal[name], name))
    subject = systems[0] if len(systems) == 1 else "one of these"
    shares = _named([f"{equal[name]:,} of {name}" for name in systems])
    return (
        f"{equal.total():,} texts of machines equal a reference of their item: they are learned as both people's and "
        f"machines' ({shares}). If {subject} is people's, say so by the system's kind: on the page Items, Systems; by "
        f'manage.py load with --system-kind "{systems[0]}=human"; by PATCH /api/v1/systems/ID/'
    )


def _plain(text: str) -> str:
    return " ".join(text.split())


def _named(names: Sequence[str]) -> str:
    """The first names and how many more there are."""
    if not names:
        return "none"
    more = len(names) - NAMED
    # One more is as short by its name.
    return ", ".join(names) if more < 2 else f"{', '.join(names[:NAMED])} and {more:,} more"
