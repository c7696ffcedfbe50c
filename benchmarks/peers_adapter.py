"""Adapter of this product for a load harness for annotation apps, so that it and its peers are measured in one run. The
harness is given on the command line and is not part of this repository; it has `Adapter`, `ADAPTERS` and `main()`.

    python manage.py up --port 8100 &          # with EVALAPP_DATA and, for PostgreSQL, DATABASE_URL
    echo PASSWORD | python manage.py createowner admin --password-stdin
    H="python benchmarks/peers_adapter.py path/to/harness.py"
    $H setup evalapp http://127.0.0.1:8100 --users 50 -o password=PASSWORD
    $H import evalapp http://127.0.0.1:8100 items-10000.jsonl -o password=PASSWORD -o copies=3
    $H load evalapp http://127.0.0.1:8100 --users 50 --seconds 60 -o password=PASSWORD -o copies=3

Everything goes through pages and API, like people and programs. `-o project=SLUG` (bench), `-o split=yes` requests the
next text in a separate call instead of getting it from a submit.
"""

from __future__ import annotations

import asyncio
import collections
import importlib.util
import json
import re
import sys
import uuid
from pathlib import Path
from typing import Any

ANNOTATOR_PASSWORD = "bench-annotator-password"


def load_harness(path: str) -> Any:
    spec = importlib.util.spec_from_file_location("harness", path)
    if spec is None or spec.loader is None:
        raise SystemExit(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules["harness"] = module
    spec.loader.exec_module(module)
    return module


def make_adapter(base: type) -> type:
    class Evalapp(base):  # type: ignore[misc, valid-type]
        @property
        def project(self) -> str:
            return self.opt.get("project", "bench")

        async def _form(self, client: Any, path: str, data: dict[str, str]) -> Any:
            """A page's form: its hidden token, then the fields."""
            page = self.ok(await client.get(path)).text
            token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)
            fields = {**data, "csrfmiddlewaretoken": token.group(1) if token else ""}
            answer = self.ok(await client.post(path, data=fields, headers={"Referer": self.base + path}))
            client.headers["X-CSRFToken"] = client.cookies.get("csrftoken") or ""
            client.headers["Referer"] = self.base + "/"
            return answer

        async def _sign_in(self, name: str, password: str) -> Any:
            client = self.client()
            await self._form(client, "/account/sign-in/", {"username": name, "password": password})
            if "sessionid" not in client.cookies:
                raise RuntimeError(f"{name} could not sign in")
            return client

        async def _admin(self) -> Any:
            return await self._sign_in(self.opt.get("admin", "admin"), self.opt["password"])

        async def setup(self, users: int) -> dict[str, Any]:
            client = await self._admin()
            self.ok(await client.post("/api/v1/projects/", json={"slug": self.project, "name": "Benchmark"}))
            path = f"/api/v1/projects/{self.project}/invitations/"
            body = {"role": "annotator", "max_uses": users, "label": "benchmark"}
            link = self.ok(await client.post(path, json=body)).json()["link"]
            for number in range(users):
                person = self.client()
                fields = {"username": self.user(number), "password": ANNOTATOR_PASSWORD}
                await self._form(person, "/" + link.split("/", 3)[3], fields)
                await person.aclose()
            return {"project": self.project}

        async def import_items(self, path: str) -> dict[str, Any]:
            client = await self._admin()
            rows = [json.loads(line) for line in Path(path).read_text().splitlines()]
            items = "".join(
                json.dumps({"id": row["id"], "context": [], "source": None, "references": [], "group": row["id"]})
                + "\n"
                for row in rows
            )
            outputs = "".join(
                json.dumps({"item": row["id"], "system": "under-test", "text": row["text"]}) + "\n" for row in rows
            )
            files = [("files", ("items.jsonl", items.encode())), ("files", ("outputs.jsonl", outputs.encode()))]
            sent = await client.post(f"/api/v1/projects/{self.project}/uploads/", files=files)
            upload = self.ok(sent, 200, 202).json()
            while upload["state"] in ("received", "checking"):
                await asyncio.sleep(0.25)
                upload = self.ok(await client.get(f"/api/v1/uploads/{upload['id']}/")).json()
            plan = {
                "name": "Benchmark",
                "kind": "likert",
                "overlap": int(self.opt.get("copies", 1)),
                "aspects": [{"name": "quality", "question": "How good is this text?", "low": 1, "high": 5}],
            }
            made = await client.post(f"/api/v1/projects/{self.project}/campaigns/", json=plan)
            campaign = self.ok(made).json()
            address = f"/api/v1/campaigns/{campaign['id']}/"
            self.ok(await client.post(address + "open/"), 200, 202)
            while campaign["state"] == "draft":
                await asyncio.sleep(0.25)
                campaign = self.ok(await client.get(address)).json()
            return {"upload": upload["state"], "campaign": campaign["state"], "units": campaign["unit_count"]}

        async def _campaign(self, client: Any) -> int:
            listed = self.ok(await client.get(f"/api/v1/projects/{self.project}/campaigns/")).json()["results"]
            return int(listed[0]["id"])

        async def login(self, number: int) -> Any:
            if "campaign" not in self.opt:
                admin = await self._admin()
                self.opt["campaign"] = str(await self._campaign(admin))
                await admin.aclose()
            client = await self._sign_in(self.user(number), ANNOTATOR_PASSWORD)
            client.ahead = None
            return client

        async def next_item(self, client: Any) -> tuple[str, str] | None:
            found, client.ahead = client.ahead, None
            if found is None:
                answer = await client.post(f"/api/v1/campaigns/{self.opt['campaign']}/next/")
                if answer.status_code == 204:
                    return None
                found = self.ok(answer).json()
            # Ids in responses are opaque and differ by person; the harness's texts end with their number.
            return "item_" + found["texts"][0]["text"].rsplit("#", 1)[1].zfill(7), found["id"]

        async def submit(self, client: Any, item: tuple[str, str], value: str) -> None:
            body: dict[str, Any] = {"submission": str(uuid.uuid4()), "answer": {"quality": int(value)}, "seconds": 1}
            body["next"] = self.opt.get("split", "no") != "yes"
            answer = self.ok(await client.post(f"/api/v1/assignments/{item[1]}/submit/", json=body)).json()
            client.ahead = answer["next"]

        async def stored(self) -> collections.Counter[str]:
            client = await self._admin()
            count: collections.Counter[str] = collections.Counter()
            address = f"/api/v1/campaigns/{await self._campaign(client)}/judgements/?current=1&limit=500"
            while address:
                page = self.ok(await client.get(address)).json()
                count.update(row["item"] for row in page["results"])
                address = page["next"]
            return count

    return Evalapp


def main() -> None:
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        raise SystemExit(__doc__)
    harness = load_harness(sys.argv.pop(1))
    harness.ADAPTERS["evalapp"] = make_adapter(harness.Adapter)
    harness.main()


if __name__ == "__main__":
    main()
