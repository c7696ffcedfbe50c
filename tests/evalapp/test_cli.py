"""The program `evalapp`: which commands run without Django, and what it says if a package is missing."""

from __future__ import annotations

import contextlib
import importlib
import subprocess
import sys
from types import SimpleNamespace

import pytest

from evalapp import __version__, cli
from evalapp.layout import find_program


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_command_has_a_main(name: str) -> None:
    assert callable(importlib.import_module(cli.COMMANDS[name].module).main)


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, list[str]]]:
    """What was run: by the installation, or without it."""
    calls: list[tuple[str, list[str]]] = []

    def run_alone(words: list[str]) -> int:
        calls.append(("alone", words))
        return 3

    monkeypatch.setattr(cli, "import_module", lambda name: SimpleNamespace(main=run_alone))
    monkeypatch.setattr(cli, "run_installation", lambda words: calls.append(("installation", words)))
    return calls


def test_command_without_project_returns_its_status(ran: list[tuple[str, list[str]]]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["recompute", "folder"])
    assert ended.value.code == 3
    assert ran == [("alone", ["folder"])]


@pytest.mark.parametrize(
    ("words", "runs"),
    [
        (["score", "-i", "a.txt"], "alone"),
        (["score", "--input=a.txt"], "alone"),
        (["score", "length", "--project", "p"], "installation"),
        (["score", "--help"], "installation"),
        (["up"], "installation"),
    ],
)
def test_shared_name_is_decided_by_options(ran: list[tuple[str, list[str]]], words: list[str], runs: str) -> None:
    with contextlib.suppress(SystemExit):
        cli.main(words)
    assert [who for who, _ in ran] == [runs]


@pytest.mark.parametrize(
    ("words", "missing", "extra"),
    [(["recompute", "x"], "scipy", "metrics"), (["score", "-i", "x"], "torch", "torch"), (["up"], "celery", "server")],
)
def test_missing_package_is_named_with_its_extra(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str], missing: str, extra: str
) -> None:
    def fail(*_: object) -> None:
        raise ModuleNotFoundError(name=f"{missing}.inner")

    monkeypatch.setattr(cli, "import_module", fail)
    monkeypatch.setattr(cli, "run_installation", fail)
    monkeypatch.setattr(cli, "find_spec", lambda name: None if name == missing else object())
    with pytest.raises(SystemExit) as ended:
        cli.main(words)
    assert ended.value.code == 1
    text = capsys.readouterr().err
    assert missing in text
    assert f"'evalapp[{extra}]'" in text


def test_fault_of_our_own_is_not_called_a_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ModuleNotFoundError(name="json.nothing")

    monkeypatch.setattr(cli, "run_installation", fail)
    with pytest.raises(ModuleNotFoundError):
        cli.main(["up"])


def test_version_and_list_of_commands() -> None:
    done = subprocess.run([sys.executable, "-m", "evalapp", "version"], capture_output=True, text=True, timeout=300)
    assert done.stdout.split() == ["evalapp", __version__]


def test_program_is_named_as_it_can_be_typed(tmp_path, monkeypatch):
    program = tmp_path / "bin/evalapp"
    program.parent.mkdir()
    program.touch(mode=0o755)
    monkeypatch.setattr("sys.executable", str(program.with_name("python")))
    monkeypatch.setenv("PATH", "/nowhere")
    assert find_program() == str(program)
    monkeypatch.chdir(tmp_path)
    assert find_program() == "bin/evalapp"
    monkeypatch.setenv("PATH", str(program.parent))
    assert find_program() == "evalapp"
