"""House rules: import direction, packages free of Django, a web process without torch, templates without inline script,
models with one `visible_to`, a clean deployment check, a valid OpenAPI document."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
from dataclasses import is_dataclass
from pathlib import Path

import pytest
from django.apps import apps
from django.core.management import call_command

from evalapp import __version__

ROOT = Path(__file__).resolve().parents[2]
TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))
#: Parts of pages: fragments, components, and the sections that apps add to a project's overview.
PARTS = {"components", "overview"}
PAGES = [path for path in TEMPLATES if not path.name.startswith("_") and not PARTS & set(path.parent.parts)]
OURS = ("evalapp", "annotation", "retrieval", "scoring")
PURE = (
    "evalapp.words",
    "evalapp.stats",
    "evalapp.client",
    "evalapp.demo",
    "annotation.mapping",
    "annotation.parsers",
    "annotation.allocation",
    "retrieval.index",
    "scoring.boards",
    "scoring.ml",
)
#: Modules of pure packages that read rows.
WITH_ROWS = ("scoring.boards.data.project", "scoring.boards.data.project_judgements")
#: Independent pages: the one shown when the database cannot be read, and the one a library renders.
ALONE = {"errors/server.html", "drf_spectacular/swagger_ui.html", "scoring/reports/shared.html"}
#: Models without a `visible_to`: reached through their parent row, or internal.
INTERNAL = {
    "accounts.User": "people are shown through their memberships",
    "accounts.AttemptCount": "counters of the door",
    "common.AuditHead": "the installation's, read by doctor alone",
    "common.RunLog": "through its run",
    "common.WorkerBeat": "the installation's, of no project",
    "annotation.UploadFault": "through its upload",
    "annotation.UploadChange": "through its upload",
    "retrieval.OutboxRow": "the installation's, read by doctor alone",
}


def python(code: str, **env: str) -> subprocess.CompletedProcess[str]:
    whole = {**os.environ, "PYTHONPATH": str(ROOT), **env}
    command = [sys.executable, "-c", code]
    return subprocess.run(command, cwd=ROOT, env=whole, capture_output=True, text=True, timeout=300)


def manage(*arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    whole = {**os.environ, "DJANGO_SETTINGS_MODULE": "evalapp.settings", **env}
    command = [sys.executable, "manage.py", *arguments]
    return subprocess.run(command, cwd=ROOT, env=whole, capture_output=True, text=True, timeout=300)


def test_version_is_defined_in_one_place():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == __version__
    python_files = [path for name in OURS for path in (ROOT / name).rglob("*.py")]
    naming = [path for path in python_files if f'"{__version__}"' in path.read_text()]
    assert naming == [ROOT / "evalapp" / "__init__.py"]


def test_imports_go_one_way():
    program = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([program, "--no-cache"], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout[-3000:]


def test_pure_packages_import_without_django():
    """Imports every module of each pure package in one process per package, without settings, since torch alone takes
    seconds to load. The first package that imports Django is reported."""
    code = (
        "import importlib, pkgutil, sys\n"
        f"for name in {PURE!r}:\n"
        "    room = importlib.import_module(name)\n"
        "    inner = pkgutil.walk_packages(getattr(room, '__path__', []), name + '.')\n"
        f"    modules = [name, *(found.name for found in inner if found.name not in {WITH_ROWS!r})]\n"
        "    for module in modules:\n"
        "        importlib.import_module(module)\n"
        "    bad = sorted({name.split('.')[0] for name in sys.modules} & {'django', 'celery', 'rest_framework'})\n"
        "    if bad:\n"
        "        sys.exit(f'{bad} were imported by {room.__name__}')\n"
        "    print(room.__name__, len(modules))\n"
    )
    done = python(code, DJANGO_SETTINGS_MODULE="")
    assert done.returncode == 0, done.stderr[-2000:]
    looked_at = dict(line.split() for line in done.stdout.splitlines())
    assert tuple(looked_at) == PURE
    # `evalapp.words` is one module, the others are packages.
    assert all(int(number) > 1 for name, number in looked_at.items() if name != "evalapp.words")


def test_web_process_and_commands_load_nothing_heavy(tmp_path):
    code = (
        "import sys\n"
        "from evalapp.wsgi import application\n"
        "from django.core.management import call_command\n"
        "from django.urls import get_resolver\n"
        "get_resolver().url_patterns\n"
        "call_command('check')\n"
        "heavy = {'torch', 'transformers', 'torch_geometric', 'sentence_transformers', 'numpy', 'scipy',"
        " 'pandas', 'altair', 'redis', 'celery'} & set(sys.modules)\n"
        "sys.exit(f'{sorted(heavy)} were imported' if heavy else 0)\n"
    )
    done = python(code, DJANGO_SETTINGS_MODULE="evalapp.settings", EVALAPP_DATA=str(tmp_path))
    assert done.returncode == 0, done.stderr[-2000:]


def test_every_job_refers_to_existing_functions():
    from evalapp.common.jobs import all_jobs

    ours = [job for job in all_jobs() if not job.kind.startswith("test-")]
    assert {"import", "export", "score"} <= {job.kind for job in ours}
    for job in ours:
        assert callable(job.load())
        assert job.help
        assert not job.request or (callable(job.load_request()) and is_dataclass(job.load_params()))


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT / "templates")))
def test_every_page_extends_the_base(path):
    name = str(path.relative_to(ROOT / "templates"))
    if name not in ALONE and name != "base.html":
        assert re.match(r"\{% extends [\"'][\w/.]+[\"'] %\}", path.read_text()), "the first line extends a page"


INLINE = {
    "a script without src": re.compile(r"<script(?![^>]*\bsrc=)(?![^>]*application/json)", re.I),
    "a style element": re.compile(r"<style", re.I),
    "a style attribute": re.compile(r"<[^>]*\sstyle\s*=", re.I),
    "an on* attribute": re.compile(r"<[^>{]*\son[a-z]+\s*=", re.I),
    "hx-on": re.compile(r"\shx-on[:-]", re.I),
    "script in hx-vals or hx-headers": re.compile(r"hx-(vals|headers)\s*=\s*['\"](js|javascript):", re.I),
    "a condition in hx-trigger": re.compile(r"hx-trigger\s*=\s*['\"][^'\"]*\[", re.I),
    "an asset from elsewhere": re.compile(r"(src|href)\s*=\s*['\"](https?:)?//[^'\"]+\.(js|css|woff2?)", re.I),
}


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: str(path.relative_to(ROOT / "templates")))
def test_templates_keep_to_the_content_security_policy(path):
    text = path.read_text()
    assert [what for what, pattern in INLINE.items() if pattern.search(text)] == []


def test_every_model_has_visible_to():
    silent = {
        model._meta.label
        for model in apps.get_models()
        if model.__module__.split(".")[0] in OURS and not hasattr(model._default_manager.all(), "visible_to")
    }
    assert silent == set(INTERNAL)


@pytest.mark.promise("settings")
def test_deployment_check_is_clean(tmp_path):
    done = manage(
        "check",
        "--deploy",
        "--fail-level",
        "WARNING",
        EVALAPP_DATA=str(tmp_path),
        SECRET_KEY="".join(chr(33 + (7 * n) % 90) for n in range(64)),
        ALLOWED_HOSTS="evalapp.example.org",
        CSRF_TRUSTED_ORIGINS="https://evalapp.example.org",
        SECURE_PROXY="1",
        DEBUG="0",
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.promise("settings")
@pytest.mark.parametrize(
    ("env", "words"),
    [
        ({"SECRET_KEY": "short"}, "SECRET_KEY is too weak"),
        ({"ALLOWED_HOSTS": "*"}, "without wildcards"),
        ({"DEBUG": "1", "ALLOWED_HOSTS": "evalapp.example.org"}, "DEBUG=1 is refused"),
        ({"REDIS_URL": "http://x"}, "must start with one of"),
        ({"MAX_UPLOAD_MB": "many"}, "whole number"),
    ],
)
def test_dangerous_or_wrong_setting_stops_the_start_with_one_line(tmp_path, env, words):
    done = manage("check", EVALAPP_DATA=str(tmp_path), **env)
    assert done.returncode != 0
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_openapi_document_is_valid(tmp_path):
    call_command("spectacular", validate=True, fail_on_warn=True, file=str(tmp_path / "s.yml"))
    assert (tmp_path / "s.yml").stat().st_size > 100_000


def test_migrations_are_complete(tmp_path):
    done = manage("makemigrations", "--check", "--dry-run", EVALAPP_DATA=str(tmp_path))
    assert done.returncode == 0, done.stdout


def test_browser_tests_wait_for_functions():
    """The page evaluates an expression that is not immediately true, which the content security policy forbids: a test
    that waits for one fails only on a slow machine."""
    bare = re.compile(r'wait_for_function\(\s*f?"(?!\(\) =>|\w+ =>|\(\w)')
    files = sorted((ROOT / "tests/browser").glob("*.py"))
    assert files
    assert [path.name for path in files if bare.search(path.read_text(encoding="utf-8"))] == []


def test_browser_tests_expect_what_a_page_will_show():
    """A click does not wait for the next page: an assertion about what is there at once fails only on a slow machine.
    `expect` waits."""
    state = r"\.all_inner_texts|\.input_value|is_checked|is_visible|get_attribute"
    read = re.compile(rf"assert .*({state}|locator\([^)]*\)\.count\(\)|\.inner_text\([^)]*\) ==)")
    files = sorted((ROOT / "tests/browser").glob("*.py"))
    assert files
    lines = [(path.name, line) for path in files for line in path.read_text(encoding="utf-8").splitlines()]
    assert [f"{name}: {line}" for name, line in lines if read.search(line)] == []


def find_stale_joins(code: str) -> list[int]:
    """Lines of queries that lock one table and join others: PostgreSQL reads joined rows before it waits for the lock.
    Rows that are read after the lock, by a query of their own, are current."""
    found = []
    for node in ast.walk(ast.parse(code)):
        names, is_partial, call = set(), False, node
        while isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
            names.add(call.func.attr)
            is_partial |= call.func.attr == "select_for_update" and any(word.arg == "of" for word in call.keywords)
            call = call.func.value
        if is_partial and "select_related" in names:
            found.append(node.lineno)
    return sorted(set(found))


def test_locked_rows_are_not_joined_with_others():
    joined = 'Row.objects.select_for_update(of=("self",)).select_related("project")'
    assert find_stale_joins(f"x = 1\nrow = {joined}.get(pk=1)") == [2]
    assert find_stale_joins('Row.objects.select_for_update(of=("self",)).get(pk=1)') == []
    found = {
        str(path.relative_to(ROOT)): lines
        for name in OURS
        for path in sorted((ROOT / name).rglob("*.py"))
        if (lines := find_stale_joins(path.read_text()))
    }
    assert found == {}, "read related rows after the lock"
