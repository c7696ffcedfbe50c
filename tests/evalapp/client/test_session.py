"""The client when the network or the server misbehaves: pages, retries, time-outs, broken streams, foreign answers.
Most errors are scripted; the last tests use real sockets."""

from __future__ import annotations

import socket
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import httpx
import pytest

from evalapp.client import (
    Client,
    ClientError,
    Conflict,
    ConnectionFailed,
    InvalidArgument,
    MissingFile,
    NotFinished,
    NotFound,
    Project,
    Retry,
    Run,
    ServerError,
    TimedOut,
    TooManyRequests,
    Unavailable,
    UnexpectedAnswer,
)
from evalapp.client.addresses import parse_base_url, quote_segment
from evalapp.client.session import read_retry_after

RUN = {"id": 7, "project": "p", "kind": "train", "title": "T", "state": "queued", "attempt": 0}
DONE = {**RUN, "state": "succeeded"}


class Script:
    """Answers in order; an exception is raised, a callable gets the request. The last answer repeats."""

    def __init__(self, *answers) -> None:
        self.answers, self.requests = list(answers), []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        request.read()
        self.requests.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer(request) if callable(answer) else answer


@pytest.fixture
def pauses(monkeypatch) -> list[float]:
    slept: list[float] = []
    monkeypatch.setattr("evalapp.client.session.time.sleep", slept.append)
    return slept


def client(*answers, **options) -> tuple[Client, Script]:
    script = Script(*answers)
    return Client("http://host", "t", transport=httpx.MockTransport(script), **options), script


def ok(body: object = None) -> httpx.Response:
    return httpx.Response(200, json=DONE if body is None else body)


def problem(status: int, **headers: str) -> Callable[[httpx.Request], httpx.Response]:
    body = {"type": "/docs/errors#x", "title": "No", "status": status, "detail": "Wait.", "wait": 3}
    return lambda request: httpx.Response(status, json=body, headers=headers)


# ---- addresses ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "base"),
    [
        ("http://host:8000", "http://host:8000"),
        ("https://host/", "https://host"),
        ("https://host/eval/api/v1/", "https://host/eval"),
        (" http://host/api/v1/projects/ ", "http://host"),
    ],
)
def test_address_of_an_installation(given, base):
    assert parse_base_url(given) == base


@pytest.mark.parametrize("given", ["", "host:8000", "ftp://host", "http://"])
def test_invalid_address(given):
    with pytest.raises(InvalidArgument, match="address of an installation"):
        Client(given, "t")


def test_token_with_a_line_break_is_refused_at_once():
    with pytest.raises(InvalidArgument, match="copy it once more"):
        Client("http://host", "secret\n")


def test_missing_certificates_and_unusable_address():
    with pytest.raises(MissingFile, match=r"none\.pem"):
        Client("https://host", "t", verify="none.pem")
    with pytest.raises(InvalidArgument, match="is not an address"):
        Client("http://[host", "t")
    door, script = client(ok())
    with pytest.raises(InvalidArgument, match="was not sent"):
        Client("http://ho\x01st", "t", transport=httpx.MockTransport(script)).run(7)
    with pytest.raises(InvalidArgument, match="was not sent"):
        door.session.post("x/", {}, key="Schlüssel")
    assert not script.requests


def test_parts_of_addresses_are_escaped():
    assert quote_segment("a/../b?c") == "a%2F..%2Fb%3Fc"


def test_empty_name_sends_no_request():
    here, script = client(ok({"slug": "p"}))
    project = here.project("p")
    for name in ("", ".", ".."):
        for ask in (here.project, project.download_evaluator, lambda name: here.evaluator(name).score(["a"])):
            with pytest.raises(InvalidArgument, match="is not a name"):
                ask(name) if ask != project.download_evaluator else ask(name, "folder")
    for number in (float("inf"), float("nan"), 1.5, -1, 2**63, 10**5000, None, "seven", []):
        for ask in (here.run, here.upload, here.campaign, here.judge):
            with pytest.raises(InvalidArgument, match="is not an id"):
                ask(number)
    assert len(script.requests) == 1


