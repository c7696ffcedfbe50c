"""Installed packages: pinned by hash, compatible licences, a bill of materials; and the parsers with arbitrary
bytes."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from evalapp import __version__
from evalapp.ops import install, inventory
from tests.security.fuzz_parsers import one_input

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.promise("supply")
def test_every_pin_in_the_lock_has_hashes():
    """`make lock` writes it."""
    pins, locked = inventory.read_pins(ROOT / "requirements.txt"), inventory.read_pins(ROOT / "requirements.lock")
    assert {name: version for name, (version, _) in pins.items()} == {
        name: version for name, (version, _) in locked.items()
    }
    assert [name for name, (_, hashes) in locked.items() if not hashes] == []
    for file in ("requirements.txt", "requirements-dev.txt"):
        for line in (ROOT / file).read_text(encoding="utf-8").splitlines():
            assert not line or line.lstrip().startswith("#") or "==" in line, f"{file}: {line} is not pinned"


@pytest.mark.promise("supply")
def test_lock_is_installed_by_hash_only(monkeypatch):
    asked: list[list[str]] = []
    done = SimpleNamespace(stdout="", returncode=0)
    monkeypatch.setattr(install.subprocess, "run", lambda command, **_: (asked.append(command), done)[1])
    assert install.main(["requirements.lock"]) == 0
    assert install.main(["requirements.txt", "requirements-dev.txt"]) == 0
    assert "--require-hashes" in asked[1]
    assert "--require-hashes" not in asked[3]


@pytest.mark.promise("supply")
def test_every_licence_is_compatible():
    found = inventory.list_packages(ROOT / "requirements.txt")
    assert len(found) > 100
    assert [
        f"{package.name}: {package.licence}" for package in found if not inventory.is_compatible(package.licence)
    ] == []
    assert not inventory.is_compatible("")
    assert not inventory.is_compatible("GPL-3.0-only")
    assert not inventory.is_compatible("MIT AND AGPL-3.0-only")
    assert inventory.is_compatible("GPL-2.0-only OR MIT")


@pytest.mark.promise("supply")
def test_bill_of_materials_names_the_installed_packages():
    command = [sys.executable, "-m", "evalapp.ops.inventory", "sbom", "requirements.lock"]
    text = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=300).stdout
    bill = json.loads(text)
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.5")
    django = next(part for part in bill["components"] if part["name"] == "django")
    assert django["version"] == metadata.version("django")
    assert django["purl"] == f"pkg:pypi/django@{django['version']}"
    assert all(len(row["content"]) == 64 for row in django["hashes"])
    refs = {part["bom-ref"] for part in bill["components"]}
    edges = {edge["ref"]: edge["dependsOn"] for edge in bill["dependencies"]}
    assert refs | {f"pkg:pypi/evalapp@{__version__}"} == set(edges)
    assert {need for needs in edges.values() for need in needs} <= refs
    assert any(need.startswith("pkg:pypi/sqlparse@") for need in edges[django["bom-ref"]])


ROW = b'{"id": "i1", "item": "i1", "system": "s", "text": "t", "aspect": "q", "value": 1, "rater": "r"}\n'
PIECES = st.sampled_from(
    [b'"', b"{", b"}", b"[", b"]", b":", b",", b"\n", b"\r\n", b"\t", b"\\u0000", b"\\ud800", b"\xef\xbb\xbf",
     b"\xff\xfe", b"\x1f\x8b\x08", b"1e999", b"NaN", b"-0", b"null", b"id", b"item", b"meta", b"id,item\n", b"\x00",
     b"\xc3", ROW]
)  # fmt: skip


@pytest.mark.promise("parser-fuzz")
@given(
    st.integers(0, 255),
    st.integers(0, 255),
    st.lists(PIECES | st.binary(max_size=12), max_size=12).map(b"".join) | st.binary(max_size=200),
)
@example(0, 3, ROW)
@settings(max_examples=300)
def test_any_bytes_give_rows_errors_or_a_message(first, second, content):
    """Every format, every table, packed or not; `make fuzz` continues for minutes, guided by coverage."""
    one_input(bytes([first, second]) + content)


@pytest.mark.promise("parser-fuzz")
def test_valid_input_is_recognised():
    """The fuzzing reaches the rows: a valid one counts, packed or not."""
    from annotation.parsers import KINDS

    outputs = sorted(KINDS).index("outputs")
    assert one_input(bytes([0, outputs]) + ROW + ROW) == 2
    assert one_input(bytes([128, outputs + len(KINDS) * -(-64 // len(KINDS))]) + ROW) == 1
