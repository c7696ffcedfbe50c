"""The data that all assignments of a campaign share: form, options, counts. Cached by process and revision."""

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import orjson
from django.utils.translation import get_language_bidi

from annotation.allocation.answers import AspectForm, Form
from annotation.allocation.plan import OPTIONS, SHOWN_OPTIONS
from annotation.models import Campaign
from evalapp.translation import gettext

from .attributes import read_attributes

MIRRORED = {"ArrowLeft": "ArrowRight", "ArrowRight": "ArrowLeft", "a": "d", "d": "a"}


@dataclass(frozen=True)
class Sheet:
    """The data that all assignments of a campaign share. `form_json` is the form that the browser gets."""

    campaign_id: int
    project_id: int
    project_slug: str
    slug: str
    name: str
    kind: str
    form: Form
    form_json: bytes
    options: dict[str, Any]
    aspect_ids: dict[str, int]
    lease_minutes: int
    max_per_annotator: int | None
    unit_count: int
    practice_count: int
    control_count: int
    rater_suffix: str
    seed: int
    #: What the texts of the project are, which decides whether turns have speakers.
    task: str
    #: The language of the texts.
    lang: str
    #: The number of compared systems in a campaign with adaptive pair selection, otherwise 0.
    n_players: int = 0
    stamp: str = ""

    @property
    def goal(self) -> int:
        """The number of judgements that one annotator can give."""
        return min(self.unit_count, self.max_per_annotator or self.unit_count)

    def shown_form(self) -> dict[str, Any]:
        return read_form(self.form_json)


def read_form(form_json: bytes) -> dict[str, Any]:
    """The form of a sheet with the names of the verdicts in the current language. In one that is written from right to
    left, the first text is on the right, so that the keys change sides."""
    form: dict[str, Any] = json.loads(form_json)
    for verdict in form["verdicts"]:
        verdict["label"] = gettext(verdict["label"])
        if get_language_bidi():
            verdict["keys"] = [MIRRORED.get(key, key) for key in verdict["keys"]]
    return form


def make_form(campaign: Campaign) -> Form:
    rows = campaign.aspects.select_related("aspect").order_by("position")
    return Form(
        campaign.kind,
        tuple(
            AspectForm(row.aspect.name, row.question, row.low, row.high, row.step, row.labels or None) for row in rows
        ),
    )


def make_sheet(campaign: Campaign) -> Sheet:
    form = make_form(campaign)
    options = {**OPTIONS, **campaign.options}
    shown = form.as_dict({name: options[name] for name in SHOWN_OPTIONS})
    names = (
        "project_id slug name kind lease_minutes max_per_annotator unit_count practice_count control_count "
        "rater_suffix seed"
    )
    return Sheet(
        campaign_id=campaign.pk,
        project_slug=campaign.project.slug,
        task=campaign.project.task,
        lang=campaign.project.lang,
        form=form,
        form_json=orjson.dumps(shown),
        options=options,
        aspect_ids=dict(campaign.aspects.values_list("aspect__name", "aspect_id")),
        n_players=len(campaign.plan.get("players") or ()),
        stamp=str(campaign.created_at),
        **read_attributes(campaign, names),
    )


@lru_cache(maxsize=256)
def _cached(campaign_id: int, stamp: str, revision: int) -> Sheet:
    return make_sheet(Campaign.objects.select_related("project").get(pk=campaign_id))


def get_sheet(campaign_id: int, stamp: object, revision: int) -> Sheet:
    """The sheet of a campaign at a revision. `stamp`, its creation time, distinguishes campaigns that reuse an id."""
    return _cached(campaign_id, str(stamp), revision)
