"""Reports of a project for people who do not sign in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalapp.client.resources import Resource


@dataclass(repr=False)
class Report(Resource):
    """A report as of its creation. `link` is known only to the one who created it, in that response."""

    _noun, _folder = "a report", "reports"

    project: str = ""
    state: str = ""
    expires_at: str = ""
    opens: int = 0
    link: str = ""

    def _read(self, row: Mapping[str, Any]) -> None:
        self.project, self.state = str(row["project"]), str(row["state"])
        self.expires_at, self.opens = str(row["expires_at"]), int(row["opens"])
        self.link = str(row.get("link") or self.link)

    def _describe(self) -> dict[str, Any]:
        return {"project": self.project, "state": self.state, "expires": self.expires_at[:10], "link": self.link}

    def revoke(self) -> Report:
        """Revoke the link; members can still read the report."""
        self._session.call("DELETE", self._path)
        return self.refresh()

    def save_pdf(self, path: str | Path) -> Path:
        """Write the report as PDF to `path`; return it."""
        target = Path(path)
        self._session.download(f"{self._path}report.pdf", target)
        return target
