"""The systems of the demonstration: each really answers every item. Which outputs exist and how they come about is
decided here; how good people would find them is not (see `rater_model`)."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evalapp.demo import words
from evalapp.demo.ngram import NgramModel, Sample, checkpoints
from evalapp.demo.texts import DIALOGUE, RESTAURANTS, Dialogue, Item, read_json

STEPS = (30, 300, 3000)
FOLDS = 4


@dataclass(frozen=True)
class Output:
    item: str
    system: str
    text: str
    step: int | None = None


SYSTEMS: tuple[dict[str, Any], ...] = (
    {
        "id": "constant",
        "kind": "control",
        "meta": {"about": "the same sentence for every item of a domain"},
    },
    {
        "id": "ngram",
        "kind": "machine",
        "meta": {"about": "word n-gram model with training steps, never trained on the item's group"},
    },
    {
        "id": "retrieval",
        "kind": "machine",
        "meta": {"about": "answer to the most similar input of another group, by shared words"},
    },
    {
        "id": "shuffled",
        "kind": "control",
        "meta": {"about": "first reference of an item of another group"},
    },
    {
        "id": "template-a",
        "kind": "machine",
        "meta": {"about": "full frame for restaurants, keyword rules for dialogues"},
    },
    {
        "id": "template-b",
        "kind": "machine",
        "meta": {"about": "short slogan for restaurants, question-type rules for dialogues"},
    },
    {
        "id": "written",
        "kind": "human",
        "meta": {"about": "a further answer written by a person"},
    },
)


def all_outputs(items: Sequence[Item], dialogues: Sequence[Dialogue], seed: int) -> list[Output]:
    """Every system on every item, the n-gram model at each of `STEPS`; sorted by item, system, step."""
    outputs = [Output(item.id, "written", item.written) for item in items]
    outputs += constant(items)
    outputs += shuffled(items, random.Random(f"{seed}:shuffled"))
    outputs += retrieval(items, dialogues)
    outputs += templates(items)
    outputs += ngram(items, dialogues, seed)
    return sorted(outputs, key=lambda out: (out.item, out.system, out.step or 0))


def constant(items: Sequence[Item]) -> list[Output]:
    sentences = read_json("restaurant_templates.json")["constant"]
    return [Output(item.id, "constant", sentences[item.domain]) for item in items]


def shuffled(items: Sequence[Item], rng: random.Random) -> Iterator[Output]:
    """First references dealt out anew within a domain, never inside their own group."""
    for domain in (DIALOGUE, RESTAURANTS):
        own = [item for item in items if item.domain == domain]
        dealt = list(own)
        while any(a.group == b.group for a, b in zip(own, dealt, strict=True)):
            rng.shuffle(dealt)
            for place, item in enumerate(own):
                if item.group == dealt[place].group:
                    other = rng.randrange(len(dealt))
                    dealt[place], dealt[other] = dealt[other], dealt[place]
        for item, giver in zip(own, dealt, strict=True):
            yield Output(item.id, "shuffled", giver.references[0])


def _attributes(item: Item) -> frozenset[str]:
    """The attributes with their values, without those that belong to one restaurant only."""
    return frozenset(f"{name}={value}" for name, value in item.slots.items() if name not in ("name", "near"))


def _jaccard(a: frozenset[str], b: frozenset[str]) -> float:
    return len(a & b) / len(a | b) if a | b else 0.0


def _weighted_overlap(a: frozenset[str], b: frozenset[str], weight: Mapping[str, float]) -> float:
    """Weight of the shared words / (weight of all words + 20): Jaccard, damped so that two words of a very short
    turn are not a match by chance. Summed in order, so that equal bags give equal bits."""
    shared = sum(weight[word] for word in sorted(a & b))
    return shared / (sum(weight[word] for word in sorted(a | b)) + 20)


@dataclass(frozen=True)
class _Known:
    """A reply that may be borrowed: the words of the turn before it, and of the whole talk with the reply."""

    group: str
    turn: frozenset[str]
    talk: frozenset[str]
    reply: str


def _borrowable(items: Sequence[Item], dialogues: Sequence[Dialogue]) -> list[_Known]:
    """Replies of the separate dialogues and references of the items. The group is empty for a dialogue."""
    known = []
    for talk in dialogues:
        for place in range(1, len(talk.turns)):
            before, reply = talk.turns[max(0, place - 3) : place], talk.turns[place]
            known.append(_Known("", _bag(before[-1:]), _bag((*before, reply)), reply))
    for item in items:
        if item.domain == DIALOGUE:
            for reply in item.references:
                known.append(_Known(item.group, _bag(item.context[-1:]), _bag((*item.context, reply)), reply))
    return known


def _bag(texts: Sequence[str]) -> frozenset[str]:
    return frozenset(words.content_words(" ".join(texts)))


def _likeness(turn: frozenset[str], talk: frozenset[str], row: _Known, rarity: Mapping[str, float]) -> float:
    return _weighted_overlap(turn, row.turn, rarity) + 2 * _weighted_overlap(talk, row.talk, rarity)


def retrieval(items: Sequence[Item], dialogues: Sequence[Dialogue]) -> Iterator[Output]:
    """The answer to the most similar input of another group: for a dialogue, overlap of the last turns plus twice
    that of the whole talks, words weighted by rarity, over references and separate dialogues; for a restaurant,
    Jaccard similarity of the attributes, and its own name, landmark, food and area put in where the borrowed text
    has another one."""
    known = _borrowable(items, dialogues)
    bags = [row.talk for row in known] + [_bag(item.context) for item in items]
    frequency = Counter(word for bag in bags for word in bag)
    rarity = {word: math.log(len(bags) / count) for word, count in frequency.items()}
    for item in items:
        if item.domain == DIALOGUE:
            turn, talk = _bag(item.context[-1:]), _bag(item.context)
            others = (row for row in known if row.group != item.group)
            best = max(others, key=lambda row: _likeness(turn, talk, row, rarity))
            yield Output(item.id, "retrieval", best.reply)
        else:
            near = max(
                (other for other in items if other.domain == RESTAURANTS and other.group != item.group),
                key=lambda other: _jaccard(_attributes(item), _attributes(other)),
            )
            text = words.without_slots(near.references[0], near.slots)
            yield Output(item.id, "retrieval", words.with_slots(text, {**near.slots, **item.slots}))


def templates(items: Sequence[Item]) -> Iterator[Output]:
    rules = read_json("dialogue_rules.json")
    frames = read_json("restaurant_templates.json")
    for item in items:
        if item.domain == DIALOGUE:
            yield Output(item.id, "template-a", _keyword_reply(item, rules["template-a"]))
            yield Output(item.id, "template-b", _question_reply(item, rules["template-b"]))
        else:
            yield Output(item.id, "template-a", _full_frame(item.slots, frames["template-a"]))
            yield Output(item.id, "template-b", _slogan(item.slots, frames["template-b"]))


def _keyword_reply(item: Item, rules: dict[str, Any]) -> str:
    for turn in reversed(item.context[-2:]):
        present = {word.lower() for word in words.split_words(turn)}
        for rule in rules["rules"]:
            if present & set(rule["keywords"]):
                return str(rule["reply"])
    last = words.content_words(item.context[-1]) or ["day"]
    return str(rules["fallback"]).format(word=max(last, key=len))


def _question_reply(item: Item, rules: dict[str, Any]) -> str:
    last = item.context[-1].lower()
    starts = [start for rule in rules["rules"] for start in rule["starts"] if last.startswith(start + " ")]
    if starts and last.endswith("?"):
        longest = max(starts, key=len)
        return next(str(rule["reply"]) for rule in rules["rules"] if longest in rule["starts"])
    return str(rules["question" if last.endswith("?") else "statement"])


def _full_frame(slots: dict[str, str], frame: dict[str, Any]) -> str:
    slots = {**slots, "food": _food(slots["food"], frame)}
    parts = [frame["opening"].format(**slots)]
    parts += [pattern.format(**slots) for name, pattern in frame["parts"] if name in slots]
    sentences = [" ".join(parts) + "."]
    for name, pattern in frame["sentences"]:
        if name in slots:
            sentences.append(pattern[slots[name]] if isinstance(pattern, dict) else pattern.format(**slots))
    return " ".join(sentences)


def _slogan(slots: dict[str, str], frame: dict[str, Any]) -> str:
    slots = {**slots, "food": _food(slots["food"], frame)}
    return next(str(text).format(**slots) for needs, text in frame["patterns"] if set(needs) <= set(slots))


def _food(value: str, frame: dict[str, Any]) -> str:
    """Dishes as they are ("fish"), cuisines with the word food ("Thai food")."""
    return f"{value} food" if value[0].isupper() or value in frame["cuisines"] else value


def ngram(items: Sequence[Item], dialogues: Sequence[Dialogue], seed: int) -> Iterator[Output]:
    """Per domain, `FOLDS` models that each leave out a share of the groups and answer these groups' items: a model
    never saw a reference of the items it answers, nor of their group. For dialogues the turns of the separate
    dialogues are learned, too."""
    for domain in (DIALOGUE, RESTAURANTS):
        own = [item for item in items if item.domain == domain]
        talks = [talk.turns for talk in dialogues] if domain == DIALOGUE else []
        texts = [*(item.references for item in own), *talks]
        capitals = words.mid_sentence_capitals(itertools.chain.from_iterable(texts))
        samples = {item.id: _samples(item, capitals) for item in own}
        shared = [sample for turns in talks for sample in _talk_samples(turns, capitals)]
        groups = list(dict.fromkeys(item.group for item in own))
        for fold in range(FOLDS):
            left_out = set(groups[fold::FOLDS])
            pool = shared + [sample for item in own if item.group not in left_out for sample in samples[item.id]]
            held_out = [item for item in own if item.group in left_out]
            for step, model in checkpoints(pool, STEPS, random.Random(f"{seed}:train:{domain}:{fold}")):
                for item in held_out:
                    yield Output(item.id, "ngram", _written_by(model, item, seed, step), step)


def _written_by(model: NgramModel, item: Item, seed: int, step: int) -> str:
    absent = frozenset(mark for name, mark in words.COPIED.items() if name not in item.slots)
    rng = random.Random(f"{seed}:write:{item.id}:{step}")
    shortest, longest = (9, 35) if item.domain == RESTAURANTS else (3, 24)
    answer = model.answer(_features(item), rng, banned=absent, shortest=shortest, longest=longest)
    return words.with_slots(words.join_words(answer), item.slots)


def _features(item: Item) -> tuple[str, ...]:
    if item.domain == DIALOGUE:
        return _turn_features(item.context)
    return tuple(f"{name}={value}" if name not in words.COPIED else name for name, value in item.slots.items())


def _turn_features(context: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(words.content_words(" ".join(context[-2:]))))


def _samples(item: Item, capitals: frozenset[str]) -> list[Sample]:
    kept = capitals | set(words.COPIED.values())
    splits = [words.split_words(words.without_slots(text, item.slots)) for text in item.references]
    return [Sample(_features(item), tuple(words.lower_starts(split, kept))) for split in splits]


def _talk_samples(turns: Sequence[str], capitals: frozenset[str]) -> list[Sample]:
    return [
        Sample(_turn_features(turns[:place]), tuple(words.lower_starts(words.split_words(turns[place]), capitals)))
        for place in range(1, len(turns))
    ]
