"""References and attempts in an export, with their provenance."""

from __future__ import annotations

import csv
import json

import pytest

from annotation.models import WrittenReference
from annotation.pipelines.exports import write_folder
from annotation.services.campaigns import create_writing, open_campaign
from annotation.services.undo import take_back_upload
from annotation.services.writing_later import withdraw_reference
from evalapp.accounts.models import Membership
from evalapp.accounts.services import remove_member
from evalapp.common.errors import Conflict
from tests.taking import ITEMS, list_errors, take_in, written
from tests.writing import fill_ports, open_task_view, send, start_writing

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def fake(monkeypatch):
    return fill_ports(monkeypatch)


def lines(files, name):
    return [json.loads(line) for line in files[name].splitlines()]


def test_every_reference_and_attempt_with_its_provenance(cast, tmp_path):
    campaign = start_writing(cast, items=1)
    view = open_task_view(cast.annotator, campaign)
    for text in ("A plain one.", "A good one.", "Another good one."):
        send(cast.annotator, view, text, seconds=1.5)
    withdraw_reference(user=cast.owner, reference_id=WrittenReference.objects.last().pk, reason="A name.")
    remove_member(member=Membership.objects.get(project=cast.project, user=cast.annotator), actor=cast.owner)
    files = written(cast.project, tmp_path)
    rows = lines(files, "references.jsonl")
    assert [(row["set"], row["item"], row["position"], row["text"]) for row in rows] == [
        ("more-replies", "i000", 0, "Answer 0 to i000."),
        ("more-replies", "i000", 1, "A good one."),
        ("more-replies", "i000", None, "Another good one."),
    ]
    assert "written" not in rows[0]
    first, gone = rows[1]["written"], rows[2]["written"]
    assert (first["annotator"], first["arm"], first["gain"], first["signature"]) == (
        "p-anna",
        "scores",
        0.125,
        "fake|1",
    )
    assert (gone["state"], gone["reason"]) == ("withdrawn", "A name.")
    attempts = lines(files, "attempts.jsonl")
    assert {row["annotator"] for row in attempts} == {"p-anna"}  # people who have left keep their earlier names
    assert [(row["text"], row["decision"], row["improved"]) for row in attempts] == [
        ("A plain one.", "edit", False),
        ("A good one.", "accept", True),
        ("Another good one.", "accept", True),
    ]
    assert attempts[1]["text_before"] == "A plain one."
    assert attempts[1]["submission"] == first["submission"]


@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_other_formats_also_hold_them(cast, tmp_path, format):
    campaign = start_writing(cast, items=1)
    send(cast.annotator, open_task_view(cast.annotator, campaign), "A good one.", seconds=2)
    write_folder(cast.project, tmp_path, format, lambda done: None)
    if format == "csv":
        with (tmp_path / "attempts.csv").open(encoding="utf-8", newline="") as file:
            (row,) = csv.DictReader(file)
        assert (row["text"], row["score_after"]) == ("A good one.", "0.125")
        return
    import pyarrow.parquet as pq

    (row,) = pq.read_table(tmp_path / "attempts.parquet").to_pylist()
    assert (row["text"], row["score_after"], row["counted"], row["relevant"]) == ("A good one.", 0.125, True, None)
    (_, added) = pq.read_table(tmp_path / "references.parquet").to_pylist()
    assert (added["position"], json.loads(added["written"])["gain"]) == (1, 0.125)


def test_upload_with_a_writing_campaign_stays(cast):
    upload = take_in(cast.project, {"items.jsonl": ITEMS})
    campaign = create_writing(
        user=cast.owner, project=cast.project, plan={"name": "More", "options": {"arms": ["control"]}}
    )
    open_campaign(user=cast.owner, campaign=campaign)
    with pytest.raises(Conflict) as error:
        take_back_upload(upload=upload, user=cast.owner)
    assert any("references" in str(fault) for fault in error.value.faults)


def test_items_in_a_writing_campaign_are_not_replaced(cast):
    take_in(cast.project, {"items.jsonl": ITEMS})

    def begin(name, **plan):
        campaign = create_writing(user=cast.owner, project=cast.project, plan={"name": name, **plan})
        return open_campaign(user=cast.owner, campaign=campaign)

    def replace(**values):
        return take_in(cast.project, {"items.jsonl": [{**ITEMS[0], **values}]}, replace=True)

    begin("More", options={"arms": ["control"]})
    (fault,) = list_errors(replace(context=["Something else?"]))
    assert "writing campaign" in fault
    assert "“i1”" in fault
    # Writers do not see its group, and the references are in the campaign's own set.
    changed = replace(group="h", references=["Hi, you."])
    assert (changed.state, changed.counts["items"]["replaced"]) == ("done", 1)
    # Under a constraint, people write against the references.
    begin("Others", kind="constraint", options={"constraint": "avoid-original-words"})
    (fault,) = list_errors(replace(group="h", references=["Hello, you."]))
    assert "writing campaign" in fault
    with pytest.raises(Conflict) as error:
        take_back_upload(upload=changed, user=cast.owner)
    (fault,) = error.value.faults
    assert str(fault).startswith("1 ")
    assert "references" in str(fault)
