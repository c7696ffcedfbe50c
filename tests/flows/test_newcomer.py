"""The newcomer's path through pages alone: look at the demonstration, upload, ask people, score, rank, export. Links
are followed by their text and forms are filled in as displayed; only the worker is simulated, by executing the runs
that the pages have queued."""

from __future__ import annotations

import io
import json
import re
import zipfile
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command

from annotation.models import Campaign, Judgement, Output, Rating
from evalapp.common.models import Run
from evalapp.common.runner import execute_run

from .visitor import Visitor

pytestmark = [pytest.mark.django_db, pytest.mark.slow, pytest.mark.usefixtures("few_draws")]
PASSWORD = "a-newcomer-reads-13"
#: Texts that the newcomer and the annotator enter.
QUESTION = "Could a person have said this?"
WHY = "A friend would say it."
SKIPPED = "I do not understand it"
REMARK = "ends in the middle"
#: Confirmation of a successful request.
DONE = '//*[@data-level="success"]'


def command(*words: str) -> dict[str, Any]:
    out = io.StringIO()
    call_command(*words, "--json", stdout=out, stderr=io.StringIO())
    return json.loads(out.getvalue())


def run_worker() -> None:
    """Execute queued runs, as a worker would."""
    while (number := Run.objects.filter(state=Run.State.QUEUED).values_list("pk", flat=True).first()) is not None:
        execute_run(number)


def make_file(*rows: dict[str, Any]) -> SimpleUploadedFile:
    return SimpleUploadedFile("outputs.jsonl", "".join(json.dumps(row) + "\n" for row in rows).encode())


@pytest.fixture
def demo(monkeypatch, written_demo) -> dict[str, str]:
    """The passwords of the demonstration, which is loaded with its cheap metrics and without leaderboards: every
    scoring would recompute existing ones."""
    monkeypatch.setattr("evalapp.management.commands.demo.EVALUATORS", ("length", "overlap", "random", "token-f1"))
    monkeypatch.setattr("evalapp.management.commands.demo.TABLES", ())
    return command("demo")["passwords"]


def sign_in(name: str, password: str) -> Visitor:
    visitor = Visitor().go("/")
    visitor.sees("Sign in")
    return visitor.send("Sign in", {"username": name, "password": password})


def test_from_first_sign_in_to_export(demo):
    owner = _first_owner()
    researcher = sign_in("researcher", demo["researcher"]).go("/projects/demo/")
    _upload_a_faulty_row(researcher)
    _upload_and_undo(researcher)
    number = _plan_a_campaign(researcher)
    link = _invite(researcher)
    annotator = _join(link)
    _judge(annotator, number)
    _check_progress(researcher, owner, number)
    _score(researcher)
    _rank(researcher)
    _export(researcher)
    for visitor in (owner, researcher, annotator):
        visitor.go("/").send("Sign out").sees("Sign in")
        assert "Sign in" in visitor.go("/projects/demo/").text


def _first_owner() -> Visitor:
    made = command("createowner", "olga")
    owner = sign_in("olga", made["password"])
    owner.sees("Projects", "1,152")
    owner.follow("Demonstration").sees("1,152", "simulated", "written")
    return owner


def _upload_a_faulty_row(researcher: Visitor) -> None:
    before = Output.objects.count()
    researcher.visit("Data", "Uploads").has('//input[@type="file"][@name="files"]')
    researcher.send("Upload", status=422).has('//*[@id="id_files_error"]')
    good = {"item": "dlg-01a", "system": "newcomer", "text": "Sounds good to me."}
    researcher.send(
        "Upload", files={"files": make_file(good, {"item": "dlg-nowhere", "system": "newcomer", "text": "x"})}
    )
    researcher.has("//*[@data-unserved]")
    run_worker()
    researcher.go(researcher.path).sees("Rows with errors", "dlg-nowhere")
    file, line, field, _ = researcher.table()[0]
    assert (file, line, field) == ("outputs.jsonl", "2", "item")
    assert Output.objects.count() == before


