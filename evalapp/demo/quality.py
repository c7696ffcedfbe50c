"""How good an output of the demonstration is to an average simulated rater: features of its text, and from them a
latent value per aspect. The raters themselves, with bias and noise, are in `rater_model`."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from evalapp.demo import words
from evalapp.demo.texts import DIALOGUE, Dialogue, Item, read_json

ASPECTS = ("naturalness", "relevance", "informativeness")

_ORDERS = (3, 4, 5)
_STIFF_FROM = 25.0
_POLAR = frozenset(read_json("words.json")["polar"].split())
_REACTIONS = frozenset(read_json("words.json")["reactions"].split())


@dataclass(frozen=True)
class Features:
    """Features of a text, each from 0 to 1.

    fluency: mean share of its word 3-, 4- and 5-grams (including the end) that occur in fluent texts.
    fit: dialogue - .45 shared content words with a reference, .35 words of the topic, .2 whether a question is
        answered, stretched from 0.1 ... 0.6;
        restaurants - share of attributes stated correctly, minus half the share of wrong ones.
    substance: dialogue - content words, at most six; restaurants - stated attributes, at most four.
    stiffness: share of its 3-grams that also occur in many outputs for other items.
    """

    fluency: float
    fit: float
    substance: float
    stiffness: float


def latent(features: Features) -> dict[str, float]:
    """Latent value per aspect on the scale 1 to 5.

    naturalness     = 1 + 4 fluency^2 (0.4 + 0.6 fit) (1 - 0.3 stiffness)
    relevance       = 1 + 4 fit (0.4 + 0.6 fluency)
    informativeness = 1 + 4 substance (0.3 + 0.7 fit) (0.4 + 0.6 fluency)
    """
    f = features
    return {
        "naturalness": 1 + 4 * f.fluency**2 * (0.4 + 0.6 * f.fit) * (1 - 0.3 * f.stiffness),
        "relevance": 1 + 4 * f.fit * (0.4 + 0.6 * f.fluency),
        "informativeness": 1 + 4 * f.substance * (0.3 + 0.7 * f.fit) * (0.4 + 0.6 * f.fluency),
    }


def _grams(split: Sequence[str], order: int) -> Iterator[tuple[str, ...]]:
    padded = [*split, "</s>"]
    return (tuple(padded[i : i + order]) for i in range(len(padded) - order + 1))


def _plain(text: str, item: Item) -> list[str]:
    """Return lower-cased words with the item's values replaced by placeholders, so that templates look the same."""
    return [word.lower() for word in words.split_words(words.without_slots(text, item.slots))]


