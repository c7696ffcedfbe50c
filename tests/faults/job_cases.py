"""The kinds of runs for test_jobs. Each class starts a run, returns its result in comparable form, and deletes the
result. A long run takes long enough to be killed after a random time; a short one has just enough data to reach every
point where a worker may die."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from django.conf import settings

from annotation.models import Item, Output, Rating, Reference, ReferenceSet, Upload
from annotation.services.exports import delete_export, request_export
from annotation.services.uploads import Incoming, receive_upload
from evalapp.accounts.models import Project
from evalapp.common.models import Run
from scoring.models import Evaluator, Score, ScoreSet, SelectionTrace
from scoring.selectors.inputs import ITEMS_PER_CHUNK
from scoring.services.evaluators import delete_evaluator
from scoring.services.reference_selection import ReferenceSelection, start_reference_selection
from scoring.services.reference_sets import delete_set
from scoring.services.scores import apply_evaluator
from scoring.services.training import TrainingOptions, start_training
from tests.factories import make_items, make_outputs, make_ratings
from tests.scoring.ml.tiny import WORDS, tiny_encoder
from tests.scoring.written import put_ream

Result = dict[str, Any]


def digest(rows: Iterable[Any]) -> str:
    """Return an order-independent digest of rows; duplicates count twice."""
    lines = sorted(json.dumps(row, default=str, sort_keys=True) for row in rows)
    return f"{len(lines)} {hashlib.sha256(chr(10).join(lines).encode()).hexdigest()[:16]}"


def digest_files(folder: Path, names: Iterable[str]) -> dict[str, str]:
    return {name: hashlib.sha256((folder / name).read_bytes()).hexdigest()[:16] for name in sorted(names)}


def make_sentence(rng: random.Random, words: int = 8) -> str:
    return " ".join(rng.choice(WORDS) for _ in range(words))


class JobCase:
    """A kind of run. `sizes`: number of items of a short and of a long run."""

    kind = ""
    sizes = (0, 0)

    def __init__(self, folder: Path, *, long: bool) -> None:
        self.long, self.n_items = long, self.sizes[long]
        self.name = f"{'long' if long else 'short'}-{self.kind}"
        self.folder = folder / self.name  # for encoders and uploaded files
        self.folder.mkdir()
        self.project = Project.objects.create(slug=f"for-{self.name}", name="Alpha")
        self.prepare()

    def prepare(self) -> None:
        """Create the data that all runs use."""

    def begin(self) -> Run:
        raise NotImplementedError

    def result(self, run: Run) -> Result:
        raise NotImplementedError

    def clear(self, run: Run) -> None:
        raise NotImplementedError


class ImportCase(JobCase):
    """Imports items with references, outputs of two systems and ratings, each time into a new project."""

    kind = "import"
    sizes = (150, 1500)

    def prepare(self) -> None:
        rng = random.Random(1)
        self.count = 0
        self.files = self.folder / "files"
        self.files.mkdir()
        keys = [f"i{number:05d}" for number in range(self.n_items)]
        items = ({"id": key, "context": [make_sentence(rng)], "references": [make_sentence(rng)]} for key in keys)
        pairs = [(key, system) for key in keys for system in ("a", "b")]
        outputs = ({"item": key, "system": system, "text": make_sentence(rng)} for key, system in pairs)
        ratings = (
            {"item": key, "system": system, "rater": "r1", "aspect": "quality", "value": 1 + index % 5}
            for index, (key, system) in enumerate(pairs)
        )
        dataset = {"name": "Alpha", "aspects": [{"name": "quality", "min": 1, "max": 5}]}
        (self.files / "dataset.json").write_text(json.dumps(dataset))
        for name, rows in (("items", items), ("outputs", outputs), ("ratings", ratings)):
            with (self.files / f"{name}.jsonl").open("w") as file:
                file.writelines(json.dumps(row) + "\n" for row in rows)

    def begin(self) -> Run:
        self.count += 1
        project = Project.objects.create(slug=f"{self.name}-{self.count}", name="Alpha")
        upload = receive_upload(project=project, user=None, files=self.incoming())
        assert upload.run is not None
        return upload.run

    def incoming(self) -> list[Incoming]:
        return [Incoming(path.name, chunks=[path.read_bytes()]) for path in sorted(self.files.iterdir())]

    def result(self, run: Run) -> Result:
        project = run.project
        upload = Upload.objects.get(run=run)
        return {
            "state": upload.state,
            "counts": upload.counts,
            "content": upload.content_hash,
            "faults": upload.faults.count(),
            "items": digest(Item.objects.filter(project=project).values_list("key", "context", "group", "meta")),
            "references": digest(Reference.objects.filter(set__project=project).values_list("item__key", "text")),
            "outputs": digest(
                Output.objects.filter(project=project).values_list("item__key", "system__name", "text", "meta")
            ),
            "ratings": digest(
                Rating.objects.filter(project=project).values_list("output__item__key", "output__system__name", "value")
            ),
            "systems": digest(project.systems.values_list("name", "kind")),
            "aspects": digest(project.aspects.values_list("name", "low", "high")),
        }

    def clear(self, run: Run) -> None:
        run.project.delete()


class FaultyImportCase(ImportCase):
    """The same import with one invalid row."""

    kind = "faulty"
    sizes = (50, 50)

    def prepare(self) -> None:
        super().prepare()
        with (self.files / "outputs.jsonl").open("a") as file:
            file.write('{"item": "nowhere", "system": "a", "text": "x"}\n')

    def result(self, run: Run) -> Result:
        return {**super().result(run), "error": run.error, "rows": run.faults}


class ScoreCase(JobCase):
    """Scores outputs in three chunks."""

    kind = "score"
    sizes = (2 * ITEMS_PER_CHUNK + 10, 3 * ITEMS_PER_CHUNK)

    def prepare(self) -> None:
        rng, words = random.Random(2), 12 if self.long else 3
        original = ReferenceSet.objects.create(project=self.project, name="original")
        items = Item.objects.bulk_create(
            Item(project=self.project, key=f"i{k:05d}", context=[make_sentence(rng)], group=f"g{k}")
            for k in range(self.n_items)
        )
        Reference.objects.bulk_create(
            Reference(set=original, item=item, position=p, text=make_sentence(rng, words))
            for item in items
            for p in range(3 if self.long else 1)
        )
        systems = [self.project.systems.create(name=name) for name in ("a", "b")]
        Output.objects.bulk_create(
            Output(project=self.project, item=item, system=system, text=make_sentence(rng, words))
            for item in items
            for system in systems
        )

    def begin(self) -> Run:
        return apply_evaluator(project=self.project, evaluator="chrf")

    def result(self, run: Run) -> Result:
        (score_set,) = ScoreSet.objects.filter(project=self.project)
        rows = Score.objects.filter(score_set=score_set)
        fields = ("output_id", "value", "note", "input_hash", "is_empty", "is_truncated", "in_training")
        return {
            "scores": digest(rows.values_list(*fields)),
            "complete": score_set.scored_at is not None,
            "n": score_set.n_scores,
            "data": score_set.data_hash,
            "systems": score_set.systems,
            "summary": score_set.summary,
            "signature": run.result["signature"] if run.result else None,
        }

    def clear(self, run: Run) -> None:
        ScoreSet.objects.filter(project=self.project).delete()


class ExportCase(ScoreCase):
    """Exports a project as a folder and an archive."""

    kind = "export"
    sizes = (100, 800)

    def begin(self) -> Run:
        return request_export(project=self.project, user=None, format="jsonl")

    def result(self, run: Run) -> Result:
        folder = Path(settings.EXPORTS_DIR) / str(run.pk)
        reported = {file["name"]: (file["rows"], file["bytes"]) for file in run.result["files"]}
        names = {path.name for path in folder.iterdir()}
        assert names == {*reported, run.result["archive"]}
        return {
            "reported": reported,
            "files": digest_files(folder, reported),
            "entries": list(read_archive_entries(folder / run.result["archive"])),
        }

    def clear(self, run: Run) -> None:
        delete_export(run=run, user=None)


def read_archive_entries(archive: Path) -> Iterator[tuple[str, int]]:
    import zipfile

    with zipfile.ZipFile(archive) as zipped:
        assert zipped.testzip() is None
        yield from ((entry.filename, entry.CRC) for entry in zipped.infolist())


class TrainCase(JobCase):
    """Trains the toy evaluator with a trainable encoder and many checkpoints."""

    kind = "train"

    def prepare(self) -> None:
        self.encoder = tiny_encoder("bert", self.folder / "bert", dropout=0.1)
        outputs = make_outputs(self.project, make_items(self.project, 24))
        make_ratings(self.project, outputs)

    def begin(self) -> Run:
        options = TrainingOptions(
            "toy", name="learned", folds=1, encoder=self.encoder,
            options={"epochs": 6 if self.long else 2, "learning_rate": 0.001},
        )  # fmt: skip
        return start_training(project=self.project, options=options, any_encoder=True)

    def result(self, run: Run) -> Result:
        (row,) = Evaluator.objects.filter(project=self.project, kind=Evaluator.Kind.TRAINED)
        assert row.run_id == run.pk
        folder = Path(settings.ARTEFACTS_DIR) / row.folder
        (model,) = row.record["models"]
        log = [{key: value for key, value in point.items() if key != "seconds"} for point in model["log"]]
        names = {path.name for path in folder.iterdir()}
        assert names == {file["name"] for file in row.record["files"]}
        curve = run.curve.order_by("series", "step").values_list("series", "step")
        return {
            "weights": digest_files(folder, ["model.safetensors", "fixtures.jsonl", "split.json"]),
            "files": sorted(names),
            "signature": row.signature,
            "metrics": model["metrics"],
            "steps": model["steps"],
            "log": log,
            "curve": list(curve),
        }

    def clear(self, run: Run) -> None:
        delete_evaluator(evaluator=Evaluator.objects.get(project=self.project, slug="learned"))


class AnnotateCase(JobCase):
    """Selects references from withheld ones by `ream` with a random encoder."""

    kind = "select-references"
    sizes = (30, 60)

    def prepare(self) -> None:
        rng = random.Random(3)
        put_ream(self.project, tiny_encoder("bert", self.folder / "ream-bert"), "judge")
        original = ReferenceSet.objects.create(project=self.project, name="original")
        for number in range(self.n_items):
            item = Item.objects.create(
                project=self.project, key=f"k{number}", context=[make_sentence(rng)], group=f"g{number}"
            )
            Reference.objects.bulk_create(
                Reference(set=original, item=item, position=p, text=make_sentence(rng)) for p in range(6)
            )

    def begin(self) -> Run:
        options = ReferenceSelection(evaluator="judge", into="chosen", controls=True)
        return start_reference_selection(project=self.project, options=options)

    def result(self, run: Run) -> Result:
        names = ("chosen", "chosen-raw", "chosen-random")
        rows = Reference.objects.filter(set__project=self.project)
        (chosen,) = ReferenceSet.objects.filter(project=self.project, name="chosen")
        fields = ("item__key", "before", "after", "in_training", "steps")
        return {
            **{
                name: digest(rows.filter(set__name=name).values_list("item__key", "position", "text", "meta"))
                for name in names
            },
            "traces": digest(SelectionTrace.objects.filter(set=chosen).values_list(*fields)),
            "sets": sorted(self.project.reference_sets.values_list("name", flat=True)),
            "counts": chosen.meta["counts"],
        }

    def clear(self, run: Run) -> None:
        for name in ("chosen", "chosen-raw", "chosen-random"):
            delete_set(project=self.project, name=name)


KINDS: dict[str, type[JobCase]] = {
    case.kind: case for case in (ImportCase, FaultyImportCase, ScoreCase, TrainCase, AnnotateCase, ExportCase)
}
__all__ = ["KINDS", "ImportCase", "JobCase"]
