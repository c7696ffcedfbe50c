"""Each table of an export computed from its files alone: which columns of the folder and which function a kind of table
takes. Comparing with what the export says is in `recompute`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from scoring.boards.agreement.compute import detail_table, overview_table
from scoring.boards.data.files import ExportFolder, Place
from scoring.boards.data.folder_dialogues import read_dialogues, read_turns
from scoring.boards.further import aspects_table, matrix_table, part_column, slices_table
from scoring.boards.metrics.compute import People, Scored, enhanced_table, evaluators_table
from scoring.boards.metrics.dialogues import dialogues_table
from scoring.boards.metrics.ranked import Compared, evaluators_by_ranking
from scoring.boards.pairs.compute import pairs_table
from scoring.boards.systems.compute import draws_of, systems_by_comparisons, systems_by_evaluator, systems_by_ratings

Table = dict[str, Any]
Entry = Mapping[str, Any]


def _systems(folder: ExportFolder, entry: Entry, settings: Mapping[str, Any]) -> Table:
    if settings["by"]:
        (name,) = entry["sets"]
        scores = folder.score_columns(name)
        own = folder.score_sets[name].get("systems") or ()
        return systems_by_evaluator(scores, settings, evaluator=entry["table"]["evaluator"], own=own)
    aspect, without = entry["table"]["aspect"], settings.get("filter") or ""
    if settings["method"] == "mean":
        ratings, _ = folder.ratings(aspect, filter=without)
        low, high = _scale(folder, aspect)
        return systems_by_ratings(ratings, settings, aspect=aspect, low=low, high=high)
    found, _ = folder.comparisons(aspect, turing=settings["method"] == "m1", filter=without)
    return systems_by_comparisons(found, settings, aspect=aspect)


def _scale(folder: ExportFolder, aspect: str) -> tuple[float | None, float | None]:
    for row in folder.document("dataset.json").get("aspects", []):
        if row["name"] == aspect:
            return tuple(None if row[end] is None else float(row[end]) for end in ("min", "max"))  # type: ignore[return-value]
    return None, None


@dataclass(frozen=True)
class Rated:
    """People's scores with the outputs they are of, in the same order."""

    people: People
    places: list[Place]


def load_rated(folder: ExportFolder, aspect: str, settings: Mapping[str, Any]) -> Rated:
    ratings, items = folder.ratings(aspect, filter=settings.get("filter") or "")
    people = People(ratings, method=settings["ratings"], subset=settings["systems"])
    units = people.units.units
    pairs = zip(people.item.tolist(), people.system.tolist(), strict=True)
    return Rated(people, [(items[item], units[unit].name, units[unit].step) for item, unit in pairs])


def load_scored(folder: ExportFolder, name: str, places: Sequence[Place]) -> Scored:
    """A set of scores as the tables take it."""
    values, row = folder.values(name), folder.score_sets[name]
    told = ("evaluator", "name", "kind", "signature", "aspect", "references", "short_signature", "scored_at")
    return Scored(
        metric=np.array([values.get(place, np.nan) for place in places], dtype=np.float64),
        own=tuple(row.get("systems") or ()),
        score_set=name,
        n_in_training=int(row["n_in_training"]),
        **{key: row[key] for key in told},
    )


def outside_training(folder: ExportFolder, names: Sequence[str], places: Sequence[Place]) -> Any:
    """Which outputs no evaluator of these sets has learned from."""
    seen = set().union(*(folder.trained_on(name) for name in names)) if names else set()
    return np.array([place not in seen for place in places], dtype=bool)


def learned_most(
    folder: ExportFolder, names: Sequence[str], outside_of: Callable[[Sequence[str]], Any]
) -> dict[str, int]:
    """By evaluator, how much of what people judged it has learned from. `outside_of` says of sets what none of them has
    learned from."""
    rows = ((folder.score_sets[name], name) for name in names)
    return {row["evaluator"]: int((~outside_of([name])).sum()) for row, name in rows if int(row["n_in_training"])}


