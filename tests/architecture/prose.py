"""Rates of mannered phrases in the texts of the repository, per 10,000 words.

    python -m tests.architecture.prose              rates and counts of every kind of text
    python -m tests.architecture.prose --worst 20   also the files with the most hits

The limits are the rates of three code bases in plain English (open-chat-studio, healthchecks, sacrebleu), rounded up.
A rate shows where to look; it does not judge a single sentence.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
#: Phrase -> pattern and highest rate per 10,000 words.
PHRASES: dict[str, tuple[str, float]] = {
    "of which": (r"\bof (?:which|whom|those|these|them|one|some|several|many)\b", 4.0),
    "nobody": (r"\b(?:nobody|somebody|whoever)\b", 1.5),
    "stands": (r"\bstands?\b", 1.5),
    "told": (r"\btold\b", 1.0),
    "beside": (r"\bbeside\b", 0.5),
    "anew": (r"\banew\b", 0.2),
    "mend": (r"\bmended?\b", 0.2),
    ", too": (r", too[,.;)]", 2.0),
    "so many": (r"\bso (?:many|long|much)\b", 1.5),
    "tell apart": (r"\btold? apart\b|\btells? apart\b", 0.2),
    "as far as": (r"\bas far as\b", 0.5),
    "of what": (r"\bof what\b|\bby what\b|\bwhat it\b", 1.0),
}
#: Share of docstring sentences that begin with "What", and of functions named x_of or of_x.
WHAT_LIMIT, OF_LIMIT = 0.01, 0.005
SKIPPED = {"node_modules", "migrations", "__pycache__"}
JAVASCRIPT_TEXT = re.compile(r"//.*|/\*.*?\*/|`[^`]*`|'[^'\n]*'|\"[^\"\n]*\"", re.S)
#: A string on one line, or a comment.
STRING_OR_COMMENT = re.compile(r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|(?P<comment>\#.*)""")
TEMPLATE_CODE = re.compile(r"{[%#].*?[%#]}|{{.*?}}|<[^>]*>", re.S)


@dataclass
class Kind:
    """All texts of a kind, by file."""

    texts: dict[Path, str] = field(default_factory=dict)

    @cached_property
    def words(self) -> int:
        return sum(len(re.findall(r"\w+", text)) for text in self.texts.values())

    def count(self, phrase: str) -> Counter[Path]:
        pattern = re.compile(PHRASES[phrase][0], re.I)
        return Counter({path: len(pattern.findall(text)) for path, text in self.texts.items()})


@dataclass
class Prose:
    """The texts of a tree, and the docstrings and function names of its modules."""

    kinds: dict[str, Kind]
    docstrings: list[str]
    functions: list[str]

    def count_what(self) -> tuple[int, int]:
        """Docstring sentences that begin with "What", and all."""
        sentences = [s for doc in self.docstrings for s in re.split(r"(?<=[.!?])\s+", doc) if s.strip()]
        return sum(s.strip().startswith("What ") for s in sentences), len(sentences)

    def count_of_names(self) -> tuple[int, int]:
        """Functions named x_of or of_x, and all."""
        return sum(name.endswith("_of") or name.startswith("of_") for name in self.functions), len(self.functions)


def read_prose(root: Path = ROOT) -> Prose:
    prose = Prose({name: Kind() for name in ("code", "strings", "javascript", "templates", "docs")}, [], [])
    kinds = prose.kinds
    for path in find_files(root, ".py"):
        docstrings, comments, functions, strings = read_python(path)
        prose.docstrings += docstrings
        prose.functions += functions
        kinds["code"].texts[path] = "\n".join([*docstrings, *comments])
        if "tests" not in path.relative_to(root).parts:
            kinds["strings"].texts[path] = "\n".join(strings)
    for path in find_files(root, ".js"):
        kinds["javascript"].texts[path] = "\n".join(JAVASCRIPT_TEXT.findall(path.read_text(encoding="utf-8")))
    for path in find_files(root, ".html"):
        kinds["templates"].texts[path] = TEMPLATE_CODE.sub(" ", path.read_text(encoding="utf-8"))
    for path in find_files(root, ".md"):
        kinds["docs"].texts[path] = path.read_text(encoding="utf-8")
    return prose


def find_files(root: Path, suffix: str) -> Iterator[Path]:
    """Files of the tree in order; hidden folders, migrations and caches are left out."""
    for path in sorted(root.rglob(f"*{suffix}")):
        folders = path.relative_to(root).parts[:-1]
        if not any(folder in SKIPPED or folder.startswith(".") for folder in folders):
            yield path


def read_python(path: Path) -> tuple[list[str], list[str], list[str], list[str]]:
    """Docstrings, comments, function names, and string literals of three words or more."""
    source = path.read_text(encoding="utf-8")
    docstrings, functions, strings = [], [], set()
    in_strings: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            docstrings += [doc] if (doc := ast.get_docstring(node)) else []
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            functions.append(node.name)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value.split()) >= 3:
            strings.add(inspect.cleandoc(node.value))
        if isinstance(node, ast.Constant | ast.JoinedStr) and node.end_lineno != node.lineno:
            in_strings.update(range(node.lineno, (node.end_lineno or 0) + 1))
    lines = [line for number, line in enumerate(source.split("\n"), 1) if "#" in line and number not in in_strings]
    comments = [match["comment"] for line in lines for match in STRING_OR_COMMENT.finditer(line) if match["comment"]]
    return docstrings, comments, functions, sorted(strings - set(docstrings))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--worst", type=int, default=0, help="also the files with the most hits")
    options = parser.parse_args()
    prose, hits = read_prose(), Counter[Path]()
    for name, kind in prose.kinds.items():
        print(f"{name}: {kind.words:,} words")
        for phrase, (_, limit) in PHRASES.items():
            counts = kind.count(phrase)
            hits += counts
            rate = 1e4 * counts.total() / kind.words
            print(f"  {'over' if rate > limit else '    '} {rate:6.1f} ({counts.total()}, limit {limit})  {phrase}")
    for label, (n, total), limit in (
        ("docstring sentences that begin with What", prose.count_what(), WHAT_LIMIT),
        ("functions named x_of or of_x", prose.count_of_names(), OF_LIMIT),
    ):
        print(f"{label}: {n} of {total} ({n / total:.2%}, limit {limit:.1%})")
    for path, n in hits.most_common(options.worst):
        print(f"{n:5d} {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
