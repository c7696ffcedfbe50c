"""`evaluators`: list the evaluators with kind, needs, profiles and options, or their papers in BibTeX."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from evalapp.common import commands
from scoring.api.serializers import CatalogueEntrySerializer
from scoring.selectors.catalogue import entries, get_entry


class Command(commands.Command):
    help = "List the evaluators that can be applied or trained: name, kind, needs, profiles, options, papers."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("names", nargs="*", metavar="NAME", help="only these; default: all")
        parser.add_argument(
            "--bibtex", action="store_true", help="print the papers to cite in BibTeX, and evalapp itself"
        )

    def work(self, **options: Any) -> dict[str, Any]:
        from scoring.papers import write_bibtex

        chosen = [get_entry(name) for name in options["names"]] or entries()
        if options["bibtex"]:
            return {"bibtex": write_bibtex(key for entry in chosen for key in entry.papers)}
        return {"evaluators": CatalogueEntrySerializer(chosen, many=True).data}

    def show(self, result: dict[str, Any]) -> None:
        if "bibtex" in result:
            self.stdout.write(result["bibtex"], ending="")
            return
        for entry in result["evaluators"]:
            needs = f" Needs {', '.join(entry['needs'])}." if entry["needs"] else ""
            brought = f" Plug-in: {entry['plugin']}." if entry["plugin"] else ""
            self.stdout.write(f"{entry['name']:<20} {entry['kind']:<9} {entry['summary']}{needs}{brought}")
            if entry["learns"]:
                learns = ", ".join(entry["train_needs"]) or "texts"
                self.stdout.write(f"{'':<20}   learns from {learns}; profiles: {', '.join(entry['profiles'])}")
                if entry["shipped"]:
                    self.stdout.write(f"{'':<20}   comes trained: {', '.join(entry['shipped'])}")
                self._list_options("train", entry["train_options"])
            self._list_options("score" if entry["learns"] else "", entry["options"])

    def _list_options(self, command: str, options: list[dict[str, Any]]) -> None:
        for option in options:
            choices = f" ({', '.join(option['choices'])})" if option["choices"] else ""
            name = f"{command} --set {option['name']}" if command else option["name"]
            self.stdout.write(f"{'':<20}   {name}={option['default']}  {option['help']}{choices}")
