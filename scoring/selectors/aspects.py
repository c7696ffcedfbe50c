"""The aspects, ways of judging and campaigns that a leaderboard can be about."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from django.db.models import Exists
from django.utils.translation import gettext as _

from annotation.models import Aspect, Campaign, Comparison, Rating
from evalapp.accounts.models import Project
from evalapp.common.errors import BadInput, NotThere
from scoring.boards.agreement.query import AgreementQuery
from scoring.boards.choices import JUDGED


def choose_aspect(
    project: Project, name: str, *, judged_by: Literal["ratings", "comparisons"], otherwise: str = ""
) -> Aspect:
    """Return the aspect of that name, or the first with judgements. `otherwise` is advice for the error if outputs were
    compared but not rated."""
    aspects = list(Aspect.objects.filter(project=project))
    if name:
        for aspect in aspects:
            if aspect.name == name:
                return aspect
        known = ", ".join(aspect.name for aspect in aspects) or _("none yet")
        text = _("There is no aspect “%(name)s” in %(project)s. There are: %(known)s.")
        raise NotThere(text % {"name": name, "project": project.slug, "known": known})
    rows: Any = Rating.objects if judged_by == "ratings" else Comparison.objects
    for aspect in aspects:
        judged = rows.filter(aspect=aspect)
        if judged_by == "ratings":
            judged = judged.filter(output__isnull=False)
        if judged.exists():
            return aspect
    text = _("%(project)s has no ratings of outputs yet.")
    if judged_by == "comparisons":
        text = _("%(project)s has no comparisons of outputs yet.")
    if not otherwise or judged_by != "ratings" or not Comparison.objects.filter(project=project).exists():
        otherwise = _("Upload some, or open a campaign.")
    raise BadInput(f"{text % {'project': project.slug}} {otherwise}")


def compared_aspects(project: Project) -> list[str]:
    """Return the aspects with comparisons of two outputs, in the project's order."""
    rows = Comparison.objects.filter(output_b__isnull=False)
    return [aspect.name for aspect, ways in list_judged(project, {"pairs": rows}) if ways]


def find_campaign(project: Project, slug: str) -> Campaign | None:
    """Return the campaign of this slug, None without a slug."""
    if not slug:
        return None
    campaign = Campaign.objects.filter(project=project, slug=slug).first()
    if campaign is None:
        known = ", ".join(Campaign.objects.filter(project=project).values_list("slug", flat=True)[:20])
        text = _("There is no campaign “%(slug)s” in %(project)s. There are: %(known)s.")
        raise NotThere(text % {"slug": slug, "project": project.slug, "known": known or _("none yet")})
    return campaign


def list_judged(project: Project, ways: Mapping[str, Any]) -> list[tuple[Aspect, frozenset[str]]]:
    """Return every aspect, in the project's order, with those of `ways` (name -> rows with an aspect) that have rows.

    Two database queries. The second names each aspect: with a reference to the list of aspects, PostgreSQL scans the
    judgements of all projects for an aspect without judgements.
    """
    aspects = list(Aspect.objects.filter(project=project))
    if not aspects:
        return []
    asked = {
        f"{way}_{aspect.pk}": Exists(rows.filter(aspect=aspect)) for aspect in aspects for way, rows in ways.items()
    }
    answers = Project.objects.filter(pk=project.pk).annotate(**asked).values(*asked).get()
    return [(aspect, frozenset(way for way in ways if answers[f"{way}_{aspect.pk}"])) for aspect in aspects]


@dataclass(frozen=True)
class JudgedWay:
    """An aspect and one way in which it was judged, of `JUDGED`."""

    aspect: Aspect
    judged: str


def list_judged_ways(project: Project) -> list[JudgedWay]:
    """Return every aspect with every way in which it was judged."""
    rows = {
        "ratings": Rating.objects.filter(output__isnull=False),
        "comparisons": Comparison.objects.filter(output_b__isnull=False),
        "turing": Comparison.objects.filter(output_b__isnull=True),
        "dialogues": Rating.objects.filter(dialogue__isnull=False),
    }
    return [JudgedWay(aspect, name) for aspect, ways in list_judged(project, rows) for name in JUDGED if name in ways]


def choose_judged_way(project: Project, query: AgreementQuery, ways: Sequence[JudgedWay] | None = None) -> JudgedWay:
    """Return the aspect and way of judging that a query names, or the first of `ways` (the project's) that fits."""
    ways = list_judged_ways(project) if ways is None else ways
    if not ways:
        text = _("%(project)s has no judgements yet. Upload ratings, or open a campaign.")
        raise BadInput(text % {"project": project.slug})
    for way in ways:
        if query.aspect in ("", way.aspect.name) and query.judged in ("", way.judged):
            return way
    known = ", ".join(f"{way.aspect.name} ({way.judged})" for way in ways)
    text = _("%(name)s was not judged in %(project)s. Judged: %(known)s.")
    raise NotThere(text % {"name": query.aspect or query.judged, "project": project.slug, "known": known})
