"""The import as a whole: reports by file, line and field; all or nothing; repeats; replace; steps, Turing, dialogues,
kinds."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from string import ascii_letters

import psutil
import pytest
from django.conf import settings

from annotation.models import Aspect, Comparison, CorpusPair, Item, Output, Rating, Reference, System, Upload
from annotation.parsers import Faults
from annotation.services.uploads import Incoming, get_upload_folder, receive_upload, store_checked
from evalapp.common.errors import BadInput, TooLarge
from evalapp.common.models import AuditEvent, Run, RunLog
from evalapp.common.queue import cancel_run
from evalapp.common.runner import RunCancelled, RunContext, execute_run
from tests.taking import (
    COMPARISONS,
    DATASET,
    ITEMS,
    OUTPUTS,
    RATINGS,
    STORED_OTHERWISE,
    WHOLE,
    list_errors,
    list_named,
    row_counts,
    take_in,
    written,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def project(cast):
    return cast.project


def test_whole_folder_is_stored(project, cast, client):
    upload = take_in(project, WHOLE, user=cast.owner)
    assert upload.state == Upload.State.DONE, list_errors(upload)
    assert row_counts(project) == {"items": 2, "outputs": 3, "ratings": 2, "comparisons": 1}
    assert upload.counts["items"] == {"rows": 2, "added": 2, "same": 0, "replaced": 0, "faulty": 0}
    assert (project.name, project.task) == ("Alpha", "dialogue")
    assert list(Reference.objects.filter(item__key="i1").order_by("position").values_list("text", flat=True)) == [
        "Hi.",
        "Hey.",
    ]
    assert upload.files[0]["sha256"]
    assert not get_upload_folder(upload).exists()
    assert AuditEvent.objects.filter(verb="upload.done", project=project, actor=cast.owner).exists()
    client.force_login(cast.owner)
    shown = client.get(upload.run.result["url"])
    assert (shown.status_code, shown.context["upload"]) == (200, upload)
    assert upload.run.done == upload.run.total > 0


@pytest.mark.promise("import")
def test_repeating_an_upload_changes_nothing(project, tmp_path):
    take_in(project, WHOLE)
    before = written(project, tmp_path / "a")
    ids = list(Output.objects.order_by("pk").values_list("pk", flat=True))
    again = take_in(project, WHOLE)
    assert again.state == Upload.State.DONE
    assert all(counts["same"] == counts["rows"] for counts in again.counts.values())
    assert written(project, tmp_path / "b") == before
    assert list(Output.objects.order_by("pk").values_list("pk", flat=True)) == ids


def test_formats_are_equivalent(project, tmp_path):
    csv = b'item,system,text,step,meta\r\ni1,s,Hello.,,\r\ni1,t,Good day.,,{}\r\ni2,s,So long.,,"{""n"": 1}"\r\n'
    take_in(project, WHOLE)
    for name, data in (
        ("outputs.csv", b"\xef\xbb\xbf" + csv),
        ("outputs.csv.gz", gzip.compress(csv)),
        ("outputs.jsonl.gz", gzip.compress("".join(json.dumps(row) + "\n" for row in OUTPUTS).encode())),
        ("outputs.tsv", b"item\tsystem\ttext\ni1\ts\tHello.\ni1\tt\tGood day.\n"),
    ):
        upload = take_in(project, {name: data})
        assert upload.state == Upload.State.DONE, list_errors(upload)
        assert upload.counts["outputs"]["same"] == upload.counts["outputs"]["rows"]


@pytest.mark.promise("import")
def test_one_invalid_row_prevents_storing(project):
    rows = [*OUTPUTS, {"item": "i9", "system": "s", "text": "x"}, {"item": "i1", "system": "s", "text": 5}]
    upload = take_in(project, {**WHOLE, "outputs.jsonl": rows})
    assert upload.state == Upload.State.FAULTY
    assert list_named(upload) == [("outputs.jsonl:4", "item", {"i9"}), ("outputs.jsonl:5", "text", set())]
    assert not Item.objects.exists()
    assert not System.objects.exists()
    assert upload.run.state == Run.State.FAILED
    assert upload.run.faults[0]["file"] == "outputs.jsonl"
    assert upload.counts["outputs"]["faulty"] == 2


TWICE = "The same key is already used in {}:1. Remove one of the two rows."
NAN = b'{"item": "i1", "system": "s", "rater": "r", "aspect": "quality", "value": NaN}\n'
REPORTS = [
    ("items.jsonl", [ITEMS[0], *ITEMS], "2: " + TWICE.format("items.jsonl")),
    ("outputs.jsonl", [*OUTPUTS, OUTPUTS[0]], "4: " + TWICE.format("outputs.jsonl")),
    ("ratings.jsonl", [*RATINGS, {**RATINGS[0], "value": 1}], "3: " + TWICE.format("ratings.jsonl")),
    ("comparisons.jsonl", COMPARISONS * 2, "2: " + TWICE.format("comparisons.jsonl")),
    ("ratings.jsonl", [{**RATINGS[0], "value": 6}], "1: The value 6 is outside the scale from 1 to 5."),
    (
        "ratings.jsonl",
        [{**RATINGS[0], "system": "nobody"}],
        "1: There is no system “nobody”. It has no outputs in this upload or in the project.",
    ),
    ("ratings.jsonl", [{**RATINGS[1], "system": "t"}], "1: “t” has no output for the item “i2”."),
    (
        "ratings.jsonl",
        [{**RATINGS[0], "item": "i9"}],
        "1: There is no item “i9”, neither in this upload nor stored.",
    ),
    (
        "ratings.jsonl",
        [{**RATINGS[0], "aspect": "grace"}],
        "1: The project has no aspect “grace” (only quality). Add it to dataset.json.",
    ),
    (
        "ratings.jsonl",
        [{"dialogue": "d", "rater": "r", "aspect": "quality", "value": 1}],
        "1: There is no dialogue “d”, neither in this upload nor stored.",
    ),
    (
        "comparisons.jsonl",
        [{**COMPARISONS[0], "system_b": {"reference": 2}}],
        "1: The item “i1” has no reference 2 (counted from 0).",
    ),
    ("ratings.jsonl", NAN, "1: NaN is not JSON. Write null, or leave the row out."),
    ("ratings.jsonl", b"", " The file is empty. Leave it out, or write its rows."),
    (
        "dataset.json",
        {**DATASET, "task": " "},
        " task is empty. Name the task of the systems, such as dialogue or data-to-text.",
    ),
]


@pytest.mark.parametrize(("name", "content", "message"), REPORTS)
@pytest.mark.parametrize("stored", [False, True])
def test_reports(project, name, content, message, stored):
    """The report is the same whether the other rows come in the same upload or are already stored."""
    files = {name: content}
    # Rows that need the missing file cannot be stored before it.
    needed = {"items.jsonl": ["dataset.json"], "outputs.jsonl": ["dataset.json", "items.jsonl"]}
    if stored:
        take_in(project, {other: WHOLE[other] for other in needed.get(name, WHOLE) if other != name})
        upload = take_in(project, files)
    else:
        upload = take_in(project, {**WHOLE, **files})
    assert upload.state == Upload.State.FAULTY
    assert list_errors(upload) == [f"{name}:{message}"]


def test_invalid_rows_are_not_reported_twice(project):
    bad = {**ITEMS[0], "source": 3}
    upload = take_in(project, {**WHOLE, "items.jsonl": [bad, ITEMS[1]]})
    assert list_named(upload) == [("items.jsonl:1", "source", set())]


HALF = b'{"item": "i1", "system": "s", "step": null, "text": "half \\ud800 pair"}\n'
BROKEN = [
    (HALF, "A text has half of a surrogate pair (\\ud800), which UTF-8 cannot encode."),
    (b'{"item": "i1", "system": "s", "text": "nul \\u0000"}\n', "A text has a NUL character"),
    (b'{"item": "i1", "system": "s", "text": "cut', "This is not JSON"),
    ('{"item": "i1", "system": "s", "text": "grün"}\n'.encode("latin-1"), "Not UTF-8: byte 0xFC"),
]


@pytest.mark.parametrize(("line", "message"), BROKEN)
def test_rows_that_depend_on_an_unreadable_row_are_not_reported(project, line, message):
    """Its key identifies the row; its other errors are reported as well."""
    outputs = b"".join(json.dumps(row).encode() + b"\n" for row in OUTPUTS[1:]) + line
    ratings = [*RATINGS, {**RATINGS[1], "system": "t"}]
    upload = take_in(project, {**WHOLE, "outputs.jsonl": outputs, "ratings.jsonl": ratings})
    assert list_errors(upload)[0].startswith(f"outputs.jsonl:3: {message}")
    assert list_named(upload)[1:] == [("ratings.jsonl:3", "system", {"t", "i2"})]
    assert upload.counts["outputs"] == {"rows": 3, "added": 2, "same": 0, "replaced": 0, "faulty": 1}


def test_unidentified_invalid_row_is_mentioned_by_dependent_rows(project):
    outputs = b"".join(json.dumps(row).encode() + b"\n" for row in OUTPUTS[1:]) + b"[1]\n"
    found = list_named(take_in(project, {**WHOLE, "outputs.jsonl": outputs}))
    assert found[1:] == [
        ("ratings.jsonl:1", "system", {"s", "i1", "outputs.jsonl:3"}),
        ("comparisons.jsonl:1", "system_a", {"s", "i1", "outputs.jsonl:3"}),
    ]


def test_invalid_json_cell_and_missing_cell(project):
    cells = b'id,context,references,group\r\ni1,"[""a""]","[""\\ud83d""]",g\r\ni2,"[]"\r\n'
    files = {**WHOLE, "comparisons.jsonl": [{**COMPARISONS[0], "system_b": {"reference": 3}}]}
    del files["items.jsonl"]
    upload = take_in(project, {**files, "items.csv": cells})
    found = list_errors(upload)
    assert found[0].startswith("items.csv:2: references: ")
    assert "\\ud83d" in found[0]
    assert found[1].startswith("items.csv:3: ")
    assert [{"i2", "items.csv:3"} <= named for _, _, named in list_named(upload)[2:]] == [True, True], found


@pytest.mark.parametrize(("low", "high"), [(5, 1), ("one", 5), (None, 5)])
@pytest.mark.parametrize("stored", [False, True])
def test_invalid_scale_is_not_reported_for_ratings(project, low, high, stored):
    if stored:
        take_in(project, WHOLE)
    aspects = [{"name": "quality", "min": low, "max": high}]
    found = list_errors(take_in(project, {**WHOLE, "dataset.json": {**DATASET, "aspects": aspects}}))
    assert len(found) == 1, found
    assert "“quality”" in found[0]


def test_more_than_a_thousand_errors_that_differ_in_numbers_are_one_line(project):
    take_in(project, WHOLE)
    rows = [{**RATINGS[0], "rater": f"r{n}", "value": 9 + n} for n in range(1500)]
    upload = take_in(project, {"ratings.jsonl": rows})
    assert upload.fault_count == 1500
    assert list_named(upload) == [("ratings.jsonl:1", "value", {"9", "1", "5", "1,500", "2", "3"})]


def test_a_thousand_kinds_of_errors_are_stored():
    """Kinds differ in words, not only in quoted names and numbers."""
    faults = Faults()
    words = [f"{a}{b}" for a in ascii_letters for b in ascii_letters]
    for number, word in enumerate(words[:1500], 1):
        faults.add("f", number, "x", f"It is {word}.")
    assert faults.count == 1500
    assert [fault.line for fault in faults.kept] == list(range(1, 1001))


def test_dry_run_stores_nothing_and_can_be_stored_later(project, cast):
    upload = take_in(project, WHOLE, dry_run=True)
    assert upload.state == Upload.State.CHECKED
    assert upload.counts["outputs"]["added"] == 3
    assert not Item.objects.exists()
    assert get_upload_folder(upload).exists()
    store_checked(upload=upload, user=cast.owner)
    execute_run(upload.run.pk)
    upload.refresh_from_db()
    assert upload.state == Upload.State.DONE
    assert Output.objects.count() == 3


def test_unknown_columns_are_stored_and_unknown_files_reported(project):
    upload = take_in(project, {**WHOLE, "excluded.jsonl": b"{}\n", "ratings.jsonl": [{**RATINGS[0], "seconds": 12}]})
    assert upload.ignored == ["excluded.jsonl: not a file of the interchange format"]
    assert Rating.objects.get().meta == {"seconds": 12}


def test_upload_without_a_known_file_is_an_error(project):
    with pytest.raises(BadInput, match="None of the files"):
        receive_upload(project=project, user=None, files=[Incoming("notes.txt", [b"x"])])
    assert not Upload.objects.exists()


def test_upload_beyond_the_limit_is_stopped(project, settings):
    settings.MAX_UPLOAD_BYTES = 1000
    with pytest.raises(TooLarge):
        receive_upload(project=project, user=None, files=[Incoming("items.jsonl", iter([b"x" * 600] * 3))])
    assert not Upload.objects.exists()


# ---- stored with other content ----------------------------------------------------------------------------


CHANGED_ITEM = {**ITEMS[1], "context": ["Good bye."]}
CHANGED_OUTPUT = {**OUTPUTS[1], "text": "Good evening."}


def test_changed_content_needs_replace(project):
    take_in(project, WHOLE)
    upload = take_in(project, {"items.jsonl": [CHANGED_ITEM], "outputs.jsonl": [CHANGED_OUTPUT],
                               "ratings.jsonl": [{**RATINGS[0], "value": 1}]})  # fmt: skip
    assert [line.split(": ")[0] for line in list_errors(upload)] == [
        "items.jsonl:1",
        "outputs.jsonl:1",
        "ratings.jsonl:1",
    ]
    assert all(STORED_OTHERWISE in line for line in list_errors(upload))


def test_replace_overwrites_and_keeps_unmentioned_values(project):
    take_in(project, {name: WHOLE[name] for name in ("dataset.json", "items.jsonl", "outputs.jsonl")})
    more = {**OUTPUTS[0], "meta": {"beam": 4}}
    upload = take_in(project, {"items.jsonl": [CHANGED_ITEM], "outputs.jsonl": [CHANGED_OUTPUT, more]}, replace=True)
    assert upload.state == Upload.State.DONE, list_errors(upload)
    assert upload.counts["outputs"]["replaced"] == 2
    assert Item.objects.get(key="i2").context == ["Good bye."]
    assert Output.objects.get(system__name="t").text == "Good evening."
    assert upload.changes.get(table="items").before["context"] == ["Bye."]


def test_judged_outputs_are_never_replaced(project):
    take_in(project, WHOLE)
    upload = take_in(project, {"outputs.jsonl": [CHANGED_OUTPUT]}, replace=True)
    assert list_named(upload) == [("outputs.jsonl:1", "text", {"t", "i1"})]
    assert Output.objects.get(system__name="t").text == "Good day."
    upload = take_in(project, {"items.jsonl": [CHANGED_ITEM]}, replace=True)
    assert "“i2”" in list_errors(upload)[0]


def test_references_may_grow_with_ratings_but_not_with_turing_comparisons(project):
    take_in(project, WHOLE)
    grown = {**ITEMS[0], "references": ["Hi.", "Hey.", "Good morning."]}
    assert take_in(project, {"items.jsonl": [grown]}, replace=True).state == Upload.State.DONE
    assert Reference.objects.filter(item__key="i1").count() == 3
    turing = {**COMPARISONS[0], "system_b": {"reference": 2}}
    assert take_in(project, {"comparisons.jsonl": [turing]}).state == Upload.State.DONE
    assert take_in(project, {"items.jsonl": [ITEMS[0]]}, replace=True).state == Upload.State.FAULTY


def test_ratings_given_in_a_campaign_are_not_replaced(project):
    take_in(project, WHOLE)
    Rating.objects.filter(output__item__key="i1").update(judgement=7)
    upload = take_in(project, {"ratings.jsonl": [{**RATINGS[0], "value": 1}]}, replace=True)
    (fault,) = list_errors(upload)
    assert fault.startswith("ratings.jsonl:1: ")
    assert "campaign" in fault
    assert not Rating.objects.filter(value=1).exists()


def test_changed_description_needs_replace(project):
    take_in(project, WHOLE)
    other = {**DATASET, "name": "Beta", "aspects": [{"name": "quality", "min": 1, "max": 7}]}
    upload = take_in(project, {"dataset.json": other})
    assert len(list_errors(upload)) == 2
    assert take_in(project, {"dataset.json": other}, replace=True).state == Upload.State.DONE
    assert (project.name, Aspect.objects.get().high) == ("Beta", 7)
    narrower = {**other, "aspects": [{"name": "quality", "min": 3, "max": 7}]}
    (fault,) = list_errors(take_in(project, {"dataset.json": narrower}, replace=True))
    assert fault.startswith("dataset.json: ")
    assert "scale" in fault
    assert Aspect.objects.get().low == 1


def test_new_project_name_is_reported(project):
    was = project.name
    renamed = {**DATASET, "name": "Beta"}
    upload = take_in(project, {**WHOLE, "dataset.json": renamed})
    assert project.name == "Beta"
    told = "\n".join(RunLog.objects.filter(run=upload.run).values_list("text", flat=True))
    assert f"dataset.json gives the project the name “Beta”; it was “{was}”." in told
    again = take_in(project, {"dataset.json": renamed})
    assert not RunLog.objects.filter(run=again.run, text__contains="gives the project the name").exists()


# ---- the finer points of the format -----------------------------------------------------------------------


def test_steps_and_when_they_may_be_omitted(project):
    outputs = [{**OUTPUTS[0], "step": 100}, {**OUTPUTS[0], "step": 200}, {**OUTPUTS[1], "step": 100}]
    take_in(project, {"dataset.json": DATASET, "items.jsonl": ITEMS, "outputs.jsonl": outputs})
    upload = take_in(project, {"ratings.jsonl": RATINGS[:1]})
    assert list_named(upload) == [("ratings.jsonl:1", "step", {"s", "i1"})]
    upload = take_in(
        project,
        {
            "ratings.jsonl": [{**RATINGS[0], "step": 200}, {**RATINGS[0], "system": "t"}],
            "comparisons.jsonl": [
                {**COMPARISONS[0], "step_a": 100},
                {**COMPARISONS[0], "system_b": "s", "step_a": 100, "step_b": 200},
            ],
        },
    )
    assert upload.state == Upload.State.DONE, list_errors(upload)
    assert set(Rating.objects.values_list("output__system__name", "output__step")) == {("s", 200), ("t", 100)}
    assert Comparison.objects.filter(output_b__step=200).count() == 1
    upload = take_in(project, {"ratings.jsonl": [{**RATINGS[0], "step": 300}]})
    assert list_named(upload) == [("ratings.jsonl:1", "system", {"s", "300", "i1"})]


def test_omitted_and_explicit_step_are_the_same_rating(project):
    outputs = [{**OUTPUTS[0], "step": 100}]
    take_in(project, {"dataset.json": DATASET, "items.jsonl": ITEMS, "outputs.jsonl": outputs})
    upload = take_in(project, {"ratings.jsonl": [RATINGS[0], {**RATINGS[0], "step": 100}]})
    assert list_named(upload) == [("ratings.jsonl:2", "", {"ratings.jsonl:1"})]


def test_dialogues_and_their_ratings(project):
    dialogues = [{"id": "d1", "turns": ["a", "b"], "system": "bot", "speakers": ["A", "B"]}, {"id": "d2", "turns": []}]
    ratings = [{"dialogue": "d1", "rater": "r", "aspect": "quality", "value": 3, "simulated": True}]
    files = {"dataset.json": DATASET, "dialogues.jsonl": dialogues, "ratings.jsonl": ratings}
    assert take_in(project, files).state == Upload.State.DONE
    rating = Rating.objects.get()
    assert (rating.dialogue.key, rating.simulated, rating.dialogue.system.name) == ("d1", True, "bot")
    assert all(c["same"] == c["rows"] for c in take_in(project, files).counts.values())


def test_kinds_of_systems_by_file_and_by_option(project):
    systems = [{"id": "s", "kind": "human"}]
    take_in(project, {**WHOLE, "systems.jsonl": systems}, system_kinds={"t": "control"})
    assert dict(System.objects.values_list("name", "kind")) == {"s": "human", "t": "control"}
    take_in(project, {"systems.jsonl": [{"id": "s", "kind": "human"}]}, system_kinds={"s": "reference", "t": "machine"})
    assert dict(System.objects.values_list("name", "kind")) == {"s": "reference", "t": "machine"}
    upload = take_in(project, {"items.jsonl": ITEMS}, system_kinds={"nobody": "human"})
    assert "“nobody”" in list_errors(upload)[0]
    with pytest.raises(BadInput):
        take_in(project, {"items.jsonl": ITEMS}, system_kinds={"s": "robot"})


def test_first_mentioned_system_may_be_declared_later(project):
    take_in(project, WHOLE)
    assert take_in(project, {"systems.jsonl": [{"id": "s", "kind": "human"}]}).state == Upload.State.DONE
    assert System.objects.get(name="s").kind == "human"
    assert STORED_OTHERWISE in list_errors(take_in(project, {"systems.jsonl": [{"id": "s", "kind": "control"}]}))[0]


def test_undeclared_aspects_have_the_observed_range(project):
    files = {name: WHOLE[name] for name in ("items.jsonl", "outputs.jsonl", "ratings.jsonl")}
    files["comparisons.jsonl"] = [{**COMPARISONS[0], "aspect": "grace"}]
    assert take_in(project, files).state == Upload.State.DONE
    assert set(Aspect.objects.values_list("name", "low", "high")) == {("quality", 2.5, 4), ("grace", None, None)}
    assert take_in(project, {"ratings.jsonl": [{**RATINGS[0], "rater": "q", "value": 9}]}).state == Upload.State.DONE
    assert Aspect.objects.get(name="quality").high == 9
    assert take_in(
        project, {"dataset.json": {**DATASET, "aspects": [{"name": "quality", "min": 0, "max": 10}]}}
    ).state == (Upload.State.DONE)
    assert Aspect.objects.get(name="quality").meta == {}


def test_comparison_only_aspect_takes_no_ratings(project):
    dataset = {**DATASET, "aspects": [{"name": "quality", "min": None, "max": None}]}
    upload = take_in(project, {**WHOLE, "dataset.json": dataset})
    assert "comparisons" in list_errors(upload)[0]


def test_corpus_grows_by_new_pairs(project):
    first = [{"query": "a", "response": "b"}, {"query": "a", "response": "b"}, {"query": "c", "response": "d"}]
    take_in(project, {"corpus.jsonl": first})
    upload = take_in(project, {"corpus.jsonl": [*first, {"query": "e", "response": "f"}]})
    assert upload.counts["corpus"] == {"rows": 4, "added": 1, "same": 3, "replaced": 0, "faulty": 0}
    assert list(CorpusPair.objects.order_by("position").values_list("query", flat=True)) == ["a", "a", "c", "e"]


# ---- interrupted ------------------------------------------------------------------------------------------


@pytest.mark.promise("import")
def test_cancelled_import_stores_nothing_and_can_be_repeated(project, monkeypatch):
    upload = receive_upload(
        project=project, user=None, send=False,
        files=[Incoming("items.jsonl", ["".join(json.dumps(row) + "\n" for row in ITEMS).encode()])],
    )  # fmt: skip

    def cancelled(self, *_args, **_kwargs):
        raise RunCancelled

    with monkeypatch.context() as patch:
        patch.setattr(RunContext, "progress", cancelled)
        run = execute_run(upload.run.pk)
    upload.refresh_from_db()
    assert (run.state, upload.state) == (Run.State.CANCELLED, Upload.State.CANCELLED)
    assert not Item.objects.exists()
    assert not list(settings.STAGING_DIR.glob(f"upload-{upload.pk}*"))
    Run.objects.filter(pk=run.pk).update(state=Run.State.QUEUED)
    execute_run(run.pk)
    upload.refresh_from_db()
    assert upload.state == Upload.State.DONE


def received(project) -> Upload:
    rows = "".join(json.dumps(row) + "\n" for row in ITEMS).encode()
    return receive_upload(project=project, user=None, send=False, files=[Incoming("items.jsonl", [rows])])


def test_failed_import_is_reported_and_can_be_repeated(project, monkeypatch):
    upload = received(project)
    with monkeypatch.context() as patch:
        patch.setattr("annotation.pipelines.imports.promote", lambda *_: 1 // 0)
        run = execute_run(upload.run.pk)
    upload.refresh_from_db()
    assert (run.state, upload.state) == (Run.State.FAILED, Upload.State.FAILED)
    Run.objects.filter(pk=run.pk).update(state=Run.State.QUEUED)
    assert execute_run(run.pk).state == Run.State.SUCCEEDED
    upload.refresh_from_db()
    assert upload.state == Upload.State.DONE


def test_import_cancelled_while_waiting_no_longer_blocks(project):
    upload = received(project)
    cancel_run(run=upload.run)
    upload.refresh_from_db()
    assert upload.state == Upload.State.CANCELLED


@pytest.mark.promise("import")
def test_run_delivered_twice_stores_once(project):
    upload = take_in(project, WHOLE)
    Run.objects.filter(pk=upload.run_id).update(state=Run.State.QUEUED)
    run = execute_run(upload.run_id)
    assert run.state == Run.State.SUCCEEDED
    assert Output.objects.count() == 3


def test_upload_stored_between_check_and_promotion_is_detected(project, monkeypatch):
    """The second upload is checked before the first is stored: its checks are repeated, its rows are not stored
    twice."""
    from annotation.pipelines import imports

    real = imports.promote
    state = {"inside": False}
    check = imports._Import._check

    def check_then_other_upload(self, staging):
        counts = check(self, staging)
        if not state["inside"]:
            state["inside"] = True
            take_in(project, {"items.jsonl": ITEMS})
        return counts

    monkeypatch.setattr(imports._Import, "_check", check_then_other_upload)
    upload = take_in(project, {"items.jsonl": ITEMS})
    assert real is imports.promote
    assert upload.counts["items"]["same"] == 2
    assert Item.objects.count() == 2


@contextmanager
def growth() -> Iterator[list[int]]:
    """Growth of this process's peak memory in bytes, without mapped files."""
    found, over, me = [0], threading.Event(), psutil.Process()

    def size() -> int:
        memory = me.memory_info()
        return memory.rss - memory.shared

    before = size()

    def look() -> None:
        while not over.wait(0.01):
            found[0] = max(found[0], size() - before)

    watching = threading.Thread(target=look)
    watching.start()
    try:
        yield found
    finally:
        over.set()
        watching.join()


