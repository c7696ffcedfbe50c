"""The client against the real application: every call a researcher makes, and every refusal."""

from __future__ import annotations

import json
import math
import uuid

import pytest

from evalapp.client import (
    BadRequest,
    Client,
    ClientError,
    Conflict,
    InvalidArgument,
    MissingFile,
    NotAllowed,
    NotFinished,
    NotFound,
    NotSignedIn,
    RunCancelled,
    RunFailed,
    UploadCancelled,
    UploadFaulty,
)
from tests.factories import make_items, make_outputs, make_ratings
from tests.taking import ITEMS, OUTPUTS, WHOLE, as_bytes

pytestmark = pytest.mark.django_db


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "set"
    place.mkdir()
    for name, rows in WHOLE.items():
        (place / name).write_bytes(as_bytes(rows))
    (place / "README.md").write_text("not sent")
    return place


@pytest.fixture
def filled(rita, folder):
    project = rita.project("alpha")
    project.upload(folder)
    return project


# ---- projects -------------------------------------------------------------------------------------------------


def test_projects(connect, cast):
    client = connect(cast.owner, "manage")
    with pytest.raises(BadRequest, match="“zz123” is not a language tag"):
        client.create_project("beta", task="zz", lang="zz123")
    made = client.create_project("beta", name="Beta", task="story", lang="en")
    assert (made.slug, made.name, made.task, made.role) == ("beta", "Beta", "story", "owner")
    assert [project.slug for project in client.projects()] == ["alpha", "beta"]
    assert client.project("beta") == made


def test_refusals_carry_the_problem(rita, connect, cast):
    with pytest.raises(NotFound) as missing:
        rita.project("alpha-foreign")
    assert (missing.value.status, missing.value.type) == (404, "/docs/errors#not-found")
    assert missing.value.title == "Not found"
    with pytest.raises(NotAllowed, match="403"):
        connect(cast.viewer, "read").project("alpha").start("score", evaluator="length")
    with pytest.raises(BadRequest) as faulty:
        rita.project("alpha").start("sing")
    assert faulty.value.errors[0].field == "kind"
    assert "kind" in faulty.value.detail
    with pytest.raises(NotFound):
        rita.project("../tokens")


def test_missing_or_wrong_token(installation):
    for token in ("", "evalapp_wrong"):
        with Client("http://testserver", token, transport=installation) as client, pytest.raises(NotSignedIn):
            list(client.projects())


# ---- uploads --------------------------------------------------------------------------------------------------


def test_folder_is_uploaded_with_progress_and_undone(rita, folder):
    seen = []
    project = rita.project("alpha")
    upload = project.upload(folder, progress=seen.append)
    assert upload.state == "done"
    assert upload.counts["outputs"] == {"rows": 3, "added": 3, "same": 0, "replaced": 0, "faulty": 0}
    sent = [step for step in seen if step.phase == "sending"]
    assert sent[-1].done == sent[-1].total > sum(path.stat().st_size for path in folder.glob("*.json*"))
    assert sent[-1].share == 1.0
    assert [row["key"] for row in project.items()] == ["i1", "i2"]
    assert upload.undo().state == "undone"
    assert upload.undo().state == "undone"
    assert list(project.items()) == []
    assert [found.state for found in project.uploads()] == ["undone"]


def test_repeating_the_same_content_changes_nothing(filled, folder):
    again = filled.upload(folder / "outputs.jsonl", folder / "items.jsonl")
    assert again.counts["outputs"]["same"] == 3
    assert again.counts["outputs"]["added"] == 0


def test_rows_from_an_iterator(rita):
    project = rita.project("alpha")
    project.upload_rows("items", iter(ITEMS))
    seen = []
    upload = project.upload_rows("outputs", (row for row in OUTPUTS), progress=seen.append)
    assert upload.counts["outputs"]["added"] == 3
    assert seen[0].total == len(as_bytes(OUTPUTS))
    changed = [{**OUTPUTS[0], "text": "Grüß Gott."}]
    checked = project.upload_rows("outputs", changed, replace=True, dry_run=True)
    assert (checked.state, checked.counts["outputs"]["replaced"]) == ("checked", 1)
    assert project.upload_rows("outputs", changed, replace=True).state == "done"
    assert project.outputs(system="s").first()["text"] == "Grüß Gott."


