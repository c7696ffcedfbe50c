from __future__ import annotations

import pytest

from evalapp.demo.quality import Features, Judge, latent
from evalapp.demo.texts import Item, read_dialogues, read_items


@pytest.fixture(scope="module")
def items() -> dict[str, Item]:
    return {item.id: item for item in read_items()}


@pytest.fixture(scope="module")
def judge(items: dict[str, Item]) -> Judge:
    texts = [(item, text) for item in items.values() for text in (*item.references, item.written)]
    return Judge(list(items.values()), read_dialogues(), texts, texts)


def test_latent_stays_on_the_scale() -> None:
    assert set(latent(Features(0, 0, 0, 1)).values()) == {1}
    assert set(latent(Features(1, 1, 1, 0)).values()) == {5}


def test_latent_by_hand() -> None:
    # naturalness 1 + 4 * 0.25 * 0.7 * 0.85; relevance 1 + 4 * 0.5 * 0.7; informativeness 1 + 4 * 1 * 0.65 * 0.7
    values = latent(Features(fluency=0.5, fit=0.5, substance=1.0, stiffness=0.5))
    assert values == pytest.approx({"naturalness": 1.595, "relevance": 2.4, "informativeness": 2.82})


def test_references_are_fluent_and_fit(judge: Judge, items: dict[str, Item]) -> None:
    for item in items.values():
        features = judge.features(item, item.references[0], by_person=False)
        assert features.fluency == 1
        assert features.fit >= 0.6, item.id


def test_word_salad_is_not_fluent(judge: Judge, items: dict[str, Item]) -> None:
    item = items["dlg-05a"]
    salad = " ".join(reversed(item.references[0].split()))
    assert judge.features(item, salad, by_person=False).fluency < 0.2


def test_wrong_value_costs_more_than_a_missing_one(judge: Judge, items: dict[str, Item]) -> None:
    item = items["res-02a"]
    missing, wrong, other = (
        judge.features(item, text, by_person=False).fit
        for text in (
            "Juniper Yard serves Nordic food in the harbour.",
            "Juniper Yard serves cheap Nordic food in the harbour.",
            "Low Tide serves Nordic food in the harbour.",
        )
    )
    assert missing > wrong > other


def test_set_phrase_sounds_stiff_only_when_frequent(items: dict[str, Item]) -> None:
    own = [item for item in items.values() if item.domain == "dialogue"]
    shown = [(item, "That sounds interesting to me.") for item in own] + [(own[0], own[0].written)]
    judge = Judge(own, read_dialogues(), shown, shown)
    assert judge.features(own[0], shown[0][1], by_person=False).stiffness == 1
    assert judge.features(own[0], own[0].written, by_person=False).stiffness == 0
