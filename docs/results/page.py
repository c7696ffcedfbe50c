"""Pages, figures and the list of results, written from the rows in `tables/` and the texts of the studies."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from study import FOLDER, Question, Study, read_studies

Row = Mapping[str, Any]
#: `{row | column}`, `{row | column.low}` or `{fact}`, with digits behind a colon.
PLACE = re.compile(r"\{([^{}|]+?)(?:\s*\|\s*([^{}:|]+?))?(?::(\d))?\}")
COLOURS = ("#2563eb", "#d97706", "#059669", "#9333ea", "#dc2626", "#475569")
WIDTH, MARGIN, LINE = 900, 330, 15

README = """# Results on public data

Measured with public data sets of human ratings, by the commands below. The data are not part of this repository; tests
that read them are skipped if they are absent.

{table}

Each page has, per question, an answer, a table, a figure, the method and its limits. Intervals are 95 %. Trivial
baselines (length, overlap, random) are in the tables because [a metric that does not beat them adds no
evidence](../reference/glossary.md).

## How the pages are made

| file | content |
|---|---|
| `studies/NAME.toml` | what is computed, and the texts of the page |
| `experiments/NAME.py` | how it is computed with the libraries of this repository |
| `rows/NAME.jsonl` | results, one line per setting and seed, with seconds, load and code version |
| `tables/NAME.jsonl` | every figure of the page |
| `*.md`, `figures/*.svg` | the page, written from `tables/` and the study |

```
python docs/results/run.py STUDY --data FOLDER_OF_SETS --out FOLDER
python docs/results/run.py --pages
```

The first command computes missing rows, then the tables and the page. A stored row is not computed again; delete it to
replace it, or compare it with a new computation by `--again SETTING@SEED`. An interrupted run continues from its
checkpoints in `--out`. `--only PART` computes some parts, `--items N` reads about N items in whole groups, and
`--quick` tries everything on a few items without writing rows or pages; `--help` lists all options. The second command
writes all pages from the stored tables.

| study | duration on two cores |
|---|---|
{durations}

Texts and human ratings of the data sets are [never stored in rows](../decisions/rows-of-results.md).
"""


def number(value: Any, digits: int) -> str:
    """A figure as tables show it: integers with thousands separators, others with some digits."""
    if value is None:
        return "-"
    if isinstance(value, str):
        return value
    if isinstance(value, int):
        return f"{value:,}"
    text = f"{value:,.{0 if abs(value) >= 1000 else digits}f}"
    return text.removeprefix("-") if not float(text.replace(",", "")) else text


def estimate(value: Any, digits: int) -> str:
    """value [low, high], or value ± SD over seeds."""
    if not isinstance(value, Mapping):
        return number(value, digits)
    text = number(value["value"], digits)
    if "low" in value:
        text += f" [{number(value['low'], digits)}, {number(value['high'], digits)}]"
    if "sd" in value:
        text += f" ± {number(value['sd'], digits)}"
    if "of" in value:
        text += f" ({value['defined']} of {value['of']})"
    return text


def fill(text: str, question: Question, tables: Sequence[Row]) -> str:
    """The text with figures in place of `{row | column}` and `{fact}`."""
    facts = {key: value for one in tables if one["table"] == "facts" for key, value in one.items()}
    label = next(iter(question.columns))

    def read(match: re.Match[str]) -> str:
        name, column, digits = match[1].strip(), match[2], int(match[3] or 2)
        if column is None:
            return estimate(facts[name], digits)
        column, _, part = column.partition(".")
        cell = next(one for one in rows_of(question, tables) if one[label] == name)[column]
        return number(cell[part], digits) if part else estimate(cell, digits)

    return PLACE.sub(read, text)


def rows_of(question: Question, tables: Sequence[Row]) -> list[Row]:
    return [one for one in tables if one["table"] == question.id]


def markdown_table(head: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    lines = [list(head), ["---"] * len(head), *body]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def write_page(study: Study) -> str:
    """The page of a study in Markdown."""
    tables = study.tables
    parts = [f"# {study.title}"]
    for question in study.questions:
        body = [
            [estimate(one.get(column), question.digits) for column in question.columns]
            for one in rows_of(question, tables)
        ]
        parts += [
            f"## {question.title}",
            fill(question.answer, question, tables).strip(),
            markdown_table(list(question.columns.values()), body),
        ]
        parts += [fill(question.notes, question, tables).strip()] if question.notes else []
        parts.append(f"![{question.figure['caption']}](figures/{figure_name(study, question)})")
    parts += ["## Method", fill(study.method, study.questions[0], tables).strip()]
    caveats = [fill(caveat, study.questions[0], tables).strip() for caveat in study.caveats]
    parts += ["## Limits", "\n".join(f"- {indent(caveat)}" for caveat in caveats)]
    parts.append(f"Computed by `python docs/results/run.py {study.name}` ([how](README.md#how-the-pages-are-made)).")
    return "\n\n".join(parts) + "\n"


def indent(text: str) -> str:
    return text.replace("\n", "\n  ")


def figure_name(study: Study, question: Question) -> str:
    return f"{study.name}-{question.id}.svg"


def write_readme(studies: Sequence[Study]) -> str:
    rows = [
        [question.title, question.short, f"[{study.name}]({study.name}.md#{anchor(question.title)})"]
        for study in studies
        for question in study.questions
    ]
    durations = "\n".join(f"| `{study.name}` | {study.cost} |" for study in studies)
    return README.format(table=markdown_table(["question", "answer", "page"], rows), durations=durations)


def anchor(title: str) -> str:
    """The fragment that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


