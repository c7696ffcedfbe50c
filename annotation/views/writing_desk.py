"""The template context of the writing page, made from a `Desk`."""

from __future__ import annotations

import hashlib
from typing import Any
from uuid import uuid4

from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from annotation.selectors.writing import excluded_texts, get_my_desk_task
from annotation.services import hooks
from annotation.services.writing_answers import Outcome
from annotation.services.writing_candidates import find_candidate, remember_candidates
from annotation.services.writing_desk import Desk, DeskReference
from evalapp.common.markdown import render_markdown
from evalapp.side_figures import side_figure

from .annotator_pages import TITLES
from .scripted import make_store_key
from .writing_forms import CONSTRAINT_WORDS
from .writing_lists import source_words
from .writing_plots import draw_growth

#: The number of candidates on a page without script.
PLAIN_SHOWN = 20
CLOSED_WORDS = {
    "done": gettext_lazy("You have finished this item."),
    "skipped": gettext_lazy("You have skipped this item."),
}
LEVELS = {"accept": "good", "edit": "warn", "drop": "warn", "wait": "warn"}


def _url(name: str, *arguments: Any) -> str:
    """The address of a page in an app downstream; empty if that is not installed."""
    try:
        return reverse(name, args=arguments)
    except NoReverseMatch:
        return ""


def _urls(desk: Desk) -> dict[str, str]:
    arguments = [desk.campaign.pk, desk.public]
    found = {
        name or "one": reverse(f"annotation:write-{name or 'one'}", args=arguments)
        for name in ("", "draft", "drop", "done", "flag", "skip")
    }
    if desk.shows_candidates:
        found["candidates"] = _url("retrieval:candidates", desk.public)
    if desk.shows_scores:
        found["score"] = _url("scoring:live-score", desk.public)
    return found


def _gain_words(row: DeskReference) -> str:
    if row.gain is None:
        return ""
    return f"{'+' if row.gain >= 0 else '−'}{abs(row.gain):.3f}"


def _who(row: DeskReference) -> str:
    if row.waiting:
        return _("waiting for confirmation")
    return _("yours") if row.mine else _("by another annotator") if row.added_by_other else ""


def _stamp(desk: Desk) -> str:
    """A value that changes when the item changes for a reason other than the annotator's typing."""
    told = [desk.state, desk.round, desk.waiting_for, [(row.text, row.waiting) for row in desk.references]]
    return hashlib.sha256(repr(told).encode()).hexdigest()[:12]


def _hand(desk: Desk, typed: dict[str, Any] | None) -> dict[str, Any]:
    """The content of the editor: the submitted text, the draft, the candidate of the round, or nothing."""
    held: dict[str, Any] = {}
    if typed is not None:
        held = typed
    elif isinstance(desk.draft, dict) and desk.draft.get("text"):
        held = desk.draft
    if desk.candidate is not None and (not held or held.get("candidate") != desk.candidate.public):
        held = {"text": desk.candidate.text, "candidate": desk.candidate.public}
    source = source_words(desk.candidate.source) if desk.candidate is not None else ""
    return {
        "text": str(held.get("text") or ""),
        "candidate": str(held.get("candidate") or ""),
        "relevant": held.get("relevant"),
        "query": desk.candidate.query if desk.candidate is not None else "",
        "source": source,
    }


def base_context(request: HttpRequest, desk: Desk) -> dict[str, Any]:
    """The part of the context that does not need an item."""
    campaign = desk.campaign
    return {
        "campaign": campaign,
        "desk": desk if desk.task is not None else None,
        "progress": {"number": desk.done + 1, "goal": desk.goal if desk.task is not None else None},
        "to_confirm": desk.to_confirm,
        "last": desk.last,
        "last_url": reverse("annotation:write-back", args=[campaign.pk, desk.last.task]) if desk.last else "",
        "state_words": {"title": TITLES.get(desk.why, TITLES["empty"]), "text": desk.why_text},
        "store_key": make_store_key(request, "writing"),
        "guidelines": render_markdown(campaign.guidelines) if campaign.guidelines else "",
    }


def desk_context(
    request: HttpRequest,
    desk: Desk,
    *,
    typed: dict[str, Any] | None = None,
    outcome: dict[str, Any] | None = None,
    **more: Any,
) -> dict[str, Any]:
    """The context of an item. `typed` is a submitted text that returns to the editor, `outcome` its outcome."""
    context = base_context(request, desk)
    if desk.task is None:
        return context
    options = desk.campaign.options
    references = [{"row": row, "who": _who(row), "gain": _gain_words(row)} for row in desk.references]
    growth = ""
    with side_figure("The plot of reliability"):
        growth = draw_growth(desk.growth)
    return {
        **context,
        **item_context(desk),
        "urls": _urls(desk),
        "stamp": _stamp(desk),
        "state": desk.state,
        "hand": _hand(desk, typed),
        "references": references,
        "now": desk.growth[-1][1] if desk.growth else None,
        "growth": growth,
        "min_gain": options["min_gain"],
        "written": len(references),
        "rounds": desk.campaign.in_rounds,
        "submission": uuid4(),
        "outcome": outcome,
        "closed_words": CLOSED_WORDS.get(desk.state, ""),
        **more,
    }


def item_context(desk: Desk) -> dict[str, Any]:
    """The item and its instructions."""
    options = desk.campaign.options
    return {
        "item": {"context": desk.context, "source": desk.source},
        "originals": desk.originals,
        "instruction": options.get("instruction", ""),
        "constraint_words": CONSTRAINT_WORDS.get(options.get("constraint", ""), ""),
    }


def outcome_words(outcome: Outcome) -> dict[str, Any]:
    """The outcome of a text, for the page and its script."""
    finished = outcome.desk.state in ("done", "skipped")
    message = outcome.message
    if outcome.score_before is not None and outcome.score_after is not None and outcome.decision != "wait":
        values = {"before": f"{outcome.score_before:.3f}", "after": f"{outcome.score_after:.3f}"}
        message += " " + _("Reliability %(before)s → %(after)s.") % values
    if finished and outcome.decision == "accept":
        message += " " + _("The item is complete.")
    return {
        "decision": outcome.decision,
        "score_before": outcome.score_before,
        "score_after": outcome.score_after,
        "attempts_left": outcome.attempts_left,
        "message": message,
        "level": LEVELS.get(outcome.decision, ""),
        "offer_unscored": outcome.decision == "wait",
        "finished": finished,
    }


def plain_candidates(request: HttpRequest, desk: Desk) -> dict[str, Any]:
    """For pages without script: the list of candidates (`?candidates=1` or `?q=`), or one in the editor (`?use=`)."""
    if not desk.shows_candidates or not ({"candidates", "q", "use"} & set(request.GET)):
        return {}
    task = get_my_desk_task(user=request.user, public=desk.public)
    used = find_candidate(task, request.GET.get("use", "")[:40])
    if used is not None:
        return {"hand": {"text": used.text, "candidate": used.public, "relevant": None}, "no_script": True}
    q = request.GET.get("q", "").strip()[:1000]
    options = desk.campaign.options
    found = hooks.find_candidates(
        project=desk.campaign.project, corpus=desk.campaign.corpus, item=task.unit.item, k=PLAIN_SHOWN,
        turns=options["candidate_turns"], exclude=excluded_texts(task), text=q or None,
    )  # fmt: skip
    ids = remember_candidates(task=task, rows=found.rows)
    rows = [{"id": public, "row": row} for public, row in zip(ids, found.rows, strict=True)]
    return {"plain_candidates": rows, "plain_note": found.note or _("No candidates found."), "q": q, "no_script": True}
