"""references.jsonl and attempts.jsonl read back: dumping a loaded dump gives equal bytes; errors by line, repeated
loads, replace and undo; loaded work does not count as done here."""

from __future__ import annotations

import json

import pytest

from annotation.exporters.options import ExportOptions
from annotation.exporters.people import naming
from annotation.models import (
    AttemptElsewhere,
    Item,
    Reference,
    ReferenceSet,
    WritingAttempt,
    WritingCampaign,
    WrittenElsewhere,
    WrittenReference,
)
from annotation.parsers.writer import COLUMNS, WRITTEN
from annotation.pipelines.exports import write_export
from annotation.selectors.writing_rows import make_attempt_row, make_written_row
from annotation.services.campaigns import create_writing
from annotation.services.undo import take_back_upload, undo_upload
from annotation.services.writing_later import withdraw_reference
from evalapp.accounts.models import Project
from evalapp.common.errors import Conflict
from tests.factories import make_items
from tests.taking import ITEMS, STORED_OTHERWISE, list_errors, take_in, written
from tests.writing import fill_ports, open_task_view, send, start_writing

pytestmark = pytest.mark.django_db

IMPORTED_CAMPAIGNS = {"campaign": "c", "annotator": "p-1", "state": "shown", "gain": 0.5, "submission": "s-1"}
ROWS = [
    {"set": "more", "item": "i1", "position": 0, "text": "Hi there.", "meta": {"b": 1, "a": [2.0]}},
    {"set": "more", "item": "i1", "position": 2, "text": "Good to see you.", "meta": {}, "written": IMPORTED_CAMPAIGNS},
    {"set": "more", "item": "i2", "position": 0, "text": "See you.", "meta": {}},
    {
        "set": "more", "item": "i1", "position": None, "text": "Gone.", "meta": {},
        "written": {**IMPORTED_CAMPAIGNS, "state": "withdrawn", "submission": "s-2"},
    },
    {"set": "other", "item": "i2", "position": 0, "text": "Bye.", "meta": {}},
]  # fmt: skip
ATTEMPTS = [
    {"campaign": "c", "item": "i1", "annotator": "p-1", "text": text, "decision": "accept", "submission": f"s-{n}"}
    for n, text in ((1, "Good to see you."), (2, "Gone."))
]
FILES = {"items.jsonl": ITEMS, "references.jsonl": ROWS, "attempts.jsonl": ATTEMPTS}


@pytest.fixture
def again(cast):
    return Project.objects.create(slug="again", name="Again")


@pytest.fixture
def dump(cast, monkeypatch, tmp_path):
    """Dumps a project with a set that looks like an evaluator's and a campaign with attempts and a withdrawn text."""
    fill_ports(monkeypatch)
    campaign = start_writing(cast, items=2, slug="zz")
    view = open_task_view(cast.annotator, campaign)
    for text in ("A plain one.", "A good one.", "Another good “one”.", "A third\u2028good one."):
        send(cast.annotator, view, text, seconds=2.0)
    withdraw_reference(user=cast.owner, reference_id=WrittenReference.objects.order_by("pk")[1].pk, reason="A name.")
    chosen = ReferenceSet.objects.create(project=cast.project, name="chosen", meta={"kind": "annotate"})
    for item in Item.objects.all():
        Reference.objects.create(
            set=chosen, item=item, position=0, text=f"Reply to {item.key}", meta={"gain": 0.25, "source": {"row": 3}}
        )
    return written(cast.project, tmp_path / "dump")


