"""Takes pictures of the pages, with the demonstration data in a separate folder.

    python docs/screenshots.py                  the pictures of README and docs, into docs/images/
    python docs/screenshots.py --all FOLDER     every page in light, dark and 360 px wide, for review
    python docs/screenshots.py --all FOLDER --keep DATA    the same on a data folder that is kept for the next time
    python docs/screenshots.py --all FOLDER --language ar  the same in another language

Needs the development requirements and Chromium (its path in CHROMIUM). All started processes are stopped again."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs" / "images"
PASSWORD = "pictures-of-pages-13"
METRICS = ("length", "overlap", "random", "token-f1", "bleu-4", "chrf", "rouge-l")
WIDE, NARROW = {"width": 1180, "height": 800}, {"width": 360, "height": 780}

RESEARCHER, ANNOTATOR = "rita", "anna"


@dataclass(frozen=True)
class Shot:
    """A page: its path, optionally the link to follow from there (a CSS selector), and the user."""

    name: str
    path: str
    follow: str = ""
    who: str = RESEARCHER


P = "/projects/demo/"
#: WEBHOOK_HOSTS; nothing is sent.
HOOKS = "hooks.example.org"
SHOTS = (
    Shot("welcome", "/", who=""),
    Shot("sign-in", "/account/sign-in/", who=""),
    Shot("reset", "/account/reset/", who=""),
    Shot("docs-errors", "/docs/errors", who=""),
    Shot("home", "/"),
    Shot("overview", P),
    Shot("project-new", "/projects/new/", who="olga"),
    Shot("items", P + "items/"),
    Shot("item", P + "items/", 'main table a[href*="/items/"], main .list a[href*="/items/"]'),
    Shot("item-scores", P + "items/1/scores/"),
    Shot("uploads", P + "uploads/"),
    Shot("upload", P + "uploads/1/"),
    Shot("columns", P + "uploads/2/columns/", who="olga"),
    Shot("campaigns", P + "campaigns/"),
    Shot("campaign-new", P + "campaigns/new/"),
    Shot("campaign", P + "campaigns/", 'main table a[href*="/campaigns/"], main .list a[href*="/campaigns/"]'),
    Shot("campaign-quality", P + "campaigns/1/quality/"),
    Shot("corpora", P + "corpora/"),
    Shot("corpus", P + "corpora/dialogues/?q=where+are+you+going"),
    Shot("corpus-new", P + "corpora/new/", who="olga"),
    Shot("corpus-add", P + "corpora/dialogues/add/"),
    Shot("writing-new", P + "writing/new/"),
    Shot("writing", P + "campaigns/", 'main .list a[href*="/writing/"]'),
    Shot("references", P + "references/"),
    Shot("references-select", P + "references/select-references/"),
    Shot("references-compare", P + "references/compare/"),
    Shot("references-merge", P + "references/merge/"),
    Shot("reference-set", P + "references/original/"),
    Shot("enhanced", P + "references/enhanced/"),
    Shot("reliability-curves", P + "references/curves/"),
    Shot("agreement", P + "agreement/"),
    Shot("raters", P + "agreement/raters/"),
    Shot("calibration", P + "agreement/calibration/"),
    Shot("power", P + "agreement/power/"),
    Shot("evaluators", P + "evaluators/"),
    Shot("evaluator", P + "evaluators/chrf/"),
    Shot("score-selected", P + "evaluators/score/?evaluators=length&evaluators=chrf&evaluators=bertscore"),
    Shot("evaluator-apply", P + "evaluators/apply/bertscore/"),
    Shot("evaluator-train", P + "evaluators/train/shared-bert/"),
    Shot("robustness", P + "evaluators/robustness/"),
    Shot("studies", P + "studies/"),
    Shot("evaluator-combine", P + "evaluators/combine/"),
    Shot("evaluator-judge", P + "judges/"),
    Shot("evaluator-report", P + "evaluators/bleu-4/report/"),
    Shot("evaluator-alignment", P + "evaluators/bleu-4/alignment/"),
    Shot("evaluator-sample", P + "evaluators/bleu-4/sample/"),
    Shot("judge-templates", P + "judges/template/"),
    Shot("evaluator-combined", P + "evaluators/both/"),
    Shot("evaluator-upload", P + "evaluators/upload/"),
    Shot("evaluator-trained", P + "evaluators/", 'main .list a[href*="/evaluators/"]'),
    Shot("training-curve", P + "runs/?kind=train", 'main a[href*="/runs/"]'),
    Shot("runs", P + "runs/"),
    Shot("run", P + "runs/", 'main a[href*="/runs/"]'),
    Shot("systems", P + "systems/"),
    Shot("systems-win-rate", P + "systems/?method=win-rate&aspect=relevance"),
    Shot("systems-davidson", P + "systems/?method=davidson&aspect=relevance"),
    Shot("systems-steps", P + "systems/steps/"),
    Shot("evaluation", P + "evaluation/"),
    Shot("evaluation-system", P + "evaluation/?level=system"),
    Shot("evaluation-davidson", P + "evaluation/?people=davidson"),
    Shot("evaluation-aspects", P + "evaluation/aspects/"),
    Shot("evaluation-slices", P + "evaluation/slices/"),
    Shot("evaluation-pairs", P + "evaluation/pairs/"),
    Shot("evaluation-matrix", P + "evaluation/matrix/"),
    Shot("snapshots", P + "snapshots/"),
    Shot("snapshot", P + "snapshots/before/"),
    Shot("snapshot-evaluators", P + "snapshots/evaluators-before/"),
    Shot("snapshot-agreement", P + "snapshots/agreement-before/"),
    Shot("snapshots-compare", P + "snapshots/compare/?first=before"),
    Shot("reports", P + "reports/", who="olga"),
    Shot("report-new", P + "reports/new/", who="olga"),
    Shot("exports", P + "exports/"),
    Shot("people", P + "people/"),
    Shot("invite", P + "people/invite/", who="olga"),
    Shot("settings", P + "settings/", who="olga"),
    Shot("webhooks", P + "webhooks/", who="olga"),
    Shot("webhook-new", P + "webhooks/new/", who="olga"),
    Shot("webhook", P + "webhooks/", "main .table a", who="olga"),
    Shot("delete", P + "settings/delete/", who="olga"),
    Shot("account", "/account/"),
    Shot("password", "/account/password/"),
    Shot("tokens", "/account/tokens/"),
    Shot("own-data", "/account/data/"),
    Shot("my-work", "/my/", who=ANNOTATOR),
    Shot("display", "/account/display/", who=ANNOTATOR),
    Shot("judging-rating", "/my/1/", who=ANNOTATOR),
    Shot("judging-pairs", "/my/2/", who=ANNOTATOR),
    Shot("judging-turing", "/my/3/", who=ANNOTATOR),
    Shot("guidelines", "/my/1/guidelines/", who=ANNOTATOR),
    Shot("my-answers", "/my/1/answers/", who=ANNOTATOR),
    Shot("my-texts", "/my/writing/1/texts/", who=ANNOTATOR),
    Shot("write-constraint", "/my/writing/1/", who=ANNOTATOR),
    Shot("write", "/my/writing/2/", who=ANNOTATOR),
    Shot("not-there", "/projects/nothing/"),
)
#: The pictures of README and docs: name of the shot -> name of the file.
CHOSEN = {
    "systems": "systems",
    "evaluation": "evaluation",
    "judging-rating": "judging",
    "overview": "overview",
    "items": "items",
    "write": "writing",
}


# ---- the installation -------------------------------------------------------------------------------------


def manage(folder: Path, *words: str, options: str | None = None) -> str:
    env = {**os.environ, "EVALAPP_DATA": str(folder), "LOG_LEVEL": "WARNING", "WEBHOOK_HOSTS": HOOKS}
    done = subprocess.run(
        [sys.executable, str(ROOT / "manage.py"), *words],
        env=env, input=options, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(f"manage.py {' '.join(words)} failed:\n{done.stderr[-2000:]}")
    return done.stdout


PEOPLE = f"""
from evalapp.accounts.models import Membership, Project, User
project = Project.objects.get(slug="demo")
for name, role in (("{RESEARCHER}", "researcher"), ("{ANNOTATOR}", "annotator")):
    user = User.objects.create_user(username=name, email=name + "@example.org", password="{PASSWORD}")
    Membership.objects.create(project=project, user=user, role=role, pseudonym=name)
