"""Layouts for other programs: what they are told about a project, and its rows item by item."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, ClassVar

from annotation.exporters.aggregated import aggregate
from annotation.parsers import encode_document

Row = dict[str, Any]
#: A system, or one of its checkpoints.
Side = tuple[str, int | None]
_TURNED = {"a": "b", "b": "a"}
#: Characters that are not safe in the name of a file on every system.
_UNSAFE = re.compile(r"[^\w.@+-]+")


@dataclass(frozen=True)
class Plan:
    """What a layout must know before the first row. `compared` are the aspects with comparisons, `n_references` the
    most references of an item, `has_turns` whether any item has a context, `rated` whether outputs have ratings."""

    head: Mapping[str, Any]
    sides: tuple[Side, ...] = ()
    compared: frozenset[str] = frozenset()
    rated: frozenset[str] = frozenset()
    n_references: int = 0
    n_items: int = 0
    has_turns: bool = False
    #: Aspects with ratings between whole numbers.
    fractional: frozenset[str] = frozenset()

    @property
    def aspects(self) -> list[Row]:
        return list(self.head["aspects"])


@dataclass
class ItemRows:
    """An item with all rows that belong to it."""

    item: Row
    outputs: list[Row] = field(default_factory=list)
    ratings: list[Row] = field(default_factory=list)
    comparisons: list[Row] = field(default_factory=list)

    def texts(self) -> dict[Side, str]:
        return {(row["system"], row["step"]): row["text"] for row in self.outputs}

    def name_texts(self) -> dict[str, str]:
        """The texts by name of their system, `model@1000` or `reference 1`."""
        texts = {name_side(side): text for side, text in self.texts().items()}
        return texts | {name_reference(number): text for number, text in enumerate(self.item["references"])}

    def pair_up(self) -> dict[tuple[str, str], list[tuple[str, str, str]]]:
        """(rater, aspect, verdict) by the names of the compared texts, each pair once."""
        pairs: dict[tuple[str, str], list[tuple[str, str, str]]] = {}
        for row in self.comparisons:
            a, other = name_side((row["system_a"], row.get("step_a"))), row["system_b"]
            b = name_side((other, row.get("step_b"))) if isinstance(other, str) else name_reference(other["reference"])
            is_turned = (b, a) in pairs
            verdict = str(row["verdict"])
            verdict = _TURNED.get(verdict, verdict) if is_turned else verdict
            pairs.setdefault((b, a) if is_turned else (a, b), []).append((row["rater"], row["aspect"], verdict))
        return pairs

    def means(self) -> dict[tuple[Side, str], Row]:
        """The aggregated ratings by output and aspect."""
        rows = aggregate("ratings", self.ratings)
        return {((row["system"], row.get("step")), row["aspect"]): row for row in rows}


class Layout:
    """Writes files for another program into `folder`. `notes` say what could not be written as it is stored."""

    title: ClassVar[str] = ""
    #: What the layout does not hold of any project.
    lost: ClassVar[str] = ""
    #: Whether the layout has scores of evaluators.
    has_scores: ClassVar[bool] = False
    #: Whether the layout says which judgements no person made, and has ratings of whole dialogues.
    has_simulated: ClassVar[bool] = False
    has_dialogues: ClassVar[bool] = False

    def __init__(self, folder: Path, plan: Plan) -> None:
        self.folder, self.plan = folder, plan
        #: Rows by file name, in the order of writing.
        self.files: dict[str, int] = {}
        self.notes: list[str] = []
        #: Judgements by simulated raters, and ratings of whole dialogues.
        self.simulated = self.of_dialogues = 0

    def take_row(self, table: str, row: Row) -> None:
        """Take any row, before `take_item` gets those of an item together."""

    def take_item(self, rows: ItemRows) -> None:
        """Take an item with its outputs and judgements; items come in natural order."""

    def close(self) -> None:
        """Finish the files."""

    def abort(self) -> None:
        """Release files after an error."""

    def open(self, name: str) -> IO[str]:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        self.files.setdefault(name, 0)
        return path.open("w", encoding="utf-8", newline="", buffering=1 << 17)

    def add_document(self, name: str, text: str, rows: int = 0) -> None:
        with self.open(name) as file:
            file.write(text)
        self.files[name] = rows

    def add_mapping(self, part: str, document: Row) -> None:
        """Write the mapping with which a part of the folder is imported again."""
        self.add_document(f"{part}.mapping.json", encode_document(document))


def group_by_item(rows: Iterable[tuple[str, Row]], layout: Layout) -> Iterator[None]:
    """Pass rows in canonical order to `layout`; yield after each row."""
    batch: dict[str, ItemRows] = {}
    is_filled = False

    def flush() -> None:
        for one in batch.values():
            layout.take_item(one)
        batch.clear()

    for table, row in rows:
        layout.take_row(table, row)
        layout.simulated += bool(row.get("simulated"))
        layout.of_dialogues += table == "ratings" and "item" not in row
        if table == "items":
            if is_filled:
                flush()
                is_filled = False
            batch[row["id"]] = ItemRows(row)
        elif table in ("outputs", "ratings", "comparisons") and "item" in row:
            is_filled = True
            getattr(batch[row["item"]], table).append(row)
        elif batch and table != "systems":
            flush()
        yield
    flush()


def name_side(side: Side) -> str:
    """The name of a system, for a checkpoint with its step: `model@1000`."""
    system, step = side
    return system if step is None else f"{system}@{step}"


def name_reference(number: int) -> str:
    """The name of the reference at a position."""
    return f"reference {number + 1}"


class SafeNames(dict[str, str]):
    """Names that can be part of a file name and have no blanks, by the original ones; all are different. A missing name
    is made when it is asked for."""

    def __init__(self) -> None:
        self.taken: set[str] = set()

    def __missing__(self, name: str) -> str:
        safe = base = _UNSAFE.sub("_", name).strip(".")[:100] or "_"
        number = 1
        while safe.casefold() in self.taken:
            number += 1
            safe = f"{base}_{number}"
        self.taken.add(safe.casefold())
        self[name] = safe
        return safe


def make_safe_names(names: Iterable[str]) -> SafeNames:
    """The safe names of `names`."""
    safe = SafeNames()
    for name in names:
        safe[name] = safe.__missing__(name)
    return safe


def make_messages(item: Row) -> list[Row]:
    """The context as chat messages: the last turn is by the user, and turns alternate. A source without context is a
    message by the user, with context one by the system."""
    turns = list(item["context"] or [])
    roles = ["user" if (len(turns) - place) % 2 else "assistant" for place in range(len(turns))]
    messages = [{"role": role, "content": turn} for role, turn in zip(roles, turns, strict=True)]
    if item["source"] is not None:
        messages.insert(0, {"role": "system" if messages else "user", "content": item["source"]})
    return messages


def make_prompt(item: Row) -> str:
    """Source and context as a text, one turn per line."""
    return "\n".join([*([] if item["source"] is None else [item["source"]]), *(item["context"] or [])])


def map_outputs(about: str, inputs: str, has_turns: bool, *texts: str) -> Row:
    """A mapping of the outputs in tasks or records of another program. `about`: the member with item, group, references
    and systems, `inputs`: that with source, context and the texts, which are one or a pair."""
    columns = {name: f"{about}.{name}" for name in ("item", "group", "references")}
    columns |= {name: f"{inputs}.{name}" for name in (*["context"] * has_turns, "source", *texts)}
    columns |= {(system := text.replace("text", "system")): f"{about}.{system}" for text in texts}
    shape = "long" if len(texts) == 1 else "pairs"
    turns = {"turns": {"context": {"rule": "chat"}}} if has_turns else {}
    return {"shape": shape, "columns": columns, **turns}


def list_loads(layout: Layout, ratings: str, comparisons: str) -> list[str]:
    """How the mappings in a folder are used, and what comes back as something else."""
    loads = [("outputs", ratings), ("ratings", ratings), ("comparisons", comparisons)]
    return [
        f"`load {name} --map {part}.mapping.json` imports the {part}."
        for part, name in loads
        if f"{part}.mapping.json" in layout.files
    ] + ["Compared references, and checkpoints such as `model@1000`, come back as systems."]
