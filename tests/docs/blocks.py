"""The code blocks of a documentation page: files, commands, Python."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    str(path.relative_to(ROOT))
    for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "templates/README.md", *ROOT.glob("docs/**/*.md"))
)
_BLOCK = re.compile(r"^( *)```([^\n]*)\n(.*?)^ *```", re.S | re.M)
_TITLE = re.compile(r'title="([^"]+)"')


@dataclass(frozen=True)
class Block:
    language: str
    #: The file that the block shows; "" for a block to run.
    title: str
    text: str
    line: int

    def commands(self) -> list[str]:
        """The command lines without comments; a line ending in a backslash continues on the next."""
        lines = self.text.replace("\\\n", " ").splitlines()
        return [command for line in lines if (command := _without_comment(line).strip())]


def _without_comment(line: str) -> str:
    for match in re.finditer(r"(?:^|\s)#", line):
        before = line[: match.start()]
        if before.count("'") % 2 == before.count('"') % 2 == 0:
            return before
    return line


def read_blocks(page: str) -> list[Block]:
    text = (ROOT / page).read_text(encoding="utf-8")
    found = []
    for match in _BLOCK.finditer(text):
        language, _, rest = match[2].strip().partition(" ")
        title = _TITLE.search(rest)
        line = text.count("\n", 0, match.start()) + 1
        found.append(Block(language, title[1] if title else "", dedent(match[3]), line))
    return found
