"""README.md of a layout: its files, and what could not be written as it is stored."""

from evalapp.markup import escape_markdown, quote_yaml

from .base import Layout, Plan


def write_readme(plan: Plan, layout: Layout) -> str:
    """The content of README.md; the header names every JSON Lines file as a configuration for the Hugging Face hub."""
    lines = []
    tables = [name for name, rows in layout.files.items() if name.endswith(".jsonl") and rows]
    if tables:
        lines = ["---", f"pretty_name: {quote_yaml(plan.head['name'])}", "configs:"]
        for name in tables:
            parts = name.removesuffix(".jsonl").split(".", 1)
            lines += [f"- config_name: {quote_yaml(parts[-1])}", f"  data_files: {quote_yaml(name)}"]
        lines += ["---", ""]
    lines += [f"# {escape_markdown(plan.head['name'])}", "", layout.title + ".", ""]
    facts = [("licence", plan.head["licence"]), ("source", plan.head["source"]), ("language", plan.head["lang"])]
    lines += [f"- {name}: {escape_markdown(value) or 'not recorded'}" for name, value in facts]
    lines += ["", "| file | rows |", "|---|---:|"]
    lines += [f"| `{name}` | {rows:,} |" for name, rows in layout.files.items()]
    notes = [*layout.notes]
    if layout.simulated and not layout.has_simulated:
        notes.append(f"{layout.simulated:,} judgements are by simulated raters, which these files do not say.")
    if layout.of_dialogues and not layout.has_dialogues:
        notes.append(f"{layout.of_dialogues:,} ratings of whole dialogues are left out.")
    if layout.lost:
        notes.append(f"Not in these files: {layout.lost}.")
    if notes:
        lines += ["", "## Notes", "", *(f"- {note}" for note in notes)]
    return "\n".join(lines) + "\n"
