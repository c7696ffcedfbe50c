"""Settings of the documentation site; docs/site/build.py lays out its source."""

import re

from docutils.nodes import SkipNode
from latex2mathml.converter import convert

from evalapp import __version__

project = "evalapp"
copyright = "the evalapp contributors"
version = release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc"]
root_doc = "index"
html_math_renderer = "mathml"
html_theme = "pydata_sphinx_theme"
html_title = f"evalapp {__version__}"
html_theme_options = {"show_nav_level": 1, "show_toc_level": 2, "search_as_you_type": True, "footer_end": []}
html_show_sourcelink = False
# Markdown as in the product: CommonMark with tables and formulas, and headings with the anchors of GitHub.
myst_enable_extensions = ["dollarmath", "strikethrough"]
myst_heading_anchors = 6
suppress_warnings = ["myst.strikethrough", "misc.highlighting_failure", "ref.python"]
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "exclude-members": "__init__, __new__"}
_CODE = re.compile(r"`([^`]+)`")


def convert_docstring(app, what, name, obj, options, lines: list[str]) -> None:
    """Turn a docstring, which is plain text with code between single backticks, into reStructuredText: an indented line
    continues an item of a list, and nothing else has a meaning."""
    result: list[str] = []
    for paragraph in "\n".join(lines).split("\n\n"):
        rows = [row for row in paragraph.splitlines() if row.strip()]
        if rows and not rows[0].lstrip().startswith(">>>"):
            items: list[str] = []
            is_list = any(row.startswith(" ") for row in rows[1:])
            for row in rows:
                if items and (row.startswith(" ") or not is_list):
                    items[-1] += " " + row.strip()
                else:
                    items.append(row.strip())
            rows = [("- " if is_list else "") + _escape(item) for item in items]
        result += [*rows, ""]
    lines[:] = result


def _escape(text: str) -> str:
    parts = _CODE.split(text)  # text and code in turn
    plain = [re.sub(r"([\\*|_`])", r"\\\1", part) for part in parts[::2]]
    code = [f"``{part}``" for part in parts[1::2]]
    joined = plain[0]
    for one, after in zip(code, plain[1:], strict=True):
        joined += f"\\ {one}\\ {after}" if joined else f"{one}\\ {after}"
    return joined.strip()


def write_formula(translator, node) -> None:
    """Write a formula as MathML, as the product does: nothing comes from the network."""
    is_block = node.tagname == "math_block"
    formula = convert(node.astext(), display="block" if is_block else "inline")
    translator.body.append(f'<div class="math">{formula}</div>' if is_block else formula)
    raise SkipNode


def setup(app) -> None:
    app.add_html_math_renderer("mathml", (write_formula, None), (write_formula, None))
    app.connect("autodoc-process-docstring", convert_docstring)
