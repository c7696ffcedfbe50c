"""Lookalike names in an upload report, and grouping of equal errors (FAULTS D9, F2)."""

from __future__ import annotations

import json

import pytest
from django.core.management import call_command

from annotation.models import Output, System
from tests.taking import list_errors, list_named, take_in

pytestmark = pytest.mark.django_db
NFC, NFD = "caf\u00e9", "cafe\u0301"
SAME = "differ only in Unicode form, white space or invisible characters"


def _outputs(*systems):
    return [{"item": "i1", "system": name, "text": "t"} for name in systems]


@pytest.fixture
def project(cast):
    return cast.project


def test_two_systems_of_one_upload_and_one_stored(project):
    files = {"items.jsonl": [{"id": "i1"}], "outputs.jsonl": _outputs(NFC, NFD, "gpt", "other")}
    upload = take_in(project, files)
    assert upload.state == "done", list_errors(upload)
    assert upload.options["hints"] == [
        f"systems: “{NFD}” (U+0301) and “{NFC}” (U+00E9) {SAME}. If they are the same, use one name."
    ]
    later = take_in(project, {"outputs.jsonl": _outputs("gpt\u200b", "g p t")})
    (hint,) = later.options["hints"]
    assert hint.startswith("systems: “g p t” (U+0020 U+0020) and “gpt” and “gpt<U+200B>” (U+200B) differ")
    assert take_in(project, {"outputs.jsonl": _outputs("gpt", "other")}).options["hints"] == []
    assert System.objects.filter(project=project).count() == 6


def test_items_aspects_and_raters(project, client, cast, capsys, tmp_path):
    rows = [
        {"item": f"i{k}", "system": "s", "rater": rater, "aspect": aspect, "value": 1}
        for k, (rater, aspect) in enumerate([("r 1", NFC), ("r1", NFD)])
    ]
    items = [{"id": "i0"}, {"id": "i1"}, {"id": NFC}, {"id": NFD}]
    outputs = [{"item": f"i{k}", "system": "s", "text": "t"} for k in range(2)]
    upload = take_in(project, {"items.jsonl": items, "outputs.jsonl": outputs, "ratings.jsonl": rows})
    assert upload.state == "done", list_errors(upload)
    assert [hint.split(":")[0] for hint in upload.options["hints"]] == ["aspects", "items", "raters"]
    client.force_login(cast.owner)
    page = client.get(f"/projects/alpha/uploads/{upload.pk}/").content.decode()
    assert "To check" in page
    assert f"items: “{NFD}” (U+0301) and “{NFC}” (U+00E9)" in page
    assert client.get(f"/api/v1/uploads/{upload.pk}/").json()["hints"] == upload.options["hints"]
    (tmp_path / "items.jsonl").write_text(json.dumps({"id": f"{NFC} "}) + "\n")
    call_command("load", str(tmp_path), "--project", "alpha")
    assert "hint: items: " in capsys.readouterr().err


def test_sixty_rows_with_one_error_are_one_line(project):
    rows = [{"item": "nope", "system": f"s{k}", "text": "t"} for k in range(60)]
    upload = take_in(project, {"items.jsonl": [{"id": "i1"}], "outputs.jsonl": rows})
    assert upload.fault_count == 60
    assert list_named(upload) == [("outputs.jsonl:1", "item", {"nope", "60", "1", "2", "3"})]
    assert upload.counts["outputs"]["faulty"] == 60


def test_equal_parse_errors_are_one_line(project):
    items = [{"id": "a"}, {"id": 1.5}, {"id": "b", "source": 3}, {"id": 2.5}]
    found = list_named(take_in(project, {"items.jsonl": items}))
    assert found == [("items.jsonl:2", "id", {"2", "4"}), ("items.jsonl:3", "source", set())]


