"""The page that matches the columns of a table: proposal, preview, changes without script, import, earlier mappings."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from annotation.models import Item, Output, Rating, Upload
from evalapp.common.runner import execute_run
from tests.pages import read_page

pytestmark = pytest.mark.django_db
FILES = Path(__file__).parents[1] / "mapping" / "files"


@pytest.fixture
def researcher(client: Any, cast: Any) -> Any:
    client.force_login(cast.researcher)
    return client


def send(client: Any, name: str, content: bytes | None = None, **data: Any) -> Any:
    """Upload a file of the test files, or `content`; return the response."""
    file = SimpleUploadedFile(name, (FILES / name).read_bytes() if content is None else content)
    return client.post(reverse("annotation:upload-list", args=["alpha"]), {"files": [file], **data})


def read_form(text: str) -> dict[str, str]:
    """The values that a browser sends with the form, without script."""
    form = text[text.index('id="columns"') :]
    form = form[: form.index("</form>")]
    values = dict(re.findall(r'<input[^>]*name="([^"]+)"[^>]*?value="([^"]*)"', form))
    values |= dict(re.findall(r'<input type="radio" name="([^"]+)" value="([^"]+)" checked', form))
    for name, options in re.findall(r'<select[^>]*name="([^"]+)"[^>]*>(.*?)</select>', form, re.DOTALL):
        chosen = re.search(r'<option value="([^"]*)" selected', options)
        first = re.search(r'<option value="([^"]*)"', options)
        values[name] = (chosen or first)[1]  # type: ignore[index]
    values |= dict(re.findall(r'<textarea[^>]*name="([^"]+)"[^>]*>([^<]*)</textarea>', form))
    values.pop("dry_run", None)
    values.pop("replace", None)
    return {name: value.replace("&quot;", '"').replace("&amp;", "&") for name, value in values.items()}


def test_wide_sheet_is_proposed_and_imported(researcher, cast):
    answer = send(researcher, "wide.csv")
    upload = Upload.objects.get()
    columns = reverse("annotation:upload-columns", args=["alpha", upload.pk])
    assert (answer.status_code, answer["Location"], upload.state) == (302, columns, "mapping")
    text = read_page(researcher.get(columns))
    assert re.findall(r'data-made="(\w+)"', text) == ["items", "outputs"]
    form = read_form(text)
    roles = [form[f"role-{k}"] for k in range(6)]
    assert roles == ["item", "context", "references", "meta", "outputs", "outputs"]
    assert not Item.objects.exists()
    answer = researcher.post(columns, {**form, "act": "import"})
    assert answer["Location"] == reverse("annotation:upload-show", args=["alpha", upload.pk])
    upload.refresh_from_db()
    execute_run(upload.run_id)
    assert (Item.objects.count(), Output.objects.count()) == (3, 6)


def open_columns(client: Any, upload: Upload) -> tuple[str, str]:
    """(the address of the page, its text)."""
    address = reverse("annotation:upload-columns", args=["alpha", upload.pk])
    return address, read_page(client.get(address))


def import_and_run(client: Any, upload: Upload, address: str, form: dict[str, str]) -> Upload:
    answer = client.post(address, {**form, "act": "import"})
    assert answer["Location"] == reverse("annotation:upload-show", args=["alpha", upload.pk])
    upload.refresh_from_db()
    execute_run(upload.run_id)
    upload.refresh_from_db()
    return upload


def test_what_the_file_does_not_tell_is_asked(researcher, cast):
    send(researcher, "answers.csv", b"prompt,response\nAny plans?,The lake.\nHungry?,A bit.\n")
    upload = Upload.objects.get()
    address, text = open_columns(researcher, upload)
    assert 'data-question="constants.system"' in text
    form = read_form(text)
    answer = researcher.post(address, {**form, "act": "import"})
    assert answer.status_code == 422
    assert re.search(r'id="missing" role="alert"', read_page(answer))
    upload.refresh_from_db()
    assert (upload.state, upload.run) == ("mapping", None)
    import_and_run(researcher, upload, address, {**form, "fixed-system": "model-a"})
    assert set(Output.objects.values_list("system__name", flat=True)) == {"model-a"}


def test_columns_are_changed_and_shown_without_script(researcher, cast):
    send(researcher, "wide.csv")
    upload = Upload.objects.get()
    address, text = open_columns(researcher, upload)
    form = read_form(text)
    # The last column is no system, and the other one has another name.
    form |= {"role-5": "", "role-3": "group", "system-4": "gpt-4"}
    assert researcher.post(address, {**form, "act": "show"})["Location"] == address
    upload.refresh_from_db()
    assert upload.options["mapping"]["outputs"] == [{"column": "GPT-4", "system": "gpt-4"}]
    _address, text = open_columns(researcher, upload)
    assert len(re.findall(r"<tr>", text[text.index('data-made="outputs"') : text.index('id="given"')])) == 4
    assert read_form(text)["role-3"] == "group"
    import_and_run(researcher, upload, address, read_form(text))
    assert Output.objects.count() == 3
    assert set(Item.objects.values_list("group", flat=True)) == {"leisure", "food"}


def test_faulty_rows_name_the_column_and_the_mapping_can_be_corrected(researcher, cast):
    rows = "".join(f"i{k},model-a,Text {k}.,ann,{'good' if k == 1500 else 3}\n" for k in range(1600))
    send(researcher, "scores.csv", f"item,system,text,rater,score\n{rows}".encode())
    upload = Upload.objects.get()
    address, text = open_columns(researcher, upload)
    form = read_form(text) | {"items": "yes"}
    assert import_and_run(researcher, upload, address, form).state == "faulty"
    assert [(fault.line, fault.field) for fault in upload.faults.all()] == [(1502, "score")]
    assert not Output.objects.exists()
    show = read_page(researcher.get(reverse("annotation:upload-show", args=["alpha", upload.pk])))
    assert f'href="{address}"' in show
    form = read_form(open_columns(researcher, upload)[1]) | {"values": "good = 4"}
    assert import_and_run(researcher, upload, address, form).state == "done", list(upload.faults.all())
    assert Rating.objects.filter(value=4).count() == 1


def test_mapping_of_a_stored_upload_is_offered_again(researcher, cast):
    sheet = b"code,question,bot one,bot two\nq1,Any plans?,The lake trail.,No plans at all.\n"
    send(researcher, "may.csv", sheet)
    first = Upload.objects.get()
    address, text = open_columns(researcher, first)
    form = read_form(text) | {"role-0": "item", "role-1": "context", "role-2": "outputs", "role-3": "outputs"}
    form |= {"system-2": "one", "system-3": "two", "ids": "column"}
    import_and_run(researcher, first, address, form)
    send(researcher, "june.csv", sheet.replace(b"q1", b"q2"))
    second = Upload.objects.latest("pk")
    address, text = open_columns(researcher, second)
    assert f'data-adopted="{first.pk}"' in text
    import_and_run(researcher, second, address, read_form(text))
    assert sorted(Output.objects.values_list("item__key", "system__name")) == [
        ("q1", "one"), ("q1", "two"), ("q2", "one"), ("q2", "two"),
    ]  # fmt: skip
    # The file for programs
    file = researcher.get(reverse("annotation:upload-mapping", args=["alpha", second.pk]))
    assert file.json() == second.options["mapping"]


@pytest.mark.parametrize("text", ["{", "[]", '{"shape": "wide", "columns": {"item": 3}}', '{"shape": "round"}'])
def test_invalid_json_is_explained_and_not_saved(researcher, cast, text):
    send(researcher, "wide.csv")
    upload = Upload.objects.get()
    address, _text = open_columns(researcher, upload)
    answer = researcher.post(address, {"act": "json", "json": text})
    assert answer.status_code == 422
    assert "data-missing" in read_page(answer)
    upload.refresh_from_db()
    assert "mapping" not in upload.options


def test_discarded_table_leaves_no_files(researcher, cast, settings):
    send(researcher, "wide.csv")
    upload = Upload.objects.get()
    folder = settings.UPLOADS_DIR / str(upload.pk)
    assert folder.exists()
    researcher.post(reverse("annotation:upload-undo", args=["alpha", upload.pk]))
    assert not folder.exists()


def test_file_that_is_no_table_is_refused(researcher, cast):
    answer = send(researcher, "photo.png", b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 10)
    assert answer.status_code == 422
    assert not Upload.objects.exists()


def test_known_format_can_be_chosen(researcher, cast):
    send(researcher, "labels.csv", b"instance_id,displayed_text,annotator\na,A reply.,ann\nb,Another one.,ann\n")
    upload = Upload.objects.get()
    address, _text = open_columns(researcher, upload)
    assert researcher.post(address, {"act": "start", "start": "potato"})["Location"] == address
    _address, text = open_columns(researcher, upload)
    assert 'data-preset="potato"' in text


def test_aligned_text_files_are_one_table(researcher, cast):
    files = [SimpleUploadedFile(path.name, path.read_bytes()) for path in sorted((FILES / "lines").iterdir())]
    researcher.post(reverse("annotation:upload-list", args=["alpha"]), {"files": files})
    upload = Upload.objects.get()
    address, text = open_columns(researcher, upload)
    form = read_form(text)
    assert [form[f"role-{k}"] for k in range(4)] == ["outputs", "outputs", "references", "source"]
    assert import_and_run(researcher, upload, address, form).state == "done", list(upload.faults.all())
    assert (Item.objects.count(), Output.objects.count()) == (3, 6)
    assert set(Item.objects.values_list("source", flat=True)) >= {"Es regnet."}


SHEET = b"id,question,gpt output,gpt fluency,seconds,asked on\n" + b"".join(
    b"q%d,What is %d?,It is %d.,%d,7,2026-01-0%d\n" % (k, k, k, k % 5, k) for k in range(1, 8)
)


def test_left_out_columns_are_named_above_the_import(researcher, cast):
    send(researcher, "sheet.csv", SHEET)
    upload = Upload.objects.get()
    address, text = open_columns(researcher, upload)
    above = text[: text.index('value="import"')]
    assert re.findall(r'data-left-out="([^"]+)"', above) == ["seconds", "asked on"]
    assert "2026-01-01" in above
    # A change counts at once, also for a saved mapping; the run names them, too.
    researcher.post(address, {**read_form(text), "role-1": "", "role-4": "meta", "act": "show"})
    _address, text = open_columns(researcher, upload)
    assert re.findall(r'data-left-out="([^"]+)"', text) == ["question", "asked on"]
    assert 'id="lacks-items"' in text
    upload = import_and_run(researcher, upload, address, {**read_form(text), "role-1": "context"})
    assert [hint for hint in upload.options["hints"] if "“asked on”" in hint]
    assert Item.objects.filter(meta__seconds="7").count() == 7


def test_faults_of_references_name_the_original_column(researcher, cast):
    send(researcher, "sheet.csv", b"Nr.,gpt output,llama output\n1,It is good.,It is bad.\n2,Fine it is.,Not at all.\n")
    upload = Upload.objects.get()
    address, text = open_columns(researcher, upload)
    assert import_and_run(researcher, upload, address, read_form(text)).state == "faulty"
    assert {(fault.line, fault.field) for fault in upload.faults.all()} == {(2, "Nr."), (3, "Nr.")}
    assert not Output.objects.exists()


def test_more_columns_than_the_form_has_lines(researcher, cast):
    names = [f"unknown {k}" for k in range(230)] + ["id", "question", "gpt output", "llama output"]
    cells = ["1"] * 230 + ["a", "What is it?", "It is good.", "It is bad."]
    send(researcher, "wide.csv", f"{','.join(names)}\n{','.join(cells)}\n".encode())
    upload = Upload.objects.get()
    address, text = open_columns(researcher, upload)
    form = read_form(text)
    # Those that are imported have a line; of the others, some stay as they are.
    assert [form[f"role-{k}"] for k in range(230, 234)] == ["item", "context", "outputs", "outputs"]
    assert len([name for name in form if name.startswith("role-")]) == 200
    assert 'id="hidden-columns"' in text
    mapping = {"shape": "wide", "columns": {"item": "id", "context": "question"}, "meta": {"items": ["unknown 229"]},
               "outputs": [{"column": "gpt output", "system": "gpt"}]}  # fmt: skip
    researcher.post(address, {"act": "json", "json": json.dumps(mapping)})
    form = read_form(open_columns(researcher, upload)[1])
    del form["role-229"]  # a column without a line
    researcher.post(address, {**form, "role-233": "outputs", "system-233": "llama", "act": "show"})
    upload.refresh_from_db()
    assert upload.options["mapping"]["meta"] == {"items": ["unknown 229"]}
    assert [one["system"] for one in upload.options["mapping"]["outputs"]] == ["gpt", "llama"]


def test_raters_and_split_cells_stay_when_the_form_is_sent(researcher, cast):
    send(researcher, "sheet.csv", b"key,text,fluency R1,fluency R2\nq1_gpt,It is good.,1,2\nq1_llama,It is bad.,3,4\n")
    upload = Upload.objects.get()
    address, _text = open_columns(researcher, upload)
    mapping = {
        "shape": "wide", "columns": {"item": "key.item", "system": "key.system", "text": "text"},
        "ratings": [{"column": f"fluency {rater}", "aspect": "fluency", "rater": rater} for rater in ("R1", "R2")],
        "split": {"key": "{item}_{system}"}, "make_items": True,
    }  # fmt: skip
    researcher.post(address, {"act": "json", "json": json.dumps(mapping)})
    form = read_form(open_columns(researcher, upload)[1]) | {"aspect-3": "style"}
    import_and_run(researcher, upload, address, form)
    assert sorted(Rating.objects.values_list("output__system__name", "rater", "aspect__name", "value")) == [
        ("gpt", "R1", "fluency", 1.0), ("gpt", "R2", "style", 2.0),
        ("llama", "R1", "fluency", 3.0), ("llama", "R2", "style", 4.0),
    ]  # fmt: skip


def test_the_page_needs_few_queries(researcher, cast, django_assert_max_num_queries):
    send(researcher, "sheet.csv", SHEET)
    address, _text = open_columns(researcher, Upload.objects.get())
    with django_assert_max_num_queries(15):
        researcher.get(address)


def test_column_of_a_metric(researcher, cast):
    content = "id,question,gpt output,gpt comet,ter\na,What is it?,It is good.,0.5,30\n"
    send(researcher, "wide.csv", content.encode())
    upload = Upload.objects.get()
    scores = [{"column": "ter", "system": "gpt", "evaluator": "TER", "reference_set": "original",
               "higher_is_better": "false"}]  # fmt: skip
    mapping = {"shape": "wide", "columns": {"item": "id", "context": "question"}, "scores": scores,
               "outputs": [{"column": "gpt output", "system": "gpt"}]}  # fmt: skip
    address, _text = open_columns(researcher, upload)
    researcher.post(address, {"act": "json", "json": json.dumps(mapping)})
    form = read_form(open_columns(researcher, upload)[1])
    assert (form["role-4"], form["system-4"], form["aspect-4"]) == ("scores", "gpt", "TER")
    sent = {**form, "role-3": "scores", "system-3": "gpt", "aspect-3": "comet", "act": "show"}
    researcher.post(address, sent)
    upload.refresh_from_db()
    more = {"column": "gpt comet", "system": "gpt", "evaluator": "comet"}
    kept = sorted(upload.options["mapping"]["scores"], key=lambda one: one["column"])
    # What the form does not show stays.
    assert kept == [more, scores[0]]
