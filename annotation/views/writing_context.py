"""The template context of the writing page, made from a `TaskView`."""

import hashlib
from typing import Any
from uuid import uuid4

from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from annotation.models import WritingFlag
from annotation.selectors.writing import get_own_task, list_excluded_texts
from annotation.services import hooks
from annotation.services.writing_answers import Outcome
from annotation.services.writing_candidates import find_candidate, remember_candidates
from annotation.services.writing_view import ReferenceView, TaskView
from evalapp.common.markdown import render_markdown
from evalapp.side_figures import side_figure

from .annotator_pages import TITLES
from .scripted import make_store_key
from .writing_lists import describe_candidate_source
from .writing_plots import draw_growth

#: The instruction for annotators, by constraint.
CONSTRAINT_WORDS = {
    "free": "",
    "avoid-original-words": gettext_lazy("Use other words than the original."),
    "better-than-original": gettext_lazy(
        "Write a text that is better than the original. Other annotators will compare the two."
    ),
    "minimally-wrong": gettext_lazy("Change the original as little as possible to make it wrong."),
}
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


def _urls(view: TaskView) -> dict[str, str]:
    arguments = [view.campaign.pk, view.public]
    urls = {
        name or "one": reverse(f"annotation:write-{name or 'one'}", args=arguments)
        for name in ("", "draft", "drop", "done", "flag", "skip")
    }
    if view.shows_candidates:
        urls["candidates"] = _url("retrieval:candidates", view.public)
    if view.shows_scores:
        urls["score"] = _url("scoring:live-score", view.public)
    return urls


def _gain_words(row: ReferenceView) -> str:
    if row.gain is None:
        return ""
    return f"{'+' if row.gain >= 0 else '−'}{abs(row.gain):.3f}"


def _who(row: ReferenceView) -> str:
    if row.waiting:
        return _("waiting for confirmation")
    return _("yours") if row.mine else _("by another annotator") if row.added_by_other else ""


def _stamp(view: TaskView) -> str:
    """A value that changes when the item changes for a reason other than the annotator's typing."""
    state = [view.state, view.round, view.waiting_for, [(row.text, row.waiting) for row in view.references]]
    return hashlib.sha256(repr(state).encode()).hexdigest()[:12]


def _hand(view: TaskView, typed: dict[str, Any] | None) -> dict[str, Any]:
    """The content of the editor: the submitted text, the draft, the candidate of the round, or nothing."""
    content: dict[str, Any] = {}
    if typed is not None:
        content = typed
    elif isinstance(view.draft, dict) and view.draft.get("text"):
        content = view.draft
    if view.candidate is not None and (not content or content.get("candidate") != view.candidate.public):
        content = {"text": view.candidate.text, "candidate": view.candidate.public}
    source = describe_candidate_source(view.candidate.source) if view.candidate is not None else ""
    return {
        "text": str(content.get("text") or ""),
        "candidate": str(content.get("candidate") or ""),
        "relevant": content.get("relevant"),
        "query": view.candidate.query if view.candidate is not None else "",
        "source": source,
    }


def make_base_context(request: HttpRequest, view: TaskView) -> dict[str, Any]:
    """The part of the context that does not need an item."""
    campaign = view.campaign
    return {
        "campaign": campaign,
        "view": view if view.task is not None else None,
        "progress": {"number": view.done + 1, "goal": view.goal if view.task is not None else None},
        "to_confirm": view.to_confirm,
        "last": view.last,
        "last_url": reverse("annotation:write-back", args=[campaign.pk, view.last.task]) if view.last else "",
        "state_words": {"why": view.why, "title": TITLES.get(view.why, TITLES["empty"]), "text": view.why_text},
        "store_key": make_store_key(request, "writing"),
        "guidelines": render_markdown(campaign.guidelines) if campaign.guidelines else "",
        "reasons": WritingFlag.Reason.choices,
    }


def make_context(
    request: HttpRequest,
    view: TaskView,
    *,
    typed: dict[str, Any] | None = None,
    outcome: dict[str, Any] | None = None,
    **more: Any,
) -> dict[str, Any]:
    """The context of an item. `typed` is a submitted text that returns to the editor, `outcome` its outcome."""
    context = make_base_context(request, view)
    if view.task is None:
        return context
    options = view.campaign.options
    references = [{"row": row, "who": _who(row), "gain": _gain_words(row)} for row in view.references]
    growth = ""
    with side_figure(_("The plot of reliability")):
        growth = draw_growth(view.growth)
    return {
        **context,
        **make_item_context(view),
        "urls": _urls(view),
        "stamp": _stamp(view),
        "state": view.state,
        "hand": _hand(view, typed),
        "references": references,
        "now": view.growth[-1][1] if view.growth else None,
        "growth": growth,
        "min_gain": options["min_gain"],
        "written": len(references),
        "rounds": view.campaign.in_rounds,
        "submission": uuid4(),
        "outcome": outcome,
        "closed_words": CLOSED_WORDS.get(view.state, ""),
        **more,
    }


def make_item_context(view: TaskView) -> dict[str, Any]:
    """The item and its instructions."""
    options = view.campaign.options
    return {
        "item": {"context": view.context, "source": view.source},
        "originals": view.originals,
        "instruction": options.get("instruction", ""),
        "constraint_words": CONSTRAINT_WORDS.get(options.get("constraint", ""), ""),
    }


def describe_outcome(outcome: Outcome) -> dict[str, Any]:
    """The outcome of a text, for the page and its script."""
    finished = outcome.view.state in ("done", "skipped")
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


def list_plain_candidates(request: HttpRequest, view: TaskView) -> dict[str, Any]:
    """For pages without script: the list of candidates (`?candidates=1` or `?q=`), or one in the editor (`?use=`)."""
    if not view.shows_candidates or not ({"candidates", "q", "use"} & set(request.GET)):
        return {}
    task = get_own_task(user=request.user, public=view.public)
    used = find_candidate(task, request.GET.get("use", "")[:40])
    if used is not None:
        return {"hand": {"text": used.text, "candidate": used.public, "relevant": None}, "no_script": True}
    q = request.GET.get("q", "").strip()[:1000]
    options = view.campaign.options
    candidates = hooks.find_candidates(
        project=view.campaign.project, corpus=view.campaign.corpus, item=task.unit.item, k=PLAIN_SHOWN,
        turns=options["candidate_turns"], exclude=list_excluded_texts(task), text=q or None,
    )  # fmt: skip
    ids = remember_candidates(task=task, rows=candidates.rows)
    rows = [{"id": public, "row": row} for public, row in zip(ids, candidates.rows, strict=True)]
    return {
        "plain_candidates": rows,
        "plain_note": candidates.note or _("No candidates found."),
        "q": q,
        "no_script": True,
    }
