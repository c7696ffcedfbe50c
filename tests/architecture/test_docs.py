"""The documentation matches the code: the reference is up to date with its generator, links resolve, and every command,
page and call has a description."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("benchmarks/*.md"), ROOT / "templates/README.md"]
)


def generator():
    spec = importlib.util.spec_from_file_location("docs_generate", ROOT / "docs/generate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def reference() -> dict[str, str]:
    return generator().generate()


@pytest.mark.parametrize("name", ["settings.md", "commands.md", "pages.md", "api.md", "evaluators.md", "errors.md"])
def test_reference_is_up_to_date(reference, name):
    written = (ROOT / "docs/reference" / name).read_text(encoding="utf-8")
    assert written == reference[name], f"docs/reference/{name} is out of date: run `make docs`"


def test_every_evaluator_option_has_a_row(reference):
    """library.md refers its readers there for options, defaults and requirements."""
    from scoring.ml import catalogue

    sections = dict(part.split("\n", 1) for part in reference["evaluators.md"].split("\n## ")[1:])
    for entry in catalogue():
        for option in (*entry.options, *entry.train_options):
            assert f"\n| `{option.name}` | {option.type} |" in sections[entry.name], (entry.name, option.name)
        assert "- needs: " in sections[entry.name]
    assert "| option | type | recommended | paper | choices | description |" in sections["shared-bert"]
    assert "| `beta` | str | `share` | `grid` |" in sections["shared-bert"]


def test_every_command_has_a_description():
    module = generator()
    from django.core.management import load_command_class

    silent = [name for name, app in module.own_commands().items() if not load_command_class(app, name).help]
    assert not silent


def test_every_command_offers_json():
    """Every command prints one JSON object with --json; `up` runs in the foreground and has none."""
    module = generator()
    from django.core.management import load_command_class

    without = []
    for name, app in module.own_commands().items():
        parser = load_command_class(app, name).create_parser("manage.py", name)
        if name != "up" and "--json" not in parser._option_string_actions:
            without.append(name)
    assert not without


def test_every_page_and_call_has_a_description():
    module = generator()
    import django

    django.setup()
    own = [
        (name, path)
        for name, path, view in module.routes()
        if (view.__module__ or "").split(".")[0] in module.ROOMS and not module.view_words(view)
    ]
    assert not own


def test_every_call_of_the_api_has_a_description():
    """For readers of the OpenAPI document: a sentence, not the notes of a base class."""
    from drf_spectacular.generators import SchemaGenerator

    paths = SchemaGenerator().get_schema(request=None, public=True)["paths"]
    said = {one["operationId"]: one.get("description", "") for path in paths.values() for one in path.values()}
    assert len(said) > 100
    assert not [name for name, text in said.items() if len(text.split()) < 3]
    assert not [name for name, text in said.items() if "`filters` maps" in text or "query parameters to" in text]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_resolve(page):
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if "://" in target or target.startswith(("#", "mailto:")):
            continue
        if not (page.parent / target.split("#")[0]).exists():
            broken.append(target)
    assert not broken


def test_every_decision_is_listed_and_fits_on_a_page():
    folder = ROOT / "docs/decisions"
    index = (folder / "README.md").read_text(encoding="utf-8")
    pages = [path for path in sorted(folder.glob("*.md")) if path.name != "README.md"]
    assert not [path.name for path in pages if f"]({path.name})" not in index]
    assert not [path.name for path in pages if len(re.findall(r"\w[^\s|]*", path.read_text(encoding="utf-8"))) > 450]


def test_texts_have_no_machine_paths_or_registries():
    """Committed text must make sense on any machine."""
    suspicious = re.compile(r"/work/|/opt/wheels|/root/|pypi\.org|registry\.npmjs|repo1\.maven|deb\.debian")
    found = [
        f"{path.relative_to(ROOT)}: {match.group()}"
        for pattern in (
            "*.md",
            "docs/**/*.md",
            "Makefile",
            ".ci/*",
            "Dockerfile",
            "docker-compose.yml",
            "evalapp/**/*.py",
            "annotation/**/*.py",
            "scoring/**/*.py",
            "benchmarks/*",
        )
        for path in ROOT.glob(pattern)
        if path.is_file() and path.suffix not in {".gz", ".png"}
        for match in suspicious.finditer(path.read_text(encoding="utf-8", errors="replace"))
    ]
    assert not found


def test_documents_call_the_program_evalapp():
    """`evalapp COMMAND` works in a checkout, a wheel and the image. Only install.md says what else it is called."""
    others = {ROOT / "docs/how-to/install.md", ROOT / "CHANGELOG.md"}
    pages = [page for page in PAGES if page not in others]
    named = [
        str(page.relative_to(ROOT))
        for page in pages
        if re.search(r"manage\.py [a-z]|python manage\.py", page.read_text())
    ]
    assert not named
