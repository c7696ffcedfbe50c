"""Evaluators that come trained with the package; each lies in a folder of its name.

Explained in docs/explanation/evaluators/unreferenced.md#maude-base. No torch here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from scoring.ml.errors import ArtefactError


@dataclass(frozen=True)
class Shipped:
    """A trained evaluator of the package: its name, the method, the sha256 of its weights (`artefact.weights_hash`)
    and a line on its training texts."""

    name: str
    method: str
    weights: str
    summary: str

    @property
    def folder(self) -> Path:
        """The folder that it is loaded from."""
        return Path(__file__).parent / self.name


SHIPPED: Mapping[str, Shipped] = {
    one.name: one
    for one in (
        Shipped(
            "maude-base",
            "maude",
            "4a55c89dff013810c252e850fbb88a4a558e5378fd85390d4d66dd0794848790",
            "maude, trained elsewhere: on English dialogues about films, music and sport (Self-dialogue Corpus, BSD "
            "3-Clause), each written by one person in both roles.",
        ),
    )
}


def list_shipped(method: str) -> list[str]:
    """Return the names of the shipped evaluators of a `method`.

    >>> list_shipped("maude")
    ['maude-base']
    """
    return [one.name for one in SHIPPED.values() if one.method == method]


def find_shipped(name: str) -> Path:
    """Return the folder of the shipped evaluator `name`. Raises `ArtefactError` if its weights are other ones."""
    from scoring.ml.artefact import read_header  # it imports SciPy, which metrics do not need

    one = SHIPPED[name]
    said = read_header(one.folder)["weights"]
    if said != one.weights:
        message = f"has the weights {said[:8]}, not {one.weights[:8]} as shipped: install evalapp again"
        raise ArtefactError(name, message)
    return one.folder