# Figures


def draw_figure(question: Question, tables: Sequence[Row]) -> str:
    """An SVG of values with intervals: a line for each row, a colour for each series.

    The figure names its `series` (columns), a `caption`, optional `references` (vertical lines) and optional `rows`.
    """
    figure, label = question.figure, next(iter(question.columns))
    names = figure.get("rows")
    rows = [one for one in rows_of(question, tables) if names is None or one[label] in names]
    series = [column for column in figure["series"] if any(has_value(one.get(column)) for one in rows)]
    cells = [cell for one in rows for column in series if has_value(cell := one.get(column))]
    ends = [end for cell in cells for end in span(cell)] + list(figure.get("references", ()))
    scale = Scale.around(ends)
    parts, y = [], 30
    legend_x = MARGIN
    for place, column in enumerate(series if len(series) > 1 else ()):
        colour, name = COLOURS[place % len(COLOURS)], question.columns[column]
        parts.append(f'<circle cx="{legend_x}" cy="{y}" r="4" fill="{colour}"/>')
        parts.append(f'<text x="{legend_x + 9}" y="{y + 4}">{escape(name)}</text>')
        legend_x += 40 + 7 * len(name)
        if legend_x > WIDTH - 120:
            legend_x, y = MARGIN, y + 20
    top = y + 14
    y = top + 12
    for one in rows:
        height = LINE * max(len(series) * 0.7, 1.2)
        parts.append(f'<text x="{MARGIN - 12}" y="{y + height / 2:.1f}" text-anchor="end">{escape(one[label])}</text>')
        for place, column in enumerate(series):
            cell = one.get(column)
            if not has_value(cell):
                continue
            at = y + (place + 0.5) * height / len(series) - 4
            low, high = (scale.x(end) for end in span(cell)[1:])
            colour = COLOURS[place % len(COLOURS)]
            if high > low:
                parts.append(f'<path d="M{low:.1f} {at:.1f}H{high:.1f}" stroke="{colour}" stroke-width="2"/>')
            parts.append(f'<circle cx="{scale.x(span(cell)[0]):.1f}" cy="{at:.1f}" r="4" fill="{colour}"/>')
        y += height + 6
    lines = [
        f'<path d="M{scale.x(tick):.1f} {top}V{y:.1f}" stroke="#d4d4d8"/>'
        f'<text x="{scale.x(tick):.1f}" y="{y + 16:.1f}" text-anchor="middle">{tick:.10g}</text>'
        for tick in scale.ticks
    ]
    lines += [
        f'<path d="M{scale.x(x):.1f} {top}V{y:.1f}" stroke="#71717a" stroke-dasharray="4 3"/>'
        for x in figure.get("references", ())
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y + 28:.0f}" font-family="sans-serif" '
        f'font-size="12" fill="#18181b" role="img" aria-label="{escape(figure["caption"])}">\n'
        f'<rect width="{WIDTH}" height="{y + 28:.0f}" fill="#ffffff"/>\n' + "\n".join([*lines, *parts]) + "\n</svg>\n"
    )


class Scale:
    """A linear axis with round ticks."""

    def __init__(self, low: float, high: float, step: float) -> None:
        self.low, self.high = low, high
        self.ticks = [round(low + place * step, 10) for place in range(round((high - low) / step) + 1)]

    @classmethod
    def around(cls, values: Sequence[float]) -> Scale:
        low, high = min(values), max(values)
        width = (high - low) or 1.0
        magnitude = 10 ** (len(str(int(width * 1e6))) - 7)
        step = next(size * magnitude for size in (0.1, 0.2, 0.5, 1, 2, 5) if width / (size * magnitude) <= 9)
        return cls(step * (low // step), step * -(-high // step), step)

    def x(self, value: float) -> float:
        return MARGIN + (value - self.low) / (self.high - self.low) * (WIDTH - MARGIN - 30)


def has_value(cell: Any) -> bool:
    return span(cell)[0] is not None if isinstance(cell, Mapping) else isinstance(cell, float | int)


def span(cell: Any) -> tuple[Any, Any, Any]:
    """Value and ends: the interval, or one standard deviation either way."""
    if not isinstance(cell, Mapping):
        return cell, cell, cell
    value, sd = cell["value"], cell.get("sd", 0.0)
    if cell.get("low") is not None:
        return value, cell["low"], cell["high"]
    return (value, value - sd, value + sd) if value is not None else (None, None, None)


def write_files(study: Study) -> dict[str, str]:
    """The page and the figures of a study, by their path in this folder."""
    figures = {
        f"figures/{figure_name(study, question)}": draw_figure(question, study.tables) for question in study.questions
    }
    return {f"{study.name}.md": write_page(study), **figures}


def save_pages(studies: Sequence[Study]) -> None:
    """Write the pages of the studies and their list."""
    files = {"README.md": write_readme(read_studies())}
    for study in studies:
        files |= write_files(study)
    for name, text in files.items():
        path = FOLDER / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
