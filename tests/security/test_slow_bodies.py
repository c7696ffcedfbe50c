"""Bodies over real sockets, sent to the web process that `manage.py up` starts: permitted sizes, and slow clients that
must not block others."""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from evalapp.ops import SMALL_BODY, ports, stack
from evalapp.ops.ports import wait_until
from tests.cast import PASSWORD

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[2]
CAST = """
from tests.cast import make_cast
from evalapp.accounts.services import create_token
cast = make_cast()
print("TOKENS", {name: create_token(user=getattr(cast, name), name="t", scopes=[scope])[1] for name, scope in (
    ("researcher", "write"), ("viewer", "read"), ("annotator", "annotate"))})
"""
FORM = "/projects/alpha/uploads/"
API = "/api/v1/projects/alpha/uploads/"
MADE_UP = {
    "Authorization": "Bearer ea_" + "x" * 40, "Cookie": "csrftoken=" + "a" * 32 + "; sessionid=" + "b" * 32,
    "X-CSRFToken": "a" * 32, "X-Forwarded-For": "127.0.0.1",
}  # fmt: skip


@dataclass
class Web:
    """The running web process, its folder for temporary files, and the tokens of the cast."""

    port: int
    temporary: Path
    tokens: dict[str, str] = field(default_factory=dict)

    def ask(self, method: str, path: str, body: Any = None, timeout: float = 30, **headers: str) -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
            answer = connection.getresponse()
            answer.text = answer.read().decode(errors="replace")  # type: ignore[attr-defined]
            return answer
        finally:
            connection.close()

    def sign_in(self, name: str) -> str:
        """The cookies of a session, and the CSRF token as a header value."""
        page = self.ask("GET", "/account/sign-in/")
        token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page.text)[1]
        cookie = page.headers["Set-Cookie"].partition(";")[0]
        form = f"csrfmiddlewaretoken={token}&username={name}&password={PASSWORD}"
        done = self.ask(
            "POST", "/account/sign-in/", form, Cookie=cookie, Content_Type="application/x-www-form-urlencoded"
        )
        assert done.status == 302, done.text[:500]
        return "; ".join(value.partition(";")[0] for name, value in done.headers.items() if name == "Set-Cookie")

    def open(self, path: str, length: int, **headers: str) -> socket.socket:
        """A connection that has sent the head of a POST and no body."""
        lines = [f"POST {path} HTTP/1.1", "Host: 127.0.0.1", f"Content-Length: {length}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        connection = socket.create_connection(("127.0.0.1", self.port), 30)
        connection.sendall("\r\n".join([*lines, "", ""]).encode())
        return connection

    def seconds(self, path: str = "/account/sign-in/") -> float:
        begin = time.monotonic()
        assert self.ask("GET", path).status == 200
        return time.monotonic() - begin


@dataclass(frozen=True)
class Installed:
    """A data folder with the cast and the static files, to be copied, and the tokens of the cast."""

    folder: Path
    tokens: dict[str, str]


def make_environment(folder: Path, **more: str) -> dict[str, str]:
    return {
        **os.environ, **more, "EVALAPP_DATA": str(folder), "DJANGO_SETTINGS_MODULE": "evalapp.settings.base",
        "TMPDIR": str(folder / "tmp"), "DATABASE_URL": "", "SECRET_KEY": "", "MIN_FREE_MB": "0",
        "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT),
    }  # fmt: skip


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory, migrated_file: Path, collected_static: Path) -> Installed:
    folder = tmp_path_factory.mktemp("installed") / "data"
    (folder / "tmp").mkdir(parents=True)
    shutil.copy(migrated_file, folder / "evalapp.sqlite3")
    shutil.copytree(collected_static, folder / "static")
    shell = [sys.executable, str(ROOT / "manage.py"), "shell", "-v0", "-c", CAST]
    made = subprocess.run(shell, env=make_environment(folder), check=True, cwd=ROOT, capture_output=True)
    return Installed(folder, eval(made.stdout.decode().partition("TOKENS ")[2]))


@contextmanager
def running(folder: Path, installed: Installed, worker: str = "") -> Iterator[Web]:
    shutil.copytree(installed.folder, folder)
    listener = ports.bind("127.0.0.1", 0)
    layout = stack.Layout(folder=folder, listener=listener, redis_url="redis://127.0.0.1:9/0")
    service = next(service for service in stack.services(layout) if service.name == "web")
    command = [worker if worker and part.endswith(".Worker") else part for part in service.command]
    env = make_environment(folder, **stack.environment(layout, {}))
    with (folder / "web.log").open("wb") as log:
        process = subprocess.Popen(
            command, env=env, cwd=ROOT, pass_fds=service.pass_fds, stdout=log, stderr=log, start_new_session=True
        )
    port = listener.getsockname()[1]
    try:
        ready = wait_until(lambda: stack.web_answers(f"http://127.0.0.1:{port}/health/live"), 300)
        assert ready, (folder / "web.log").read_text()
        yield Web(port, folder / "tmp", installed.tokens)
        assert process.poll() is None
        log = (folder / "web.log").read_text()
        assert "Traceback" not in log, log[:3000]
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(10)
        listener.close()


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory, installed: Installed) -> Iterator[Web]:
    with running(tmp_path_factory.mktemp("slow") / "data", installed) as found:
        yield found