class Judge:
    """Measures features of texts.

    `fluent` are (item, text) pairs that are grammatical by construction: written by people, or composed of such
    sentences. `shown` are all (item, text) pairs that raters see; frequent phrases count as stiff.
    """

    def __init__(
        self,
        items: Sequence[Item],
        dialogues: Sequence[Dialogue],
        fluent: Iterable[tuple[Item, str]],
        shown: Iterable[tuple[Item, str]],
    ) -> None:
        self._attested: set[tuple[str, ...]] = set()
        for item, text in fluent:
            for order in _ORDERS:
                self._attested.update(_grams(_plain(text, item), order))
        self._shown: Counter[tuple[str, ...]] = Counter()
        for item, text in shown:
            self._shown.update(set(_grams(_plain(text, item), 3)))
        self._topics: dict[str, set[str]] = {}
        for item in items:
            texts = [*item.context, *item.references, item.written]
            self._topics.setdefault(item.topic, set()).update(words.content_words(" ".join(texts)))
        for talk in dialogues:
            self._topics[talk.topic].update(words.content_words(" ".join(talk.turns)))
        self._values = _value_patterns(items)
        self._names = {item.slots["name"] for item in items if item.slots}

    def features(self, item: Item, text: str, *, by_person: bool) -> Features:
        """Return the features of a text for an item. A text that a person wrote for it fits by construction
        (`by_person`), because word overlap would miss good paraphrases."""
        said, wrong = (0, 0) if item.domain == DIALOGUE else self._attributes(item, text)
        if item.domain == DIALOGUE:
            fit = self._dialogue_fit(item, text)
            substance = min(len(set(words.content_words(text))) / 6, 1.0)
        else:
            fit = max(0.0, said / len(item.slots) - 0.5 * wrong / len(item.slots))
            fit *= 0.3 if any(words.slot_pattern(n).search(text) for n in self._names - {item.slots["name"]}) else 1.0
            substance = min(said / 4, 1.0)
        if by_person:
            fit, substance = 0.95, max(substance, 0.8)
        return Features(self._fluency(item, text), min(fit, 1.0), substance, self._stiffness(item, text))

    def _fluency(self, item: Item, text: str) -> float:
        split = _plain(text, item)
        shares = []
        for order in _ORDERS:
            grams = list(_grams(split, order))
            if grams:
                shares.append(sum(gram in self._attested for gram in grams) / len(grams))
        return sum(shares) / len(shares) if shares else 1.0

    def _stiffness(self, item: Item, text: str) -> float:
        grams = list(_grams(_plain(text, item), 3))
        if not grams:
            return 1.0
        return sum(min(max(self._shown[gram] - 1, 0) / _STIFF_FROM, 1.0) for gram in grams) / len(grams)

    def _dialogue_fit(self, item: Item, text: str) -> float:
        reply = set(words.content_words(text))
        best = max(_overlap_f1(reply, set(words.content_words(reference))) for reference in item.references)
        topic = len(reply & self._topics[item.topic]) / len(reply) if reply else 0.0
        raw = 0.45 * min(1.5 * best, 1.0) + 0.35 * topic + 0.2 * _answers(item.context[-1], text)
        return min(max((raw - 0.1) / 0.5, 0.0), 1.0)

    def _attributes(self, item: Item, text: str) -> tuple[int, int]:
        """Return the numbers of attributes that the text states correctly and with another value."""
        said = wrong = 0
        for attribute, patterns in self._values.items():
            result = {value for value, pattern in patterns.items() if pattern.search(text)}
            if attribute == "family" and "no" in result:
                result = {"no"}
            right = item.slots.get(attribute)
            said += right in result
            wrong += bool(result - {right})
        return said, wrong


def _answers(turn: str, reply: str) -> float:
    """Return 1 if the reply answers the turn, 0.5 if it may, 0.1 if it does not."""
    last = re.split(r"(?<=[.?!]) ", turn)[-1].lower()
    if not last.endswith("?"):
        return 0.5
    polar = last.split()[0].strip(",?") in _POLAR
    agrees = re.split(r"[ ,.!]", reply.lower())[0] in _REACTIONS
    if polar:
        return 1.0 if agrees else 0.5
    return 0.1 if agrees or reply.endswith("?") else 1.0


def _overlap_f1(a: set[str], b: set[str]) -> float:
    return 2 * len(a & b) / (len(a) + len(b)) if a or b else 0.0


def _value_patterns(items: Sequence[Item]) -> dict[str, Mapping[str, re.Pattern[str]]]:
    """Return attribute -> value -> pattern of its wordings: those of `realisations.json`, otherwise the value itself
    or, for landmarks and hours, its last word."""
    known = read_json("realisations.json")
    patterns: dict[str, dict[str, re.Pattern[str]]] = {}
    for item in items:
        for attribute, value in item.slots.items():
            ways = known.get(attribute, {}).get(value)
            if ways is None:
                last = value.split()[-1] if attribute in ("near", "open", "outdoor") else value
                ways = [r"[ -]".join(map(re.escape, last.split()))]
            if attribute == "dogs":
                ways = ["dogs?"]
            pattern = re.compile(r"\b(?:" + "|".join(ways) + r")s?\b", re.IGNORECASE)
            patterns.setdefault(attribute, {})[value] = pattern
    return {attribute: patterns[attribute] for attribute in sorted(patterns)}
