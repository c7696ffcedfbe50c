"""The page that matches columns: wide sheets, open questions, and the words for what is missing."""

from __future__ import annotations

from typing import Any

import pytest
from django.conf import settings

from annotation.models import Comparison, Item, Rating, Upload
from tests.annotation.views.test_mappings import import_and_run, open_columns, read_form, send

pytestmark = pytest.mark.django_db


@pytest.fixture
def researcher(client: Any, cast: Any) -> Any:
    client.force_login(cast.researcher)
    return client


def write_csv(*rows: list[Any]) -> bytes:
    return "".join(",".join(map(str, row)) + "\n" for row in rows).encode()


def test_a_sheet_of_400_columns_is_imported(researcher):
    """Columns without a line in the form stay as the mapping has them."""
    systems = [f"system{k}" for k in range(198)]
    head = ["id", "prompt", *(f"{name} output" for name in systems), *(f"{name} fluency" for name in systems), "x", "y"]
    rows = [[f"p{k}", f"What is {k} then?", *(f"{name} says {k} here" for name in systems), *[k + 1] * 198, "", ""]
            for k in range(3)]  # fmt: skip
    send(researcher, "a.csv", write_csv(head, *rows))
    upload = Upload.objects.get()
    address, text = open_columns(researcher, upload)
    form = read_form(text)
    assert len(form) < settings.DATA_UPLOAD_MAX_NUMBER_FIELDS
    assert 'id="hidden-columns"' in text
    upload = import_and_run(researcher, upload, address, form)
    assert upload.state == "done", list(upload.faults.values_list("message", flat=True))
    assert (Item.objects.count(), Rating.objects.count()) == (3, 3 * 198)


def test_import_waits_while_something_is_open(researcher):
    rows = [[k, f"What is {k} then?", f"It is {k} so", f"Or {k} it is", k] for k in (1, 2, 3)]
    send(researcher, "a.csv", write_csv(["id", "prompt", "gpt output", "llama output", "rating"], *rows))
    upload = Upload.objects.get()
    address, text = open_columns(researcher, upload)
    assert text.count('value="import" disabled') == 2
    assert 'id="import-needs"' in text
    # To show the rows without an answer says that the column is left out.
    form = read_form(text)
    assert researcher.post(address, {**form, "act": "show"}).status_code == 302
    _address, text = open_columns(researcher, upload)
    assert 'value="import" disabled' not in text
    assert import_and_run(researcher, upload, address, form).state == "done"


def test_an_incomplete_mapping_is_refused_though_the_button_is_pressed(researcher):
    send(researcher, "a.csv", write_csv(["id", "winner", "text"], [1, "a", "One two."]))
    upload = Upload.objects.get()
    address, text = open_columns(researcher, upload)
    answer = researcher.post(address, {**read_form(text), "layout": "pairs", "act": "import"})
    assert answer.status_code == 422
    assert 'value="import" disabled' in answer.content.decode()


def test_what_is_missing_is_named_with_the_column(researcher):
    questions = [f"{q}. {s} [{a}]" for q in (1, 2) for s in ("Claude", "Gemini") for a in ("Zest", "Charm")]
    rows = [["2026/01/12 10:11:12", f"u{k}@example.org", *[3] * 8] for k in range(2)]
    send(researcher, "a.csv", write_csv(["Timestamp", "Username", *questions], *rows))
    upload = Upload.objects.get()
    address, text = open_columns(researcher, upload)
    assert 'data-question="ratings"' in text
    assert "ratings[" not in text
    answer = researcher.post(address, {**read_form(text), "role-2": "ratings", "act": "import"}).content.decode()
    assert "ratings[" not in answer


def test_the_decimal_sign_can_be_answered_on_the_page(researcher):
    rows = [[k, "gpt", f"It is {k} so.", f"{k}.250"] for k in (1, 2, 3)]
    send(researcher, "a.csv", write_csv(["id", "system", "output", "score"], *rows))
    upload = Upload.objects.get()
    address, text = open_columns(researcher, upload)
    assert 'data-question="reading.decimal"' in text
    form = {**read_form(text), "decimal": "."}
    researcher.post(address, {**form, "act": "show"})
    upload.refresh_from_db()
    assert upload.options["mapping"]["reading"]["decimal"] == "."
    _address, text = open_columns(researcher, upload)
    assert read_form(text)["decimal"] == "."


def test_ratings_of_the_sides_of_pairs_stay_on_the_page(researcher):
    rows = [[k, f"Why {k}?", f"One {k}.", f"Two {k}.", "gpt", "llama", k, 3, "ab"[k % 2]] for k in range(1, 5)]
    head = ["id", "prompt", "response_a", "response_b", "model_a", "model_b", "fluency_a", "fluency_b", "preferred"]
    send(researcher, "a.csv", write_csv(head, *rows))
    upload = Upload.objects.get()
    address, text = open_columns(researcher, upload)
    form = read_form(text)
    assert (form["role-6"], form["system-6"], form["aspect-6"]) == ("ratings", "a", "fluency")
    upload = import_and_run(researcher, upload, address, form)
    assert upload.state == "done", list(upload.faults.values_list("message", flat=True))
    assert sorted(Rating.objects.filter(output__system__name="gpt").values_list("value", flat=True)) == [1, 2, 3, 4]


def test_verdicts_in_columns_of_zeros_and_ones_are_imported(researcher):
    head = ["id", "prompt", "text_a", "text_b", "system_a", "system_b", "winner_a", "winner_b", "tie"]
    flags = [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
    rows = [[k, f"Why {k}?", "It is so.", "It is not.", "gpt", "llama", *one] for k, one in enumerate(flags)]
    send(researcher, "a.csv", write_csv(head, *rows))
    upload = Upload.objects.get()
    address, text = open_columns(researcher, upload)
    assert 'value="import" disabled' not in text
    form = read_form(researcher.get(address).content.decode())  # with the lines of its texts
    upload = import_and_run(researcher, upload, address, form)
    assert upload.state == "done", list(upload.faults.values_list("message", flat=True))
    assert sorted(Comparison.objects.values_list("verdict", flat=True)) == ["a", "b", "tie"]


def test_verdicts_of_several_raters_stay_on_the_page(researcher):
    head = ["id", "prompt", "response_1", "response_2", "model_1", "model_2", "annotator_1", "annotator_2"]
    rows = [[k, f"Why {k}?", f"One {k}.", f"Two {k}.", "gpt", "llama", 1, k % 2 + 1] for k in range(1, 5)]
    send(researcher, "a.csv", write_csv(head, *rows))
    upload = Upload.objects.get()
    address, _text = open_columns(researcher, upload)
    form = read_form(researcher.get(address).content.decode())  # with the lines of its texts
    assert (form["role-6"], form["system-6"]) == ("verdicts", "annotator_1")
    upload = import_and_run(researcher, upload, address, {**form, "system-7": "Ben"})
    assert upload.state == "done", list(upload.faults.values_list("message", flat=True))
    verdicts = sorted(Comparison.objects.values_list("rater", "verdict"))
    assert verdicts == [*[("Ben", "a")] * 2, *[("Ben", "b")] * 2, *[("annotator_1", "a")] * 4]