def test_more_than_a_thousand_rows_of_one_error_are_counted(project):
    rows = [{"item": "nope", "system": "s", "text": "t", "step": k} for k in range(2500)]
    upload = take_in(project, {"outputs.jsonl": rows})
    assert upload.fault_count == 2500
    assert list_named(upload) == [("outputs.jsonl:1", "item", {"nope", "2,500", "1", "2", "3"})]


def test_sixty_rows_that_differ_in_a_name_are_one_line(project):
    rows = [{"item": f"q{k}", "system": "s", "text": "t"} for k in range(60)]
    upload = take_in(project, {"items.jsonl": [{"id": "q1"}], "outputs.jsonl": rows})
    assert upload.fault_count == 59
    assert list_named(upload) == [("outputs.jsonl:1", "item", {"q0", "59", "1", "3", "4", "q2", "q3", "56"})]


def test_three_different_names_get_a_line_each(project):
    rows = [{"item": f"q{k % 3}", "system": f"s{k}", "text": "t"} for k in range(6)]
    upload = take_in(project, {"items.jsonl": [{"id": "i"}], "outputs.jsonl": rows})
    assert list_named(upload) == [
        ("outputs.jsonl:1", "item", {"q0", "2", "1", "4"}),
        ("outputs.jsonl:2", "item", {"q1", "2", "5"}),
        ("outputs.jsonl:3", "item", {"q2", "2", "3", "6"}),
    ]


def test_names_beyond_the_limit_are_counted_by_file(project):
    rows = [{"item": f"q{k}", "system": "s", "text": "t"} for k in range(2500)]
    upload = take_in(
        project, {"outputs.jsonl": rows, "outputs-b.jsonl": [{"item": "z", "system": "t", "text": "t"}] * 2}
    )
    assert upload.fault_count == 2502
    assert list_named(upload) == [
        ("outputs-b.jsonl:1", "item", {"z"}),
        ("outputs-b.jsonl:2", "", {"outputs-b.jsonl:1"}),
        ("outputs.jsonl:1", "item", {"q0", "2,500", "1", "2", "3", "q1", "q2", "997"}),
    ]


def test_jsonl_keys_in_another_case_are_read_like_headers(project):
    files = {
        "items.jsonl": [{"ID": f"q{k}", "Context": ["c"]} for k in range(3)],
        "outputs.jsonl": [{"Item": f"q{k}", "System": "s", "TEXT": "t", "Length": 3} for k in range(3)],
        "ratings.jsonl": [{"Item": "q1", "System": "s", "Rater": "r", "Aspect": "a", "Value": 1}],
    }
    upload = take_in(project, files)
    assert upload.state == "done", list_errors(upload)
    output = Output.objects.filter(project=project).order_by("pk")[0]
    assert (output.item.key, output.text, output.meta) == ("q0", "t", {"Length": 3})
    # A key present in both cases is read in lower case.
    upload = take_in(project, {"outputs.jsonl": [{"item": "q1", "Item": "q2", "system": "t", "text": "t"}]})
    assert upload.state == "done", list_errors(upload)
    assert Output.objects.get(project=project, system__name="t").item.key == "q1"