@pytest.mark.parametrize("key", ["a\nb", "a b", "", "Schlüssel", "k" * 256])
def test_unsendable_key_is_refused_at_once(pauses, key):
    here, script = client(ok({"slug": "p"}))
    project = here.project("p")
    for making in (
        lambda: project.train("maude", idempotency_key=key),
        lambda: project.upload_rows("items", [{"id": "i1"}], idempotency_key=key),
    ):
        with pytest.raises(InvalidArgument, match=r"1 to 255 .*ASCII"):
            making()
    assert (len(script.requests), pauses) == (1, [])


# ---- retries --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", [httpx.ConnectError("refused"), httpx.ReadError("reset"), httpx.ReadTimeout("slow")])
def test_reads_are_retried_after_a_broken_connection(pauses, fault):
    here, script = client(fault, fault, ok())
    assert here.run(7).state == "succeeded"
    assert len(script.requests) == 3
    assert 0.25 <= pauses[0] <= 0.5 <= pauses[1] <= 1.0


@pytest.mark.parametrize("status", [502, 503, 504])
def test_reads_are_retried_while_a_part_is_down(pauses, status):
    here, _ = client(problem(status), ok())
    assert here.run(7).state == "succeeded"
    here, script = client(problem(status), retries=2)
    with pytest.raises(Unavailable) as raised:
        here.run(7)
    assert len(script.requests) == 3
    assert (raised.value.status, raised.value.title, raised.value.detail) == (status, "No", "Wait.")
    assert raised.value.extra == {"wait": 3}


def test_retry_after_is_obeyed_as_seconds_and_as_a_date(pauses):
    then = format_datetime(datetime.now(UTC) + timedelta(seconds=9), usegmt=True)
    here, _ = client(problem(429, **{"Retry-After": "5"}), problem(503, **{"Retry-After": then}), ok())
    here.run(7)
    assert 5.0 <= pauses[0] <= 5.5
    assert 7.0 <= pauses[1] <= 9.9


def test_retry_after_of_an_hour_is_not_waited_for(pauses):
    here, script = client(problem(429, **{"Retry-After": "3600"}))
    with pytest.raises(TooManyRequests) as raised:
        here.run(7)
    assert (len(script.requests), raised.value.retry_after, pauses) == (1, 3600.0, [])


def test_pauses_grow_to_a_limit_with_jitter():
    retry = Retry(first=1.0, longest=4.0)
    means = [sum(retry.pause(k) for _ in range(400)) / 400 for k in range(1, 6)]
    assert means == pytest.approx([0.75, 1.5, 3.0, 3.0, 3.0], rel=0.05)
    assert len({retry.pause(1) for _ in range(9)}) > 1


def test_non_repeatable_calls_are_sent_once(pauses):
    for fault in (httpx.ReadError("reset"), problem(503), httpx.ReadTimeout("slow")):
        here, script = client(fault, ok())
        with pytest.raises((ConnectionFailed, Unavailable)):
            here.session.post("runs/7/retry/")
        assert len(script.requests) == 1


MAKING = {
    "train": lambda project: project.train("maude", seed=13),
    "score": lambda project: project.score("chrf"),
    "export": lambda project: project.export(wait=False),
    "upload_rows": lambda project: project.upload_rows("items", [{"id": "i1"}], wait=False),
    "create_campaign": lambda project: project.create_campaign(name="Q", kind="likert", aspects=["quality"]),
}


@pytest.mark.parametrize("making", MAKING.values(), ids=MAKING.keys())
def test_creating_calls_are_retried_with_the_calls_key(pauses, making):
    made = {**RUN, "format": "jsonl", "slug": "q", "name": "Q"}
    here, script = client(ok({"slug": "p"}), httpx.ReadTimeout("lost"), problem(503), ok(made))
    project = here.project("p")
    making(project)
    making(project)
    *first, other = [request.headers["Idempotency-Key"] for request in script.requests[1:]]
    assert len(first) == 3
    assert len(set(first)) == 1
    assert other != first[0]
    assert uuid.UUID(other).version == 4


