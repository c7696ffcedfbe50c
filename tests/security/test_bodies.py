"""Dangers of small bodies: endless unpacking, nesting and counting; file names that lead outside; texts that would
become part of a query, a header or a pattern."""

from __future__ import annotations

import ast
import gzip
import io
import json
import re
import socket
import tarfile
import threading
import time
import tracemalloc
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.files.uploadedfile import SimpleUploadedFile
from django.http import HttpResponse
from django.test import Client, RequestFactory

from annotation.models import Item, Upload
from evalapp.accounts.models import User
from evalapp.common.bodies import BodyLimit
from evalapp.common.models import Run
from evalapp.common.runner import execute_run
from evalapp.ops.ports import wait_until
from tests.factories import make_items, make_outputs, make_ratings

pytestmark = pytest.mark.django_db
ROOT = Path(__file__).resolve().parents[2]
UPLOADS = "/api/v1/projects/alpha/uploads/"


@pytest.fixture
def rita(cast: Any, settings: Any, tmp_path: Path) -> Client:
    settings.UPLOADS_DIR, settings.ARTEFACTS_DIR = tmp_path / "uploads", tmp_path / "artefacts"
    client = Client()
    client.force_login(cast.researcher)
    return client


def send(client: Client, name: str, content: bytes) -> tuple[Any, Upload | None]:
    """Uploads a file; the run that checks it is executed here."""
    answer = client.post(UPLOADS, {"file": SimpleUploadedFile(name, content)})
    if answer.status_code != 202:
        return answer, None
    upload = Upload.objects.latest("pk")
    execute_run(upload.run_id)
    upload.refresh_from_db()
    return answer, upload


# ---- bombs ------------------------------------------------------------------------------------------------


@pytest.mark.promise("bombs")
def test_endless_unpacking_is_stopped_with_flat_memory(rita, settings):
    """A gzip of 40 MB sent as 40 kB; archives are refused as such."""
    settings.MAX_UPLOAD_BYTES, settings.MAX_ROW_BYTES = 4_000_000, 100_000
    bomb = gzip.compress(b'{"id": "' + b"a" * 40_000_000 + b'"}\n')
    assert len(bomb) < 60_000
    twice = gzip.compress(bomb)
    tracemalloc.start()
    begin = time.process_time()
    for name, content in (("items.jsonl.gz", bomb), ("items.jsonl.gz", twice), ("items.csv.gz", bomb)):
        _, upload = send(rita, name, content)
        assert upload is not None
        assert upload.state in ("failed", "faulty"), (name, upload.state)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 30_000_000
    assert time.process_time() - begin < 30
    assert not Item.objects.exists()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("../../items.jsonl", b"\0" * 10_000_000)
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w:gz") as packed_tar:
        info = tarfile.TarInfo("../../../etc/cron.d/items.jsonl")
        info.size = 5
        packed_tar.addfile(info, io.BytesIO(b"hello"))
    for content in (buffer.getvalue(), tar.getvalue()):
        _, upload = send(rita, "items.jsonl", content)
        assert upload is not None
        assert upload.state in ("failed", "faulty")


@pytest.mark.promise("bombs")
def test_endless_counting_or_nesting_is_refused(rita, cast):
    """Thirty thousand members, two hundred thousand levels, a number of a million digits, ten thousand fields."""
    keys = json.dumps({f"k{number}": 0 for number in range(30_000)})
    deep = "[" * 200_000 + "]" * 200_000
    number = '{"answer": ' + "9" * 1_000_000 + "}"
    for path in ("runs/", "campaigns/", "writing/"):
        for body in (keys, deep, number):
            begin = time.process_time()
            answer = rita.post(f"/api/v1/projects/alpha/{path}", body, content_type="application/json")
            assert 400 <= answer.status_code < 500, (path, body[:20], answer.status_code)
            assert len(answer.content) < 500_000, "the answer is no larger than anybody reads"
            assert time.process_time() - begin < 10
    form = rita.post("/projects/alpha/campaigns/new/", {f"f{n}": "x" for n in range(10_001)})
    assert form.status_code == 400
    for content in (deep, '{"id": "a", "meta": ' + deep + "}", '{"id": ' + "9" * 50_000 + "}"):
        _, upload = send(rita, "items.jsonl", content.encode())
        assert upload is None or upload.state in ("failed", "faulty")
    too_large = rita.generic("POST", "/account/", b"x" * 10, CONTENT_LENGTH="9000000000")
    assert too_large.status_code == 413


