"""The wheel, built from the source distribution and installed in fresh environments, far from any checkout."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
import time
import venv
import zipfile
from pathlib import Path

import pytest

from evalapp import __version__
from evalapp.ops.install import parse_pip_config, uv_environment

pytestmark = [pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[2]
UV = Path(sys.executable).with_name("uv")
#: Where the wheel has the folders of the checkout.
MOVED = {
    **{name: f"evalapp/_included/packages/{name}" for name in ("annotation", "retrieval", "scoring")},
    **{name: f"evalapp/_included/{name}" for name in ("docs", "static", "templates")},
    "evalapp": "evalapp",
}
LEFT_OUT = re.compile(r"docs/(.*\.py|results/rows/.*)|evalapp/_wheel\.pth")


def run_uv(*arguments: str | Path) -> None:
    """Run uv with pip's indexes, as the Makefile does. Skips the test where no registry can be reached."""
    env = uv_environment(os.environ, parse_pip_config(""))
    done = subprocess.run([UV, *arguments], env=env, capture_output=True, text=True, timeout=300)
    if re.search(r"dns error|error sending request|Could not connect|timed out", done.stderr):
        pytest.skip("the package registry cannot be reached")
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    run_uv("build", "--quiet", "--out-dir", folder, ROOT)
    assert (folder / f"evalapp-{__version__}.tar.gz").is_file()
    return folder / f"evalapp-{__version__}-py3-none-any.whl"


