"""From the plan of a campaign to a leaderboard that excludes a rater, by pages and commands: comparisons with adaptive
choice of pairs, the quality page, agreement, a rater filter, the filtered leaderboard, and the power analysis."""

from __future__ import annotations

import json
from io import StringIO
from typing import Any
from uuid import uuid4

import pytest
from django.core.management import CommandError, call_command

from annotation.models import Campaign, Comparison, Unit
from annotation.services.judging import get_next_assignment, submit_answer
from evalapp.accounts.roles import Role
from evalapp.versions import split_version
from tests.cast import PASSWORD, join, person
from tests.factories import make_items, make_outputs
from tests.flows.visitor import Visitor

pytestmark = pytest.mark.django_db
#: From worst to best.
SYSTEMS = ("able", "zoo", "mid")


def command(name: str, *arguments: str) -> dict[str, Any]:
    out = StringIO()
    call_command(name, *arguments, "--json", stdout=out, stderr=StringIO())
    return json.loads(out.getvalue())


def judge(user: Any, campaign: Campaign, *, honest: bool) -> None:
    """Judge all pairs: an honest rater chooses the better system, a dishonest one always the first side within a
    second."""
    shown = get_next_assignment(user=user, campaign_id=campaign.pk).shown
    while shown is not None:
        unit = Unit.objects.select_related("output_a__system", "output_b__system").get(pk=shown.unit_id)
        a, b = (SYSTEMS.index(output.system.name) for output in (unit.output_a, unit.output_b))
        better = "a" if (a > b) is not shown.swapped else "b"
        result = submit_answer(
            user=user, public=shown.public, submission=uuid4(), answer={"preference": better if honest else "a"},
            seconds=9.0 if honest else 1.0, then="next",
        )  # fmt: skip
        shown = result.next


def test_from_a_plan_to_a_table_without_a_rater(cast):
    make_outputs(cast.project, make_items(cast.project, 20), SYSTEMS)
    rita = Visitor()
    rita.go("/account/sign-in/").send("Sign in", {"username": "rita", "password": PASSWORD})
    rita.go("/projects/alpha/").visit("Collect", "Campaigns").follow("New campaign")
    plan = {
        "name": "Which is better?", "kind": "pairwise", "aspects-0-name": "preference", "pairs": "30", "overlap": "3",
        "adaptive": "on", "adaptive_floor": "30",
    }  # fmt: skip
    rita.send("Save draft", plan).send("Open")
    campaign = Campaign.objects.get()
    assert campaign.options["adaptive_floor"] == 0.3
    for user in [person(name) for name in ("ann", "bob", "cem")]:
        join(cast.project, user, Role.ANNOTATOR)
        judge(user, campaign, honest=user.username != "cem")
    assert Comparison.objects.filter(meta__propensity__gte=0.1).count() == 90

    rita.go(f"/projects/alpha/campaigns/{campaign.pk}/").follow("Quality")
    rita.sees("30 of 30", "100% of 30")
    rita.visit("Results", "Agreement").sees("95 %", "Krippendorff's alpha (nominal)")
    rita.follow("Raters")
    (hasty,) = (row for row in rita.table() if "p-cem" in row)
    assert all(seconds in hasty[-1] for seconds in ("1.0 s", "9.0 s"))  # the reason to review
    values = {"raters": ["p-cem"], "name": "hasty", "reason": "One second each."}
    rita.send("Create filter", values).sees("Filter hasty created", "One second each.")
    rita.follow("Systems").go("/projects/alpha/systems/?filter=hasty&method=win-rate")
    assert [row[1] for row in rita.table()] == ["mid", "zoo", "able"]

    unfiltered, filtered = (
        command("systems", "alpha", "--method", "win-rate", *more) for more in ((), ("--filter", "hasty"))
    )
    assert filtered["signature"].startswith(split_version(unfiltered["signature"])[0] + "|filter:hasty@")
    assert (unfiltered["rows"][0]["n_ratings"] * 2, filtered["filter"]["reason"]) == (
        filtered["rows"][0]["n_ratings"] * 3,
        "One second each.",
    )
    assert filtered["rows"][0]["value"] == 1.0
    agreed = command("agreement", "alpha", "--aspect", "preference", "--filter", "hasty")
    assert (agreed["rows"][0]["value"], agreed["n_filtered"]) == (1.0, 30)
    assert command("power", "alpha", "--effect", "0.6")["pilot"]["n"] == 90

    rita.visit("Results", "Agreement").follow("Raters").send("Withdraw").sees("withdrawn")
    with pytest.raises(CommandError, match="was withdrawn"):
        command("systems", "alpha", "--filter", "hasty")
    assert Comparison.objects.count() == 90