#: Pages where input is never longer than a form: judging, skipping, flags, the account, signing in.
SHORT = (
    "/api/v1/assignments/abc/submit/", "/api/v1/assignments/abc/skip/", "/api/v1/assignments/abc/flag/",
    "/api/v1/campaigns/1/next/", "/api/v1/tokens/", "/my/1/abc/submit/", "/my/1/next/", "/account/",
    "/account/sign-in/", "/invitations/abc/", "/participate/abc/", "/api/v1/invitations/1/", "/nothing/",
)  # fmt: skip


@pytest.mark.promise("bombs")
def test_body_longer_than_a_form_is_accepted_only_for_long_texts(cast):
    """64 KiB are 65,536 bytes. The announced length decides: the body is not read here."""
    limit = BodyLimit(lambda request: HttpResponse())

    def ask(user: Any, path: str, size: int) -> int:
        request = RequestFactory().generic("POST", path, CONTENT_LENGTH=str(size))
        request.user = user
        return limit(request).status_code

    for path in SHORT:
        assert ask(cast.researcher, path, 65_537) == 413, path
        assert ask(cast.researcher, path, 65_536) == 200, path
    # Notes, guidelines, texts: up to five million bytes.
    project = ("/projects/alpha/settings/", "/api/v1/projects/alpha/", "/api/v1/projects/alpha/campaigns/")
    others = ("/projects/new/", "/api/v1/projects/",
              "/api/v1/campaigns/1/", "/api/v1/campaigns/1/recruitments/", "/api/v1/recruitments/1/",
              "/api/v1/evaluators/rankme/score/", "/my/writing/1/abc/done/",
              "/api/v1/writing-tasks/abc/submit/")  # fmt: skip
    for path in project + others:
        assert ask(cast.researcher, path, 5_000_000) == 200, path
        assert ask(cast.researcher, path, 5_000_001) == 413, path
    for path in project:
        assert ask(cast.annotator, path, 65_537) == 403, path


# ---- names of files ---------------------------------------------------------------------------------------

NAMES = (
    "../../../../tmp/items.jsonl", "..\\..\\items.jsonl", "/etc/items.jsonl", "items.jsonl\0.png",
    "items-\r\nX: y.jsonl",
    "items-%2e%2e%2fx.jsonl", "items-" + "a" * 300 + ".jsonl", "items-~root.jsonl", "items-<script>.jsonl",
)  # fmt: skip


@pytest.mark.promise("injection")
def test_file_names_lead_nowhere(rita, cast, settings, tmp_path):
    """Whatever its name, a file is stored in the folder of its upload, under a number."""
    for name in NAMES:
        file = SimpleUploadedFile("x", b'{"id": "i1"}\n')
        file._name = name  # as a malicious browser would send it
        answer = rita.post(UPLOADS, {"file": file})
        assert answer.status_code < 500, name
    folders = {path.parent for path in tmp_path.rglob("*") if path.is_file()}
    assert all(folder.parent == settings.UPLOADS_DIR for folder in folders), folders
    assert {re.fullmatch(r"\d{3}", path.name) is not None for path in tmp_path.rglob("*") if path.is_file()} <= {True}
    for place in ("items.jsonl/../../x", "../dataset.json", "..%2f..%2fdataset.json", "%00", "/etc/passwd", "~", "."):
        for start in ("/projects/alpha/exports/1/", "/api/v1/exports/1/files/",
                      "/projects/alpha/evaluators/trained/files/"):  # fmt: skip
            assert rita.get(start + place).status_code in (301, 302, 400, 404), start + place


# ---- queries and headers ----------------------------------------------------------------------------------

QUERIES = (
    "' OR '1'='1", "'; DROP TABLE annotation_item; --", "\" OR 1=1 --", "1); DELETE FROM auth; --", "%' OR 1=1 --", "_",
    "%", "\\", "*", "i00?", "${jndi:ldap://x}", "i000 UNION SELECT password FROM accounts_user", "{\"$gt\": \"\"}",
    "id:* OR *:*", "MATCH('x')", "NEAR(a b)", "\"unclosed", "a* AND (b", "-", "col:val",
)  # fmt: skip


