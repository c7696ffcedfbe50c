"""The dry check's report on which texts count as human and as machine, and on texts that are both."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scoring.ml import plan
from scoring.ml.evaluators.comparative.origins import describe_origins, describe_shared_texts
from scoring.ml.evaluators.comparative.pairs import Samples
from scoring.ml.types import Dataset, Item, Output, System
from tests.scoring.ml.evaluators.comparative.data import make
from tests.scoring.ml.tiny import tiny_encoder

TRUTH = "Original Ground Truth"


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return tiny_encoder("bert", tmp_path_factory.mktemp("encoder"), dropout=0.1)


def with_truth(data: Dataset, *kinds: System) -> Dataset:
    """The references repeated as outputs of a system, as in a file of human texts."""
    again = tuple(Output(item.id, TRUTH, f" {item.references[0]}\n") for item in data.items)
    return replace(data, outputs=(*data.outputs, *again), systems=(*data.systems, *kinds))


def test_undeclared_system_counts_as_a_machine_and_the_plan_says_so(encoder: str) -> None:
    data = with_truth(make(6))
    found = plan("comparative", data, encoder=encoder, aspect="fluency")
    assert f"texts counted as human: the references; as machine-written: {TRUTH}, m1, m2, ngram" in found.notes
    (note,) = (note for note in found.notes if "equal a reference" in note)
    assert note.startswith(
        "6 machine texts equal a reference of their item, so they are learned as both human and machine-written "
        f"(6 of {TRUTH}). If {TRUTH} is human, set the system's kind: "
    )
    assert f'evalapp load --system-kind "{TRUTH}=human"' in note


def test_declared_kind_resolves_texts_that_are_both(encoder: str) -> None:
    data = with_truth(make(6), System(TRUTH, "human"))
    notes = plan("comparative", data, encoder=encoder, aspect="fluency").notes
    assert f"texts counted as human: the references, {TRUTH}; as machine-written: m1, m2, ngram" in notes
    assert not any("equal a reference" in note for note in notes)


def test_nothing_is_reported_where_origin_is_not_used(encoder: str) -> None:
    """With strong=no, the origin of a text does not matter."""
    assert plan("comparative", with_truth(make(6)), encoder=encoder, strong="no").notes == ()
    alone = plan("comparative", make(6, references=False), encoder=encoder)
    assert alone.notes == ("texts counted as human: none; as machine-written: m1, m2, ngram",)


def test_many_systems_are_abbreviated() -> None:
    """Blank texts belong to no class; controls are neither human nor machine."""
    items = (Item("i", references=("yes yes",)), Item("j", references=("no",)))
    outputs = [Output("i", f"m{n}", "yes  yes") for n in range(8)]
    outputs += [Output("j", "m7", "no"), Output("i", "blank", " ")]
    outputs += [Output("i", name, "yes yes") for name in ("person", "shuffled")]
    # A reference of another item is not a reference here.
    outputs += [Output("j", "other", "yes yes")]
    data = Dataset(
        "d", items=items, outputs=tuple(outputs), systems=(System("person", "human"), System("shuffled", "control"))
    )
    assert describe_origins(data) == (
        "texts counted as human: the references, person; as machine-written: m0, m1, m2, m3, m4 and 4 more; "
        "as neither: shuffled"
    )
    assert describe_shared_texts(data, Samples.of(data)).startswith(
        "9 machine texts equal a reference of their item, so they are learned as both human and machine-written "
        "(2 of m7, 1 of m0, 1 of m1, 1 of m2, 1 of m3 and 3 more). If one of the systems is human, set the "
        'system\'s kind: on the page Items, Systems; with evalapp load --system-kind "m7=human"; '
    )
    unlike = replace(data, outputs=data.outputs[-1:])
    assert describe_shared_texts(unlike, Samples.of(unlike)) == ""
