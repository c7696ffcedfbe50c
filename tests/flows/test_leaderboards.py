"""From an upload to the tables of a paper, by commands and by page addresses."""

from __future__ import annotations

import io
import json
import random

import pytest
from django.core.management import call_command

from evalapp.accounts.models import Membership, Project
from tests.cast import person
from tests.flows.visitor import Visitor

pytestmark = pytest.mark.django_db

WORDS = ("red", "blue", "green", "old", "new", "warm", "cold")
SYSTEMS = ("alpha-net", "beta-net", "gamma-net")


def write_folder(folder):
    """Write twelve items with references and topics, three systems of decreasing quality, ratings by two raters, and
    comparisons."""
    rng = random.Random(7)
    items, outputs, ratings, comparisons = [], [], [], []
    for k in range(12):
        words = [rng.choice(WORDS) for _ in range(6)]
        meta = {"topic": "food" if k % 2 else "travel"}
        items.append(
            {"id": f"i{k}", "context": ["Tell me."], "references": [" ".join(words)], "group": f"g{k}", "meta": meta}
        )
        quality = {}
        for rank, system in enumerate(SYSTEMS):
            n_words = max(1, 6 - 2 * rank - rng.randrange(2))
            outputs.append(
                {
                    "item": f"i{k}",
                    "system": system,
                    "text": " ".join(words[:n_words] + ["x"] * (6 - n_words)),
                    "step": None,
                }
            )
            quality[system] = n_words
            for rater in ("ann", "bob"):
                value = min(5, max(1, n_words - 1 + rng.randrange(2)))
                ratings.append({"item": f"i{k}", "system": system, "rater": rater, "aspect": "quality", "value": value})
        for a, b in ((0, 1), (1, 2), (2, 0)):
            one, two = quality[SYSTEMS[a]], quality[SYSTEMS[b]]
            verdict = "tie" if rng.random() < 0.2 else "a" if one + rng.random() * 3 > two + rng.random() * 3 else "b"
            comparisons.append(
                {"item": f"i{k}", "system_a": SYSTEMS[a], "system_b": SYSTEMS[b], "rater": "ann", "aspect": "better",
                 "verdict": verdict}
            )  # fmt: skip
    aspects = [{"name": "quality", "min": 1, "max": 5}, {"name": "better", "min": None, "max": None}]
    (folder / "dataset.json").write_text(
        json.dumps({"name": "flow", "task": "dialogue", "lang": "en", "aspects": aspects})
    )
    for name, rows in (("items", items), ("outputs", outputs), ("ratings", ratings), ("comparisons", comparisons)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def command(*words):
    out = io.StringIO()
    call_command(*words, stdout=out, stderr=io.StringIO())
    return out.getvalue()


def test_from_upload_to_latex(tmp_path, db):
    folder = tmp_path / "data"
    folder.mkdir()
    write_folder(folder)
    person("olga")
    command("load", str(folder), "--project", "paper", "--owner", "olga")
    for metric in ("length", "token-f1", "chrf"):
        command("score", metric, "--project", "paper", "--here")
    command("combine", "paper", "token-f1", "chrf", "--name", "both", "--here")

    systems = json.loads(command("systems", "paper", "--aspect", "better", "--method", "davidson", "--json"))
    assert systems["rows"][0]["label"] == "alpha-net"
    assert any("ranks 1 and 2" in sentence.lower() for sentence in systems["findings"])
    printed = command("systems", "paper", "--aspect", "better", "--method", "davidson")
    assert "win / tie / loss" in printed

    evaluators = json.loads(command("meta", "paper", "--json"))
    rows = {row["evaluator"]: row for row in evaluators["rows"]}
    assert rows["both"]["pearson"]["value"] > 0.5
    assert "random" in rows  # a baseline that was not applied is listed with its reason
    assert rows["both"]["letters"]
    assert "Noise ceiling" in command("meta", "paper", "--coefficient", "kendall")
    assert [part["name"] for part in json.loads(command("meta", "paper", "--slices", "--json"))["parts"]]

    # The same figures on pages, including the files that a paper includes.
    user = person("rita")
    Membership.objects.create(project=Project.objects.get(slug="paper"), user=user, role="researcher", pseudonym="r")
    visitor = Visitor()
    visitor.client.force_login(user)
    page = visitor.go("/projects/paper/systems/?aspect=better&method=davidson")
    page.has('//table[@data-method="davidson"]').sees("Ranks 1 and 2", "the first side")
    assert "alpha-net" in page.table()[0][:3]
    latex = page.download("LaTeX").decode()
    assert latex.startswith(f"% {systems['signature']}")
    top = systems["rows"][0]
    assert f"${top['value']:.0f}$" in latex
    assert r"\bottomrule" in latex
    assert page.download("PDF").startswith(b"%PDF-")
    page = visitor.go("/projects/paper/evaluation/")
    latex = page.download("LaTeX").decode()
    assert f"${rows['both']['pearson']['value']:.3f}$" in latex
    assert "% both: combined|method:mean-z|parts:token-f1@" in latex
    page.follow("By subset").has('//table[@data-board="slices"]').sees("travel", "food")
    page.follow("Metric correlations").has('//table[@data-board="matrix"]')

    # The snapshot equals the current leaderboard.
    command("snapshot", "paper", "take", "--name", "submitted", "--set", "aspect=better", "--set", "method=davidson")
    page = visitor.go("/projects/paper/snapshots/submitted/")
    assert page.download("LaTeX").decode().startswith(f"% {systems['signature']}")
    changed = json.loads(command("snapshot", "paper", "compare", "submitted", "now", "--json"))
    assert {row["difference"] for row in changed["rows"]} == {0.0}