def test_key_given_by_the_caller(pauses):
    here, script = client(ok({"slug": "p"}), ok({**RUN, "title": "items"}))
    project = here.project("p")
    project.train("maude", seed=13, idempotency_key="night-7")
    assert script.requests[-1].content == b'{"kind":"train","evaluator":"maude","seed":13}'
    project.upload_rows("items", [{"id": "i1"}], wait=False, idempotency_key="night-8")
    assert [request.headers["Idempotency-Key"] for request in script.requests[1:]] == ["night-7", "night-8"]


def test_request_in_progress_is_retried(pauses):
    here, script = client(ok({"slug": "p"}), problem(409, **{"Retry-After": "5"}), ok(RUN))
    assert here.project("p").train("maude").id == 7
    assert 5.0 <= pauses[0] <= 5.5
    here, script = client(ok({"slug": "p"}), problem(409))
    with pytest.raises(Conflict):
        here.project("p").train("maude")
    assert len(script.requests) == 2


def test_undelivered_request_is_retried(pauses):
    here, script = client(httpx.ConnectError("refused"), problem(429), ok(RUN))
    assert here.session.post("x/", {})["id"] == 7
    assert len(script.requests) == 3


def test_refusal_is_not_retried(pauses):
    here, script = client(problem(404))
    with pytest.raises(NotFound):
        here.run(7)
    here, other = client(problem(500))
    with pytest.raises(ServerError, match="500 No: Wait"):
        here.run(7)
    assert (len(script.requests), len(other.requests), pauses) == (1, 1, [])


def test_repeated_upload_resends_everything(pauses, tmp_path):
    (tmp_path / "items.jsonl").write_bytes(b'{"id": "i1"}\n' * 9)
    received = {"id": 3, "project": "p", "title": "items.jsonl", "state": "received"}
    project = {"slug": "p", "name": "P"}
    steps = []
    here, script = client(ok(project), httpx.WriteError("reset"), problem(503), ok(received))
    here.project("p").upload(tmp_path, wait=False, progress=steps.append)
    bodies = [request.content for request in script.requests[1:]]
    assert len(bodies) == 3
    assert all(body.count(b'{"id": "i1"}') == 9 for body in bodies)
    here, script = client(ok(project), httpx.ReadError("reset"), ok(received))
    here.project("p").upload_rows("items", ({"id": f"i{k}"} for k in range(3)), wait=False)
    first, second = script.requests[1:]
    assert first.content == second.content == b'{"id": "i0"}\n{"id": "i1"}\n{"id": "i2"}\n'
    assert second.headers["Content-Length"] == str(len(second.content))
    assert "Transfer-Encoding" not in second.headers


def test_error_contains_url_and_attempts(pauses):
    here, _ = client(httpx.ConnectError("refused"), retries=1)
    with pytest.raises(ConnectionFailed, match=r"http://host/api/v1/runs/7/: refused \(2 ") as raised:
        here.run(7)
    assert not isinstance(raised.value, TimedOut)
    assert isinstance(raised.value, ClientError)


def test_waiting_survives_a_server_restart(monkeypatch):
    monkeypatch.setattr("evalapp.client.runs.FIRST_POLL", 0.001)
    seen = []
    here, script = client(ok(RUN), ok(RUN), httpx.ConnectError("refused"), problem(503), ok(DONE), retries=0)
    assert here.run(7).wait(progress=seen.append).state == "succeeded"
    assert len(script.requests) == 5
    assert len(seen) == 2
    here, _ = client(ok(RUN), ok(RUN), httpx.ConnectError("refused"), retries=0)
    monkeypatch.setattr("evalapp.client.runs.LONGEST_OUTAGE", 0.05)
    with pytest.raises(ConnectionFailed):
        here.run(7).wait()
    here, script = client(ok(RUN), httpx.ConnectError("refused"), retries=0)
    with pytest.raises(ConnectionFailed):
        here.run(7).wait()  # it was never seen: reported at once
    assert len(script.requests) == 2


