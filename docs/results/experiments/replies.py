"""Replies of the demonstration's word n-gram models, for experiments without texts of other systems."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence

from evalapp.demo import words
from evalapp.demo.ngram import NgramModel, Sample
from scoring.ml import Item, Output


def read_features(item: Item) -> tuple[str, ...]:
    return tuple(dict.fromkeys(words.content_words(" ".join(item.context[-2:]))))


def make_samples(items: Iterable[Item]) -> list[Sample]:
    return [
        Sample(read_features(item), tuple(words.split_words(text.lower())))
        for item in items
        for text in item.references
    ]


def train_steps(
    samples: Sequence[Sample], answered: Sequence[Item], steps: Sequence[int], name: str, order: int, seed: int
) -> Iterator[Output]:
    """Answers to the items at every step; the model learns one reply at a time."""
    rng, model, done = random.Random(f"{seed}:{name}"), NgramModel(order=order), 0
    for step in steps:
        while done < step:
            model.update(rng.choice(samples))
            done += 1
        for item in answered:
            draw = random.Random(f"{seed}:{name}:{step}:{item.id}")
            text = words.join_words(model.answer(read_features(item), draw, shortest=3, longest=24))
            yield Output(item.id, name, text, step)


def train_model(samples: Iterable[Sample], order: int) -> NgramModel:
    model = NgramModel(order=order)
    for sample in samples:
        model.update(sample)
    return model


def reply(model: NgramModel, item: Item, seed: int) -> str:
    rng = random.Random(f"{seed}:{model.order}:{item.id}")
    return " ".join(model.answer(read_features(item), rng, shortest=3, longest=24))


def respell(text: str) -> str:
    """The text in lower case with one space between words, so that spelling does not separate people from machines."""
    return " ".join(words.split_words(text.lower()))