@pytest.mark.promise("injection")
def test_input_is_never_part_of_a_query(rita, cast):
    """Each search only finds texts that contain it, hence none, and all rows still exist."""
    outputs = make_outputs(cast.project, make_items(cast.project, 3))
    make_ratings(cast.project, outputs)
    for text in QUERIES:
        found = rita.get("/projects/alpha/items/", {"q": text})
        assert found.status_code == 200, text
        if text not in ("-", "_", "%", "*", "\\"):
            assert b"Hello number" not in found.content, text
        for name, parameter in (("items", "group"), ("outputs", "system"), ("ratings", "item"), ("scores", "evaluator"),
                                ("runs", "cursor"), ("references", "set")):  # fmt: skip
            answer = rita.get(f"/api/v1/projects/alpha/{name}/", {parameter: text})
            assert answer.status_code < 500, (name, text)
            assert not answer.json().get("results"), (name, parameter, text) if parameter != "cursor" else ""
        for field in ("username", "password"):
            form = {"username": "x", "password": "x", field: text}
            assert Client().post("/account/sign-in/", form).status_code in (200, 429), text
    assert Item.objects.count() == 3
    assert User.objects.count() == 5


@pytest.mark.promise("injection")
def test_no_name_adds_a_header(rita, cast):
    """Line breaks in everything that is returned in a header: redirect addresses, file names, cookies."""
    line = "x\r\nSet-Cookie: planted=1\r\n\r\n<html>"
    asked = [
        rita.get("/account/sign-in/", {"next": f"/{line}"}),
        Client().post(
            "/account/sign-in/", {"username": "rita", "password": "correct-horse-battery", "next": f"/{line}"}
        ),
        Client().get(f"/account/?{line}"),
        rita.post("/account/", {"first_name": line, "email": "", "theme": "dark"}),
        rita.get("/projects/alpha/systems/files/x.csv", {"aspect": line}),
        rita.get("/projects/alpha/items/", {"cursor": line}),
        rita.get("/", headers={"X-Request-ID": line, "HX-Current-URL": line}),
    ]
    for answer in asked:
        assert "planted" not in answer.cookies
        for name, value in answer.items():
            assert not {"\r", "\n"} & set(name + value)


# ---- patterns ---------------------------------------------------------------------------------------------


def patterns() -> set[tuple[str, str]]:
    """(place, pattern) of every regular expression that our code compiles or uses, and of address patterns."""
    from retrieval.index import tokens

    found = {("retrieval.index.tokens", tokens._pattern(kind).pattern) for kind in (tokens.WORDS, tokens.CHARACTERS)}
    found |= {
        ("settings", text)
        for text in (*settings.LARGE_BODY_PATHS, *settings.LONG_FORM_PATHS, *settings.SECURE_REDIRECT_EXEMPT)
    }
    names = {"compile", "search", "match", "fullmatch", "sub", "findall", "finditer", "split", "subn"}
    for room in ("evalapp", "annotation", "retrieval", "scoring"):
        for path in sorted((ROOT / room).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            if "re." not in text and "RegexValidator" not in text:
                continue
            for node in ast.walk(ast.parse(text)):
                if not (isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant)):
                    continue
                call, first = node.func, node.args[0].value
                of = getattr(getattr(call, "value", None), "id", "")
                if (of in ("re", "regex") and call.attr in names) or getattr(call, "id", "") == "RegexValidator":
                    pattern = first.decode("latin-1") if isinstance(first, bytes) else first
                    found.add((path.relative_to(ROOT).as_posix(), pattern))
    return found