def test_scores_of_another_program(filled):
    rows = [{"item": row["item"], "system": row["system"], "score": k} for k, row in enumerate(OUTPUTS)]
    upload = filled.upload_scores("COMET", rows, higher_is_better=False, signature="comet|v:2")
    assert upload.counts["scores"]["added"] == 3
    (found,) = filled.score_sets()
    assert (found["evaluator"], found["signature"].partition("|data:")[0]) == ("comet", "comet|v:2|negated")
    assert sorted(row["value"] for row in filled.scores(evaluator="comet")) == [-2, -1, 0]
    with pytest.raises(UploadFaulty, match="replace"):
        filled.upload_scores("COMET", [{**rows[0], "score": 9}], higher_is_better=False, signature="comet|v:2")
    frame = pytest.importorskip("pandas").DataFrame([{**rows[0], "score": math.nan}])
    filled.upload_scores("COMET", frame, higher_is_better=False, signature="comet|v:2", replace=True)
    assert sum(row["value"] is None for row in filled.scores(evaluator="comet")) == 1


def test_invalid_rows_raise_an_exception_with_rows(rita, tmp_path):
    (tmp_path / "items.jsonl").write_text('{"id": "i1"}\n{"context": 5}\n')
    with pytest.raises(UploadFaulty) as raised:
        rita.project("alpha").upload(tmp_path)
    error = raised.value
    assert error.fault_count == len(error.faults) >= 2
    assert {(fault.file, fault.line) for fault in error.faults} == {("items.jsonl", 2)}
    assert {fault.field for fault in error.faults} >= {"id", "context"}
    assert "items.jsonl:2: id" in str(error)
    with pytest.raises(UploadFaulty):
        error.upload.undo()


def test_unsendable_input_is_refused_locally(rita, installation, tmp_path):
    project = rita.project("alpha")
    before = len(installation.seen)
    with pytest.raises(InvalidArgument, match=r"row 2.*write None"):
        project.upload_rows("ratings", [{"value": 1.0}, {"value": math.inf}])
    with pytest.raises(InvalidArgument, match="row 1"):
        project.upload_rows("ratings", [{"value": object()}])
    with pytest.raises(InvalidArgument, match=r"row 1 .*meta\.said\[1\].*surrogate.*'replace'"):
        project.upload_rows("outputs", [{"text": "a", "meta": {"said": ["b", "half \ud800 pair"]}}])
    with pytest.raises(InvalidArgument, match=r"pairs\[1\].*surrogate"):
        rita.evaluator("chrf").score(["a", {"text": "\ud800"}])
    with pytest.raises(InvalidArgument, match=r"set .*surrogate"):
        list(project.references(set="\udfff"))
    with pytest.raises(InvalidArgument, match="the name holds half"):
        rita.project("\ud800")
    with pytest.raises(InvalidArgument, match="'seven'"):
        rita.run("seven")
    with pytest.raises(MissingFile, match=r"nothing\.jsonl"):
        project.upload(tmp_path / "nothing.jsonl")
    with pytest.raises(FileNotFoundError, match="no file of the interchange format"):
        project.upload(tmp_path)
    # Inherits from both families, so code that catches Python's own exception still works.
    assert issubclass(MissingFile, FileNotFoundError)
    assert issubclass(MissingFile, ClientError)
    assert len(installation.seen) == before


def test_unknown_tables_and_empty_bodies_are_refused(rita):
    with pytest.raises(InvalidArgument, match=r"no table .songs.*ratings"):
        rita.project("alpha").upload_rows("songs", [{"id": "x"}])
    with pytest.raises(BadRequest, match="The body has no rows"):
        rita.project("alpha").upload_rows("outputs", [])


