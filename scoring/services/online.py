"""Online scores for whoever may have them: who may use which evaluator, and the question to the live worker. Writes
nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evalapp.common.errors import BadInput, NotAllowed, NotThere

from ..live.asking import ask_live
from ..models import Evaluator
from ..selectors.catalogue import check_models, entries, parse_options
from ..selectors.training import find_scorable


def score_pairs(
    *,
    user: Any,
    evaluator: str,
    pairs: Sequence[Mapping[str, Any]],
    options: Mapping[str, Any] | None = None,
    project: str = "",
) -> dict[str, Any]:
    """`signature`, `scores`, `reasons` and `notes` of these texts."""
    source, parsed = _source(user, evaluator, project, options or {})
    plain = [dict(pair) for pair in pairs]
    return ask_live({"kind": "score", "source": source, "options": parsed, "pairs": plain}, asker=str(user.pk))


def compare_pairs(
    *,
    user: Any,
    evaluator: str,
    pairs: Sequence[Mapping[str, Any]],
    options: Mapping[str, Any] | None = None,
    project: str = "",
) -> dict[str, Any]:
    """`signature`, `verdicts`, `probabilities`, `swap_consistency` and `notes` of pairs of texts."""
    source, parsed = _source(user, evaluator, project, options or {})
    plain = [dict(pair) for pair in pairs]
    return ask_live({"kind": "compare", "source": source, "options": parsed, "pairs": plain}, asker=str(user.pk))


def rate_references(
    *,
    user: Any,
    evaluator: str,
    context: Sequence[str],
    references: Sequence[str],
    options: Mapping[str, Any] | None = None,
    project: str = "",
) -> dict[str, Any]:
    """`signature` and `reliability` of these references for the context."""
    source, parsed = _source(user, evaluator, project, options or {})
    request = {"kind": "reliability", "source": source, "options": parsed}
    return ask_live({**request, "context": list(context), "references": list(references)}, asker=str(user.pk))


def _source(user: Any, name: str, project: str, options: Mapping[str, Any]) -> tuple[dict[str, str], dict[str, Any]]:
    """Where the worker finds the evaluator, and its options; names of the catalogue come first."""
    _check_read(user)
    known = {entry.name: entry for entry in entries()}
    if name in known and not known[name].learns:
        parsed = parse_options(known[name], options)
        check_models(known[name].options, parsed)
        return {"name": name}, parsed
    if name in known:
        raise BadInput(f"{name} is a method that learns: name one that was trained, by what it is called there.")
    found = find_scorable(user=user, slug=name, project=project)
    if found.name not in known:
        raise NotThere(f"This installation no longer has {found.name}.")
    if found.state == Evaluator.State.DAMAGED:
        raise BadInput(f"{found.slug} cannot be used: {found.damage}")
    return {"folder": found.folder, "slug": found.slug}, parse_options(known[found.name], options)


def _check_read(user: Any) -> None:
    """A token must carry the scope `read`; one bound to a project may use what needs no project, too."""
    token = getattr(user, "api_token", None)
    if token is not None and not {"read", "manage"} & set(token.scopes):
        raise NotAllowed("This token lacks the scope “read”. Make one with it under Account, Tokens.")
