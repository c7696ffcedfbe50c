"""Evaluators of other packages: found by their entry point, usable like built-in ones, left out if broken."""

from __future__ import annotations

import contextlib
import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from django.core.management import call_command
from django.urls import reverse

from docs.generate import evaluators_page
from scoring.ml import ArtefactError, Record, catalogue, load
from scoring.ml.plugins import load_plugins
from scoring.ml.registry import list_plugins
from scoring.models import ScoreSet

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "evalapp-context-overlap"
NAME = "context-overlap"
#: By hand: "the" and "cat" of {the, cat, ran} are in the context; no word of "dogs" is in the source.
RECORDS = [Record("The cat ran", context=["a cat?", "the"]), Record("dogs", source="no cats"), Record("alone")]


class Packages:
    """A folder of installed packages, each a module with metadata."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def install(self, package: str, version: str, points: dict[str, str], modules: dict[str, str]) -> None:
        metadata = self.folder / f"{package.replace('-', '_')}-{version}.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
        lines = ["[evalapp.evaluators]", *(f"{name} = {target}" for name, target in points.items())]
        (metadata / "entry_points.txt").write_text("\n".join(lines) + "\n")
        for name, text in modules.items():
            (self.folder / f"{name}.py").write_text(text)
        forget()

    def uninstall(self, package: str) -> None:
        for path in self.folder.glob(f"{package.replace('-', '_')}-*.dist-info/*"):
            path.unlink()
        forget()


def forget() -> None:
    load_plugins.cache_clear()
    catalogue.cache_clear()


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Packages]:
    folder = tmp_path / "packages"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    before = set(sys.modules)
    yield Packages(folder)
    for name in set(sys.modules) - before:
        if str(folder) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]
    forget()


@pytest.fixture
def example(packages: Packages) -> Packages:
    text = (EXAMPLE / "evalapp_context_overlap.py").read_text()
    packages.install(
        "evalapp-context-overlap", "0.1.0", {NAME: "evalapp_context_overlap"}, {"evalapp_context_overlap": text}
    )
    return packages


def test_guide_shows_the_example() -> None:
    code = (EXAMPLE / "evalapp_context_overlap.py").read_text().partition('"""\n\n')[2]
    assert code.startswith("import numpy")
    assert code in (ROOT / "docs/how-to/write-a-plugin.md").read_text()


@pytest.mark.usefixtures("example")
def test_library_finds_the_example() -> None:
    metric = load(NAME)
    np.testing.assert_allclose(metric.score(RECORDS), [2 / 3, 0, np.nan])
    assert metric.details.reasons[2] == "no context or source"
    assert metric.signature == f"{NAME}|plugin:evalapp-context-overlap-0.1.0|v:1"
    assert NAME not in evaluators_page()


def test_a_saved_metric_needs_its_plugin(example: Packages, tmp_path: Path) -> None:
    load(NAME).save_pretrained(tmp_path / "saved")
    assert load(tmp_path / "saved").name == NAME
    example.uninstall("evalapp-context-overlap")
    with pytest.raises(ArtefactError, match="install the plug-in"):
        load(tmp_path / "saved")


@pytest.mark.parametrize(
    ("target", "module", "fault"),
    [
        ("bad", "raise RuntimeError('no model here')", "RuntimeError: no model here"),
        ("bad", "import sys; sys.exit(3)", "SystemExit: 3"),
        ("bad:MISSING", "", "AttributeError"),
        ("nowhere", "", "ModuleNotFoundError"),
        ("bad", "ENTRIES = []", "no entries"),
        ("bad", "ENTRIES = ['bleu']", "'bleu' is not an Entry"),
        ("bad", "from scoring.ml import Entry\nENTRIES = [Entry('chrf', 'Mine.', (0, 1))]", "'chrf' is taken"),
        ("bad", "from scoring.ml import Entry\nENTRIES = [Entry('comparative', '.', (0, 1))]", "is taken"),
        ("bad", "from scoring.ml import Entry\nENTRIES = [Entry(n, '', (0, 1)) for n in ('a', 'a')]", "'a' is taken"),
        ("bad", "from scoring.ml import Entry\nENTRIES = [Entry('My Metric', 'Mine.', (0, 1))]", "lower-case"),
        ("bad:X", "X = 5", "TypeError"),
    ],
)
def test_broken_plugins_are_named_and_left_out(
    packages: Packages, caplog: pytest.LogCaptureFixture, target: str, module: str, fault: str
) -> None:
    before = [entry.name for entry in catalogue()]
    packages.install("bad-metrics", "2.0", {"mine": target}, {"bad": module})
    assert [entry.name for entry in catalogue()] == before
    (plugin,) = list_plugins()
    assert (plugin.name, plugin.package) == ("mine", "bad-metrics 2.0")
    assert fault in plugin.fault
    assert "mine of bad-metrics 2.0 is not used" in caplog.text


@pytest.mark.django_db
@pytest.mark.usefixtures("example")
def test_doctor_lists_plugins(packages: Packages) -> None:
    packages.install("bad-metrics", "2.0", {"mine": "bad"}, {"bad": "1 / 0"})
    out = io.StringIO()
    with contextlib.suppress(SystemExit):  # other things may be missing here
        call_command("doctor", "--json", stdout=out)
    checks = {check["name"]: check for check in json.loads(out.getvalue())["checks"]}
    assert checks[f"plug-in {NAME}"]["state"] == "ok"
    assert checks[f"plug-in {NAME}"]["found"] == f"evalapp-context-overlap 0.1.0: {NAME}"
    assert "ZeroDivisionError" in checks["plug-in mine"]["found"]
    assert checks["plug-in mine"]["state"] == "optional"


@pytest.mark.django_db
def test_pages_api_commands_and_workers_use_it(example: Packages, scored, client) -> None:
    slug = scored.project.slug
    client.force_login(scored.owner)
    out = io.StringIO()
    call_command("evaluators", NAME, stdout=out)
    assert "evalapp-context-overlap 0.1.0" in out.getvalue()
    rows = {row["name"]: row for row in client.get(reverse("api-catalogue")).json()["results"]}
    assert rows[NAME]["plugin"] == "evalapp-context-overlap 0.1.0"
    assert rows["chrf"]["plugin"] == ""
    for address in (
        reverse("scoring:evaluator-list", args=[slug]), reverse("scoring:evaluator-apply", args=[slug, NAME]),
    ):  # fmt: skip
        assert "evalapp-context-overlap 0.1.0" in client.get(address).content.decode()
    call_command("score", NAME, "--project", slug, "--here", stdout=io.StringIO())
    stored = ScoreSet.objects.get(project=scored.project, evaluator__name=NAME)
    assert "|plugin:evalapp-context-overlap-0.1.0|" in stored.signature
    # Scores stay, and pages open, when the package is gone.
    example.uninstall("evalapp-context-overlap")
    for name in ("scoring:evaluator-list", "scoring:systems", "scoring:evaluation"):
        assert client.get(reverse(name, args=[slug])).status_code == 200
    card = client.get(reverse("scoring:evaluator", args=[slug, stored.evaluator.slug]))
    assert card.status_code == 200
    refused = client.get(reverse("scoring:evaluator-apply", args=[slug, stored.evaluator.slug]))
    assert refused.status_code == 404