def test_undo_in_use_is_refused_with_a_list(filled):
    filled.score("length").wait()
    upload = filled.uploads().first()
    with pytest.raises(Conflict) as refused:
        upload.undo()
    assert refused.value.errors


def test_upload_without_waiting_is_undone(rita, installation, folder):
    installation.works = False
    upload = rita.project("alpha").upload(folder, wait=False)
    assert (upload.state, upload.has_ended) == ("received", False)
    assert rita.upload(upload.id) == upload
    with pytest.raises(NotFinished, match="still received"):
        upload.wait(timeout=0)
    assert upload.undo().state == "cancelled"
    with pytest.raises(UploadCancelled):
        upload.wait()


@pytest.mark.parametrize("rows", [True, False])
def test_upload_with_a_lost_answer_can_be_undone(rita, installation, folder, rows):
    from annotation.models import Item

    project = rita.project("alpha")
    installation.loses = 2
    upload = project.upload_rows("items", WHOLE["items.jsonl"]) if rows else project.upload(folder)
    assert installation.seen.count("POST /api/v1/projects/alpha/uploads/") == 3
    assert upload.counts["items"]["added"] == len(WHOLE["items.jsonl"])
    assert [other.id for other in project.uploads()] == [upload.id]
    upload.undo()
    assert not Item.objects.exists()


# ---- runs -----------------------------------------------------------------------------------------------------


def test_run_with_a_lost_answer_is_not_started_twice(filled, installation):
    before = len(list(filled.runs()))
    installation.loses = 1
    run = filled.score("length")  # it has ended by the second request
    assert run.wait().result["scored"] == 3
    again = filled.start("score", evaluator="chrf", idempotency_key="night")
    again.wait()
    assert filled.start("score", evaluator="chrf", idempotency_key="night").id == again.id
    assert filled.score("chrf", idempotency_key="night").id == again.id
    assert filled.score("BLEU").wait().result["evaluator"] == "bleu-corpus"
    with pytest.raises(Conflict, match="was used for"):
        filled.start("score", evaluator="length", idempotency_key="night")
    installation.loses = 1
    export = filled.export()
    assert len(list(filled.runs())) == before + 4
    assert export.files


def test_run_is_followed_to_its_end(filled):
    seen = []
    run = filled.score("token-f1").wait(progress=seen.append)
    assert (run.state, run.result["scored"]) == ("succeeded", 3)
    assert seen[-1].share in (None, 1.0)
    assert filled.runs().first() == run or filled.runs().first().id == run.id
    assert [line for line in run.log() if line]
    assert run.project == "alpha"


def test_same_request_joins_the_active_run(rita, installation, filled):
    installation.works = False
    first, second = filled.score("length"), filled.score("length")
    assert first.id == second.id
    assert rita.run(first.id).queue_place == 1
    assert first.cancel().state == "cancelled"
    with pytest.raises(RunCancelled, match="was cancelled"):
        first.wait()
    with pytest.raises(Conflict):
        first.cancel()
    assert first.retry().state == "queued"
    installation.works = True
    assert first.wait().state == "succeeded"


def test_failed_run_gives_the_reason(cast, rita, filled):
    from evalapp.common.queue import enqueue_run
    from tests.evalapp.common.run_jobs import REFUSED  # the module has kinds of run that fail

    run = enqueue_run(kind="test-refuse", project=cast.project, params={}, title="Refuse", send=False)
    with pytest.raises(RunFailed, match=r"o\.csv:3: No text\.") as failed:
        rita.run(run.pk).wait()
    assert failed.value.faults[0].field == "text"
    assert failed.value.run.error == REFUSED


def test_options_and_kinds_of_run(rita, filled):
    run = filled.start("score", evaluator="bleu-4", options={"smooth": "floor"}).wait()
    assert run.kind == "score"
    with pytest.raises(BadRequest, match="evaluator"):
        filled.start("score")
    names = {entry["name"]: entry for entry in rita.catalogue()}
    assert names["bleu-4"]["kind"] == "baseline"
    assert filled.score_sets()[0]["evaluator"] == "bleu-4-smooth-floor"


# ---- rows -----------------------------------------------------------------------------------------------------


