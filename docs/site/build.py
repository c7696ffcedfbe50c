"""Build the documentation as a static site with search: the Markdown that the product shows at `/docs/`, and the public
functions of the libraries from their docstrings. `make site` runs it in an environment with Sphinx; a broken link or
docstring fails.

    python docs/site/build.py [FOLDER]
"""

from __future__ import annotations

import os
import posixpath
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
#: Documents outside `docs`, by their address on the site.
OUTSIDE = {"benchmarks": "benchmarks/README.md", "changelog": "CHANGELOG.md", "security": "SECURITY.md"}
#: The pages in the navigation, in this order.
TOP = (
    "tutorial/first-evaluation", "how-to/index", "explanation/index", "reference/index", "library/index",
    "operations/index", "results/index", "decisions/index", "promises", "benchmarks", "changelog", "security",
)  # fmt: skip
#: The libraries with their modules.
LIBRARIES = {
    "Evaluators and metrics": ("scoring.ml", "scoring.ml.hub"),
    "Client": ("evalapp.client",),
    "Correlation": ("evalapp.stats.correlation.meta_evaluation", "evalapp.stats.correlation.coefficients"),
    "Agreement": (
        "evalapp.stats.agreement.krippendorff", "evalapp.stats.agreement.kappa", "evalapp.stats.agreement.icc",
    ),
    "Resampling": ("evalapp.stats.resampling.bootstrap",),
    "Ranking": (
        "evalapp.stats.ranking.systems", "evalapp.stats.ranking.bradley_terry", "evalapp.stats.ranking.glicko2",
    ),
    "Planning": ("evalapp.stats.planning.power", "evalapp.stats.planning.stopping"),
}  # fmt: skip
#: Packages whose functions lie in modules below.
EXPORTED = dict.fromkeys(("scoring.ml", "evalapp.client"), "   :imported-members:\n")
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^()\s]+)\)")


def find_pages() -> dict[str, str]:
    """Return the address on the site of every document, by its path in the repository."""
    pages = {file: name for name, file in OUTSIDE.items()}
    for path in sorted((ROOT / "docs").rglob("*.md")):
        name = path.relative_to(ROOT / "docs").with_suffix("").as_posix()
        pages[path.relative_to(ROOT).as_posix()] = (
            f"{name.removesuffix('README')}index" if path.stem == "README" else name
        )
    return pages


def move_links(text: str, file: str, pages: dict[str, str]) -> str:
    """Return the Markdown of a `file` with links to documents and images as they are on the site; links to other files
    of the repository become plain text, as in the product."""
    here = posixpath.dirname(pages[file])

    def move(match: re.Match[str]) -> str:
        mark, label, target = match.groups()
        path, _, anchor = target.partition("#")
        if not path or "://" in target or target.startswith("mailto:"):
            return match[0]
        place = posixpath.normpath(posixpath.join(posixpath.dirname(file), path))
        if mark:
            return f"![{label}]({posixpath.relpath(place.removeprefix('docs/'), here or '.')})"
        if place not in pages:
            return label
        moved = posixpath.relpath(pages[place], here or ".") + ".md"
        return f"[{label}]({moved}{'#' + anchor if anchor else ''})"

    parts = re.split(r"(^```.*?^```)", text, flags=re.S | re.M)
    return "".join(part if part.startswith("```") else _LINK.sub(move, part) for part in parts)


def list_contents(entries: list[str], depth: int = 1) -> str:
    return "\n".join(["", "```{toctree}", ":hidden:", f":maxdepth: {depth}", "", *entries, "```", ""])


def write_source(folder: Path) -> None:
    """Write the source of the site into an empty `folder`."""
    pages = find_pages()
    for file, name in pages.items():
        text = move_links((ROOT / file).read_text(encoding="utf-8"), file, pages)
        place = posixpath.dirname(name)
        if name == "index":
            text += list_contents(list(TOP))
        elif name.endswith("/index"):
            inside = [other for other in pages.values() if posixpath.dirname(other) == place and other != name]
            below = [other for other in pages.values() if posixpath.dirname(posixpath.dirname(other)) == place
                     and other.endswith("/index")]  # fmt: skip
            text += list_contents([f"/{other}" for other in sorted(inside) + sorted(below)])
        target = folder / f"{name}.md"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    library = folder / "library"
    library.mkdir()
    for title, modules in LIBRARIES.items():
        parts = [
            f"## `{module}`\n\n```{{eval-rst}}\n.. automodule:: {module}\n{EXPORTED.get(module, '')}```\n"
            for module in modules
        ]
        (library / f"{title.split()[0].lower()}.md").write_text(f"# {title}\n\n" + "\n".join(parts), encoding="utf-8")
    names = [f"/library/{title.split()[0].lower()}" for title in LIBRARIES]
    links = "\n".join(f"- [{title}]({title.split()[0].lower()}.md)" for title in LIBRARIES)
    (library / "index.md").write_text(
        f"# Functions and classes\n\nThe public parts of the libraries, from their docstrings.\n\n{links}\n"
        + list_contents(names),
        encoding="utf-8",
    )
    for path in (ROOT / "docs").rglob("*"):
        if path.suffix in (".svg", ".png"):
            target = folder / path.relative_to(ROOT / "docs")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)


def main() -> int:
    site = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build/site").resolve()
    source = site.with_name(f"{site.name}-source")
    for folder in (site, source):
        shutil.rmtree(folder, ignore_errors=True)
    write_source(source)
    arguments = ["-b", "dirhtml", "-q", "-W", "--keep-going", "-c", str(ROOT / "docs/site"), str(source), str(site)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    code = subprocess.run([sys.executable, "-m", "sphinx", *arguments], env=environment).returncode
    if code == 0:
        shutil.rmtree(source)
        print(f"{site}/index.html")
    return code


if __name__ == "__main__":
    sys.exit(main())
