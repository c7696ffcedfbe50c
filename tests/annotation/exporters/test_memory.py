"""The memory of an export does not grow with the number of items."""

from __future__ import annotations

import gc
import tracemalloc

import pytest

from annotation.exporters import canonical, formats
from annotation.exporters.options import ALL_FORMATS, ExportOptions
from annotation.models import Aspect, Comparison, Item, Output, Rating, Reference, ReferenceSet, System
from annotation.models.data import ORIGINAL
from annotation.pipelines.exports import write_export
from evalapp.accounts.services import create_project

pytestmark = pytest.mark.django_db
FEW, MANY = 400, 1200
#: Bytes for an item that may stay in memory: its place in a file, values of its judgements, its group. Its rows have
#: about 2,000. mt-metrics-eval sorts ids and documents at the end.
MOST = {"xlsx": 200, "wide-csv": 200, "preferences": 200, "mt-metrics-eval": 400}
DEFAULT_MOST = 100


def make_project(slug, n_items):
    project = create_project(slug=slug, owner=None)
    aspect = Aspect.objects.create(project=project, name="quality", low=1, high=5)
    systems = System.objects.bulk_create(System(project=project, name=name) for name in ("one", "two"))
    references = ReferenceSet.objects.create(project=project, name=ORIGINAL)
    items = Item.objects.bulk_create(
        Item(project=project, key=f"i{k}", context=["x" * 200], group=f"g{k // 3}") for k in range(n_items)
    )
    Reference.objects.bulk_create(Reference(set=references, item=item, position=0, text="y" * 200) for item in items)
    outputs = Output.objects.bulk_create(
        Output(project=project, item=item, system=system, text=f"{item.key} {'z' * 200}")
        for item in items
        for system in systems
    )
    Rating.objects.bulk_create(
        Rating(project=project, output=output, aspect=aspect, rater="ann", value=1 + output.pk % 5)
        for output in outputs
    )
    Comparison.objects.bulk_create(
        Comparison(project=project, output_a=a, output_b=b, aspect=aspect, rater="ann", verdict="a")
        for a, b in zip(outputs[::2], outputs[1::2], strict=True)
    )
    return project


def trace_export(project, folder, format):
    folder.mkdir()
    gc.collect()
    tracemalloc.start()
    write_export(project, folder, ExportOptions(format, scores=False), lambda done: None)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


@pytest.fixture
def small_batches(monkeypatch):
    monkeypatch.setattr(canonical, "BATCH", 50)
    monkeypatch.setattr(formats.ParquetWriter, "GROUP", 50)
    monkeypatch.setattr(formats.ParquetWriter, "BATCH", 20)


@pytest.mark.parametrize("format", ALL_FORMATS)
def test_memory_does_not_grow_with_items(small_batches, tmp_path, format):
    few, many = make_project("few", FEW), make_project("many", MANY)
    trace_export(few, tmp_path / "first", format)  # modules and caches
    peaks = [trace_export(project, tmp_path / project.slug, format) for project in (few, many)]
    assert (peaks[1] - peaks[0]) / (MANY - FEW) < MOST.get(format, DEFAULT_MOST)
