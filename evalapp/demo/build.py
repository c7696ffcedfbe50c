"""Write the demonstration project as an interchange folder. The same seed gives the same bytes."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from evalapp.demo import rater_model
from evalapp.demo.quality import ASPECTS, Judge, latent
from evalapp.demo.systems import SYSTEMS, Output, all_outputs
from evalapp.demo.texts import DIALOGUE, Dialogue, Item, read_dialogues, read_items

SLUG = "demo"

NOTES = (
    "Demonstration data. All texts were written for this project. Outputs were really produced by small systems: "
    "retrieval by shared words, a word n-gram model at three training steps (trained without the items it answers), "
    "two template systems, a constant and a shuffled control, and one further answer written by a person. "
    "No person rated anything: ratings and comparisons are simulated and marked so. Ten simulated raters sim-01 to "
    "sim-10 see a latent value made of features of the text (known word sequences, shared content, attributes said, "
    "stock phrases), with a bias, spread and noise of their own; sim-09 is careless, sim-10 keeps to the middle. "
    "human-likeness exists in comparisons with references only. The dialogues and the corpus share no turn with the "
    "items."
)


def build(folder: Path, seed: int = 7) -> None:
    """Write eight files of the interchange format into `folder`, which is created if necessary. Rows are in canonical
    order; existing files with the same names are overwritten."""
    items, dialogues = read_items(), read_dialogues()
    outputs = all_outputs(items, dialogues, seed)
    values, references = _latents(items, dialogues, outputs, seed)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "dataset.json").write_text(
        json.dumps(_dataset(), ensure_ascii=False, indent=1) + "\n", encoding="utf-8", newline="\n"
    )
    _write(folder / "systems.jsonl", SYSTEMS)
    _write(folder / "items.jsonl", map(_item_row, items))
    _write(folder / "outputs.jsonl", map(_output_row, outputs))
    _write(folder / "ratings.jsonl", rater_model.ratings(outputs, values, seed))
    _write(folder / "comparisons.jsonl", rater_model.comparisons(outputs, values, references, seed))
    _write(folder / "dialogues.jsonl", ({"id": talk.id, "turns": list(talk.turns)} for talk in dialogues))
    _write(folder / "corpus.jsonl", _corpus(dialogues))


def _latents(
    items: list[Item], dialogues: list[Dialogue], outputs: list[Output], seed: int
) -> tuple[list[dict[str, float]], dict[str, list[dict[str, float]]]]:
    """Return the latent values of all outputs with taste, and those of each item's references."""
    by_id = {item.id: item for item in items}
    fluent = [(item, text) for item in items for text in (*item.references, item.written)]
    fluent += [(items[0], turn) for talk in dialogues for turn in talk.turns]
    fluent += [(by_id[out.item], out.text) for out in outputs if out.system != "ngram"]
    shown = [(by_id[out.item], out.text) for out in outputs]
    judge = Judge(items, dialogues, fluent, shown)
    values = []
    for out in outputs:
        features = judge.features(by_id[out.item], out.text, by_person=out.system == "written")
        values.append(rater_model.with_taste(out, latent(features), seed))
    references = {
        item.id: [latent(judge.features(item, text, by_person=True)) for text in item.references] for item in items
    }
    return values, references


def _dataset() -> dict[str, Any]:
    scale = {"min": rater_model.LOW, "max": rater_model.HIGH}
    aspects: list[dict[str, Any]] = [{"name": name, **scale} for name in ASPECTS]
    aspects.append({"name": rater_model.HUMAN_LIKENESS, "min": None, "max": None})
    return {
        "name": "Demonstration",
        "task": "dialogue",
        "lang": "en",
        "aspects": aspects,
        "licence": "Apache-2.0",
        "source": "written for this project",
        "notes": NOTES,
    }


def _item_row(item: Item) -> dict[str, Any]:
    return {
        "id": item.id,
        "context": list(item.context),
        "source": item.source,
        "references": list(item.references),
        "group": item.group,
        "meta": {"domain": item.domain, "topic": item.topic} if item.domain == DIALOGUE else {"domain": item.domain},
    }


def _output_row(output: Output) -> dict[str, Any]:
    return {"item": output.item, "system": output.system, "text": output.text, "step": output.step, "meta": {}}


def _corpus(dialogues: list[Dialogue]) -> Iterator[dict[str, str]]:
    """Yield pairs of consecutive turns."""
    for talk in dialogues:
        for query, response in zip(talk.turns, talk.turns[1:], strict=False):
            yield {"query": query, "response": response}


def _write(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as out:
        for row in rows:
            out.write(json.dumps(row, ensure_ascii=False) + "\n")
