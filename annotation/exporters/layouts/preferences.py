"""Preference pairs for DPO and reward training: the better and the worse text for the same input."""

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import combinations
from typing import Any

from annotation.exporters.aggregated import select_first_judgements
from annotation.parsers import canonical, encode_row

from .base import ItemRows, Layout, Plan, Row, Side, make_messages, make_prompt, make_safe_names, name_side

LEFT_OUT = {
    "tie": "ties", "both_bad": "both texts bad", "cannot_decide": "no verdict but “cannot decide”",
    "same": "both texts equal",
}  # fmt: skip


class Preferences(Layout):
    """`preferences.ASPECT.jsonl`: `prompt`, `chosen` and `rejected` as `trl` and similar libraries read them. With
    contexts they are lists of chat messages, otherwise texts."""

    title = "Preference pairs: prompt, chosen and rejected"
    lost = "outputs in no pair, references, groups, raters, ratings, ties, and properties (`meta`)"

    def __init__(self, folder: Any, plan: Plan) -> None:
        super().__init__(folder, plan)
        judged = [aspect["name"] for aspect in plan.aspects if aspect["name"] in plan.compared | plan.rated]
        safe = make_safe_names(judged)
        self.names = {aspect: f"preferences.{safe[aspect]}.jsonl" for aspect in judged}
        self.opened = {aspect: self.open(name) for aspect, name in self.names.items()}
        #: Pairs and reasons why pairs were left out, by aspect.
        self.counts: dict[str, Counter[str]] = {aspect: Counter() for aspect in judged}

    def take_item(self, rows: ItemRows) -> None:
        texts = rows.name_texts()
        for (a, b), verdicts in rows.pair_up().items():
            for aspect, votes in _count_votes(verdicts).items():
                self._write(rows.item, aspect, (a, b), votes, texts)
        for aspect, a, b, difference in self._subtract(rows):
            self._write_pair(rows.item, aspect, (a, b) if difference > 0 else (b, a), texts, margin=abs(difference))

    def _subtract(self, rows: ItemRows) -> Iterator[tuple[str, str, str, float]]:
        """The pairs of rated outputs and the difference of their mean ratings, for aspects without comparisons."""
        by_aspect: dict[str, list[tuple[Side, float]]] = {}
        for (side, aspect), row in rows.means().items():
            if aspect not in self.plan.compared:
                by_aspect.setdefault(aspect, []).append((side, row["mean"]))
        for aspect, means in by_aspect.items():
            for (a, first), (b, second) in combinations(means, 2):
                if first == second:
                    self.counts[aspect]["tie"] += 1
                else:
                    yield aspect, name_side(a), name_side(b), first - second

    def _write(self, item: Row, aspect: str, pair: tuple[str, str], votes: Counter[str], texts: dict[str, str]) -> None:
        """Write a compared pair if one verdict is the most frequent and prefers a text."""
        verdicts = ("a", "b", "tie", "both_bad")
        most = max(votes[name] for name in verdicts)
        winners = [name for name in verdicts if votes[name] == most]
        if not most:
            self.counts[aspect]["cannot_decide"] += 1
        elif winners not in (["a"], ["b"]):
            self.counts[aspect]["both_bad" if winners == ["both_bad"] else "tie"] += 1
        else:
            is_first = winners == ["a"]
            counted = {
                "chosen": most, "rejected": votes["b" if is_first else "a"], "tie": votes["tie"],
                "both_bad": votes["both_bad"],
            }  # fmt: skip
            self._write_pair(item, aspect, pair if is_first else (pair[1], pair[0]), texts, votes=counted)

    def _write_pair(self, item: Row, aspect: str, pair: tuple[str, str], texts: dict[str, str], **how: Any) -> None:
        better, worse = pair
        if texts[better] == texts[worse]:
            self.counts[aspect]["same"] += 1
            return
        chosen, rejected = texts[better], texts[worse]
        row: Row = {"prompt": make_prompt(item), "chosen": chosen, "rejected": rejected}
        if self.plan.has_turns:
            answers = ([{"role": "assistant", "content": text}] for text in (chosen, rejected))
            row = dict(zip(("prompt", "chosen", "rejected"), (make_messages(item), *answers), strict=True))
        row |= {"item": item["id"], "aspect": aspect, "chosen_system": better, "rejected_system": worse}
        self.opened[aspect].write(encode_row({**row, **canonical(how)}) + "\n")
        self.counts[aspect]["pairs"] += 1
        self.files[self.names[aspect]] += 1

    def close(self) -> None:
        self.abort()
        for aspect, name in self.names.items():
            counts = self.counts[aspect]
            how = (
                "compared pairs whose most frequent verdict prefers one text; `votes` counts the raters"
                if aspect in self.plan.compared
                else "pairs of outputs of an item with different mean ratings; `margin` is the difference"
            )
            parts = ", ".join(f"{counts[why]:,} {words}" for why, words in LEFT_OUT.items() if counts[why])
            self.notes.append(f"`{name}`: {counts['pairs']:,} {how}. Left out: {parts or 'none'}.")
        if self.names:
            self.add_mapping("preferences", self._make_mapping())
            self.notes.append("`load FILE --map preferences.mapping.json` imports pairs; the rater is `preferences`.")
        else:
            self.notes.append("There are no judgements of outputs, hence no pairs.")

    def _make_mapping(self) -> dict[str, Any]:
        """The mapping with which the pairs are imported again."""
        texts = ("context", "chosen", "rejected") if self.plan.has_turns else ()
        return {
            "shape": "preference",
            "columns": {
                "item": "item", "context": "prompt", "chosen": "chosen", "rejected": "rejected", "aspect": "aspect",
                "system_a": "chosen_system", "system_b": "rejected_system",
            },
            "constants": {"rater": "preferences"},
            "turns": {name: {"rule": "chat"} for name in texts},
        }  # fmt: skip

    def abort(self) -> None:
        for file in self.opened.values():
            file.close()


def _count_votes(verdicts: Iterable[tuple[str, str, str]]) -> dict[str, Counter[str]]:
    """The verdicts on a pair by aspect; of a rater who judged it again, only the first."""
    votes: dict[str, Counter[str]] = {}
    aspects: dict[str, list[Row]] = {}
    for rater, aspect, verdict in verdicts:
        aspects.setdefault(aspect, []).append({"rater": rater, "verdict": verdict})
    for aspect, rows in aspects.items():
        votes[aspect] = Counter(row["verdict"] for row in select_first_judgements(rows))
    return votes