def test_dump_of_a_loaded_dump_is_equal(cast, again, dump, tmp_path):
    upload = take_in(again, dump)
    assert (upload.state, upload.ignored, list_errors(upload)) == ("done", [], [])
    assert upload.counts["references"]["added"] == len(dump["references.jsonl"].splitlines()) == 7
    assert upload.counts["attempts"]["added"] == 4
    assert written(again, tmp_path / "again") == dump
    assert not WritingCampaign.objects.filter(project=again).exists()
    assert not WritingAttempt.objects.filter(campaign__project=again).exists()
    # Repeated in both the target and the original project.
    for project in (again, cast.project):
        upload = take_in(project, {name: dump[name] for name in ("references.jsonl", "attempts.jsonl")})
        assert {table: count["same"] for table, count in upload.counts.items()} == {"references": 7, "attempts": 4}
        assert written(project, tmp_path / project.slug) == dump


def test_times_are_exported_only_with_consent(cast, again, dump, tmp_path):
    """Writing times are personal data; an export without them can still be loaded."""

    def export(project, name, **wishes):
        folder = tmp_path / name
        folder.mkdir()
        write_export(project, folder, ExportOptions(scores=False, **wishes), lambda done: None)
        return {file: (folder / file).read_bytes() for file in FILES}

    told = ("seconds", "created_at", "written_at", "withdrawn_at")
    kept = export(cast.project, "kept", attributes=True)
    assert kept == {name: dump[name] for name in kept}
    left_out = export(cast.project, "left-out")
    rows = [json.loads(line) for name in left_out for line in left_out[name].splitlines()]
    rows += [row["written"] for row in rows if "written" in row]
    assert [value for row in rows for name, value in row.items() if name in told and value is not None] == []
    assert sum(row.get("text") == "A plain one." for row in rows) == 1  # everything else is present
    # Loaded back into the original project, and elsewhere, where it is stored as exported.
    upload = take_in(cast.project, left_out)
    assert (upload.state, list_errors(upload)) == ("done", [])
    assert {count["added"] for count in upload.counts.values()} == {0}
    assert take_in(again, left_out).state == "done"
    assert export(again, "again", attributes=True) == left_out
    assert (
        take_in(cast.project, {"attempts.jsonl": left_out["attempts.jsonl"].replace(b"A plain one.", b"Hm.")}).state
        == "faulty"
    )
    # Without consent here, times from elsewhere are not exported either.
    other = Project.objects.create(slug="other", name="Other")
    take_in(other, kept)
    assert export(other, "other") == left_out
    assert export(other, "other-kept", attributes=True) == kept


def test_csv_is_read_as_well(cast, again, dump, tmp_path):
    csv = written(cast.project, tmp_path / "csv", "csv")
    take_in(again, {name: csv[name] for name in ("dataset.json", "items.csv", "references.csv", "attempts.csv")})
    second = written(again, tmp_path / "again")
    assert {name: second[name] for name in second if name != "dataset.json"} == {
        name: dump[name] for name in second if name != "dataset.json"
    }


def test_own_written_texts_stay_unchanged(cast, dump):
    def changed(name, place, **values):
        rows = [json.loads(line) for line in dump[name].splitlines()]
        return [{**rows[place], **values}]

    gone = next(row for row in map(json.loads, dump["references.jsonl"].splitlines()) if row["position"] is None)
    files = {
        "references.jsonl": [
            *changed("references.jsonl", 0, text="Other."),
            {**gone, "text": "Other."},
            {"set": "chosen", "item": "i000", "position": 7, "text": "One more."},
        ],
        "attempts.jsonl": changed("attempts.jsonl", 0, text="Other."),
    }
    upload = take_in(cast.project, files, replace=True)
    assert upload.state == "faulty"
    first, second, third, attempt = list_errors(upload)
    assert first.endswith("was created in this project, so it cannot be replaced.")
    assert second.startswith("references.jsonl:2: ")
    assert "belongs to a campaign" in second
    assert "The set “chosen” was created in this project" in third
    assert attempt.startswith("attempts.jsonl:1: ")
    assert "belongs to a campaign" in attempt