@pytest.fixture(scope="module")
def hasty(tmp_path_factory: pytest.TempPathFactory, installed: Installed) -> Iterator[Web]:
    with running(tmp_path_factory.mktemp("hasty") / "data", installed, "tests.security.hasty.Worker") as found:
        yield found


def multipart(size: int) -> tuple[bytes, dict[str, str]]:
    head = b'--b\r\nContent-Disposition: form-data; name="file"; filename="items.jsonl"\r\n\r\n'
    body = head + b'{"id": "i1"}\n' + b"\n" * size + b"\r\n--b--\r\n"
    return body, {"Content_Type": "multipart/form-data; boundary=b"}


def answer_to(connection: socket.socket) -> bytes:
    """The response up to the end of the connection, reduced to its status."""
    connection.settimeout(30)
    try:
        return connection.recv(4096).partition(b"\r\n")[0]
    except ConnectionResetError:
        return b"reset"


# ---- permitted sizes --------------------------------------------------------------------------------------


@pytest.mark.promise("bombs")
@pytest.mark.parametrize(
    "path", ["/projects/alpha/corpora/new/", "/projects/nope/corpora/new/", FORM, API, "/account/"]
)
@pytest.mark.parametrize("made_up", [{}, *({name: value} for name, value in MADE_UP.items()), MADE_UP])
def test_anonymous_body_is_refused_by_its_announced_length(web, path, made_up):
    """60 MB are announced, none is read and nothing is written, whatever headers and cookies are invented."""
    _, kind = multipart(0)
    headers = {**kind, **made_up}
    begin = time.monotonic()
    with web.open(path, 60_000_000, **headers) as connection:
        assert answer_to(connection) == b"HTTP/1.1 401 Unauthorized"
    assert time.monotonic() - begin < 10
    assert list(web.temporary.iterdir()) == []


@pytest.mark.promise("bombs")
@pytest.mark.parametrize("name", ["annotator", "viewer"])
def test_user_without_upload_permission_sends_no_large_body(web, name):
    """By session and by token: a role without write permission is refused before the body is read."""
    _, kind = multipart(0)
    session = web.sign_in({"annotator": "anna", "viewer": "vic"}[name])
    for headers in ({"Cookie": session}, {"Authorization": f"Bearer {web.tokens[name]}"}):
        for path in (FORM, API, "/projects/alpha/corpora/new/", "/api/v1/projects/alpha/evaluators/trained/"):
            with web.open(path, 60_000_000, **kind, **headers) as connection:
                assert answer_to(connection) == b"HTTP/1.1 403 Forbidden", (path, headers)
        for path in ("/projects/alpha-foreign/uploads/", "/projects/nope/uploads/"):
            with web.open(path, 60_000_000, **kind, **headers) as connection:
                assert answer_to(connection) == b"HTTP/1.1 404 Not Found", (path, headers)
        with web.open("/account/", 60_000_000, **kind, **headers) as connection:
            assert answer_to(connection).startswith(b"HTTP/1.1 413")
    assert list(web.temporary.iterdir()) == []


@pytest.mark.promise("bombs")
def test_researcher_uploads_by_session_and_by_token(web):
    body, kind = multipart(8_000_000)
    done = web.ask("POST", API, body, Authorization=f"Bearer {web.tokens['researcher']}", **kind)
    assert done.status == 202, done.text[:500]
    session = web.sign_in("rita")
    token = re.search(r"csrftoken=([^;]+)", session)[1]
    done = web.ask("POST", API, body, Cookie=session, X_CSRFToken=token, **kind)
    assert done.status == 202, done.text[:500]
    forged = web.ask("POST", API, body, Cookie=session, **kind)
    assert forged.status == 403
    assert wait_until(lambda: not list(web.temporary.iterdir()), 10)


