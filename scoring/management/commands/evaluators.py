"""`evaluators`: what can be applied: name, kind, what it needs, its options."""

from __future__ import annotations

from typing import Any

from evalapp.common import commands
from scoring.selectors.catalogue import entries, entry_as_dict


class Command(commands.Command):
    help = "List the evaluators that can be applied: name, kind, needs, options."

    def work(self, **options: Any) -> dict[str, Any]:
        return {"evaluators": [entry_as_dict(entry) for entry in entries()]}

    def show(self, found: dict[str, Any]) -> None:
        for entry in found["evaluators"]:
            needs = f" Needs {', '.join(entry['needs'])}." if entry["needs"] else ""
            self.stdout.write(f"{entry['name']:<20} {entry['kind']:<9} {entry['summary']}{needs}")
            for option in entry["options"]:
                choices = f" ({', '.join(option['choices'])})" if option["choices"] else ""
                self.stdout.write(f"{'':<20}   {option['name']}={option['default']}  {option['help']}{choices}")
