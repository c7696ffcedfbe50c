"""Imported evaluators: an accepted one scores as before; everything else is refused with the file's name."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from annotation.models import Item, Output
from evalapp.common.errors import BadInput, Conflict
from evalapp.common.models import Run
from evalapp.common.runner import execute_run
from scoring.boards.metrics.query import EvaluatorsQuery
from scoring.downloads import send_tar
from scoring.ml import catalogue, fit, load, read_dataset
from scoring.ml.artefact import REQUIRED
from scoring.models import Evaluator, Score
from scoring.pipelines.artefacts import check_folder
from scoring.selectors.training import artefact_folder, list_files
from scoring.services.artefacts import incoming_folder, receive_artefact
from scoring.services.scores import apply_evaluator
from tests.scoring.boards.computing import compute_table
from tests.scoring.ml.everything import SMALLEST, write_everything
from tests.scoring.ml.tiny import tiny_encoder
from tests.scoring.training import fill, train
from tests.taking import take_in as upload

pytestmark = pytest.mark.django_db
Files = dict[str, list[SimpleUploadedFile]]


@pytest.fixture(autouse=True)
def artefacts(settings, tmp_path: Path) -> None:
    settings.ARTEFACTS_DIR = tmp_path / "artefacts"


def as_files(folder: Path) -> Files:
    """The files of a folder as submitted by a form."""
    found: Files = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            field = "files" if path.parent == folder else path.parent.name
            found.setdefault(field, []).append(SimpleUploadedFile(path.name, path.read_bytes()))
    return found


def take_in(project, files: Files, name: str = "") -> Run:
    run = execute_run(receive_artefact(project=project, user=None, name=name, files=files).pk)
    assert run is not None
    return run


@pytest.mark.parametrize("folds", [1, 2])
def test_downloaded_evaluator_is_imported_and_scores_the_same(toy, folds):
    original = train(toy.project, folds=folds)
    run = take_in(toy.foreign, as_files(artefact_folder(original)), "from-alpha")
    assert run.state == Run.State.SUCCEEDED, run.error
    assert run.queue == "gpu"
    copy = Evaluator.objects.get(project=toy.foreign, slug="from-alpha")
    assert copy.signature == original.signature
    assert copy.record["models"][0]["examples"] == original.record["models"][0]["examples"]
    assert {file.name for file in list_files(copy)} == {file.name for file in list_files(original)}
    assert not incoming_folder(run.params["incoming"]).exists()
    assert load(artefact_folder(copy)).signature == load(artefact_folder(original)).signature


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("everything")
    tiny_encoder("bert", root / "encoder", dropout=0.1)
    return write_everything(root)


@pytest.mark.parametrize("name", sorted(entry.name for entry in catalogue() if entry.learns))
def test_every_trained_evaluator_can_be_imported_elsewhere(settings, everything, tmp_path, name):
    """The Trainer of transformers adds an entry to the configuration, which was once refused."""
    encoder = str(everything / "encoder")
    settings.ENCODERS = [encoder]
    fit(name, read_dataset(everything), encoder=encoder, **SMALLEST[name]).save_pretrained(tmp_path / "made")
    check_folder(tmp_path / "made")
    # Older ones had that entry written out.
    path = tmp_path / "made" / "config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    assert "use_cache" not in config.get("evalapp", config)
    path.write_text(json.dumps({**config, "use_cache": False}), encoding="utf-8")
    check_folder(tmp_path / "made")
    modes = {path.stat().st_mode for path in (tmp_path / "made").iterdir()}
    assert len(modes) == 1


def score(project, *slugs: str) -> None:
    for slug in slugs:
        run = execute_run(apply_evaluator(project=project, evaluator=slug, send=False).pk)
        assert run is not None
        assert run.state == Run.State.SUCCEEDED, run.error


def marked(project, slug: str) -> set[str]:
    """The items whose scores are marked as training data."""
    rows = Score.objects.filter(score_set__project=project, score_set__evaluator__slug=slug, in_training=True)
    return set(rows.values_list("output__item__key", flat=True))


@pytest.mark.parametrize("folds", [1, 2])
def test_reimported_evaluator_knows_its_items_in_other_groups_and_names(toy, folds):
    """Once, the marks were lost when items got a group; by names alone they would be lost with the names."""
    original = train(toy.project, folds=folds)
    assert take_in(toy.project, as_files(artefact_folder(original)), "copy").state == Run.State.SUCCEEDED
    score(toy.project, original.slug, "copy")
    seen = marked(toy.project, original.slug)
    # One of 12 groups is unused; with folds, every group is unseen by one model.
    assert len(seen) == (11 if folds == 1 else 0)
    assert marked(toy.project, "copy") == seen
    Item.objects.filter(project=toy.project).update(group="g")
    score(toy.project, original.slug, "copy")
    assert len(marked(toy.project, "copy")) == len(marked(toy.project, original.slug)) == 12
    for item in Item.objects.filter(project=toy.project):
        Item.objects.filter(pk=item.pk).update(key=f"new-{item.key}", group="")
    score(toy.project, "copy")
    assert marked(toy.project, "copy") == {f"new-{key}" for key in seen}


@pytest.mark.parametrize("folds", [1, 2])
def test_training_data_uploaded_under_other_names_are_recognised(toy, folds):
    """Once, copies of every training item were treated as unseen."""
    original = train(toy.project, folds=folds)
    score(toy.project, original.slug)
    seen, first = marked(toy.project, original.slug), read_scores(toy.project, original.slug)
    items = list(Item.objects.filter(project=toy.project).order_by("key"))
    copies = [{"id": f"copy-{item.key}", "context": item.context, "source": item.source} for item in items]
    outputs = [
        {"item": f"copy-{output.item.key}", "system": output.system.name, "text": output.text}
        for output in Output.objects.filter(project=toy.project).select_related("item", "system")
    ]
    new = {"id": "new", "context": ["What nobody has asked before."]}
    outputs.append({"item": "new", "system": "sys-a", "text": "Indeed."})
    taken = upload(toy.project, {"items.jsonl": [*copies, new], "outputs.jsonl": outputs})
    assert taken.state == "done", taken.fault_count
    score(toy.project, original.slug)
    assert marked(toy.project, original.slug) == seen | {f"copy-{key}" for key in seen}
    # With folds, each copy is scored by the model that did not see its original.
    now = read_scores(toy.project, original.slug)
    assert {key: now[f"copy-{key[0]}", key[1]] for key in first} == pytest.approx(first)


def read_scores(project, slug: str) -> dict[tuple[str, str], float]:
    rows = Score.objects.filter(score_set__project=project, score_set__evaluator__slug=slug)
    return {
        (key, system): value
        for key, system, value in rows.values_list("output__item__key", "output__system__name", "value")
    }


def test_foreign_evaluator_has_not_seen_items_of_the_same_names(toy):
    """Most projects name items by number: once, almost nothing was left to compare on."""
    original = train(toy.project, folds=1)
    fill(toy.foreign)
    Item.objects.filter(project=toy.foreign).update(context=["Of something else."])
    known = Item.objects.get(project=toy.project, key=sorted(marked_groups(original))[0].replace("g", "i"))
    Item.objects.filter(project=toy.foreign, key="i007").update(context=known.context)
    assert take_in(toy.foreign, as_files(artefact_folder(original)), "guest").state == Run.State.SUCCEEDED
    score(toy.foreign, "guest", "length")
    assert marked(toy.foreign, "guest") == {"i007"}
    table = compute_table(toy.foreign, EvaluatorsQuery(test="none"))
    assert (table["n_outputs"], table["n_excluded"]) == (22, 2)


def marked_groups(evaluator: Evaluator) -> list[str]:
    return json.loads((artefact_folder(evaluator) / "split.json").read_text())["train"]


def test_evaluator_saved_before_contents_were_recorded_uses_names(toy):
    original = train(toy.project, folds=1)
    folder = artefact_folder(original)
    split = json.loads((folder / "split.json").read_text())
    del split["contents"]
    files = changed(as_files(folder), "split.json", json.dumps(split).encode())
    assert take_in(toy.project, files, "old").state == Run.State.SUCCEEDED
    score(toy.project, original.slug, "old")
    assert len(marked(toy.project, "old")) == len(marked(toy.project, original.slug)) == 11
    Item.objects.filter(project=toy.project).update(group="g")
    score(toy.project, "old")
    assert len(marked(toy.project, "old")) == 12


def changed(files: Files, name: str, content: bytes | None) -> Files:
    kept = [file for file in files["files"] if file.name != name]
    return {**files, "files": kept if content is None else [*kept, SimpleUploadedFile(name, content)]}


SHARE = {"value": None, "low": None, "high": None, "n": 0, "note": "none"}
NO_PAIRS = {
    **dict.fromkeys(("n_groups", "n_groups_decided", "n_pairs", "n_decided", "n_tied", "n_split", "n_identical"), 0),
    "evaluator": "toy", "aspect": "a", "n_missing": 0, "simulated": 0, "ties": "own",
    "decided": SHARE, "verdicts": SHARE,
}  # fmt: skip


def test_mismatched_parts_are_refused_with_their_file(toy):
    folder = artefact_folder(train(toy.project, folds=1))

    def content(name: str) -> dict:
        return json.loads((folder / name).read_text())

    def refused(name: str, body: bytes | dict | None) -> str:
        raw = json.dumps(body).encode() if isinstance(body, dict) else body
        run = take_in(toy.foreign, changed(as_files(folder), name, raw))
        assert run.state == Run.State.FAILED
        assert not incoming_folder(run.params["incoming"]).exists()
        return run.error

    assert "not a safetensors file" in refused("model.safetensors", b"\x80\x04pickle")
    assert "has unknown entries: auto_map" in refused(
        "config.json", {**content("config.json"), "auto_map": {"a": "b.c"}}
    )
    assert "of the type 'gpt2'" in refused("config.json", {**content("config.json"), "encoder": {"model_type": "gpt2"}})
    foreign = {"model_type": "bert", "auto_map": {}}
    assert "code of an upload is never run" in refused("config.json", {**content("config.json"), "encoder": foreign})
    # Incompatible sizes end in an error of the encoder's own.
    uneven = {"model_type": "bert", "hidden_size": 30, "num_attention_heads": 4, "num_hidden_layers": 1}
    assert "is damaged (ValueError" in refused("config.json", {**content("config.json"), "encoder": uneven})
    header = content("evaluator.json")
    assert "names the evaluator 'chrf'" in refused("evaluator.json", {**header, "evaluator": "chrf"})
    assert "no valid “settings”" in refused("evaluator.json", {**header, "settings": []})
    # The card is rewritten from the record.
    for figures in ({"correlations": [{}]}, {"verdicts": [{"aspect": "a"}]}, {"verdicts": [{**NO_PAIRS}]}):
        record = {**header["record"], **figures}
        assert "is damaged" in refused("evaluator.json", {**header, "record": record})
    elsewhere = {"name": "/etc", "weights": "0", "embedded": False}
    assert "uses the encoder '/etc'" in refused("evaluator.json", {**header, "encoder": elsewhere})
    assert "not a JSON object" in refused("evaluator.json", b"[" * 100_000)
    assert "fixtures.jsonl is empty" in refused("fixtures.jsonl", b"")
    rows = [json.loads(line) for line in (folder / "fixtures.jsonl").read_text().splitlines()]
    rows[0]["score"] += 1
    assert "fixture 1 scores" in refused("fixtures.jsonl", "\n".join(map(json.dumps, rows)).encode())
    assert "declares 3 folds" in refused("evaluator.json", {"evaluator": "toy", "folds": 3})
    assert not Evaluator.objects.filter(project=toy.foreign).exists()


def test_names_are_checked_before_anything_is_stored(toy, settings):
    def send(files: Files, name: str = "") -> None:
        receive_artefact(project=toy.project, user=None, name=name, files=files)

    with pytest.raises(BadInput, match=r"weights\.pkl"):
        send({"files": [SimpleUploadedFile("weights.pkl", b"x")]})
    with pytest.raises(BadInput, match=r"other .*part"):
        send({"other": [SimpleUploadedFile("card.md", b"x")]})
    with pytest.raises(BadInput, match=r"card\.md .*twice"):
        send({"files": [SimpleUploadedFile("card.md", b"x"), SimpleUploadedFile("card.md", b"y")]})
    with pytest.raises(BadInput, match="no file"):
        send({})
    with pytest.raises(Conflict, match="reserved"):
        send({"files": [SimpleUploadedFile("card.md", b"x")]}, name="upload")
    assert not list(Path(settings.ARTEFACTS_DIR).rglob("*.md"))
    assert not Run.objects.filter(kind="artefact").exists()


@pytest.mark.parametrize("name", REQUIRED)
def test_missing_files_are_detected_from_the_names_alone(cast, client, name):
    """Once, the run reported them, behind every training waiting for the GPU."""
    client.force_login(cast.researcher)
    api, page = "/api/v1/projects/alpha/evaluators/trained/", "/projects/alpha/evaluators/upload/"

    def send(address: str, **fields: list[str]):
        # A field name contains a hyphen.
        files = {field.replace("_", "-"): [SimpleUploadedFile(n, b"x") for n in ns] for field, ns in fields.items()}
        return client.post(address, files)

    rest = [other for other in REQUIRED if other != name]
    alone = send(api, files=rest)
    assert (alone.status_code, alone.json()["errors"]) == (400, [{"field": "files", "message": f"Missing: {name}."}])
    shown = send(page, files=rest)
    assert (shown.status_code, f"Missing: {name}." in shown.content.decode()) == (422, True)
    folds = {"files": ["evaluator.json"], "fold_0": list(REQUIRED), "fold_1": rest}
    told = f"Missing in fold-1: {name}."
    found = send(api, **folds)
    assert (found.status_code, found.json()["errors"]) == (400, [{"field": "fold-1", "message": told}])
    shown = send(f"{page}?folds=2", **folds)
    assert (shown.status_code, told in shown.content.decode()) == (422, True)
    assert not Run.objects.filter(kind="artefact").exists()


def test_missing_folds_are_detected_from_the_names_alone(cast, settings):
    def refused(**fields: list[str]) -> list[tuple[str, str]]:
        files = {field.replace("_", "-"): [SimpleUploadedFile(n, b"x") for n in ns] for field, ns in fields.items()}
        with pytest.raises(BadInput) as error:
            receive_artefact(project=cast.project, user=None, name="", files=files)
        return [(fault.field, fault.message) for fault in error.value.faults]

    whole = list(REQUIRED)
    assert refused(files=["evaluator.json"], fold_0=whole) == [("fold-1", "All files of fold-1 are missing.")]
    assert refused(files=["evaluator.json"], fold_0=whole, fold_2=whole) == [
        ("fold-1", "All files of fold-1 are missing.")
    ]
    assert refused(fold_0=whole, fold_1=whole) == [("files", "Missing: evaluator.json.")]
    ((field, text),) = refused(files=["evaluator.json"])
    assert (field, "A cross-fitted evaluator" in text) == ("files", True)
    # A wrong name and a missing file: both are reported.
    given = [name for name in whole if name != "model.safetensors"]
    wrong, missing = (text for _field, text in refused(files=[*given, "pytorch_model.bin"]))
    assert "pytorch_model.bin" in wrong
    assert "model.safetensors" in missing
    assert not Path(settings.ARTEFACTS_DIR).exists()


def test_tar_is_valid_and_has_the_declared_length(toy):
    evaluator = train(toy.project, folds=2)
    response = send_tar(evaluator)
    content = b"".join(response.streaming_content)
    assert len(content) == int(response.headers["Content-Length"])
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:") as tar:
        members = {member.name: tar.extractfile(member).read() for member in tar.getmembers()}
    folder = artefact_folder(evaluator)
    files = list_files(evaluator)
    assert members == {f"toy-1/{file.name}": (folder / file.name).read_bytes() for file in files}
    assert "toy-1/fold-1/model.safetensors" in members