def test_lists_follow_the_pages_lazily(cast, rita, installation):
    outputs = make_outputs(cast.project, make_items(cast.project, 7))
    make_ratings(cast.project, outputs)
    rows = rita.project("alpha").outputs()
    rows.page_size = 5
    before = len(installation.seen)
    walk = iter(rows)
    assert next(walk)["item"] == "i000"
    assert len(installation.seen) == before + 1
    assert len(list(walk)) == 13
    assert len(installation.seen) == before + 3
    assert [len(page) for page in rows.pages()] == [5, 5, 4]
    assert len({row["id"] for row in rows}) == 14


def test_filters_of_every_list(filled):
    filled.score("length").wait()
    assert [row["text"] for row in filled.outputs(item="i1", system="t")] == ["Good day."]
    assert [row["key"] for row in filled.items(group="g")] == ["i1", "i2"]
    assert {row["name"] for row in filled.systems()} == {"s", "t"}
    assert [row["text"] for row in filled.references(item="i1")] == ["Hi.", "Hey."]
    assert [row["value"] for row in filled.ratings(aspect="quality", rater="r")] == [4.0, 2.5]
    assert [row["verdict"] for row in filled.comparisons()] == ["tie"]
    assert list(filled.dialogues()) == []
    assert [row["system"] for row in filled.scores(evaluator="length", item="i1")] == ["s", "t"]
    assert filled.dialogues().first() is None


# ---- leaderboards and exports ---------------------------------------------------------------------------------


def test_leaderboards(filled):
    filled.score("length").wait()
    systems = filled.leaderboard("systems", aspect="quality")
    assert [row["system"] for row in systems.rows if row["n"]] == ["s"]
    assert systems.is_current
    table = filled.leaderboard("evaluators", aspect="quality")
    assert "length" in {row["evaluator"] for row in table.rows}
    assert table.signature
    frame = table.to_pandas()
    assert {"evaluator", "pearson.value", "pearson.low", "n_items"} <= set(frame.columns)
    with pytest.raises(BadRequest, match="method "):
        filled.leaderboard("systems", method="magic")


def test_large_leaderboard_is_waited_for(filled, monkeypatch):
    from scoring.services import leaderboards

    monkeypatch.setattr(leaderboards, "MAX_ROWS_IN_REQUEST", 0)
    monkeypatch.setattr(leaderboards, "MAX_CORRELATED_IN_REQUEST", 0)
    filled.score("length").wait()
    table = filled.leaderboard("evaluators", aspect="quality")
    assert "length" in {row["evaluator"] for row in table.rows}
    assert filled.runs().first().kind == "rank"


def test_agreement_and_power(filled):
    filled.upload_rows("ratings", [
        {"item": item, "system": "s", "rater": rater, "aspect": "quality", "value": value}
        for item, rater, value in (("i1", "q", 4), ("i1", "p", 3), ("i2", "p", 2), ("i2", "q", 2))
    ])  # fmt: skip
    every = filled.agreement()
    assert [(row["aspect"], row["judged"]) for row in every.rows] == [
        ("quality", "ratings"), ("quality", "comparisons"),
    ]  # fmt: skip
    alpha = next(one for one in every.rows[0]["coefficients"] if one["name"] == "alpha")
    frame = every.to_pandas()
    assert frame.loc[0, "alpha.value"] == alpha["value"] > 0
    assert frame.loc[0, "alpha.low"] == alpha["low"]
    one = filled.agreement(aspect="quality", judged="ratings")
    assert one.rows[0]["name"] == "alpha"
    assert one.rows[0]["value"] == alpha["value"]
    assert {"pairs", "prevalence"} <= set(one.table)
    with pytest.raises(BadRequest, match="aspekt"):
        filled.agreement(aspekt="quality")
    found = filled.power(test="preference", effect=0.7)
    assert found["needed"] > 1
    assert found["curve"]


