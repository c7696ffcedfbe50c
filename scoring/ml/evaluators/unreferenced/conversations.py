"""Conversations to learn from: dialogues, or contexts with their references, as prepared turns with a split group."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from scoring.ml.training.record import name_group
from scoring.ml.training.split import DEV_SHARE, hold_out_groups
from scoring.ml.types import Dataset, Record

#: ParlAI's PersonaChat files carry the persona among the turns; the released MAUDE takes these lines out.
PERSONA = ("your persona:", "partner's persona:")
#: Groups without which nothing could be drawn for the held-out part.
LEAST_HELD_OUT = 2


@dataclass(frozen=True, slots=True)
class Conversation:
    """Turns, oldest first, none blank. Every turn from number `first` on is a true reply to all before it."""

    id: str
    group: str
    turns: tuple[str, ...]
    first: int = 1

    @property
    def n_replies(self) -> int:
        """How many true replies it holds."""
        return len(self.turns) - self.first


@dataclass(frozen=True)
class Sets:
    """The training part and the held-out part; `notes` describe the split."""

    train: list[Conversation]
    dev: list[Conversation]
    notes: tuple[str, ...]


def prepare(text: str, lower_case: bool) -> str:
    """Return a `text` with single spaces between words, and with `lower_case` in lower case.

    >>> prepare(" Hello  You ", True)
    'hello you'
    """
    text = " ".join(text.split())
    return text.lower() if lower_case else text


def prepare_turns(turns: Iterable[str], lower_case: bool) -> tuple[str, ...]:
    """Return the prepared `turns` that are not blank, with `lower_case` in lower case; lines of a persona are no
    turns."""
    result = (prepare(line, lower_case) for turn in turns for line in turn.splitlines())
    return tuple(line for line in result if line and not line.lower().startswith(PERSONA))


def context_turns(record: Record, lower_case: bool) -> tuple[str, ...]:
    """Return the context of a `record` with `lower_case` in lower case: its turns, or its source if there are none.

    A source next to turns is not read: MAUDE knows the dialogue only.
    """
    turns = prepare_turns(record.context, lower_case)
    if turns or not record.source:
        return turns
    source = prepare(record.source, lower_case)
    return (source,) if source else ()


def collect_conversations(dataset: Dataset, lower_case: bool) -> list[Conversation]:
    """Return the dialogues of a `dataset`, or without any its contexts with each reference, in the order of their
    names; with `lower_case` in lower case.

    Conversations without a reply are left out.
    """
    result: list[Conversation] = []
    if dataset.dialogues:
        for dialogue in dataset.dialogues:
            result.append(
                Conversation(dialogue.id, f"dialogue:{dialogue.id}", prepare_turns(dialogue.turns, lower_case))
            )
    else:
        for item in dataset.items:
            context = context_turns(Record("", context=item.context, source=item.source), lower_case)
            for number, reference in enumerate(item.references):
                reply = prepare(reference, lower_case)
                if context and reply:
                    name = f"{item.id}:{number}"
                    result.append(Conversation(name, name_group(item.group, item.id), (*context, reply), len(context)))
    return sorted((one for one in result if one.n_replies > 0), key=lambda one: one.id)


def split_conversations(
    conversations: Sequence[Conversation], seed: int, dev_share: float = DEV_SHARE
) -> tuple[list[Conversation], list[Conversation]]:
    """Return the `conversations` in two parts of whole groups, drawn by `seed`; the second has a share of `dev_share`.

    At least two groups are held out, because a false reply comes from another group.
    """
    groups = {one.group for one in conversations}
    share = min(max(dev_share, LEAST_HELD_OUT / max(len(groups), 1)), 0.5)
    held_out = hold_out_groups(groups, seed, share)
    train = [one for one in conversations if one.group not in held_out]
    return train, [one for one in conversations if one.group in held_out]


def groups_in(conversations: Iterable[Conversation]) -> tuple[str, ...]:
    """Return the split groups of `conversations`, sorted."""
    return tuple(sorted({one.group for one in conversations}))


def flatten(turns: Sequence[str]) -> str:
    """Return the `turns` of a context as one text."""
    return " ".join(turns)


def reply_records(conversations: Sequence[Conversation]) -> list[Record]:
    """Return every true reply of the `conversations` as a record."""
    return [
        Record(one.turns[turn], context=one.turns[:turn], item=f"{one.id}@{turn}", group=one.group)
        for one in conversations
        for turn in range(one.first, len(one.turns))
    ]