def _evaluators(folder: ExportFolder, entry: Entry, settings: Mapping[str, Any]) -> Table:
    """Against people's ratings of outputs or of whole dialogues, or against a ranking made from comparisons."""
    table, names = entry["table"], entry["sets"]
    settings = with_signed(settings, table)
    aspect = table["aspect"]
    unapplied = {row["evaluator"]: row["note"] for row in table["rows"] if row["score_set"] is None}
    if settings.get("people", "ratings") != "ratings":
        return _by_ranking(folder, names, settings, aspect, unapplied)
    if settings["level"] == "dialogue":
        return _dialogues(folder, names, settings, aspect, unapplied)
    rated = load_rated(folder, aspect, settings)
    outside = outside_training(folder, names, rated.places)
    seen = partial(outside_training, folder, places=rated.places)
    return evaluators_table(
        rated.people,
        [load_scored(folder, name, rated.places) for name in names],
        settings,
        aspect=aspect,
        outside=outside,
        learned={} if outside.any() else learned_most(folder, names, seen),
        unapplied=unapplied,
    )


def with_signed(settings: Mapping[str, Any], table: Mapping[str, Any]) -> Mapping[str, Any]:
    """The settings with what the signature says and versions from 0.2.0 on do otherwise: at the level of systems items
    and systems were drawn for the intervals."""
    return {**settings, "bootstrap": "both"} if "|boot:both|" in table.get("signature", "") else settings


def _by_ranking(
    folder: ExportFolder, names: Sequence[str], settings: Mapping[str, Any], aspect: str, unapplied: Mapping[str, str]
) -> Table:
    compared, places = _compared(folder, aspect, settings, turing=settings["people"] == "m1")
    outside = outside_training(folder, names, places)
    return evaluators_by_ranking(
        compared,
        [load_scored(folder, name, places) for name in names],
        settings,
        aspect=aspect,
        outside=outside,
        learned=_learned_from(folder, names, compared, places, outside),
        unapplied=unapplied,
    )


def _compared(
    folder: ExportFolder, aspect: str, settings: Mapping[str, Any], *, turing: bool, may_lack: bool = False
) -> tuple[Compared, list[Place]]:
    """The outputs that people compared, and where in the folder each is."""
    found, items = folder.comparisons(aspect, turing=turing, filter=settings.get("filter") or "", may_lack=may_lack)
    compared = Compared(found, subset=settings["systems"], turing=turing)
    units = compared.units.units
    pairs = zip(compared.item.tolist(), compared.system.tolist(), strict=True)
    return compared, [(items[item], units[unit].name, units[unit].step) for item, unit in pairs]


def _learned_from(
    folder: ExportFolder, names: Sequence[str], compared: Compared, places: Sequence[Place], outside: Any
) -> dict[str, int]:
    """Who learned from how much, where that leaves no comparison."""
    if len(compared.outside(outside)):
        return {}
    return learned_most(folder, names, partial(outside_training, folder, places=places))


def _dialogues(
    folder: ExportFolder, names: Sequence[str], settings: Mapping[str, Any], aspect: str, unapplied: Mapping[str, str]
) -> Table:
    ratings, keys = read_dialogues(folder, aspect, filter=settings.get("filter") or "")
    people = People(ratings, method=settings["ratings"], subset=settings["systems"])
    places, turns = read_turns(folder, [keys[number] for number in people.item.tolist()])

    def outside_of(some: Sequence[str]) -> Any:
        return turns.outside(~outside_training(folder, some, places))

    outside = outside_of(names)
    scored = [load_scored(folder, name, places) for name in names]
    return dialogues_table(
        people,
        turns,
        [replace(one, metric=turns.mean(one.metric)) for one in scored],
        settings,
        aspect=aspect,
        outside=outside,
        learned={} if outside.any() else learned_most(folder, names, outside_of),
        unapplied=unapplied,
    )