@pytest.mark.parametrize("down", [problem(503, **{"Retry-After": "30"}), httpx.ConnectError("refused")])
@pytest.mark.parametrize("seen", [True, False])
def test_waiting_ends_at_its_time_limit(down, seen):
    here, _ = client(ok(RUN), *[ok(RUN)] * seen, down)
    run, began = here.run(7), time.monotonic()
    with pytest.raises(NotFinished, match=r"still queued after 0.4 s"):
        run.wait(timeout=0.4)
    assert time.monotonic() - began < 20  # out of thirty seconds
    here, _ = client(ok(UPLOAD), *[ok(UPLOAD), ok(RUN)] * seen, down)
    began = time.monotonic()
    with pytest.raises(NotFinished):
        here.upload(3).wait(timeout=0.4)
    assert time.monotonic() - began < 20  # out of thirty seconds


def test_waiting_limits_a_request_to_the_remaining_time():
    here, script = client(ok(RUN), ok(RUN), ok(DONE), timeout=30)
    here.run(7).wait(timeout=8)
    usual, first, second = (request.extensions["timeout"]["read"] for request in script.requests)
    assert usual == 30
    assert 7 < second < first <= 8


UPLOAD = {"id": 3, "project": "p", "title": "items.jsonl", "state": "checking", "run": "http://x/api/v1/runs/7/"}


def test_upload_with_a_broken_check_does_not_wait_forever():
    from evalapp.client import RunFailed, Upload

    failed = {**RUN, "state": "failed", "error": "The worker ran out of memory."}
    here, script = client(ok(UPLOAD), ok(failed), ok(UPLOAD), ok(failed))
    with pytest.raises(RunFailed, match="out of memory"):
        Upload.from_wire(here.session, UPLOAD).wait()
    assert script.requests[1].url == "http://host/api/v1/runs/7/"


# ---- pages ----------------------------------------------------------------------------------------------------


def page(rows: list, following: str | None) -> httpx.Response:
    return ok({"results": rows, "next": following, "previous": None})


def test_pages_keep_the_filters_and_send_the_token_nowhere_else():
    here, script = client(
        ok({"slug": "p", "name": "P"}),
        page([{"id": 1}], "http://elsewhere.example/api/v1/projects/p/outputs/?cursor=WzBd&limit=500"),
        page([{"id": 2}], None),
    )
    assert [row["id"] for row in here.project("p").outputs(system="s")] == [1, 2]
    assert [request.url.host for request in script.requests] == ["host"] * 3
    assert dict(script.requests[2].url.params) == {"system": "s", "limit": "500", "cursor": "WzBd"}


def test_failed_page_is_requested_again(pauses):
    here, script = client(
        ok({"slug": "p", "name": "P"}),
        page([{"id": 1}], "http://host/x?cursor=a"),
        httpx.ReadError("reset"),
        page([{"id": 2}], None),
    )
    assert [row["id"] for row in here.project("p").items()] == [1, 2]
    assert script.requests[2].url == script.requests[3].url


def test_circular_list_ends():
    here, _ = client(ok({"slug": "p", "name": "P"}), page([{"id": 1}], "http://host/x?cursor=a"))
    with pytest.raises(UnexpectedAnswer, match="same page"):
        list(here.project("p").items())


# ---- foreign answers ---------------------------------------------------------------------------------------------


def test_html_instead_of_json():
    here, _ = client(httpx.Response(200, html="<h1>Sign in</h1>"))
    with pytest.raises(UnexpectedAnswer, match="sign-in page"):
        here.run(7)


@pytest.mark.parametrize("cut", [b'{"id": 7, "proj', b'{"id": 7', b"{", b'{"a": [1, {"b": 2}', b'{"a": "\xc3'])
def test_truncated_json_is_an_incomplete_answer(pauses, cut):
    """Its length is not always announced."""
    kind = {"Content-Type": "application/json"}
    here, script = client(httpx.Response(200, content=cut, headers=kind), ok())
    assert here.run(7).state == "succeeded"
    assert len(script.requests) == 2
    here, _ = client(httpx.Response(200, content=cut, headers=kind), retries=1)
    with pytest.raises(ConnectionFailed, match=r"JSON \(2 "):
        here.run(7)
    here, script = client(httpx.Response(200, content=cut, headers=kind), ok())
    with pytest.raises(ConnectionFailed, match="cut short"):
        here.session.post("runs/7/retry/")  # a call that must not be repeated
    assert len(script.requests) == 1