@pytest.mark.slow
@pytest.mark.promise("import")
def test_large_csv_with_bom_crlf_and_one_bad_row(project):
    """100,000 rows: the report names the one line and nothing is stored; the corrected file is stored. Checking 40 MB
    grows the process only by its buffers."""
    take_in(project, {"items.jsonl": ITEMS, "dataset.json": DATASET, "outputs.jsonl": OUTPUTS})
    lines = [f'{n},"line one\r\nline two {n}"' for n in range(100_000)]
    good = ("\ufeffid,source\r\n" + "\r\n".join(f"x{line}" for line in lines) + "\r\n").encode()
    long = "word " * 75
    bad_lines = [f'x{n},"line one\r\n{long}{n}"' for n in range(100_000)]
    bad_lines[70_000] = f"x{70_000}"
    bad = ("\ufeffid,source\r\n" + "\r\n".join(bad_lines) + "\r\n").encode()
    del bad_lines
    with growth() as grown:
        upload = take_in(project, {"items.csv": bad})
    # Each earlier row spans two lines; the header is line 1.
    assert list_named(upload) == [(f"items.csv:{2 + 2 * 70_000}", "", {"1", "2"})]
    assert Item.objects.count() == 2
    assert grown[0] < 80e6, f"{grown[0] / 1e6:.0f} MB; the rows of this file alone would be more"
    upload = take_in(project, {"items.csv": good})
    assert upload.state == Upload.State.DONE
    assert Item.objects.count() == 100_002
    assert Item.objects.get(key="x99999").source == "line one\r\nline two 99999"


def test_multi_line_name_is_refused_with_file_and_field(project):
    """The settings page and the API also refuse it: in a LaTeX export the second line would be an instruction."""
    name = project.name
    upload = take_in(project, {"items.jsonl": [{"id": "i"}], "dataset.json": {"name": "A\n\\input{/etc/passwd}"}})
    assert upload.state == "faulty"
    assert [fault for fault in list_errors(upload) if "U+000A LINE FEED" in fault]
    (fault,) = upload.faults.all()
    assert (fault.file, fault.field) == ("dataset.json", "name")
    project.refresh_from_db()
    assert project.name == name
