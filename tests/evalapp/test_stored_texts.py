"""Notes, titles and phases are stored in English and shown in the language of the reader."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from evalapp import stored_texts
from evalapp.stored_runs import RUNS
from evalapp.stored_texts import MOST_CHARACTERS, list_templates, read_template, translate_stored

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = {"few": "3 items", "less": "4 raters", "unit": "items", "why": "all ratings are equal", "kind": "dialogues"}
SAMPLES |= {"what": "these systems, items like these", "way": "no fewer can", "part": "the largest part"}
SAMPLES |= {"note": "There are no judgements yet.", "phase": "training", "study": "Ablation"}
SAMPLES |= {"test": "paired bootstrap"}


def fill(template: str) -> str:
    names = read_template(template).names
    values = {name: SAMPLES.get(name, str(place + 2) if len(name) == 1 else f"name-{place}")
              for place, name in enumerate(names)}  # fmt: skip
    return template % values if values else template.replace("%%", "%")


@pytest.fixture
def marked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_texts, "_", lambda message: f"⟦{message}⟧")


def test_english_text_stays() -> None:
    for template in list_templates():
        assert translate_stored(fill(template)) == fill(template)


def test_template_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    def note(message: str) -> str:
        seen.append(message)
        return message

    monkeypatch.setattr(stored_texts, "_", note)
    for template in list_templates():
        translate_stored(fill(template))
    assert set(list_templates()) - set(seen) == set()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("all ratings are equal", "⟦all ratings are equal⟧"),
        ("All ratings are equal.", "⟦all ratings are equal⟧."),
        ("no interval: 3 items and 4 raters only, at least 5 are needed",
         "⟦no interval: ⟦⟦3 items⟧ and ⟦4 raters⟧⟧ only, at least 5 are needed⟧"),
        ("REML, since some raters did not rate every unit; interval by a jackknife of 20 groups of units",
         "⟦REML, since some raters did not rate every unit⟧; ⟦interval by a jackknife of 20 groups of units⟧"),
        ("all ratings are equal; words of a person", "⟦all ratings are equal⟧; words of a person"),
        ("no rater has a defined coefficient (3: fewer than 3 pairs, 2: the metric is constant)",
         "⟦no rater has a defined coefficient (⟦3: fewer than 3 pairs⟧, ⟦2: the metric is constant⟧)⟧"),
        ("Import items.jsonl and 3 more", "⟦Import ⟦items.jsonl and 3 more⟧⟧"),
        # The first template does not take in the next sentence as a part of its own text.
        ("It generalises to these systems, items like these. The smallest p of this test is 0.00032 before the "
         "correction. A sentence of a person.",
         "⟦It generalises to ⟦these systems, items like these⟧.⟧ ⟦The smallest p of this test is 0.00032 before the "
         "correction.⟧ A sentence of a person."),
        ("fold 1 of 5, training: 1,200 of 2,000 steps", "⟦fold 1 of 5, ⟦⟦training⟧: 1,200 of 2,000 steps⟧⟧"),
    ],
)  # fmt: skip
def test_text_is_taken_apart(text: str, shown: str, marked: None) -> None:
    assert translate_stored(text) == shown


@pytest.mark.parametrize("text", ["", "words of a person", "name: value", "three items", "x items", "12", "a; b. C"])
def test_other_text_is_unchanged(text: str, marked: None) -> None:
    assert translate_stored(text) == text


@pytest.mark.parametrize("piece", ["a; b. C: ", "1: ", " and ", "no interval: ", "fold 1 of 1, ", "; a and b: c: d"])
def test_work_on_strange_text_is_bounded(piece: str, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = 0
    match = stored_texts.Template.match

    def count(self: stored_texts.Template, text: str) -> dict[str, str] | None:
        nonlocal calls
        calls += 1
        return match(self, text)

    monkeypatch.setattr(stored_texts.Template, "match", count)
    translate_stored((piece * MOST_CHARACTERS)[:MOST_CHARACTERS])
    translate_stored(piece * 12)
    assert calls < 60_000


def read_words(text: str) -> list[str]:
    return re.findall(r"[a-z][a-z’'-]*", text.lower())


@cache
def read_source() -> frozenset[str]:
    """Return words and lots of three words of the literal texts of the packages that make notes."""
    found: set[str] = set()
    files = [path for folder in ("evalapp/stats", "scoring") for path in sorted((ROOT / folder).rglob("*.py"))]
    for path in [*files, ROOT / "evalapp" / "side_figures.py"]:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                words = read_words(node.value)
                found |= {*words, *(" ".join(words[at : at + 3]) for at in range(len(words)))}
    return frozenset(found)


def find_unmade(template: str) -> list[str]:
    """Return words of a template that stand nowhere in the source, or all of them if no three in a row do."""
    lots = [read_words(part) for part in read_template(template).literals]
    words = [word for lot in lots for word in lot]
    runs = {" ".join(lot[at : at + 3]) for lot in lots for at in range(max(1, len(lot) - 2)) if lot}
    return [word for word in words if word not in read_source()] if runs & read_source() or len(words) < 3 else words


def test_words_of_templates_stand_in_the_source() -> None:
    unmade = {template: find_unmade(template) for template in list_templates() if template not in RUNS}
    assert {template: words for template, words in unmade.items() if words} == {}
    assert find_unmade("%(n)s striped zebras graze") == ["striped", "zebras", "graze"]
