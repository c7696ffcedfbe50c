"""The systems of the demonstration, which generate an output for every item. Their quality is simulated in
`rater_model`."""

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
    """Return the outputs of all systems, of the n-gram model at each of `STEPS`, sorted by item, system, step."""
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
    """Shuffle the first references within a domain, so that no item gets one of its own group."""
    for domain in (DIALOGUE, RESTAURANTS):
        targets = [item for item in items if item.domain == domain]
        sources = list(targets)
        while any(a.group == b.group for a, b in zip(targets, sources, strict=True)):
            rng.shuffle(sources)
            for place, item in enumerate(targets):
                if item.group == sources[place].group:
                    other = rng.randrange(len(sources))
                    sources[place], sources[other] = sources[other], sources[place]
        for item, source in zip(targets, sources, strict=True):
            yield Output(item.id, "shuffled", source.references[0])


def _attributes(item: Item) -> frozenset[str]:
    """Return attribute=value for attributes that restaurants share."""
    return frozenset(f"{name}={value}" for name, value in item.slots.items() if name not in ("name", "near"))


def _jaccard(a: frozenset[str], b: frozenset[str]) -> float:
    return len(a & b) / len(a | b) if a | b else 0.0


def _weighted_overlap(a: frozenset[str], b: frozenset[str], weight: Mapping[str, float]) -> float:
    """Return the weight of shared words / (weight of all words + 20): Jaccard similarity, damped for short turns. Sums
    are in sorted order, so that results are reproducible to the bit."""
    shared = sum(weight[word] for word in sorted(a & b))
    return shared / (sum(weight[word] for word in sorted(a | b)) + 20)


@dataclass(frozen=True)
class _Known:
    """A reply for retrieval, with the words of the turn before it and of its context."""

    group: str
    turn: frozenset[str]
    talk: frozenset[str]
    reply: str


def _borrowable(items: Sequence[Item], dialogues: Sequence[Dialogue]) -> list[_Known]:
    """Return the replies of the dialogues (without a group) and the references of the items."""
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
    """Yield the reply to the most similar input of another group. For dialogues, similarity is the overlap of the last
    turns plus twice that of the contexts, with words weighted by rarity; for restaurants, the Jaccard similarity of the
    attributes, and name, landmark, food and area in the retrieved text are replaced."""
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
    """Return dishes unchanged ("fish") and cuisines with the word food ("Thai food")."""
    return f"{value} food" if value[0].isupper() or value in frame["cuisines"] else value


def ngram(items: Sequence[Item], dialogues: Sequence[Dialogue], seed: int) -> Iterator[Output]:
    """Yield outputs of `FOLDS` models per domain, each trained without the groups of the items that it answers. Models
    for dialogues are also trained on the separate dialogues."""
    for domain in (DIALOGUE, RESTAURANTS):
        members = [item for item in items if item.domain == domain]
        talks = [talk.turns for talk in dialogues] if domain == DIALOGUE else []
        texts = [*(item.references for item in members), *talks]
        capitals = words.mid_sentence_capitals(itertools.chain.from_iterable(texts))
        samples = {item.id: _samples(item, capitals) for item in members}
        shared = [sample for turns in talks for sample in _talk_samples(turns, capitals)]
        groups = list(dict.fromkeys(item.group for item in members))
        for fold in range(FOLDS):
            excluded = set(groups[fold::FOLDS])
            pool = shared + [sample for item in members if item.group not in excluded for sample in samples[item.id]]
            held_out = [item for item in members if item.group in excluded]
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