def test_redirect_is_named_and_not_followed():
    here, script = client(httpx.Response(301, headers={"Location": "https://host/api/v1/runs/7/"}))
    with pytest.raises(UnexpectedAnswer, match="https://host/api/v1/runs/7/"):
        here.run(7)
    assert len(script.requests) == 1


def test_error_without_a_problem_document(pauses):
    here, _ = client(httpx.Response(502, text="<html>Bad Gateway"), retries=0)
    with pytest.raises(Unavailable, match="502 Bad Gateway: no problem document from host"):
        here.run(7)


def test_retry_after_that_is_neither_number_nor_date():
    assert read_retry_after(httpx.Headers({"Retry-After": "soon"})) is None
    assert read_retry_after(httpx.Headers()) is None


# ---- downloads ------------------------------------------------------------------------------------------------

EXPORT = {"id": 9, "format": "jsonl", "state": "succeeded", "files": [{"name": "items.jsonl", "bytes": 6, "rows": 1}]}


def exported(**changes):
    from evalapp.client import Export

    def make(here: Client) -> Export:
        return Export.from_wire(here.session, {**EXPORT, **changes})

    return make


def test_short_file_is_downloaded_again_and_never_left_behind(pauses, tmp_path):
    here, script = client(httpx.Response(200, content=b"{}\n"), httpx.Response(200, content=b"{1:2}\n"))
    assert [path.read_bytes() for path in exported()(here).download(tmp_path)] == [b"{1:2}\n"]
    assert len(script.requests) == 2
    here, _ = client(httpx.Response(200, content=b"{}\n"), retries=1)
    with pytest.raises(ConnectionFailed, match=r"3 of 6 bytes arrived \(2 attempts\)"):
        exported()(here).download(tmp_path / "new")
    assert list((tmp_path / "new").iterdir()) == []


