"""A judge by command, from the settings to an export that recomputes and loads again: configured, checked, run,
compared with people, aligned, and used for assisted estimates."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest
from django.core.management import call_command

from evalapp.accounts.models import Project
from scoring.boards.recompute import recompute_folder
from scoring.models import Evaluator, JudgeAnswer

pytestmark = pytest.mark.django_db
SYSTEMS = ("alpha", "beta", "gamma")


def run(*arguments):
    out = io.StringIO()
    call_command(*arguments, stdout=out, stderr=out)
    return out.getvalue()


@pytest.fixture
def project(tmp_path):
    """40 items in groups of 2, three systems; two people rated 20 of the items nearly as the server does."""
    rng = np.random.default_rng(3)
    rows: dict[str, list] = {"items": [], "outputs": [], "ratings": []}
    for k in range(40):
        rows["items"].append({"id": f"i{k}", "group": f"g{k // 2}", "references": ["x"]})
        for system in SYSTEMS:
            text = f"{system} {'says a lot ' * int(rng.integers(0, 4))}{k}"
            rows["outputs"].append({"item": f"i{k}", "system": system, "text": text})
            for rater in ("ann", "bob") if k % 4 < 2 else ():
                value = int(np.clip(1 + len(text) // 5 % 5 + rng.integers(-1, 2), 1, 5))
                rows["ratings"].append(
                    {"item": f"i{k}", "system": system, "rater": rater, "aspect": "quality", "value": value}
                )
    folder = tmp_path / "data"
    folder.mkdir()
    for name, table in rows.items():
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in table))
    aspects = [{"name": "quality", "min": 1, "max": 5}]
    (folder / "dataset.json").write_text(json.dumps({"name": "Weekend", "aspects": aspects}))
    run("load", str(folder), "--project", "weekend")
    project = Project.objects.get(slug="weekend")
    project.texts_may_leave = True
    project.save()
    return project


def test_judge_from_the_settings_to_a_loaded_export(project, judge_server, tmp_path, settings):
    checked = run("judge", "weekend", "fake", "--aspect", "quality", "--check", "--here")
    assert "120 requests to fake (tiny)" in checked
    assert judge_server.requests == []
    judged = run("judge", "weekend", "fake", "--aspect", "quality", "--name", "lena", "--injections", "3", "--here")
    assert "lena: 120 outputs scored, 0 undefined" in judged
    assert len(judge_server.requests) == 123

    report = run("align", "weekend", "lena", "--n", "8", "--create")
    assert "lena" in report
    assert "Campaign: align-lena-1" in report
    second = run(
        "judge", "weekend", "fake", "--aspect", "quality", "--name", "second", "--template", "criteria", "--here"
    )
    assert "second: 120 outputs scored" in second
    history = json.loads(run("align", "weekend", "second", "--json"))
    assert [row["evaluator"] for row in history["versions"]] == ["second", "lena"]
    assert history["looks"] == 0
    assert all(row["development"]["alpha_with"]["value"] > 0.3 for row in history["versions"])
    assert all(row["test"] == [] for row in history["versions"])

    table = json.loads(run("systems", "weekend", "--assist", "lena", "--json"))
    assert table["extras"]["saved"] > 0.05
    taken = run("snapshot", "weekend", "take", "--set", "assist=lena", "--name", "assisted")
    assert "assisted" in taken
    run("dump", "weekend", str(tmp_path / "out"))
    outcomes = recompute_folder(tmp_path / "out")
    assert all(outcome.is_equal for outcome in outcomes), [str(one.differences or one.problem) for one in outcomes]
    assert any(outcome.exported.get("assist") == "lena" for outcome in outcomes)

    # Without the server: the tables of a loaded export need no answers.
    settings.JUDGE_ENDPOINTS = {}
    run("load", str(tmp_path / "out"), "--project", "copy")
    copy = Evaluator.objects.get(project__slug="copy", slug="lena")
    assert copy.kind == Evaluator.Kind.JUDGE
    again = json.loads(run("systems", "copy", "--assist", "lena", "--json"))
    assert [(row["label"], row["value"], row["low"]) for row in again["rows"]] == [
        (row["label"], row["value"], row["low"]) for row in table["rows"]
    ]
    n_answers = JudgeAnswer.objects.filter(project=project).count()
    assert n_answers == 243
    # The split of development and test groups is that of the original project, whose name differs.
    original = Evaluator.objects.get(project=project, slug="lena").options["split"]
    assert copy.options["split"] == original == "judge-test:weekend"
