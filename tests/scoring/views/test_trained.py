"""Pages of training: the form, its check, the curve, the evaluator, files, import, deletion."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse
from lxml import html

from annotation.models import Aspect, Comparison, Item, Output, Rating, ReferenceSet
from evalapp.common.models import Run
from evalapp.common.runner import execute_run
from scoring.models import Evaluator, Score
from scoring.selectors.catalogue import entries, list_shipped
from scoring.selectors.training import MISSING, artefact_folder, list_files
from scoring.services.scores import apply_evaluator
from tests.pages import fetch_figures, read_page
from tests.scoring.training import make_trained, train

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def artefacts(settings, tmp_path: Path) -> None:
    settings.ARTEFACTS_DIR = tmp_path / "artefacts"


@pytest.fixture
def researcher(toy) -> Client:
    client = Client()
    client.force_login(toy.researcher)
    return client


def address(name: str, *parts: object) -> str:
    return reverse(f"scoring:{name}", args=["alpha", *parts])


FORM = {"aspect": "quality", "folds": 2, "seed": 13, "name": "mine", "option_frozen": "true", "option_epochs": "2"}


def test_training_uses_the_checked_options(researcher, toy):
    page = read_page(researcher.get(address("train", "toy")))
    assert "Empty: 3." in page  # epochs of the profile
    assert "Rarely needed" in page
    response = researcher.post(address("train", "toy"), FORM)
    assert response.status_code == 302, read_page(response)
    check = Run.objects.get(kind="plan")
    assert f"?check={check.pk}" in response["Location"]
    waiting = read_page(researcher.get(address("train", "toy") + f"?check={check.pk}"))
    assert "evalapp up" in waiting
    assert "(next" in waiting
    assert check.queue == "cpu", "so that no training keeps it waiting"
    execute_run(check.pk)
    found = read_page(researcher.get(address("train", "toy") + f"?check={check.pk}", headers={"HX-Request": "true"}))
    assert 'id="check-result"' in found
    check.refresh_from_db()
    assert check.result["url"] == address("train", "toy") + f"?check={check.pk}#check"
    assert "<html" not in found
    filled = read_page(researcher.get(address("train", "toy") + f"?check={check.pk}"))
    assert 'value="mine"' in filled
    assert not Run.objects.filter(kind="train").exists()
    response = researcher.post(address("train-start", "toy"), {"check": check.pk})
    run = Run.objects.get(kind="train")
    assert response["Location"] == reverse("run", args=["alpha", run.pk])
    assert "Training curve" in read_page(researcher.get(response["Location"]))
    waiting = read_page(researcher.get(address("training-curve", run.pk), headers={"HX-Request": "true"}))
    assert "<svg" not in waiting
    assert "every 2s" in waiting
    run = execute_run(run.pk)
    assert run.state == Run.State.SUCCEEDED, run.error
    curve = read_page(researcher.get(address("training-curve", run.pk), headers={"HX-Request": "true"}))
    assert "<polyline" in curve
    assert "every 2s" not in curve
    assert "fold 2 of 2: training: " in curve
    assert researcher.get(run.result["url"]).status_code == 200


def test_errors_appear_at_their_fields(researcher, toy):
    response = researcher.post(address("train", "toy"), {**FORM, "option_epochs": "0", "name": "chrf"})
    assert response.status_code == 422
    assert re.findall(r"id=\"id_(\w+)_error\"", read_page(response)) == ["option_epochs"]
    response = researcher.post(address("train", "toy"), {**FORM, "name": "chrf"})
    assert response.status_code == 422
    assert re.findall(r"id=\"id_(\w+)_error\"", read_page(response)) == ["name"]
    assert "“chrf”" in read_page(response)
    assert not Run.objects.filter(kind="plan").exists()
    assert researcher.get(address("train", "chrf")).status_code == 404
    assert researcher.post(address("train-start", "toy"), {"check": 99}).status_code == 404


def checked(researcher, **choices):
    """A check that accepted the options, and its page."""
    place = researcher.post(address("train", "toy"), {**FORM, **choices})["Location"]
    check = Run.objects.filter(kind="plan").latest("pk")
    execute_run(check.pk)
    return check, place.partition("#")[0]


def test_refused_form_says_so_at_the_top(researcher, toy):
    answer = researcher.post(address("train", "toy"), {**FORM, "name": "Not A Slug", "option_epochs": "none at all"})
    found = read_page(answer)
    assert answer.status_code == 422
    assert "<title>Error: Train toy" in found
    summary = found.partition('role="alert"')[2].partition("</div>")[0]
    assert "autofocus" in summary
    assert "Please correct 2 errors" in summary
    assert '<a href="#id_name">Name</a>: Use lower-case letters, digits and hyphens' in summary
    assert '<a href="#id_option_epochs">epochs</a>' in summary
    assert "<title>Train toy" in read_page(researcher.get(address("train", "toy")))


def test_checked_options_are_named_next_to_the_button(researcher, toy):
    Rating.objects.update(simulated=True)
    _, place = checked(researcher, seed=5)
    found = read_page(researcher.get(place))
    for name, value in (("Aspect", "quality"), ("Folds", "2"), ("Seed", "5"), ("Name", "mine"), ("frozen", "yes")):
        assert f'{name} <strong dir="auto">{value}</strong>' in found
    assert found.partition("<main")[2].partition("</main>")[0].count('class="primary"') == 1
    assert "badge simulated" in found.partition("Found:")[2].partition("</p>")[0]
    assert 'form="train" formaction' in found


def test_options_changed_since_the_check_are_checked_first(researcher, toy):
    """Once, the training took name and folds from the check, whatever the form contained by then."""
    check, place = checked(researcher)
    form = {**FORM, "check": check.pk, "name": "changed-name", "folds": 3}
    answer = researcher.post(address("train-start", "toy"), form, follow=True)
    again = Run.objects.filter(kind="plan").latest("pk")
    assert (again.params["name"], again.params["folds"]) == ("changed-name", 3)
    assert 'data-level="warning"' in read_page(answer)
    assert not Run.objects.filter(kind="train").exists()
    answer = researcher.post(address("train-start", "toy"), {**form, "folds": "many"})
    assert (answer.status_code, 'id="id_folds_error"' in read_page(answer)) == (422, True)
    researcher.post(address("train-start", "toy"), {**FORM, "check": check.pk})
    assert Run.objects.get(kind="train").params["slug"] == "mine"


def test_reserved_name_is_reported_in_the_form(researcher, toy):
    check, _ = checked(researcher, seed=5)
    researcher.post(address("train-start", "toy"), {"check": check.pk})
    run = Run.objects.get(kind="train")
    said = f"Run {run.pk} is creating an evaluator named “mine”"
    answer = researcher.post(address("train", "toy"), FORM)
    assert answer.status_code == 422
    assert f'<a href="#id_name">Name</a>: {said}' in read_page(answer)
    assert Run.objects.filter(kind="plan").count() == 1


def test_name_taken_since_the_check_is_reported_in_the_form(researcher, toy):
    check, _ = checked(researcher)
    make_trained(toy.project, "mine")
    for form in ({"check": check.pk}, {**FORM, "check": check.pk}):
        answer = researcher.post(address("train-start", "toy"), form)
        assert answer.status_code == 422
        assert '<a href="#id_name">Name</a>: The name “mine” is taken' in read_page(answer)
    assert not Run.objects.filter(kind="train").exists()


def test_refusal_of_a_check_appears_at_its_field(researcher, toy, monkeypatch):
    """`heads` must divide the encoder's width, which only a worker knows: the page of the check shows it at the
    field."""
    from scoring.ml import InvalidOption
    from scoring.pipelines import train as pipeline

    rule = "divide the width"

    def refuse(*_):
        raise InvalidOption("toy", "epochs", f"must {rule}")

    monkeypatch.setattr(pipeline.Training, "plan", refuse)
    check, place = checked(researcher)
    check.refresh_from_db()
    assert check.faults == [{"message": f"epochs must {rule}.", "field": "options.epochs"}]
    found = read_page(researcher.get(place))
    assert f'<a href="#id_option_epochs">epochs</a>: Must {rule}.' in found
    assert "<title>Error: Train toy" in found
    assert 'value="mine"' in found
    assert '<details class="section" open>' in found
    assert found.count(f"Must {rule}") == 2
    # A waiting page is reloaded, because the form is not part of the polled fragment.
    assert researcher.get(place, headers={"HX-Request": "true"})["HX-Refresh"] == "true"


def test_failed_training_can_be_changed_and_requested_again(researcher, toy):
    check, _ = checked(researcher, folds=3)
    researcher.post(address("train-start", "toy"), {"check": check.pk})
    run = Run.objects.get(kind="train")
    link = address("train", "toy") + f"?run={run.pk}"
    assert link not in read_page(researcher.get(reverse("run", args=["alpha", run.pk])))
    Run.objects.filter(pk=run.pk).update(state=Run.State.FAILED)
    assert read_page(researcher.get(reverse("run", args=["alpha", run.pk]))).count(link) == 1
    found = read_page(researcher.get(link))
    assert 'name="folds" value="3"' in found
    assert 'value="mine"' in found
    assert 'id="check-result"' not in found
    assert researcher.get(address("train", "ream") + f"?run={run.pk}").status_code == 200


def test_catalogue_states_missing_data(researcher, toy):
    assert f'href="{address("train", "toy")}"' in read_page(researcher.get(address("evaluator-list")))
    Rating.objects.all().delete()
    page = read_page(researcher.get(address("evaluator-list")))
    assert f'href="{address("train", "toy")}"' not in page
    assert str(MISSING["ratings"][0]) in page


def test_catalogue_lists_every_evaluator_once_by_kind(researcher, toy):
    page = html.fromstring(researcher.get(address("evaluator-list")).content)
    found = {part.get("data-part"): part.xpath(".//li/@data-name") for part in page.xpath("//*[@data-part]")}
    kinds = {entry.name: entry.kind for entry in entries()} | dict.fromkeys(list_shipped(), "trained")
    assert {name: {kinds[row] for row in rows} for name, rows in found.items()} == {
        "sentinel": {"sentinel"}, "words": {"baseline"}, "vectors": {"baseline"}, "alone": {"baseline"},
        "trained": {"trained"}, "shipped": {"trained"},
    }  # fmt: skip
    assert sorted(name for rows in found.values() for name in rows) == sorted(kinds)


def test_page_of_one_evaluator(researcher, toy):
    evaluator = train(toy.project, folds=2, name="mine")
    page = read_page(researcher.get(address("evaluator", "mine")))
    assert "data-unapplied" in page
    scoring = Run.objects.create(
        project=toy.project, kind="score", title="Score with mine", params={"evaluator": "mine"}, input_hash="mine"
    )
    assert f"run {scoring.pk}</a> (waiting)" in read_page(researcher.get(address("evaluator", "mine")))
    assert evaluator.signature in page
    assert "Agreement with people" in page  # from the card, as HTML
    # On a phone the tables of the card scroll, not the page.
    assert 'class="table-wrap" tabindex="0" role="region" aria-label="Model card"><div class="markdown card"' in page
    assert "<h3>toy</h3>" in page
    assert "Loss of mine, fold 1: loss: " in page
    assert "fold-1/model.safetensors" in page
    assert researcher.get(address("evaluator", "mine") + "?fold=1").status_code == 200
    run = execute_run(apply_evaluator(project=toy.project, evaluator="mine", send=False).pk)
    assert run.state == Run.State.SUCCEEDED
    page = read_page(researcher.get(address("evaluator", "mine")))
    assert "Scores by system" in page
    one = train(toy.project, folds=1, name="one")
    execute_run(apply_evaluator(project=toy.project, evaluator="one", send=False).pk)
    assert 'data-in-training="22"' in read_page(researcher.get(address("evaluator", "one")))
    lines = b"".join(researcher.get(address("scores-csv", "one")).streaming_content).decode().splitlines()
    assert sum(line.split(",")[5] == "1" for line in lines[1:]) == 22
    board = read_page(researcher.get(address("evaluation")))
    assert 'data-excluded="22"' in board
    assert one.slug in board


def test_card_shows_accuracy_on_compared_outputs(researcher, toy):
    """One of twelve groups selects the weights; people also compared its outputs."""
    quality = Aspect.objects.get(project=toy.project, name="quality")
    for item in Item.objects.filter(project=toy.project):
        first, second = Output.objects.filter(item=item).order_by("system__name")
        Comparison.objects.create(
            project=toy.project, output_a=first, output_b=second, aspect=quality, rater="r0", verdict="a"
        )
    evaluator = train(toy.project, folds=1, name="mine")
    page = read_page(researcher.get(address("evaluator", "mine")))
    assert "<th>decided pairs right</th>" in page
    assert "<td>length</td>" in page
    assert "Pearson" not in page  # two rated outputs are too few
    (model,) = evaluator.record["models"]
    assert [row["evaluator"] for row in model["verdicts"]] == ["toy", "length", "overlap", "random"]
    assert {row["n_pairs"] for row in model["verdicts"]} == {1}


def test_marks_appear_on_the_page_of_an_item(researcher, toy):
    train(toy.project, folds=1, name="one")
    execute_run(apply_evaluator(project=toy.project, evaluator="one", send=False).pk)
    item = Score.objects.filter(in_training=True).first().output.item_id
    assert 'id="in-training"' in read_page(researcher.get(address("item-scores", item)))


def test_files_are_downloaded_and_imported(researcher, toy):
    evaluator = train(toy.project, folds=1, name="mine")
    response = researcher.get(address("evaluator-file", "mine", "card.md"))
    content = b"".join(response.streaming_content)
    assert content == (artefact_folder(evaluator) / "card.md").read_bytes()
    assert "attachment" in response["Content-Disposition"]
    assert researcher.get(address("evaluator-file", "mine", "../secret_key")).status_code == 404
    assert researcher.get(address("evaluator-tar", "mine"))["Content-Type"] == "application/x-tar"
    files = [
        SimpleUploadedFile(file.name, (artefact_folder(evaluator) / file.name).read_bytes())
        for file in list_files(evaluator)
    ]
    assert "evaluator.json" in read_page(researcher.get(address("evaluator-upload")))
    assert "Files of fold-2" in read_page(researcher.get(address("evaluator-upload") + "?folds=3"))
    response = researcher.post(address("evaluator-upload"), {"name": "copy", "files": files})
    assert response.status_code == 302, read_page(response)
    run = execute_run(Run.objects.get(kind="artefact").pk)
    assert run.state == Run.State.SUCCEEDED, run.error
    page = read_page(researcher.get(address("evaluator", "copy")))
    assert "Imported" in page
    wrong = researcher.post(address("evaluator-upload"), {"files": [SimpleUploadedFile("a.exe", b"x")]})
    assert wrong.status_code == 422
    assert 'id="id_files_error"' in read_page(wrong)
    assert "a.exe" in read_page(wrong)


def test_deleting_asks_for_confirmation(researcher, toy):
    train(toy.project, folds=1, name="mine")
    page = read_page(researcher.get(address("evaluator-delete", "mine")))
    assert "cannot be undone" in page
    assert 'id="selected-references"' not in page
    for name, meta in {
        "a": {"evaluator": "mine"},
        "b": {"evaluator": "ours", "mix": "mine"},
        "c": {"evaluator": "ours"},
    }.items():
        ReferenceSet.objects.create(project=toy.project, name=f"set-{name}", meta={"kind": "annotate", **meta})
    page = read_page(researcher.get(address("evaluator-delete", "mine")))
    assert 'id="selected-references"' in page
    assert [name for name in ("set-a", "set-b", "set-c") if name in page] == ["set-a", "set-b"]
    assert Evaluator.objects.filter(slug="mine").exists()
    assert researcher.post(address("evaluator-delete", "mine"))["Location"] == address("evaluator-list")
    assert not Evaluator.objects.filter(slug="mine").exists()


@pytest.mark.parametrize("page", ["evaluator-list", "evaluator", "train", "training-curve"])
def test_pages_need_few_queries(researcher, toy, django_assert_max_num_queries, page):
    for seed in range(3):
        evaluator = train(toy.project, folds=1, seed=seed, name=f"m{seed}")
        execute_run(apply_evaluator(project=toy.project, evaluator=f"m{seed}", send=False).pk)
    parts = {"evaluator": ["m0"], "train": ["toy"], "training-curve": [evaluator.run_id]}.get(page, [])
    researcher.get(address(page, *parts))
    with django_assert_max_num_queries(15):
        researcher.get(address(page, *parts))


def test_errors_of_penalties_are_no_curve(researcher, toy):
    """Of ridge and adem, which try penalties instead of taking steps."""
    evaluator = train(toy.project, folds=1, name="mine")
    for model in evaluator.record["models"]:
        model["log"] = [{"l2": 10.0**k, "dev_loss": 1 / (k + 1)} for k in range(4)]
    evaluator.save()
    page = read_page(researcher.get(address("evaluator", "mine")))
    assert "<h2>Training</h2>" in page
    assert "<h2>Curves</h2>" not in page
    assert '<svg class="curve"' not in page


def test_every_figure_of_every_fold_has_its_line(researcher, toy):
    evaluator = train(toy.project, folds=2, name="mine")
    names = ("mse", "r2", "spearman", "macro_f1", "accuracy_remove")
    for model in evaluator.record["models"]:
        evaluations = [{f"dev_{name}": 0.1 * step for name in names} for step in (1, 2)]
        model["log"] = [
            {"step": step, "loss": 0.5, "dev_loss": 0.6, "phase": phase, "better": True, **evaluation}
            for phase in ("supervised", "human")
            for step, evaluation in zip((1, 2), evaluations, strict=True)
        ]
    evaluator.save()
    page = read_page(researcher.get(address("evaluator", "mine")))
    pictures = dict(re.findall(r'<svg class="curve"[^>]*aria-label="([^:]+): ([^"]+)"', page))
    lines = [f"fold {fold}, {{}}{phase}" for fold in (1, 2) for phase in ("supervised", "human")]
    losses = (("loss", 0.5), ("dev loss", 0.6))
    for fold in (1, 2):
        # Each fold has its own plot.
        assert pictures.pop(f"Loss of mine, fold {fold}") == "; ".join(
            f"{name}, {phase}: {value} to {value}" for phase in ("supervised", "human") for name, value in losses
        )
    assert pictures == {
        f"mine, held-out data, {name.replace('_', ' ')}": "; ".join(f"{line.format('')}: 0.1 to 0.2" for line in lines)
        for name in names
    }
    assert "1 more</summary>" in page
    files = fetch_figures(researcher, page)
    assert [file[:5] for file in files] == [b"<svg ", b"%PDF-"] * (2 + len(names))
    for file, name in zip(files[::2], ("Loss of mine, fold 1", "Loss of mine, fold 2"), strict=False):
        assert f"<title>{name}</title>".encode() in file


@pytest.mark.parametrize("many", ["9" * 5000, "9" * 30])
def test_impossible_row_number_is_not_found(researcher, toy, many):
    """`int` refuses thousands of digits, which was a server error."""
    make_trained(toy.project, "mine")
    train_start = researcher.post(address("train-start", "toy"), {"check": many})
    assert (train_start.status_code, 'data-error="not-found"' in read_page(train_start)) == (404, True)
    assert researcher.get(address("train", "toy"), {"check": many}).status_code == 200
    assert researcher.get(address("evaluator", "mine"), {"fold": many}).status_code == 200
    assert researcher.get(address("evaluator", "mine"), {"set": many}).status_code == 404
    assert researcher.get(address("evaluator-upload"), {"folds": many}).status_code == 200
    assert researcher.get(address("select-references"), {"preview": many}).status_code == 200
    assert researcher.get(address("reliability-curves"), {"run": many}).status_code == 200


def test_page_shows_how_often_verdicts_decide_and_are_right(researcher, toy):
    row = make_trained(toy.project, "judge", "comparative")

    def share(value, n):
        return {"value": value, "low": value - 0.05, "high": value + 0.05, "n": n, "note": ""}

    row.record["models"][0]["verdicts"] = [
        {
            "evaluator": "comparative", "aspect": "quality", "n_decided": 400, "coverage": share(0.431, 400),
            "right_if_called": share(0.871, 172), "decided": share(0.778, 400),
        },
        {"evaluator": "length", "aspect": "quality", "n_decided": 400, "decided": share(0.6, 400)},
    ]  # fmt: skip
    row.save()
    page = html.fromstring(researcher.get(address("evaluator", "judge")).content)
    rows = [" ".join(line.text_content().split()) for line in page.xpath("//section[@id='verdicts']//tbody/tr")]
    assert rows == ["quality 400 0.431 0.381 to 0.481 0.871 0.821 to 0.921 0.778 0.728 to 0.828"]


def test_page_shows_highest_r2_and_preference_of_reliabilities(researcher, toy):
    row = make_trained(toy.project, "chooser", "ream")
    assert "held-out-references" not in read_page(researcher.get(address("evaluator", "chooser")))
    metrics = {"r2": -0.021, "r2_ceiling": 0.143, "preference_add": 0.762, "preference_replace": 0.718}
    row.record["models"][0]["metrics"] = metrics
    row.save()
    page = html.fromstring(researcher.get(address("evaluator", "chooser")).content)
    (line,) = page.xpath("//section[@id='held-out-references']//tbody/tr")
    assert line.text_content().split() == ["−0.021", "0.143", "0.762", "0.718"]
    assert page.xpath(f"//section[@id='held-out-references']//a[@href='{address('reliability-curves')}']")