def _upload_and_undo(researcher: Visitor) -> None:
    before = Output.objects.count()
    researcher.visit("Data", "Uploads")
    rows = [{"item": f"dlg-0{k}a", "system": "newcomer", "text": f"Sounds good, number {k}."} for k in (1, 2, 3)]
    researcher.send("Upload", files={"files": make_file(*rows)})
    run_worker()
    researcher.go(researcher.path).sees("Stored.")
    assert Output.objects.count() == before + 3
    researcher.follow("View items").send("Show", {"q": "number 2", "scope": "output"}).follow("dlg-02a")
    researcher.sees("newcomer", "Sounds good, number 2.")
    researcher.visit("Data", "Uploads").follow("outputs.jsonl").send("Undo upload").has(DONE)
    assert Output.objects.count() == before


def _plan_a_campaign(researcher: Visitor) -> int:
    researcher.visit("Collect", "Campaigns").follow("New campaign")
    plan = {
        "name": "First impressions",
        "items_choice": "search",
        "items_text": "dlg-",
        "sample": 3,
        "systems": ["written", "shuffled"],
        "overlap": 1,
        "guidelines": "Rate the **reply**.",
        "aspects-0-question": QUESTION,
        "aspects-1-name": None,
        "aspects-2-name": None,
    }
    researcher.send("Save draft", {**plan, "overlap": 0}, status=422).has('//*[@id="id_overlap_error"]')
    researcher.send("Save draft", plan).sees("First impressions")
    campaign = Campaign.objects.get(name="First impressions")
    assert campaign.state == Campaign.State.DRAFT
    researcher.follow("Practice and control items").send("Search", {"q": "dlg-05a"}).follow("dlg-05a")
    right = {"output_a": "written|", "low.naturalness": 4, "high.naturalness": 5, "why": WHY}
    researcher.send("Add", right).sees(WHY)
    researcher.follow("Preview").sees(QUESTION)
    researcher.follow("Back to").sees("1 practice text").send("Open campaign").has(DONE)
    campaign.refresh_from_db()
    assert campaign.state == Campaign.State.OPEN
    return campaign.pk


def _invite(researcher: Visitor) -> str:
    researcher.follow("Invitations").send("Create link", {"label": "the newcomer's friend", "max_uses": 1})
    researcher.sees("Invitation link created.")
    link = re.search(r"http://testserver(/invitations/[\w-]+/)", researcher.content.decode())
    assert link
    return link[1]


def _join(link: str) -> Visitor:
    annotator = Visitor().go(link)
    annotator.sees("Demonstration", "Your role: annotator")
    fields = [name for name in annotator.tree.xpath("//form//input/@name") if "password" in name]
    values = {"username": "fred", **dict.fromkeys(fields, PASSWORD)}
    annotator.send("Create account", values).sees("Rate the reply.")  # the guidelines come first
    annotator.send("Begin").sees(QUESTION, "Practice")
    assert Visitor().go(link, status=404).status == 404  # the link was for one person
    return annotator


def _judge(annotator: Visitor, number: int) -> None:
    rated = Rating.objects.count()
    answer = "answer.naturalness"
    annotator.send("Submit and next", status=422).sees(QUESTION)
    annotator.send("Submit and next", {answer: 1}).has('//section[@data-passed="no"]').sees(WHY)
    assert Rating.objects.count() == rated  # practice gives no rating
    annotator.follow("Next").sees("0 of 6")
    for name in ("written", "shuffled"):
        assert name not in annotator.content.decode()  # blind
    annotator.send("Submit and next", {answer: 4}).sees("1 of 6")
    annotator.follow("Skip s").send("Skip", {"reason": SKIPPED}).sees("Skipped.")
    annotator.follow("Flag f").send("Send remark", status=422)
    annotator.send("Send remark", {"reason": "broken", "text": REMARK}).sees("Thank you.")
    annotator.send("Submit and next", {answer: 2}).sees("2 of 6")
    annotator.follow("Back u").sees("You answered this")
    annotator.send("Submit correction", {answer: 3}).has(DONE)
    assert Rating.objects.count() == rated + 2
    versions = Judgement.objects.filter(campaign=number, current=True).order_by("pk").values_list("version", flat=True)
    assert list(versions) == [1, 1, 2]  # the practice answer, the first, the corrected one
    # Annotators see neither the data of the project, nor results, nor the pages of campaigns.
    for path in ("items/", "systems/", "evaluation/", "exports/", f"campaigns/{number}/"):
        assert annotator.client.get(f"/projects/demo/{path}").status_code in {403, 404}