from evalapp.events.services.webhooks import create_webhook
create_webhook(project=project, actor=None, name="lab", url="https://hooks.example.org/in", events=["run.failed"])
"""


#: A table whose columns are to be matched, with one that is asked about.
TABLE = """
from annotation.services.table_uploads import receive_table
from annotation.services.uploads import Incoming
from evalapp.accounts.models import Project, User
head = "No.,Visitor's question,guide A answer,guide B answer,guide A helpful,guide B helpful"
rows = [f"{k},Where do I find room {k}?,Room {k} is next to the stairs.,Go upstairs.,{k},{6 - k}" for k in range(1, 6)]
file = Incoming("guides.csv", ["\\n".join([head, *rows]).encode()])
receive_table(project=Project.objects.get(slug="demo"), user=User.objects.get(username="olga"), files=[file])
"""


def prepare(folder: Path) -> None:
    """Load the demonstration with three users, scores of a few metrics and open campaigns, using commands. No evaluator
    is trained, so that the leaderboards in the pictures use all ratings."""
    if (folder / "ready").exists():
        return
    sys.path.insert(0, str(ROOT))
    from evalapp.demo.build import build

    source = folder / "demo-source"
    build(source)
    manage(folder, "migrate", "--verbosity", "0")
    manage(folder, "createowner", "olga", "--password-stdin", options=PASSWORD + "\n")
    manage(folder, "load", str(source), "--project", "demo", "--owner", "olga")
    manage(folder, "shell", "--verbosity", "0", "-c", PEOPLE)
    manage(folder, "shell", "--verbosity", "0", "-c", TABLE)
    for metric in METRICS:
        manage(folder, "score", metric, "--project", "demo", "--here")
    manage(folder, "corpus", "add", "dialogues", "--derive", "items", "--project", "demo", "--here")
    manage(folder, "campaign", "demo", str(ROOT / "evalapp/demo/campaigns.json"), "--open", "--as", RESEARCHER)
    manage(folder, "corpus", "add", "replies", "--project", "demo", "--derive", "corpus", "--here")
    manage(folder, "campaign", "demo", str(ROOT / "evalapp/demo/writing.json"), "--open", "--as", RESEARCHER)
    compute(folder)
    (folder / "ready").touch()


def compute(folder: Path) -> None:
    """Compute the leaderboards, because pages leave large ones to a run, and no worker is running."""
    for words in ((), ("--level", "system"), ("--people", "davidson"), ("--aspects",), ("--slices",), ("--matrix",)):
        manage(folder, "meta", "demo", *words)


def train(folder: Path) -> None:
    """Add a trained and a combined evaluator, and snapshots."""
    if (folder / "trained").exists():
        return
    trained = ("--aspect", "naturalness", "--folds", "1", "--name", "my-adem", "--here")
    manage(folder, "train", "adem", "--project", "demo", *trained)
    manage(folder, "score", "my-adem", "--project", "demo", "--here")
    stacked = ("--method", "stacked", "--aspect", "naturalness", "--name", "both", "--here")
    manage(folder, "combine", "demo", "bleu-4", "chrf", "length", *stacked)
    manage(folder, "meta", "demo", "--aspect", "naturalness")
    manage(folder, "snapshot", "demo", "take", "--name", "before", "--title", "Before the campaign")
    manage(folder, "snapshot", "demo", "take", "--board", "evaluators", "--name", "evaluators-before")
    manage(folder, "snapshot", "demo", "take", "--board", "agreement", "--name", "agreement-before")
    compute(folder)
    (folder / "trained").touch()


@contextmanager
def web(folder: Path) -> Iterator[str]:
    """Start the web process on a free port; yield its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "gunicorn", "evalapp.wsgi:application", "--bind", f"127.0.0.1:{port}"]
    env = {**os.environ, "EVALAPP_DATA": str(folder), "WEBHOOK_HOSTS": HOOKS}
    process = subprocess.Popen([*command, "--threads", "4", "--log-level", "warning"], cwd=ROOT, env=env)
    address = f"http://127.0.0.1:{port}"
    try:
        _wait(address, process)
        yield address
    finally:
        process.terminate()
        process.wait(10)