def test_exports_with_former_member_names_load_unchanged(cast, dump, tmp_path):
    """Older versions exported people who had left under this name, and their own project refused the rows."""
    older = {
        name: dump[name].replace(b'"p-anna"', b'"former member 0"') for name in ("references.jsonl", "attempts.jsonl")
    }
    assert all(b"former member 0" in content for content in older.values())
    upload = take_in(cast.project, older)
    assert list_errors(upload) == []
    assert {table: count["same"] for table, count in upload.counts.items()} == {"references": 7, "attempts": 4}
    other = {name: content.replace(b"member 0", b"member 2") for name, content in older.items()}
    assert len(list_errors(take_in(cast.project, other))) == 3 + 4


@pytest.mark.parametrize("how", ["kept", "pseudonyms", "as-uploaded"])
def test_writers_from_elsewhere_are_named_like_raters(cast, tmp_path, how):
    """An e-mail address identifies a person; other uploaded ids stay unless pseudonyms are requested."""
    address = {**IMPORTED_CAMPAIGNS, "annotator": "eva@example.org"}
    rows = [ROWS[1], {**ROWS[2], "written": {**address, "submission": "s-3"}},
            {**ROWS[3], "written": {**address, "submission": "s-2"}}]  # fmt: skip
    attempts = [ATTEMPTS[0], {**ATTEMPTS[1], "annotator": "eva@example.org"}]
    take_in(cast.project, {**FILES, "references.jsonl": rows, "attempts.jsonl": attempts})
    write_export(cast.project, tmp_path, ExportOptions(raters=how, scores=False), lambda done: None)
    lines = [json.loads(line) for line in (tmp_path / "references.jsonl").read_text().splitlines()]
    names = [row["written"]["annotator"] for row in lines]
    names += [json.loads(line)["annotator"] for line in (tmp_path / "attempts.jsonl").read_text().splitlines()]
    called = naming(cast.project, how)
    plain, eva = called("p-1"), called("eva@example.org")
    assert names == [plain, eva, eva, plain, eva]
    assert ("@" in eva, plain == "p-1") == (how == "as-uploaded", how != "pseudonyms")


def test_own_attempts_come_after_imported_ones(cast, again, monkeypatch, tmp_path):
    fill_ports(monkeypatch)
    take_in(cast.project, FILES)
    campaign = start_writing(cast, slug="c")
    send(cast.annotator, open_task_view(cast.annotator, campaign), "A good one.")
    first = written(cast.project, tmp_path / "one")
    texts = [json.loads(line)["text"] for line in first["attempts.jsonl"].splitlines()]
    assert texts == ["Good to see you.", "Gone.", "A good one."]
    assert take_in(again, first).state == "done"
    assert written(again, tmp_path / "two") == first


def test_errors_are_reported_by_line(again):
    rows = [
        {**ROWS[0], "set": "original"},
        {**ROWS[0], "set": "Not a name"},
        {**ROWS[0], "set": "compare"},
        {**ROWS[0], "item": "nowhere"},
        {**ROWS[0], "position": "0"},
        {**ROWS[0], "position": None},
        {**ROWS[0], "text": 7},
        {**ROWS[0], "written": "by hand"},
        {**ROWS[0], "written": {"campaign": "c"}},
        ROWS[1],
        {**ROWS[1], "written": None},
        {**ROWS[3], "written": IMPORTED_CAMPAIGNS},
    ]
    attempts = [ATTEMPTS[0], ATTEMPTS[0], {**ATTEMPTS[1], "edited": "no"}, {**ATTEMPTS[1], "submission": None}]
    upload = take_in(again, {**FILES, "references.jsonl": rows, "attempts.jsonl": attempts})
    found = list_errors(upload)
    assert upload.state == "faulty"
    assert not ReferenceSet.objects.filter(project=again).exists()
    assert [fault.split(": ")[0] for fault in found] == [
        *(f"references.jsonl:{n}" for n in (1, 2, 3, 4, 5, 6, 7, 8, 9, 11)),
        *(f"attempts.jsonl:{n}" for n in (2, 3, 4)),
    ]
    assert "“original” is the references in items.jsonl" in found[0]
    assert "There is no item “nowhere”" in found[3]
    assert "Only a text with “written” can be outside" in found[5]
    # Rows with the same message are one error.
    assert "is already used in references.jsonl:10. Remove one of the two rows. (2 rows: 11, 12)" in found[9]


