"""A word n-gram language model that is trained sample by sample and generates text for a context or a meaning
representation: the learned system of the demonstration."""

import math
import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

START = "<s>"
END = "</s>"


@dataclass(frozen=True)
class Sample:
    """A training pair: features of the input (content words or attribute=value), and the words of the output."""

    features: tuple[str, ...]
    words: tuple[str, ...]


class NgramModel:
    """Interpolated n-gram counts with a Dirichlet prior, and a learned association of inputs with words.

    p_k(w | h) = (c(h w) + prior * p_{k-1}(w | shorter h)) / (c(h) + prior), p_0 uniform over the words seen.
    With few samples the prior dominates and texts are random words; with more, longer histories dominate. The
    association of a feature f with a word w is n(f, w) / (n(w) + 5): the share of samples with w that had f, damped for
    rare words.
    """

    def __init__(self, order: int = 4, prior: float = 3.0) -> None:
        self.order = order
        self.prior = prior
        self.followers: defaultdict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
        self.totals: Counter[tuple[str, ...]] = Counter()
        self.seen_with: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self.seen: Counter[str] = Counter()
        self.vocabulary: list[str] = []
        self._strengths: dict[str, dict[str, float]] = {}

    def update(self, sample: Sample) -> None:
        """Train on a sample."""
        self._strengths.clear()
        padded = [START] * (self.order - 1) + list(sample.words) + [END]
        for end in range(self.order - 1, len(padded)):
            word = padded[end]
            if not self.followers[()][word]:
                self.vocabulary.append(word)
            for size in range(self.order):
                history = tuple(padded[end - size : end])
                self.followers[history][word] += 1
                self.totals[history] += 1
        for word in dict.fromkeys(sample.words):
            self.seen[word] += 1
            counts = self.seen_with[word]
            for feature in sample.features:
                counts[feature] += 1

    def probability(self, word: str, history: Sequence[str]) -> float:
        """Return p(word | history); of `history` the last order - 1 words count."""
        p = 1.0 / max(len(self.vocabulary), 1)
        for size in range(self.order):
            key = tuple(history[len(history) - size :])
            if key not in self.totals:
                break  # unknown history: (0 + prior * p) / (0 + prior) = p, and so for all longer ones
            p = (self.followers[key][word] + self.prior * p) / (self.totals[key] + self.prior)
        return p

    def draw(self, history: Sequence[str], rng: random.Random, banned: frozenset[str]) -> str:
        """Draw a word from p(. | history): back off to a shorter history with probability prior / (c(h) + prior), and
        if the word is banned."""
        for size in range(self.order - 1, -1, -1):
            key = tuple(history[len(history) - size :])
            total = self.totals[key]
            if rng.random() * (total + self.prior) < total:
                counts = self.followers[key]
                word = rng.choices(list(counts), weights=list(counts.values()))[0]
                if word not in banned:
                    return word
        return rng.choice([word for word in self.vocabulary if word not in banned])

    def write(self, rng: random.Random, banned: frozenset[str], shortest: int, longest: int) -> tuple[list[str], float]:
        """Return a text (at least `shortest` words, none of `banned`) and its mean log probability per word."""
        history = [START] * (self.order - 1)
        words: list[str] = []
        logs = 0.0
        while len(words) < longest:
            word = self.draw(history, rng, banned if len(words) >= shortest else banned | {END})
            logs += math.log(self.probability(word, history))
            if word == END:
                break
            words.append(word)
            history = [*history, word][-(self.order - 1) :]
        return words, logs / (len(words) + 1)

    def association(self, features: Sequence[str], words: Sequence[str]) -> float:
        """Return the mean over features of the strongest association with a word of the text; 0 without features."""
        if not features:
            return 0.0
        known = [(self.seen_with[word], self.seen[word] + 5.0) for word in dict.fromkeys(words)]
        best = [max(counts[feature] / damped for counts, damped in known) for feature in features]
        return sum(best) / len(best)

    def contradiction(self, features: Sequence[str], words: Sequence[str]) -> float:
        """Return the sum over words of the excess of the strongest association with an absent value (attribute=value)
        over that with a present one; 0 without attributes."""
        known = {feature.partition("=")[0] for feature in features if "=" in feature}
        present = set(features)
        total = 0.0
        for word in dict.fromkeys(words):
            strength = self._value_strength(word)
            absent = [s for f, s in strength.items() if f not in present and f.partition("=")[0] in known]
            fitting = [s for f, s in strength.items() if f in present]
            total += max(0.0, max(absent, default=0.0) - max(fitting, default=0.0))
        return total

    def _value_strength(self, word: str) -> dict[str, float]:
        """Return attribute=value -> association with the word, cached until the next update."""
        if word not in self._strengths:
            damped = self.seen[word] + 5.0
            self._strengths[word] = {f: n / damped for f, n in self.seen_with[word].items() if "=" in f}
        return self._strengths[word]

    def answer(
        self,
        features: Sequence[str],
        rng: random.Random,
        *,
        banned: frozenset[str] = frozenset(),
        shortest: int = 2,
        longest: int = 30,
        candidates: int = 20,
        weight: float = 30.0,
    ) -> list[str]:
        """The best of the drawn texts by
        mean log probability + weight * (association with the input - contradiction / 10)."""

        def merit(draft: tuple[list[str], float]) -> float:
            fit = self.association(features, draft[0]) - self.contradiction(features, draft[0]) / 10
            return draft[1] + weight * fit

        return max((self.write(rng, banned, shortest, longest) for _ in range(candidates)), key=merit)[0]


def checkpoints(
    samples: Sequence[Sample], steps: Sequence[int], rng: random.Random
) -> Iterator[tuple[int, NgramModel]]:
    """One model trained on samples drawn with replacement, handed out at each of the ascending `steps`. It is the
    same object each time: use it before asking for the next."""
    model = NgramModel()
    done = 0
    for step in steps:
        while done < step:
            model.update(rng.choice(samples))
            done += 1
        yield step, model