def _check_progress(researcher: Visitor, owner: Visitor, number: int) -> None:
    owner.go(f"/projects/demo/campaigns/{number}/").sees("2 of 6 judgements", "fred")
    researcher.go(f"/projects/demo/campaigns/{number}/").sees("2 of 6 judgements", "Agreement so far")
    assert "fred" not in researcher.text  # only owners see who judges under which name
    researcher.follow("Judgements").sees("dlg-")
    researcher.follow("Flags").sees(REMARK)
    researcher.follow("Progress").follow("Close…").send("Close").has(DONE)
    assert Campaign.objects.get(name="First impressions").state == Campaign.State.CLOSED


def _score(researcher: Visitor) -> None:
    researcher.visit("Metrics", "Evaluators").sees("token-f1", "length")
    researcher.go("/projects/demo/evaluators/apply/rouge-l/").send("Apply").sees("Score with rouge-l", "Waiting")
    run_worker()
    researcher.go(researcher.path).sees("Done", "1,152")
    researcher.visit("Metrics", "Evaluators").follow("rouge-l").sees("Scores by system", "rouge-l|")


def _rank(researcher: Visitor) -> None:
    researcher.visit("Results", "Systems").sees("95 %", "simulated")
    # Rank, lines joining systems that do not differ significantly, system, step, value and, in a narrow window, its
    # interval.
    ranked = {row[2]: float(row[4].split()[0]) for row in researcher.table()}
    # The demonstration is constructed to have this order; the newcomer's own system was removed.
    assert ranked["written"] > ranked["retrieval"] > ranked["constant"]
    assert "newcomer" not in ranked
    assert researcher.download("CSV").startswith(b"rank,")
    assert b"\\begin{tabular}" in researcher.download("LaTeX")
    assert json.loads(researcher.download("JSON"))["rows"][0]["system"] == "written"
    assert b"<svg" in researcher.download("SVG")

    researcher.visit("Results", "Metrics vs. humans")
    run_worker()
    researcher.go(researcher.path).sees("rouge-l", "token-f1", "length", "random")
    table = json.loads(researcher.download("JSON"))
    rows = {row["evaluator"]: row for row in table["rows"]}
    for name in ("rouge-l", "token-f1"):
        pearson = rows[name]["pearson"]
        assert pearson["low"] < pearson["value"] < pearson["high"]
    assert rows["token-f1"]["pearson"]["value"] > rows["random"]["pearson"]["value"]
    assert b"<svg" in researcher.download("SVG")


def _export(researcher: Visitor) -> None:
    researcher.follow("Export").send("Export", {"format": "jsonl"})
    run_worker()
    archive = zipfile.ZipFile(io.BytesIO(researcher.go(researcher.path).download("Download")))
    names = {name.rpartition("/")[2] for name in archive.namelist()}
    assert {"dataset.json", "items.jsonl", "outputs.jsonl", "ratings.jsonl", "comparisons.jsonl"} <= names
    ratings = archive.read(next(name for name in archive.namelist() if name.endswith("ratings.jsonl"))).decode()
    assert len(ratings.splitlines()) == Rating.objects.count()
