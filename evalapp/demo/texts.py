"""Reads the hand-written source texts beside this module into frozen dataclasses. Nothing is generated here."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TEXTS = Path(__file__).with_name("texts")
CAMPAIGNS = Path(__file__).with_name("campaigns.json")
#: Reference writing: what opens at once, and what waits for a trained `ream`.
WRITING = Path(__file__).with_name("writing.json")
WRITING_SCORED = Path(__file__).with_name("writing_scored.json")

DIALOGUE = "dialogue"
RESTAURANTS = "restaurants"

_SLOT = re.compile(r"\b(\w+)\[([^\[\]]+)\]")


@dataclass(frozen=True)
class Item:
    """One thing to answer: a dialogue context or a meaning representation, with what people wrote for it."""

    id: str
    domain: str
    group: str
    topic: str
    context: tuple[str, ...]
    source: str | None
    references: tuple[str, ...]
    written: str

    @property
    def slots(self) -> dict[str, str]:
        """Attributes of the meaning representation in their order; empty for a dialogue."""
        return dict(_SLOT.findall(self.source or ""))


@dataclass(frozen=True)
class Dialogue:
    """A whole dialogue that shares no turn with any item."""

    id: str
    topic: str
    turns: tuple[str, ...]


def _rows(name: str) -> Iterator[dict[str, Any]]:
    with (TEXTS / name).open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def read_json(name: str) -> dict[str, Any]:
    """One of the rule files of the `texts` folder."""
    rules: dict[str, Any] = json.loads((TEXTS / name).read_text(encoding="utf-8"))
    return rules


def read_items() -> list[Item]:
    """All items, dialogues first, in the order of their ids. A group is an id without its last letter: two
    contexts about one topic, or two descriptions of a restaurant, never to be split across train and test."""
    items = [
        Item(
            id=row["id"],
            domain=DIALOGUE,
            group=row["id"][:-1],
            topic=row["topic"],
            context=tuple(row["context"]),
            source=None,
            references=tuple(row["references"]),
            written=row["written"],
        )
        for row in _rows("dialogue_items.jsonl")
    ]
    for row in _rows("restaurant_items.jsonl"):
        items.append(
            Item(
                id=row["id"],
                domain=RESTAURANTS,
                group=row["id"][:-1],
                topic=dict(_SLOT.findall(row["source"]))["name"],
                context=(),
                source=row["source"],
                references=tuple(row["references"]),
                written=row["written"],
            )
        )
    return sorted(items, key=lambda item: item.id)


def read_dialogues() -> list[Dialogue]:
    return [Dialogue(row["id"], row["topic"], tuple(row["turns"])) for row in _rows("dialogues.jsonl")]