@pytest.mark.parametrize("name", ["../evil", "/etc/passwd", ".bashrc", "", "a/../../b", "a//b", "a/.b", "a/b/c/d"])
def test_file_name_that_leaves_the_folder_is_refused(tmp_path, name):
    here, _ = client(httpx.Response(200, content=b"x"))
    with pytest.raises(UnexpectedAnswer, match="no plain file name"):
        exported(files=[{"name": name, "bytes": 1}])(here).download(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_trained_evaluator_is_downloaded_and_verified(tmp_path):
    import hashlib

    files = {"evaluator.json": b"{}", "fold-0/model.safetensors": b"weights"}
    entries = [
        {"name": name, "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()} for name, data in files.items()
    ]
    root = "/api/v1/projects/p/evaluators/trained/mine/"

    def serve(request: httpx.Request) -> httpx.Response:
        if request.url.path == root:
            return ok({"slug": "mine", "files": entries})
        if request.url.path.startswith(root + "files/"):
            return httpx.Response(200, content=files[request.url.path.removeprefix(root + "files/")])
        return ok({"slug": "p", "name": "P"})

    here, _ = client(serve)
    folder = here.project("p").download_evaluator("mine", tmp_path / "mine")
    assert (folder / "fold-0" / "model.safetensors").read_bytes() == b"weights"
    # It overwrites its own earlier download, but not another one.
    assert here.project("p").download_evaluator("mine", tmp_path / "mine") == folder
    for left in ("fold-1/card.md", "model.safetensors"):
        other = tmp_path / left.replace("/", "-")
        (other / left).parent.mkdir(parents=True)
        (other / left).write_bytes(b"another")
        (other / "notes.txt").write_bytes(b"mine")
        with pytest.raises(InvalidArgument, match=f"holds {left} of another evaluator than mine"):
            here.project("p").download_evaluator("mine", other)
        assert not (other / "evaluator.json").exists()
    files["evaluator.json"] = b"[]"
    with pytest.raises(UnexpectedAnswer, match="another content"):
        here.project("p").download_evaluator("mine", tmp_path / "other")
    assert not (tmp_path / "other" / "evaluator.json").exists()
    entries[0]["name"] = "../../evil"
    with pytest.raises(UnexpectedAnswer, match="no plain file name"):
        here.project("p").download_evaluator("mine", tmp_path / "third")


# ---- real sockets ---------------------------------------------------------------------------------------------


@contextmanager
def server(*answers: bytes | threading.Event | None):
    """Answers one connection after the other: sends these bytes, then closes it; an event: silence until it is set."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        served: list[bytes] = []

        def serve() -> None:
            for answer in answers:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                with connection:
                    served.append(connection.recv(65536))
                    if isinstance(answer, bytes):
                        connection.sendall(answer)
                    elif answer is not None:
                        answer.wait(30)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}", served
    thread.join(5)


@contextmanager
def dripping(head: bytes, body: bytes):
    """One connection that receives the body byte by byte, ten per second."""
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(65536)
                try:
                    connection.sendall(head)
                    for place in range(len(body)):
                        connection.sendall(body[place : place + 1])
                        if over.wait(0.1):
                            return
                except OSError:
                    return

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        over.set()
    thread.join(5)


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 600\r\n"


@pytest.mark.parametrize(
    "parts", [(b"", HEAD + b"X: " + b"x" * 600), (HEAD + b"\r\n", b" " * 600)], ids=["head", "body"]
)
def test_slow_drip_answer_ends_at_the_time_limit(parts):
    """Each byte arrives in time, but all of the answer would take a minute."""
    with dripping(*parts) as url, Client(url, "t", timeout=0.5, retries=0) as here:
        start = time.monotonic()
        with pytest.raises(TimedOut, match="time-out"):
            here.run(7)
        assert time.monotonic() - start < 20
    with dripping(*parts) as url, Client(url, "t", retries=0) as here:
        start = time.monotonic()
        with pytest.raises(NotFinished):
            Run.from_wire(here.session, RUN).wait(timeout=0.5)
        assert time.monotonic() - start < 20


def test_file_transfers_last_as_long_as_they_progress(tmp_path):
    from evalapp.client import wire

    until = []

    def answer(request: httpx.Request) -> httpx.Response:
        moment = wire._until.get()
        until.append(moment and round(moment - time.monotonic(), -1))
        return (
            httpx.Response(200, json=UPLOAD) if "files" not in request.url.path else httpx.Response(200, content=b"6")
        )

    def client(timeout) -> Client:
        return Client("http://host", "t", timeout=timeout, retries=0, transport=httpx.MockTransport(answer))

    client(40).upload(3)
    client(40).evaluator("e")._session.call("POST", "x/", json={}, timeout=80)
    client(40).session.get("x/", until=time.monotonic() + 20)
    client(httpx.Timeout(40)).session.get("x/", until=time.monotonic() + 20)
    assert until == [40, 80, 20, 20]
    Project(client(40).session, "p").upload_rows("items", [{"id": "i"}], wait=False)
    exported(files=[{"name": "items.jsonl", "bytes": 1}])(client(40)).download(tmp_path)
    client(httpx.Timeout(40)).upload(3)
    assert until[4:] == [None] * 3


def answer(body: bytes, length: int | None = None, kind: str = "application/json") -> bytes:
    length = len(body) if length is None else length
    return f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n".encode() + body


def test_connection_cut_in_the_middle_of_a_stream(tmp_path):
    whole = b"x" * 200_000
    cut = answer(whole[:90_000], len(whole), "application/octet-stream")
    with server(cut, None, answer(whole, kind="application/octet-stream")) as (url, served):
        with Client(url, "t", retries=Retry(times=3, first=0.01)) as here:
            files = [{"name": "outputs.jsonl", "bytes": len(whole)}]
            (path,) = exported(files=files)(here).download(tmp_path)
        assert path.read_bytes() == whole
        assert len(served) == 3
        assert b"Authorization: Bearer t\r\n" in served[0]


def test_silent_server_costs_only_the_time_limit():
    over = threading.Event()
    with server(over, over) as (url, _), Client(url, "t", timeout=0.15, retries=Retry(times=1, first=0.01)) as here:
        start = time.monotonic()
        with pytest.raises(TimedOut, match="time-out"):
            here.run(7)
        assert time.monotonic() - start < 20  # out of thirty seconds for each of two attempts
        over.set()


def test_no_server_listens():
    with server() as (url, _):
        pass
    with Client(url, "t", retries=0) as here, pytest.raises(ConnectionFailed):
        here.run(7)
