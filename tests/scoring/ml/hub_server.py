"""A local stand-in for the Hugging Face hub: the calls by which `huggingface_hub` creates a repository, commits small
files, lists them and downloads them."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit


@dataclass
class Hub:
    """The repositories by name; each has its files and whether it is private. `calls` are all requests."""

    url: str = ""
    files: dict[str, dict[str, bytes]] = field(default_factory=dict)
    private: dict[str, bool] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    #: Sizes that the hub declares for files although they have others.
    declared: dict[str, int] = field(default_factory=dict)

    def commit_of(self, name: str) -> str:
        digest = hashlib.sha1()
        for path, content in sorted(self.files[name].items()):
            digest.update(f"{path}:{len(content)}:".encode() + content)
        return digest.hexdigest()


class HubHandler(BaseHTTPRequestHandler):
    hub: Hub

    def log_message(self, *_: Any) -> None:
        pass

    def send(self, status: int, content: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(content)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def send_json(self, content: Any, status: int = 200) -> None:
        self.send(status, json.dumps(content).encode(), Content_Type="application/json")

    def missing(self) -> None:
        self.send(404, b"{}", X_Error_Code="RepoNotFound", Content_Type="application/json")

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = unquote(urlsplit(self.path).path).strip("/").split("/")
        self.hub.calls.append(f"POST {'/'.join(parts)}")
        if parts[:3] == ["api", "repos", "create"]:
            asked = json.loads(body)
            name = f"{asked['organization']}/{asked['name']}"
            self.hub.files.setdefault(name, {})
            self.hub.private.setdefault(name, asked.get("private", asked.get("visibility") == "private"))
            self.send_json({"url": f"{self.hub.url}/{name}", "name": name})
        elif parts == ["api", "validate-yaml"]:
            self.send_json({"errors": [], "warnings": []})
        elif parts[4:5] == ["preupload"]:
            rows = json.loads(body)["files"]
            self.send_json(
                {"files": [{"path": row["path"], "uploadMode": "regular", "shouldIgnore": False} for row in rows]}
            )
        elif parts[4:5] == ["commit"]:
            name = f"{parts[2]}/{parts[3]}"
            for line in body.splitlines():
                row = json.loads(line)
                if row["key"] == "file":
                    self.hub.files[name][row["value"]["path"]] = base64.b64decode(row["value"]["content"])
                elif row["key"] == "deletedFile":
                    del self.hub.files[name][row["value"]["path"]]
            sha = self.hub.commit_of(name)
            self.send_json({"success": True, "commitOid": sha, "commitUrl": f"{self.hub.url}/{name}/commit/{sha}"})
        else:
            self.missing()

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        parts = unquote(urlsplit(self.path).path).strip("/").split("/")
        self.hub.calls.append(f"{self.command} {'/'.join(parts)}")
        is_listing = parts[0] == "api" and parts[1] in ("models", "datasets")
        name = "/".join(parts[2:4] if is_listing else parts[:2])
        if name not in self.hub.files:
            return self.missing()
        files, sha = self.hub.files[name], self.hub.commit_of(name)
        sizes = {path: self.hub.declared.get(path, len(content)) for path, content in files.items()}
        if is_listing and parts[4:5] == ["tree"]:
            rows = [{"type": "file", "path": path, "size": sizes[path], "oid": sha} for path in files]
            return self.send_json(rows)
        if is_listing:
            siblings = [{"rfilename": path, "size": size} for path, size in sizes.items()]
            return self.send_json({"id": name, "sha": sha, "siblings": siblings, "private": self.hub.private.get(name)})
        path = "/".join(parts[4:])
        if path not in files:
            return self.send(404, b"", X_Error_Code="EntryNotFound", X_Repo_Commit=sha)
        etag = hashlib.sha1(files[path]).hexdigest()
        return self.send(200, files[path], ETag=f'"{etag}"', X_Repo_Commit=sha)


@contextmanager
def serve_hub() -> Iterator[Hub]:
    """Serve an empty hub on a free port of this machine."""
    hub = Hub()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (HubHandler,), {"hub": hub}))
    hub.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