def attacks_on(pattern: str) -> Iterator[str]:
    """Long texts that almost match: repetitions that the pattern matches, with an end that it does not match."""
    words = set(re.findall(r"[A-Za-z]{2,}", pattern))
    letters = set("aA0 \t\n-_.,'\"\\/([<:é") | {"a.", "a ", "a-", "0.", "a,", '\\"', "ab", "0a", " \n", "'s"}
    letters |= {char for char in pattern if char.isprintable()}
    letters |= {f"a{char}" for char in pattern if char.isprintable() and not char.isalnum()}
    for unit in sorted(letters | words):
        yield unit * (4_000 // len(unit)) + "\0!"


def time_match(compiled: Any, text: str) -> float:
    begin = time.process_time()
    compiled.search(text)
    return time.process_time() - begin


def is_quadratic(compiled: Any, text: str) -> bool:
    """For four times as many characters, a linear pattern takes four times as long, a quadratic one sixteen times. The
    best of three for both, because other processes only add time."""
    once = min(time_match(compiled, text) for _ in range(3))
    if once > 0.3 or once < 0.001:
        return once > 0.3
    longer = text[:-2] * 4 + text[-2:]
    return min(time_match(compiled, longer) for _ in range(3)) > 8 * once


@pytest.mark.promise("patterns")
def test_no_pattern_takes_more_than_linear_time():
    """Each of our patterns on texts of 4,000 characters that almost match, and, if one takes two milliseconds, on
    longer ones."""
    import regex

    slow = []
    there = patterns()
    assert len(there) > 50
    for where, pattern in sorted(there):
        try:
            compiled = re.compile(pattern)
        except re.error:
            compiled = regex.compile(pattern)
        for text in attacks_on(pattern):
            if time_match(compiled, text) > 0.002 and is_quadratic(compiled, text):
                slow.append(f"{where}: {pattern[:80]!r} on {text[:10]!r}...")
                break
    assert not slow, "\n".join(slow)


# ---- no server-side request to a given address ------------------------------------------------------------


@pytest.fixture
def listener() -> Iterator[tuple[int, list[Any]]]:
    """A port that counts connections."""
    called: list[Any] = []
    server = socket.create_server(("127.0.0.1", 0))
    server.settimeout(0.1)
    stop = threading.Event()

    def listen() -> None:
        while not stop.is_set():
            try:
                connection, address = server.accept()
            except TimeoutError:
                continue
            called.append(address)
            connection.close()

    thread = threading.Thread(target=listen, daemon=True)
    thread.start()
    yield server.getsockname()[1], called
    stop.set()
    thread.join()
    server.close()


@pytest.mark.promise("no-fetch")
def test_server_connects_to_no_address_from_input(rita, cast, listener, settings):
    """Texts, guidelines, encoders, corpora, files, headers: all name the port, and no connection is made."""
    port, called = listener
    socket.create_connection(("127.0.0.1", port)).close()  # the listener works
    assert wait_until(lambda: len(called) == 1, 60)
    make_outputs(cast.project, make_items(cast.project, 3))
    for scheme in ("http", "ftp", "gopher", "file", "redis"):
        url = f"{scheme}://127.0.0.1:{port}/x.jsonl"
        bodies: list[tuple[str, dict[str, Any]]] = [
            ("runs/", {"kind": "score", "evaluator": "bertscore", "options": {"encoder": url}}),
            ("runs/", {"kind": "train", "evaluator": "maude", "encoder": url}),
            ("runs/", {"kind": "select-references", "evaluator": url, "into": "x", "candidates": f"corpus:{url}"}),
            ("exports/", {"format": "jsonl", "webhook": url, "url": url}),
            ("corpora/", {"name": "c", "source": url, "url": url}),
            ("campaigns/", {"name": "C", "kind": "likert", "aspects": [{"name": "q"}], "guidelines": f"![x]({url})"}),
        ]
        for path, body in bodies:
            answer = rita.post(f"/api/v1/projects/alpha/{path}", json.dumps(body), content_type="application/json")
            assert answer.status_code < 500, (path, answer.content[:300])
        row = {"id": f"i-{scheme}", "context": [url], "meta": {"image": url, "$ref": url}}
        send(rita, "items.jsonl", json.dumps(row).encode() + b"\n")
        headers = {"Referer": url, "Origin": url, "X-Forwarded-For": "127.0.0.1", "X-Original-URL": url}
        rita.get("/projects/alpha/items/", {"q": url}, headers=headers)
        rita.post("/projects/alpha/settings/", {"name": "A", "source": url, "licence": url})
    for run in Run.objects.filter(state="queued"):
        execute_run(run.pk)
    time.sleep(0.3)
    assert len(called) == 1


@pytest.mark.promise("no-fetch")
def test_no_other_module_can_open_connections():
    """Only these modules may open connections; each takes its address from the settings or the operator."""
    allowed = {
        "evalapp/client", "evalapp/ops", "evalapp/common", "evalapp/management", "evalapp/celery.py", "retrieval/index",
        "retrieval/services", "scoring/live", "scoring/ml/hub.py",
        "scoring/ml/encoders/source.py", "scoring/ml/training/hub_card.py",  # the local cache; metadata
        "scoring/ml/judges/client.py",  # JUDGE_ENDPOINTS
        "evalapp/accounts/oidc.py",  # OIDC_PROVIDERS
        "evalapp/events/services/addresses.py", "evalapp/events/services/sending.py",  # only to WEBHOOK_HOSTS
    }  # fmt: skip
    names = "authlib|requests|httpx|urllib3|urllib\\.request|aiohttp|socket|http\\.client|ftplib|huggingface_hub"
    fetching = re.compile(rf"^\s*(?:import|from)\s+({names})\b", re.M)
    found = {
        path.relative_to(ROOT).as_posix()
        for room in ("evalapp", "annotation", "retrieval", "scoring")
        for path in (ROOT / room).rglob("*.py")
        if fetching.search(path.read_text(encoding="utf-8"))
    }
    assert {path for path in found if not any(path.startswith(place) for place in allowed)} == set()
