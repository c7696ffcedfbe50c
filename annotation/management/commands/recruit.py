"""Create links for hired participants, and list their participants."""

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.urls import reverse

from annotation.models import Campaign
from annotation.selectors.participants import list_payments, list_recruitments
from annotation.services.recruitments import create_recruitment
from evalapp.common import commands
from evalapp.common.errors import BadInput, NotThere


class Command(commands.Command):
    help = "Create a link for hired participants of a campaign from a JSON file, or list links and participants."
    fields_are_arguments = False

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("project", metavar="SLUG", help="Project of the campaign")
        parser.add_argument("campaign", metavar="CAMPAIGN", help="Short name of the campaign")
        parser.add_argument(
            "settings",
            type=Path,
            nargs="?",
            metavar="SETTINGS.json",
            help="Settings of a new link; without: list links",
        )
        parser.add_argument("--as", dest="by", metavar="NAME", help="User who is stored as the creator")
        parser.add_argument("--participants", type=int, metavar="LINK", help="List the participants of the link LINK")

    def work(
        self, *, project: str, campaign: str, settings: Path | None, by: str | None, participants: int | None, **_: Any
    ) -> dict[str, Any]:  # fmt: skip
        row = Campaign.objects.select_related("project").filter(project=commands.find_project(project), slug=campaign)
        target = row.first()
        if target is None:
            raise NotThere(f"Project “{project}” has no judging campaign “{campaign}”.")
        if settings is not None:
            user = commands.find_user(by) if by else None
            link, secret = create_recruitment(campaign=target, user=user, settings=_read(settings))
            path = reverse("annotation:study", args=[secret])
            return {"id": link.pk, "address": f"{path}?{link.plan.id_parameter}={{ID}}", "places": link.places}
        links = list_recruitments(target)
        if participants is None:
            return {"links": [link.wire() for link in links]}
        chosen = [link.recruitment for link in links if link.recruitment.pk == participants]
        if not chosen:
            raise NotThere(f"Campaign “{campaign}” has no link {participants}.")
        hidden = {"state_label", "failed_labels"}
        people = [{key: one[key] for key in one if key not in hidden} for one in list_payments(chosen[0])]
        return {"participants": people}

    def show(self, result: dict[str, Any]) -> None:
        if "address" in result:
            self.stdout.write("Address below that of this installation; it is not shown again:")
            self.stdout.write(result["address"])
        for link in result.get("links", ()):
            states = ", ".join(f"{count} {state}" for state, count in link["states"].items() if count) or "nobody yet"
            self.stdout.write(
                f"{link['id']} {link['label']}: {link['held']} of {link['places']} places in use; {states}"
            )
        for one in result.get("participants", ()):
            pay = f"{one['pay']:g} + {one['bonus']:g} {one['currency']}".strip()
            self.stdout.write(
                f"{one['participant']}: {one['state']}, {one['units']} texts, {one['minutes']:g} min, {pay}"
            )


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise commands.WrongUsage(f"{path} cannot be read: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{path} is not JSON in UTF-8: {error}.") from error
