"""The campaign plans open on the demonstration data through the commands that people use."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.core.management import call_command
from django.db.models import Q

from annotation.models import Campaign, Unit, WritingCampaign
from evalapp.demo.texts import CAMPAIGNS, WRITING, WRITING_SCORED


@pytest.mark.slow
@pytest.mark.django_db
def test_every_plan_opens_and_leaves_out_its_checks(demo_files: Path) -> None:
    call_command("load", str(demo_files), project="demo", verbosity=0)
    call_command("campaign", "demo", str(CAMPAIGNS), open=True, verbosity=0)
    found = {row.slug: row for row in Campaign.objects.all()}
    assert {slug: row.state for slug, row in found.items()} == {
        "replies": "open",
        "descriptions": "open",
        "person-or-program": "open",
    }
    # 8 items x 5 systems; 10 items x 6 pairs of 4 systems; 10 items x 3 systems; minus check items.
    wanted = {"replies": 40, "descriptions": 60, "person-or-program": 30}
    for slug, row in found.items():
        units = Unit.objects.filter(campaign=row)
        checks = units.exclude(kind=Unit.Kind.NORMAL)
        assert (row.practice_count, row.control_count) == (3, checks.filter(kind=Unit.Kind.CONTROL).count())
        assert wanted[slug] - checks.count() <= row.unit_count <= wanted[slug]
        normal = units.filter(kind=Unit.Kind.NORMAL)
        for check in checks:
            same = Q(output_a=check.output_a, output_b=check.output_b, reference=check.reference)
            if check.output_b_id:
                same |= Q(output_a=check.output_b, output_b=check.output_a)
            assert not normal.filter(same).exists()

    here = {"project": "demo", "here": True, "verbosity": 0}
    call_command("corpus", "add", "replies", derive="corpus", **here)
    call_command("campaign", "demo", str(WRITING), open=True, verbosity=0)
    call_command("campaign", "demo", str(WRITING_SCORED), verbosity=0)
    assert {row.slug: (row.state, row.unit_count) for row in WritingCampaign.objects.all()} == {
        "other-replies": ("open", 10),
        "more-replies-without-scores": ("open", 12),
        "more-replies": ("draft", 0),  # ream is not trained yet
    }