def test_replace_and_undo(again, tmp_path):
    first = take_in(again, FILES)
    before = written(again, tmp_path / "before")
    changed = {
        "references.jsonl": [
            {**ROWS[0], "text": "New.", "written": {**IMPORTED_CAMPAIGNS, "submission": "s-9"}},
            {**ROWS[1], "written": {**IMPORTED_CAMPAIGNS, "gain": 0.75}},
            {**ROWS[3], "text": "New, too."},
            {**ROWS[2], "position": 1},
        ],
        "attempts.jsonl": [{**ATTEMPTS[0], "text": "Newer."}],
    }
    refused = take_in(again, changed)
    assert (refused.state, refused.fault_count) == ("faulty", 4)
    assert all(STORED_OTHERWISE in fault for fault in list_errors(refused))
    second = take_in(again, changed, replace=True)
    assert second.counts["references"] == {"rows": 4, "added": 1, "same": 0, "replaced": 3, "faulty": 0}
    assert second.counts["attempts"]["replaced"] == 1
    after = written(again, tmp_path / "after")
    assert b"New, too." in after["references.jsonl"]
    assert b"Newer." in after["attempts.jsonl"]
    with pytest.raises(Conflict) as error:
        undo_upload(upload=first, user=None)
    listed = [str(fault) for fault in error.value.faults]
    assert "1 references in its sets" in listed
    assert any("later changes" in line for line in listed)
    undo_upload(upload=second, user=None)
    assert written(again, tmp_path / "undone") == before
    undo_upload(upload=first, user=None)
    for model in (Reference, AttemptElsewhere, WrittenElsewhere, Item):
        assert not model.objects.exists()
    assert not ReferenceSet.objects.exclude(name="original").exists()


def test_text_appears_in_one_place(again):
    take_in(again, FILES)
    for row, why in (
        ({**ROWS[3], "written": IMPORTED_CAMPAIGNS}, "submission s-1 is already stored"),
        ({**ROWS[1], "position": 5}, "submission s-1 is already stored"),
        ({**ROWS[0], "text": "Hm.", "written": IMPORTED_CAMPAIGNS}, "submission s-1 is already stored"),
        ({**ROWS[1], "text": "Hm.", "written": None}, "which this row lacks"),
    ):
        (fault,) = list_errors(take_in(again, {"references.jsonl": [row]}, replace=True))
        assert why in fault
    upload = take_in(again, {"references.jsonl": [{**ROWS[1], "written": None}]})
    assert upload.counts["references"]["same"] == 1


def test_undo_is_refused_while_the_set_is_in_use(cast):
    make_items(cast.project, 1)
    row = {"set": "more", "item": "i000", "position": 0, "text": "Hi."}
    upload = take_in(cast.project, {"references.jsonl": [row]})
    plan = {"name": "Further", "start_set": "more", "options": {"arms": ["control"]}}
    campaign = create_writing(user=cast.owner, project=cast.project, plan=plan)
    assert campaign.start_set.name == "more"
    with pytest.raises(Conflict) as error:
        take_back_upload(upload=upload, user=cast.owner)
    (fault,) = error.value.faults
    assert str(fault).startswith("1 ")
    campaign.delete()
    take_back_upload(upload=upload, user=cast.owner)
    assert not ReferenceSet.objects.filter(name="more").exists()


def test_dump_members_match_the_sorted_members(cast, dump):
    text, attempt = WrittenReference.objects.first(), WritingAttempt.objects.first()
    assert tuple(make_written_row(text, {})) == WRITTEN
    assert tuple(make_attempt_row(attempt, {})) == COLUMNS["attempts"]