def _wait(address: str, process: subprocess.Popen[Any], seconds: float = 30) -> None:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    end = time.monotonic() + seconds
    while time.monotonic() < end and process.poll() is None:
        try:
            opener.open(f"{address}/health/live", timeout=2).close()
            return
        except OSError:
            time.sleep(0.2)
    raise SystemExit("The web process did not start.")


# ---- the pictures -----------------------------------------------------------------------------------------


def open_signed_in(
    browser: Browser, address: str, name: str, viewport: dict[str, int], scheme: str, language: str = "en-GB"
) -> Page:
    context = browser.new_context(
        viewport=viewport,
        color_scheme=scheme,
        base_url=address,
        locale=language,  # type: ignore[arg-type]
    )
    page = context.new_page()
    if name:
        page.goto("/account/sign-in/")
        page.fill("[name=username]", name)
        page.fill("[name=password]", PASSWORD)
        page.click("main button")
        page.wait_for_url("**/")
    return page


def visit(page: Page, shot: Shot) -> int:
    """Open the page and wait until the network is idle; return the status."""
    response = page.goto(shot.path)
    if page.locator("[data-begin]").count():  # the guidelines come before the first text
        page.click("[data-begin] button")
        response = page.goto(shot.path)
    if shot.follow and page.locator(shot.follow).count():
        with page.expect_navigation() as moved:
            page.locator(shot.follow).first.click()
        response = moved.value
    page.wait_for_load_state("networkidle")
    return response.status if response else 0