#: Row `k` of sixty with its own kind of error, and how the grouped line begins. Names and numbers differ.
REPEATED = [
    ("items", lambda k: {"id": ""}, "id is empty."),
    ("items", lambda k: {"id": [k]}, "id must be text"),
    ("items", lambda k: {"id": f"a\n{k}"}, "id contains a line break"),
    ("items", lambda k: {"id": k, "source": 3}, "source must be text"),
    ("outputs", lambda k: {"item": f"i{k}", "system": "s", "text": "t"}, "There is no item “i0”"),
    ("outputs", lambda k: {"item": "x", "system": f"s{k}"}, "text is missing."),
    ("outputs", lambda k: {"item": "x", "system": "s", "text": "t", "step": k + 0.5}, "step must be"),
    ("ratings", lambda k: {**RATING, "system": f"s{k}"}, "There is no system “s0”"),
    ("ratings", lambda k: {**RATING, "rater": f"r{k}", "step": k}, "“a” has no output of step 0"),
    ("ratings", lambda k: {**RATING, "rater": f"r{k}", "aspect": "q", "value": 10 + k}, "The value 10"),
    ("ratings", lambda k: {"dialogue": f"d{k}", "rater": "r", "aspect": "a", "value": 1}, "There is no dialogue “d0”"),
    ("comparisons", lambda k: {**PAIR, "system_b": f"b{k}"}, "There is no system “b0”"),
    ("comparisons", lambda k: {**PAIR, "system_b": {"reference": k}}, "The item “x” has no reference 0"),
    ("comparisons", lambda k: {**PAIR, "system_b": "a", "rater": f"r{k}"}, "An output is compared with itself."),
    ("references", lambda k: {"item": f"i{k}", "set": "good", "position": 0, "text": "t"}, "There is no item “i0”"),
    ("systems", lambda k: {"id": f"s{k}", "kind": f"k{k}"}, "kind must be"),
    ("dialogues", lambda k: {"id": f"d{k}", "turns": ["a"], "speakers": ["a"] * (k + 2)}, "There are 2 speakers"),
]
RATING = {"item": "x", "system": "a", "rater": "r", "aspect": "a", "value": 1}
PAIR = {"item": "x", "system_a": "a", "rater": "r", "aspect": "a", "verdict": "a"}


@pytest.mark.parametrize(("table", "row", "begin"), REPEATED, ids=lambda value: None if callable(value) else value)
def test_every_kind_of_repeated_error_is_one_line(project, table, row, begin):
    there = {
        "dataset.json": {"name": "x", "aspects": [{"name": "q", "min": 1, "max": 5}, {"name": "a"}]},
        "items.jsonl": [{"id": "x"}], "outputs.jsonl": [{"item": "x", "system": "a", "text": "t"}],
    }  # fmt: skip
    assert take_in(project, there).state == "done"
    rows = [row(k) for k in range(60)]
    found = list_errors(take_in(project, {f"{table}.jsonl": rows}))
    assert len(found) == 1, found[:5]
    assert found[0].startswith(f"{table}.jsonl:1: {begin}"), found
    assert "(60 rows: 1, 2, 3, ..." in found[0]


@pytest.mark.parametrize("is_stored", [False, True])
def test_missing_name_suggests_its_other_form(project, is_stored):
    there = {"items.jsonl": [{"id": NFC}], "outputs.jsonl": [{"item": NFC, "system": NFC, "text": "t"}]}
    if is_stored:
        take_in(project, there)
        there = {}
    upload = take_in(project, {**there, "outputs-b.jsonl": [{"item": NFD, "system": "s", "text": "t"}]})
    (fault,) = list_errors(upload)
    assert fault.endswith(f"There is “{NFC}” (U+00E9), which {SAME.replace('differ', 'differs')}.")
    rating = {"item": NFC, "system": NFD, "rater": "r", "aspect": "q", "value": 1}
    (fault,) = list_errors(take_in(project, {**there, "ratings.jsonl": [rating]}))
    assert f"There is “{NFC}” (U+00E9)" in fault


@pytest.mark.parametrize("name", ["good\nbad", "a\u2028b", "a\u202eb", "a\tb", "a\x85b"])
def test_names_with_line_breaks_are_refused(project, name):
    for files in (
        {"items.jsonl": [{"id": name}]},
        {"systems.jsonl": [{"id": name}]},
        {"outputs.jsonl": [{"item": "i1", "system": name, "text": "t"}], "items.jsonl": [{"id": "i1"}]},
        {"dataset.json": {"name": "x", "aspects": [{"name": name, "min": 1, "max": 5}]}},
        {"dialogues.jsonl": [{"id": name, "turns": ["x"]}]},
    ):
        upload = take_in(project, files)
        assert upload.state == "faulty", files
        (hidden,) = [char for char in name if not char.isalpha()]
        assert f"U+{ord(hidden):04X}" in list_errors(upload)[0]
