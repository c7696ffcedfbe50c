from __future__ import annotations

from collections import Counter

from evalapp.demo.texts import read_dialogues, read_items


def test_every_text_is_written_once() -> None:
    texts = Counter(text for item in read_items() for text in (*item.references, item.written))
    assert [text for text, count in texts.items() if count > 1 and len(text.split()) > 3] == []


def test_references_of_an_item_are_really_different() -> None:
    for item in read_items():
        answers = [set(text.lower().split()) for text in (*item.references, item.written)]
        for place, one in enumerate(answers):
            for other in answers[place + 1 :]:
                assert len(one & other) / len(one | other) < 0.7, item.id


def test_every_restaurant_text_names_the_restaurant() -> None:
    for item in read_items():
        for text in (*item.references, item.written):
            assert item.slots.get("name", "").lower() in text.lower(), item.id


def test_every_dialogue_topic_has_items() -> None:
    topics = {item.topic for item in read_items() if item.domain == "dialogue"}
    assert {talk.topic for talk in read_dialogues()} == topics