def take(page: Page, path: Path, *, whole: bool) -> None:
    page.screenshot(path=path, full_page=whole, animations="disabled")
    with Image.open(path) as picture:
        small = picture.convert("RGB").quantize(128, dither=Image.Dither.NONE)
    small.save(path, optimize=True)


def find_faults(page: Page) -> list[str]:
    """Return faults that a picture does not show: horizontal scrolling."""
    overflow = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    return [f"{overflow} px too wide"] if overflow > 0 else []


def record_errors(page: Page, errors: list[str]) -> None:
    """Record errors of the console, which include violations of the content security policy."""
    page.on("console", lambda line: errors.append(line.text) if line.type == "error" else None)
    page.on("pageerror", lambda error: errors.append(str(error)))


def take_all(browser: Browser, address: str, folder: Path, only: set[str], language: str) -> list[dict[str, Any]]:
    folder.mkdir(parents=True, exist_ok=True)
    report = []
    for look, viewport, scheme in (("light", WIDE, "light"), ("dark", WIDE, "dark"), ("narrow", NARROW, "light")):
        pages: dict[str, Page] = {}
        errors: list[str] = []
        for shot in SHOTS:
            if only and shot.name not in only:
                continue
            if shot.who not in pages:
                pages[shot.who] = open_signed_in(browser, address, shot.who, viewport, scheme, language)
                record_errors(pages[shot.who], errors)
            errors.clear()
            status = visit(pages[shot.who], shot)
            take(pages[shot.who], folder / f"{shot.name}-{look}.png", whole=True)
            faults = [*errors, *find_faults(pages[shot.who])]
            if status != 200 or faults:
                report.append({"page": shot.name, "look": look, "status": status, "faults": faults})
    return report


def take_chosen(browser: Browser, address: str) -> None:
    IMAGES.mkdir(parents=True, exist_ok=True)
    for shot in SHOTS:
        if shot.name in CHOSEN:
            page = open_signed_in(browser, address, shot.who, WIDE, "light")
            if visit(page, shot) != 200:
                raise SystemExit(f"{shot.path} cannot be opened.")
            take(page, IMAGES / f"{CHOSEN[shot.name]}.png", whole=False)
            print(IMAGES / f"{CHOSEN[shot.name]}.png")


def chromium() -> str:
    named = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if not named:
        raise SystemExit("There is no Chromium. Install it (apt-get install chromium) or name it with CHROMIUM=.")
    return named


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--all",
        type=Path,
        metavar="FOLDER",
        help="write pictures of all pages, light, dark and narrow, into this folder",
    )
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="with --all: only these pages")
    parser.add_argument("--keep", type=Path, metavar="DATA", help="a data folder to reuse; created if missing")
    parser.add_argument("--language", default="en-GB", help="with --all: the language of the browser")
    options = parser.parse_args()
    folder = options.keep or Path(tempfile.mkdtemp(prefix="evalapp-pictures-"))
    folder.mkdir(parents=True, exist_ok=True)
    try:
        prepare(folder)
        if options.all:
            train(folder)
        manage(folder, "collectstatic", "--noinput", "--verbosity", "0")
        with web(folder) as address, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
            if options.all:
                for line in take_all(browser, address, options.all, set(options.only), options.language):
                    print(json.dumps(line))
            else:
                take_chosen(browser, address)
            browser.close()
    finally:
        if not options.keep:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
