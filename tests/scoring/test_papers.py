"""The papers to cite: of every evaluator, and the software itself."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from django.core.management import CommandError, call_command

from evalapp import __version__
from scoring.ml import catalogue
from scoring.papers import PAPERS, main, write_bibtex

ROOT = Path(__file__).resolve().parents[2]


def test_every_evaluator_names_its_papers():
    used = {key for entry in catalogue() for key in entry.papers}
    assert used == set(PAPERS)
    for entry in catalogue():
        years = {re.search(r"year = \{(\d{4})\}", PAPERS[key])[1] for key in entry.papers}
        cited = set(re.findall(r"\b(?:19|20)\d\d\b", entry.citation))
        assert years, entry.name
        assert cited <= years, (entry.name, cited, years)


@pytest.mark.parametrize("key", sorted(PAPERS))
def test_entry_is_complete(key):
    text = PAPERS[key]
    assert text.count("{") == text.count("}")
    fields = set(re.findall(r"(\w+) = \{", text))
    assert {"title", "author", "year"} <= fields
    assert fields & {"booktitle", "journal"}


def test_command_prints_each_paper_once(capsys):
    call_command("evaluators", "bleu-4", "bleu-corpus", "--bibtex")
    printed = capsys.readouterr().out
    assert printed == write_bibtex(["papineni-etal-2002-bleu", "post-2018-call"])
    assert re.findall(r"^@\w+\{([\w-]+),", printed, re.M) == ["evalapp", "papineni-etal-2002-bleu", "post-2018-call"]
    with pytest.raises(CommandError, match="Did you mean"):
        call_command("evaluators", "bleurtt", "--bibtex")


def test_papers_without_django(capsys):
    assert main(["--bibtex"]) == 0
    assert capsys.readouterr().out == write_bibtex(PAPERS)
    assert main(["BERTScore", "--bibtex"]) == 0
    assert capsys.readouterr().out == write_bibtex(["zhang-etal-2020-bertscore"])
    assert main([]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(catalogue())
    assert main(["bleurtt"]) == 2
    assert "Did you mean bleurt" in capsys.readouterr().err


def test_bibtex_needs_no_package():
    """As with the extra `client` alone."""
    program = """
import sys
sys.meta_path.insert(0, type("Nothing", (), {"find_spec": lambda name, *rest: {}[name] if name.split(".")[0] in
    ("numpy", "scipy", "django", "pydantic", "orjson") else None}))
from scoring.papers import main
main(["--bibtex"])
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == write_bibtex(PAPERS)


def test_citation_file_has_the_required_fields_and_the_version():
    """The fields that Citation File Format 1.2.0 requires, and none that it does not know."""
    content = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert {"cff-version", "message", "title", "authors"} <= set(content)
    known = {"cff-version", "message", "type", "title", "authors", "version", "license", "keywords", "abstract", "doi",
             "repository-code", "url", "date-released", "preferred-citation", "references"}  # fmt: skip
    assert set(content) <= known
    assert (content["cff-version"], content["type"], content["version"]) == ("1.2.0", "software", __version__)
    assert all(set(author) <= {"name"} or "family-names" in author for author in content["authors"])