def _enhanced(folder: ExportFolder, entry: Entry, settings: Mapping[str, Any]) -> Table:
    table, names = entry["table"], entry["sets"]
    rated = load_rated(folder, table["aspect"], settings)
    by_evaluator: dict[tuple[str, str], dict[str, Scored]] = {}
    for name in names:
        one = load_scored(folder, name, rated.places)
        by_evaluator.setdefault((one.evaluator, one.aspect), {})[one.references] = one
    return enhanced_table(
        rated.people,
        [of_sets for _, of_sets in sorted(by_evaluator.items())],
        settings,
        aspect=table["aspect"],
        names=entry["references"],
        outside=outside_training(folder, names, rated.places),
    )


def _agreement(folder: ExportFolder, entry: Entry, settings: Mapping[str, Any]) -> Table:
    """Agreement of all aspects, or of one. What such a table tells of single raters does not stand in an export."""
    table, without = entry["table"], settings.get("filter") or ""
    if settings["aspect"]:
        columns = folder.judged(table["aspect"], table["judged"], filter=without)
        return detail_table(columns, settings, aspect=table["aspect"], judged=table["judged"], controls={})
    asked = [(row["aspect"], row["judged"]) for row in table["rows"]]
    parts = ((aspect, way, folder.judged(aspect, way, filter=without)) for aspect, way in asked)
    return overview_table(parts, settings)


def _slices(folder: ExportFolder, entry: Entry, settings: Mapping[str, Any]) -> Table:
    table, names = entry["table"], entry["sets"]
    rated = load_rated(folder, table["aspect"], settings)
    told = [folder.metas[item].get(table["key"]) for item, _, _ in rated.places]
    return slices_table(
        rated.people,
        [load_scored(folder, name, rated.places) for name in names],
        part_column(told),
        {**settings, "key": table["key"]},
        aspect=table["aspect"],
        outside=outside_training(folder, names, rated.places),
    )


def _matrix(folder: ExportFolder, entry: Entry, settings: Mapping[str, Any]) -> Table:
    places, cluster, system = folder.outputs(settings["systems"])
    scored = [load_scored(folder, name, places) for name in entry["sets"]]
    columns = np.full((len(places), len(scored)), np.nan)
    for place, one in enumerate(scored):
        columns[:, place] = one.metric
    return matrix_table(scored, columns, cluster, system, settings, aspect=entry["table"]["aspect"])


def _aspects(folder: ExportFolder, entry: Entry, settings: Mapping[str, Any]) -> Table:
    """From the main table of every aspect, each computed from its own settings and sets."""
    kept = entry["table"]
    unapplied = [
        {"evaluator": row["evaluator"], "note": row["cells"][0]["note"], "score_set": None}
        for row in kept["rows"]
        if row["score_set"] is None
    ]
    signed = {one["aspect"]: one.get("signature", "") for one in kept["aspects"]}
    tables = []
    for aspect, part in entry["tables"].items():
        inner = {
            "sets": part["sets"],
            "table": {"aspect": aspect, "rows": unapplied, "signature": signed.get(aspect, "")},
        }
        tables.append(_evaluators(folder, inner, {**part["params"], **draws_of(settings)}))
    return aspects_table(tables, {**settings, "figure": kept["figure"]})


def _pairs(folder: ExportFolder, entry: Entry, settings: Mapping[str, Any]) -> Table:
    aspect, names = entry["table"]["aspect"], entry["sets"]
    # Where nobody compared anything there is a table that says so, and an export without a file of comparisons.
    none = entry["table"].get("n_ratings") == 0
    compared, places = _compared(folder, aspect, settings, turing=False, may_lack=none)
    outside = outside_training(folder, names, places)
    return pairs_table(
        compared,
        [load_scored(folder, name, places) for name in names],
        settings,
        aspect=aspect,
        outside=outside,
        learned=_learned_from(folder, names, compared, places, outside),
    )


#: How a table of each kind is computed from the folder, its entry in `leaderboard.json` and its settings.
COMPUTED: dict[str, Callable[[ExportFolder, Entry, Mapping[str, Any]], Table]] = {
    "systems": _systems,
    "evaluators": _evaluators,
    "enhanced": _enhanced,
    "agreement": _agreement,
    "slices": _slices,
    "matrix": _matrix,
    "aspects": _aspects,
    "pairs": _pairs,
}
