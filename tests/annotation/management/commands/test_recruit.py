"""`evalapp recruit`: create a link, list links and participants."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from annotation.models import Recruitment
from tests.annotation.hired import Study, Visitor
from tests.cast import Cast

pytestmark = pytest.mark.django_db


def recruit(*arguments: str) -> dict[str, Any]:
    out = StringIO()
    call_command("recruit", *arguments, "--json", stdout=out, stderr=StringIO())
    return json.loads(out.getvalue())


def test_a_link_from_a_file_lets_people_in(cast: Cast, tmp_path: Path) -> None:
    study = Study(cast)
    path = tmp_path / "link.json"
    path.write_text(json.dumps({"places": 7, "platform": "mturk", "label": "MTurk"}))
    made = recruit("alpha", "replies", str(path), "--as", "rita")
    assert made["address"].endswith("?workerId={ID}")
    row = Recruitment.objects.get(pk=made["id"])
    assert (row.places, row.created_by) == (7, cast.researcher)
    assert Client().get(made["address"].replace("{ID}", "w1")).status_code == 200
    links = recruit("alpha", "replies")["links"]
    assert [(link["label"], link["places"]) for link in links] == [("MTurk", 7), ("", 5)]
    Visitor(study, "id-1").finish()
    people = recruit("alpha", "replies", "--participants", str(study.link.pk))["participants"]
    assert [(one["participant"], one["state"], one["units"]) for one in people] == [("id-1", "passed", 3)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "is not JSON"),
        ('{"label": "x"}', "Give the number of places"),
        ('{"places": 2, "pass_mark": 0.5}', "no practice items"),
        ('{"places": 2, "payment": 1}', "no field “payment”"),
    ],
)
def test_faulty_files_store_nothing(cast: Cast, tmp_path: Path, text: str, words: str) -> None:
    Study(cast)
    path = tmp_path / "link.json"
    path.write_text(text)
    with pytest.raises(CommandError) as raised:
        call_command("recruit", "alpha", "replies", str(path), stdout=StringIO(), stderr=StringIO())
    assert words in str(raised.value)
    assert Recruitment.objects.count() == 1
