"""The guide of the upload page: its columns are those of the parsers, and its sample files can be uploaded."""

import pytest
from django.test import Client
from django.urls import reverse

from annotation.parsers import kinds
from annotation.parsers.writer import ALSO_READ
from annotation.upload_guide import TABLES, find_sample
from tests.taking import list_errors, row_counts, take_in

FIELDS = {
    "items": kinds.ITEM_FIELDS,
    "outputs": kinds.OUTPUT_FIELDS,
    "ratings": kinds.RATING_FIELDS,
    "comparisons": kinds.COMPARISON_FIELDS,
    "dialogues": kinds.DIALOGUE_FIELDS,
    # The other columns of the table are for score sets of an export.
    "scores": {"item", "system", "step", "note", *ALSO_READ["scores"]},
}


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_the_guide_explains_the_columns_that_are_read(table):
    assert sorted(column.name for column in table.columns) == sorted(FIELDS[table.name])


@pytest.mark.django_db
def test_the_samples_can_be_uploaded_together(cast):
    files = {table.sample: find_sample(table.sample).read_bytes() for table in TABLES}
    upload = take_in(cast.project, files)
    assert list_errors(upload) == []
    counts = row_counts(cast.project)
    rows = {"items": 4, "outputs": 8, "ratings": 12, "comparisons": 4, "dialogues": 1}
    assert {table: counts[table] for table in rows} == rows


def test_the_page_offers_a_sample_of_each_table(cast):
    client = Client()
    client.force_login(cast.researcher)
    page = client.get(reverse("annotation:upload-list", args=[cast.project.slug])).content.decode()
    for table in TABLES:
        address = reverse("annotation:upload-sample", args=[cast.project.slug, table.sample])
        assert f'href="{address}"' in page
        sample = client.get(address)
        assert "attachment" in sample["Content-Disposition"]
        assert b"".join(sample.streaming_content) == find_sample(table.sample).read_bytes()
    assert client.get(reverse("annotation:upload-sample", args=[cast.project.slug, "none.csv"])).status_code == 404
