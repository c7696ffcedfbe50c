"""The verdict of a check before a training: code and text are true to the numbers, on page, by API and command."""

from __future__ import annotations

import json

import numpy as np
import pytest
from django.core.management import call_command
from django.urls import reverse
from lxml import html

from evalapp.common.errors import Conflict
from evalapp.common.jobs import get_job
from evalapp.common.models import Run
from evalapp.common.runner import execute_run
from scoring.ml import Dataset, Item, Output
from scoring.ml import Rating as Value
from scoring.pipelines.check_verdict import LEAST, SOME, judge_data
from scoring.selectors.catalogue import get_entry
from scoring.services.training import start_checked

pytestmark = pytest.mark.django_db


def make_dataset(n: int) -> Dataset:
    """`n` rated outputs of growing length, rated by two people around their number of words."""
    items = tuple(Item(f"i{k}") for k in range(n))
    outputs = tuple(Output(f"i{k}", "a", "word " * (1 + k % 7)) for k in range(n))
    ratings = tuple(
        Value(rater, "quality", float(1 + k % 7 + shift), item=f"i{k}", system="a")
        for k in range(n)
        for rater, shift in (("r0", -k % 3), ("r1", k % 3))
    )
    return Dataset("made", items=items, outputs=outputs, ratings=ratings)


def judge(name: str, n: int, folds: int = 5, **options):
    return judge_data(get_entry(name), make_dataset(n), aspect="quality", folds=folds, options=options, examples=n)


@pytest.mark.parametrize(
    ("n", "code"), [(42, "too-few"), (LEAST - 1, "too-few"), (LEAST, "few"), (SOME - 1, "few"), (SOME, "enough")]
)
def test_code_follows_the_number_of_rated_outputs(n, code):
    verdict = judge("shared-bert", n)
    assert (verdict["code"], verdict["n"], verdict["unit"]) == (code, n, "ratings")
    assert f"{n:,}" in verdict["text"]


def test_limits_are_those_of_the_uncertainty():
    """Half the 95 % interval of a correlation near 0 (Fisher 1921) is 0.2 at 100 outputs and 0.1 at 388."""
    assert judge("shared-bert", LEAST)["uncertainty"] == pytest.approx(0.2, abs=0.001)
    assert judge("shared-bert", SOME)["uncertainty"] == pytest.approx(0.1, abs=0.001)
    assert judge("shared-bert", 1000, folds=1)["uncertainty"] == judge("shared-bert", 100)["uncertainty"]


def test_length_is_that_of_the_rated_outputs():
    dataset = make_dataset(70)
    lengths = [len(row.text.split()) for row in dataset.outputs]
    means = [np.mean([r.value for r in dataset.ratings if r.item == row.item]) for row in dataset.outputs]
    assert judge("shared-bert", 70)["length"] == pytest.approx(np.corrcoef(lengths, means)[0, 1])
    assert judge("shared-bert", 9)["length"] is None


def test_evaluators_that_learn_from_texts_are_judged_by_their_examples():
    assert judge("maude", 99)["code"] == "too-few"
    assert judge("maude", 100)["code"] == "texts"
    assert judge("comparative", 500, human="no")["code"] == "texts"
    assert judge("comparative", 500)["unit"] == "ratings"


def ask(toy, **params) -> Run:
    params = {"evaluator": "toy", "options": {"epochs": 2}, "folds": 2, **params}
    return execute_run(get_job("plan").ask(project=toy.project, user=None, params=params).pk)


def test_check_has_a_verdict(toy, client):
    check = ask(toy)
    assert check.result["verdict"]["code"] == "too-few"
    assert check.result["verdict"]["n"] == 24  # 12 items, two systems
    client.force_login(toy.researcher)
    page = html.fromstring(client.get(reverse("scoring:train", args=["alpha", "toy"]) + f"?check={check.pk}").content)
    assert page.xpath("//*[@data-verdict]/@data-verdict") == ["too-few"]
    assert page.xpath("//button[@form='train'][@name='check']"), "a small training is allowed"
    row = client.get(reverse("api-run", args=[check.pk])).json()
    assert row["result"]["verdict"]["code"] == "too-few"


def test_data_that_are_not_enough_are_a_result(toy, client):
    """The check has succeeded; the training cannot start."""
    check = ask(toy, folds=20)  # of 12 items
    assert (check.state, check.error) == (Run.State.SUCCEEDED, "")
    assert check.result["verdict"]["code"] == "not-enough"
    with pytest.raises(Conflict):
        start_checked(project=toy.project, user=None, check=check)
    client.force_login(toy.researcher)
    address = reverse("scoring:train", args=["alpha", "toy"])
    page = html.fromstring(client.get(f"{address}?check={check.pk}").content)
    assert page.xpath("//*[@data-verdict]/@data-verdict") == ["not-enough"]
    assert not page.xpath("//button[@form='train'][@name='check']")
    run = html.fromstring(client.get(reverse("run", args=["alpha", check.pk])).content)
    assert run.xpath("//*[@id='run-state']//@data-state") == ["succeeded"]


def test_command_prints_the_verdict(toy, capsys):
    call_command("train", "toy", "--project", "alpha", check=True, folds=2, json=True)
    assert json.loads(capsys.readouterr().out)["plan"]["verdict"]["code"] == "too-few"
    with pytest.raises(SystemExit) as ended:
        call_command("train", "toy", "--project", "alpha", check=True, folds=20, json=True)
    assert ended.value.code == 1
    assert json.loads(capsys.readouterr().out)["plan"]["verdict"]["code"] == "not-enough"
