"""The worked numbers on pages about evaluators and statistics equal the output of their Python code."""

from __future__ import annotations

import doctest

import pytest

from tests.docs.blocks import ROOT, read_blocks

FOLDERS = ("explanation/evaluators", "explanation/statistics")
EXPLAINED = (
    "explanation/evaluators/adem.md",
    "explanation/evaluators/adversarial.md",
    "explanation/evaluators/comparative.md",
    "explanation/evaluators/diversity-and-fluency.md",
    "explanation/evaluators/embedding-similarity.md",
    "explanation/evaluators/lexical-overlap.md",
    "explanation/evaluators/perception.md",
    "explanation/evaluators/ream.md",
    "explanation/evaluators/ridge.md",
    "explanation/evaluators/shared-bert.md",
    "explanation/evaluators/studies.md",
    "explanation/evaluators/trivial-baselines.md",
    "explanation/evaluators/unreferenced.md",
    "explanation/statistics/agreement.md",
    "explanation/statistics/assisted.md",
    "explanation/statistics/bias.md",
    "explanation/statistics/comparisons.md",
    "explanation/statistics/correlation.md",
    "explanation/statistics/human-scores.md",
    "explanation/statistics/planning.md",
    "explanation/statistics/significance.md",
)


def test_every_page_is_checked():
    found = {f"{folder}/{path.name}" for folder in FOLDERS for path in (ROOT / "docs" / folder).glob("*.md")}
    assert found == {*EXPLAINED, *(f"{folder}/README.md" for folder in FOLDERS)}


@pytest.mark.parametrize("page", EXPLAINED)
def test_code_of_a_page_gives_its_numbers(page):
    blocks = read_blocks(f"docs/{page}")
    assert blocks
    names: dict[str, object] = {}
    for block in blocks:
        # An example continues the earlier lines of its page, so all share one namespace.
        examples = doctest.DocTestParser().get_doctest(block.text, names, page, page, block.line)
        assert examples.examples, f"{page}, line {block.line}: a block without >>>"
        lines: list[str] = []
        failed = doctest.DocTestRunner(verbose=False).run(examples, out=lines.append, clear_globs=False).failed
        assert not failed, "".join(lines)
        names.update(examples.globs)