def test_agreement_of_a_large_project_is_waited_for(filled, monkeypatch):
    from scoring.services import leaderboards

    monkeypatch.setattr(leaderboards, "MAX_ROWS_IN_REQUEST", 0)
    assert filled.agreement().rows[0]["n_judgements"] == 2
    assert filled.runs().first().kind == "rank"


def test_export_to_a_folder_and_to_dataframes(filled, tmp_path):
    seen = []
    paths = filled.download(tmp_path / "out", progress=seen.append)
    assert {path.name for path in paths} >= {"dataset.json", "items.jsonl", "outputs.jsonl"}
    rows = [json.loads(line) for line in (tmp_path / "out" / "outputs.jsonl").read_text().splitlines()]
    assert [row["text"] for row in rows] == [row["text"] for row in OUTPUTS]
    assert not list((tmp_path / "out").glob("*.part"))
    assert {step.phase for step in seen} >= {"downloading items.jsonl"}
    frames = filled.to_pandas()
    assert list(frames["outputs"]["text"]) == [row["text"] for row in OUTPUTS]
    assert frames["ratings"]["value"].tolist() == [4, 2.5]
    parquet = filled.export("parquet").to_pandas()
    assert list(parquet["outputs"]["text"]) == list(frames["outputs"]["text"])
    with pytest.raises(ClientError, match="jsonl or parquet"):
        filled.export("csv").to_pandas()
    assert len(list(filled.exports())) == 3  # without that of to_pandas


def test_rows_to_pandas(filled):
    frame = filled.outputs().to_pandas()
    assert list(frame.columns) == ["id", "item", "system", "step", "text", "meta"]
    assert len(frame) == 3


# ---- campaigns ------------------------------------------------------------------------------------------------


def test_campaign_from_plan_to_judgements(connect, cast, filled):
    draft = filled.create_campaign(name="Quality", kind="likert", aspects=["quality"], overlap=1)
    assert draft.state == "draft"
    assert draft.update(name="How good").name == "How good"
    campaign = draft.open()
    assert (campaign.state, campaign.unit_count) == ("open", 3)
    view = connect(cast.annotator, "annotate").judge(campaign.id)
    first = view.next()
    assert view.next().id == first.id
    name = uuid.uuid4()
    assert first.save_draft({"quality": 2}) > 0
    first.submit({"quality": 4}, submission=name, seconds=3.5)
    assert first.submit({"quality": 4}, submission=name)["version"] == 1
    with pytest.raises(BadRequest):
        view.next().submit({"quality": 40})
    for number, assignment in enumerate(view.assignments()):
        if number:
            assignment.submit({"quality": 5})
        else:
            assignment.flag("broken", "No text.")
            assignment.skip("unclear")
    judged = list(campaign.judgements())
    assert sorted(row["answer"]["quality"] for row in judged) == [4, 5]
    assert campaign.progress()["done"] == 2
    flag = campaign.flags().first()
    assert campaign.resolve(flag["id"])["resolved_at"]
    assert campaign.pause().state == "paused"
    assert campaign.resume().state == "open"
    assert campaign.close().state == "closed"
    with pytest.raises(Conflict):
        campaign.delete()
    assert [found.id for found in filled.campaigns()] == [campaign.id]


def test_iterating_assignments_without_answering_is_detected(connect, cast, filled):
    campaign = filled.create_campaign(name="Q", kind="likert", aspects=["quality"]).open()
    with pytest.raises(RuntimeError, match="neither submitted nor skipped"):
        for _ in connect(cast.annotator, "annotate").judge(campaign.id).assignments():
            pass


def test_draft_campaign_is_deleted(rita, filled):
    draft = filled.create_campaign(name="Q", kind="pairwise", aspects=[{"name": "quality"}])
    draft.delete()
    with pytest.raises(NotFound):
        rita.campaign(draft.id)


def test_download_of_folders_in_folders(filled, tmp_path):
    files = filled.download(tmp_path / "mt", format="mt-metrics-eval")
    assert tmp_path / "mt/system-outputs/en-en/s.txt" in files
    assert (tmp_path / "mt/system-outputs/en-en/s.txt").read_text().splitlines() == ["Hello.", "So long."]