def test_body_of_unknown_or_invented_length_is_refused(web):
    for head, status in (
        (b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", b"411"),
        (b"Content-Length: x\r\n\r\n", b"400"), (b"Content-Length:\r\n\r\n", b"400"),
        (b"Content-Length: -1\r\n\r\n", b"400"), (b"Content-Length: " + b"0" * 30 + b"5\r\n\r\nhello", b"400"),
        (b"X: " + b"y" * 100_000, b"431"),
    ):  # fmt: skip
        with socket.create_connection(("127.0.0.1", web.port), 10) as connection:
            connection.sendall(b"POST /account/sign-in/ HTTP/1.1\r\nHost: 127.0.0.1\r\n" + head)
            assert answer_to(connection).split()[1] == status, head[:60]


def test_pipelined_requests_and_100_continue(web):
    """Two requests sent at once on one connection are both answered; a client that waits for 100 Continue gets it."""
    line = b"GET /health/live HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    with socket.create_connection(("127.0.0.1", web.port), 10) as connection:
        connection.sendall(line + line)
        text = b""
        while text.count(b"HTTP/1.1 200") < 2:
            part = connection.recv(4096)
            assert part, text
            text += part
    with web.open("/account/sign-in/", 5, Expect="100-continue") as connection:
        assert answer_to(connection) == b"HTTP/1.1 100 Continue"
        connection.sendall(b"hello")
        text = b""
        while b"HTTP/1.1 403" not in text:
            part = connection.recv(4096)
            assert part, text
            text += part


# ---- slow clients -----------------------------------------------------------------------------------------


@contextmanager
def trickling(connections: list[socket.socket], byte: bytes = b"x") -> Iterator[None]:
    """Connections that each send a byte every tenth of a second."""
    stop = threading.Event()

    def send() -> None:
        while not stop.wait(0.1):
            for connection in connections:
                try:
                    connection.sendall(byte)
                except OSError:
                    continue

    thread = threading.Thread(target=send, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        for connection in connections:
            connection.close()


def slow_clients(web: Web, kind: str) -> list[socket.socket]:
    form, cookie = multipart(0)[1], {"Cookie": f"csrftoken={'a' * 32}"}
    researcher = {"Authorization": f"Bearer {web.tokens['researcher']}"}
    if kind in ("silent", "head"):
        found = [socket.create_connection(("127.0.0.1", web.port), 30) for _ in range(24)]
        for connection in found if kind == "head" else ():
            connection.sendall(b"POST /account/sign-in/ HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ")
        return found
    if kind == "small":
        return [web.open("/account/sign-in/", 60_000, **form, **cookie) for _ in range(24)]
    if kind == "large":
        return [web.open("/projects/nope/corpora/new/", 60_000_000, **form, **MADE_UP) for _ in range(24)]
    if kind == "chunked":
        return [web.open("/account/sign-in/", 5, **form, Transfer_Encoding="chunked") for _ in range(24)]
    if kind == "unread":  # answered at once; the client leaves its end open
        return [web.open("/account/sign-in/", 0, Connection="close") for _ in range(24)]
    return [web.open(API, 60_000_000, **form, **researcher) for _ in range(24)]


@pytest.mark.promise("bombs")
@pytest.mark.parametrize("kind", ["silent", "head", "small", "large", "chunked", "unread", "honest"])
def test_slow_clients_delay_no_page(web, kind):
    """With 24 connections that send byte by byte, each page answers within two seconds (otherwise: a few
    milliseconds)."""
    with trickling(slow_clients(web, kind)):
        time.sleep(0.5)
        waits = [web.seconds() for _ in range(10)]
    assert max(waits) < 2, waits
    assert sorted(waits)[5] < 0.5, waits


def slow_readers(web: Web, path: str, n: int, buffer: int = 1024) -> list[socket.socket]:
    """Clients with a small receive buffer that have requested a page and read nothing yet."""
    found = []
    for _ in range(n):
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        connection.settimeout(30)
        connection.connect(("127.0.0.1", web.port))
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
        found.append(connection)
    return found


def largest_file(web: Web) -> tuple[str, int]:
    """A public static file larger than the kernel's buffers for a connection."""
    page = web.ask("GET", "/api/v1/docs/")
    sizes = {path: len(web.ask("GET", path).text) for path in set(re.findall(r"/static/[^\"' ]+\.js", page.text))}
    path = max(sizes, key=lambda name: sizes[name])
    assert sizes[path] > 1_000_000
    return path, sizes[path]


def test_slow_readers_delay_pages_only_briefly(web):
    """Forty connections read a large file byte by byte: the eight threads of both processes give up each after a
    second, so a page waits once for earlier ones and never again."""
    path, _ = largest_file(web)
    readers = slow_readers(web, path, 40)
    stop = threading.Event()

    def read() -> None:
        while not stop.wait(0.2):
            for connection in readers:
                with suppress(OSError):
                    connection.recv(1)

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    try:
        time.sleep(0.5)
        first = web.seconds()
        waits = [web.seconds() for _ in range(5)]
    finally:
        stop.set()
        thread.join()
        for connection in readers:
            connection.close()
    assert first < 20, first  # forty seconds on eight threads would be five; the processes share them unevenly
    assert sorted(waits)[2] < 2, waits


def test_slow_reader_is_given_up_and_a_faster_one_gets_all(hasty):
    """The minimum is 64 kB a second with two seconds of tolerance: at about 400 kB a second the file arrives
    completely, at ten bytes a second it does not."""
    path, size = largest_file(hasty)
    (slow,), (honest,) = slow_readers(hasty, path, 1), slow_readers(hasty, path, 1, buffer=64 * 1024)
    begin, got, came = time.monotonic(), 0, 0
    with slow, honest:
        while got < size and (part := honest.recv(20_000)):
            got += len(part)
            time.sleep(0.05)
        while time.monotonic() - begin < 8:
            came += len(slow.recv(1))
            time.sleep(0.1)
        # Data in kernel buffers still arrive, and then the end.
        with suppress(ConnectionResetError):
            while part := slow.recv(65_536):
                came += len(part)
    assert got >= size
    assert came < size


def test_trickling_body_is_ended_with_a_response(hasty):
    """Small ones by the event loop, large ones by a thread: 408 after the time limit, and the temporary file is
    deleted."""
    headers = {**multipart(0)[1], "Authorization": f"Bearer {hasty.tokens['researcher']}"}
    with ExitStack() as stack_of:
        small = stack_of.enter_context(hasty.open("/account/sign-in/", 1000))
        large = stack_of.enter_context(hasty.open(API, 1_000_000, **headers))
        begin = time.monotonic()
        with trickling([]):
            small.sendall(b"x")
            large.sendall(multipart(100_000)[0][:90_000])
            assert answer_to(small) == b"HTTP/1.1 408 Request Timeout"
            assert answer_to(large) == b"HTTP/1.1 408 Request Timeout"
    assert 1 < time.monotonic() - begin < 15
    assert wait_until(lambda: not list(hasty.temporary.iterdir()), 10)


@pytest.mark.promise("bombs")
def test_slow_bodies_do_not_block_uploads_of_others(web):
    """24 uploads and 24 long texts of an annotator arrive byte by byte, for four upload threads per process. Each is
    given up after two seconds, so a fast upload waits at most for earlier ones."""
    body, kind = multipart(100_000)
    slow = {**kind, "Authorization": f"Bearer {web.tokens['researcher']}"}
    form = {"Content_Type": "application/json", "Authorization": f"Bearer {web.tokens['annotator']}"}
    connections = [web.open(API, 60_000_000, **slow) for _ in range(24)]
    connections += [web.open("/api/v1/writing-tasks/x/submit/", 200_000, **form) for _ in range(24)]
    with trickling(connections):
        time.sleep(0.5)
        begin = time.monotonic()
        done = web.ask("POST", API, body, timeout=60, Authorization=f"Bearer {web.tokens['researcher']}", **kind)
        assert done.status == 202, done.text[:500]
        # 48 bodies of two seconds on eight threads take twelve; the processes share them unevenly.
        assert time.monotonic() - begin < 40


def test_annotator_cannot_announce_a_large_judgement(web):
    """Refused before the body is read, so no thread waits for it."""
    headers = {"Content_Type": "application/json", "Authorization": f"Bearer {web.tokens['annotator']}"}
    with web.open("/api/v1/assignments/x/submit/", 200_000, **headers) as connection:
        assert answer_to(connection).startswith(b"HTTP/1.1 413")


def test_slow_body_above_the_minimum_rate_arrives(hasty):
    """1 MB at about 200 kB a second, with a minimum of 64 kB a second: five seconds, although the base limit is two."""
    body, kind = multipart(1_000_000)
    headers = {**kind, "Authorization": f"Bearer {hasty.tokens['researcher']}"}
    with hasty.open(API, len(body), **headers) as connection:
        begin = time.monotonic()
        for start in range(0, len(body), 20_000):
            connection.sendall(body[start : start + 20_000])
            time.sleep(0.1)
        assert time.monotonic() - begin > 4
        assert answer_to(connection) == b"HTTP/1.1 202 Accepted"


def test_many_small_concurrent_forms_are_all_answered(web):
    """Fifty clients with ten requests each, on persistent connections: each gets its own response."""
    wrong: list[Any] = []

    def client(number: int) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", web.port, timeout=60)
        for turn in range(10):
            body = json.dumps({"number": number, "turn": turn, "more": "x" * (number * 1000 % SMALL_BODY)})
            connection.request("POST", f"/api/v1/nothing-{number}-{turn}/", body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            if answer.status not in (401, 403, 404):
                wrong.append((number, turn, answer.status))
            answer.read()
        connection.close()

    threads = [threading.Thread(target=client, args=(number,)) for number in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert wrong == []