class Environment:
    """A virtual environment with the wheel, and an empty folder in which its programs run."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.binaries = folder / "empty", folder / "env" / "bin"
        venv.create(folder / "env", symlinks=True)
        self.folder.mkdir()
        self.env = {
            name: value
            for name, value in os.environ.items()
            if name
            not in ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "DJANGO_SETTINGS_MODULE", "REDIS_URL", "DATABASE_URL")
            and not name.startswith(("EVALAPP", "TEST_"))
        }

    def install(self, *arguments: str) -> None:
        run_uv("pip", "install", "--quiet", "--python", self.binaries / "python", *arguments)

    def run(self, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [self.binaries / program, *arguments]
        return subprocess.run(command, cwd=self.folder, env=self.env, capture_output=True, text=True, timeout=120)

    def evaluate(self, code: str) -> object:
        """Run Python code that prints JSON."""
        done = self.run("python", "-c", code)
        assert done.returncode == 0, done.stderr[-3000:]
        return json.loads(done.stdout)


def test_wheel_has_one_package_and_every_file(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {name.partition("/")[0] for name in names} == {"evalapp", "evalapp.pth", f"evalapp-{__version__}.dist-info"}
    listing = subprocess.run(["git", "ls-files", *MOVED], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    tracked = [name for name in listing.splitlines() if not LEFT_OUT.fullmatch(name) and (ROOT / name).is_file()]
    assert len(tracked) > 1000
    expected = {MOVED[top] + "/" + rest for top, _, rest in (name.partition("/") for name in tracked)}
    assert expected - names == set()
    assert {f"evalapp/_included/{name}.md" for name in ("CHANGELOG", "SECURITY", "benchmarks/README")} <= names


@pytest.mark.parametrize("platform", ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu", "aarch64-apple-darwin"])
def test_every_pinned_version_has_a_build(platform: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MACOSX_DEPLOYMENT_TARGET", "14.0")  # torch's oldest
    run_uv(
        "pip", "compile", "--quiet", "--no-deps", "--only-binary", ":all:", "--python-platform", platform,
        "--python-version", "3.11", ROOT / "requirements.txt", "-o", os.devnull,
    )  # fmt: skip


def test_client_needs_httpx_only(wheel: Path, tmp_path: Path) -> None:
    environment = Environment(tmp_path)
    started = time.monotonic()
    environment.install(f"evalapp[client] @ file://{wheel}")
    assert time.monotonic() - started < 10
    modules = environment.evaluate(
        "import evalapp.client, json, sys; from importlib import metadata\n"
        "print(json.dumps([sorted({'django', 'numpy'} & set(sys.modules)), metadata.version('evalapp')]))"
    )
    assert modules == [[], __version__]
    assert environment.run("evalapp", "--version").stdout.split() == ["evalapp", __version__]
    for command, extra in (("up", "server"), ("recompute", "metrics")):
        done = environment.run("evalapp", command)
        assert done.returncode == 1
        assert f"pip install 'evalapp[{extra}]'" in done.stderr
        assert "Traceback" not in done.stderr
    done = environment.run("python", "-c", "import evalapp.ml")
    assert "pip install 'evalapp[metrics]'" in done.stderr


def test_library_needs_no_django_and_finds_its_own_packages(wheel: Path, tmp_path: Path) -> None:
    environment = Environment(tmp_path)
    environment.install(f"evalapp[metrics] @ file://{wheel}")
    # A user's module is called like our package.
    (environment.folder / "scoring.py").write_text("raise SystemExit('a stranger was imported')\n")
    result = environment.evaluate(
        "import json, sys\n"
        "from evalapp.ml import Record, catalogue, load\n"
        "from evalapp.ml.baselines.bleu_statistics import __name__ as deep\n"
        "from evalapp.index import build, open_index\n"
        "import evalapp.stats.correlation.coefficients, evalapp.ml, scoring.ml\n"
        "records = [Record('the cat sat on the mat', references=['the cat sat on a mat'])]\n"
        "score = load('bleu-star').score(records)[0]\n"
        "strangers = sorted({'django', 'torch'} & set(sys.modules))\n"
        "print(json.dumps([score, deep, evalapp.ml is scoring.ml, len(catalogue()) > 20, strangers]))"
    )
    from scoring.ml import Record, load

    here = load("bleu-star").score([Record("the cat sat on the mat", references=["the cat sat on a mat"])])[0]
    assert result == [here, "scoring.ml.baselines.bleu_statistics", True, True, []]
    assert environment.run("evalapp", "recompute", "--help").returncode == 0
    (environment.folder / "texts").write_text("the cat sat on the mat\n")
    done = environment.run("evalapp", "score", "-i", "texts", "-r", "texts", "-m", "bleu", "--json")
    assert "100" in done.stdout, done.stderr
    environment.install("--no-deps", str(ROOT / "examples" / "evalapp-context-overlap"))
    done = environment.run("evalapp", "score", "-i", "texts", "-s", "texts", "-m", "context-overlap", "--json")
    assert "context-overlap|plugin:evalapp-context-overlap-0.1.0|v:1" in done.stdout, done.stderr
    (environment.folder / "scoring.py").write_text("")
    done = environment.run("python", "-c", "import scoring, evalapp.ml")
    assert "is already imported" in done.stderr


SERVE = """
import json, re
import django
django.setup()
from django.core.management import call_command
from django.test import Client
call_command("collectstatic", "--no-input", verbosity=0)
client = Client(SERVER_NAME="127.0.0.1")
page = client.get("/account/sign-in/").content.decode()
style = re.search(r'href="(/static/evalapp\\.[0-9a-f]+\\.css)"', page)[1]
german = client.get("/account/sign-in/", headers={"Accept-Language": "de"}).content.decode()
assert '<html lang="de" dir="ltr"' in german and ">Anmelden<" in german
answers = [client.get(path) for path in (style, *PATHS)]
print(json.dumps([[a.status_code, len(b"".join(a) if a.streaming else a.content) > 1000] for a in answers]))
"""
PATHS = ("/docs/reference/settings/", "/docs/changelog/", "/docs/images/images/judging.png")


def test_server_works_in_an_empty_folder(wheel: Path, tmp_path: Path) -> None:
    """The packages are those of this environment, which the other tests show to be the pinned ones."""
    environment = Environment(tmp_path)
    environment.install("--no-deps", str(wheel))
    library = Path(sysconfig.get_path("purelib", vars={"base": str(environment.binaries.parent)}))
    (library / "packages.pth").write_text(sysconfig.get_path("purelib"))
    environment.install("--no-deps", str(ROOT / "examples" / "evalapp-context-overlap"))
    done = environment.run("evalapp", "migrate", "--no-input", "--verbosity", "0")
    assert done.returncode == 0, done.stderr[-3000:]
    assert (environment.folder / "data" / "evalapp.sqlite3").is_file()
    assert_plugin_scores_a_project(environment)
    environment.env["DJANGO_SETTINGS_MODULE"] = "evalapp.settings"
    assert environment.evaluate(f"PATHS = {PATHS!r}\n{SERVE}") == [[200, True]] * (len(PATHS) + 1)


def assert_plugin_scores_a_project(environment: Environment) -> None:
    """The installed example is listed, and scores a project in the process of a worker."""
    assert "Plug-in: evalapp-context-overlap 0.1.0." in environment.run("evalapp", "evaluators").stdout
    folder = environment.folder / "study"
    folder.mkdir()
    (folder / "items.jsonl").write_text('{"id": "i", "context": ["a cat"], "source": null, "references": []}\n')
    (folder / "outputs.jsonl").write_text('{"item": "i", "system": "s", "text": "the cat"}\n')
    user = "from evalapp.accounts.models import User; User.objects.create_user('olga', password='olga-password')"
    for arguments in (
        ("shell", "-c", user), ("load", str(folder), "--project", "study", "--owner", "olga"),
        ("score", "context-overlap", "--project", "study", "--here"),
    ):  # fmt: skip
        done = environment.run("evalapp", *arguments)
        assert done.returncode == 0, done.stderr[-3000:]
    assert "context-overlap|plugin:evalapp-context-overlap-0.1.0|v:1" in done.stdout + done.stderr
    done = environment.run("evalapp", "doctor")
    assert "evalapp-context-overlap 0.1.0: context-overlap" in done.stdout
