"""Online scores: check who may use which evaluator, and ask a live worker."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from evalapp.common.errors import BadInput, NotAllowed, NotThere

from ..live.asking import ask_live
from ..models import Evaluator
from ..selectors.catalogue import check_models, entries, get_method, list_shipped, parse_options, resolve_alias
from ..selectors.training import find_scorable


def ask_evaluator(
    *,
    user: Any,
    evaluator: str,
    request: Mapping[str, Any],
    options: Mapping[str, Any] | None = None,
    project: str = "",
) -> dict[str, Any]:
    """Return the answer of an evaluator to one request.

    `request` has a `kind`: "score" with `pairs` returns signature, scores, reasons and notes; "compare" with `pairs`
    signature, verdicts, probabilities, swap consistency and notes; "reliability" with `context` and `references`
    signature and reliability.
    """
    source, parsed = _find_source(user, evaluator, project, options or {})
    return ask_live({**request, "source": source, "options": parsed}, asker=str(user.pk))


def _find_source(
    user: Any, name: str, project: str, options: Mapping[str, Any]
) -> tuple[dict[str, str], dict[str, Any]]:
    """Return where the worker finds the evaluator, and its options; the catalogue comes before trained evaluators."""
    _check_scope(user)
    known = {entry.name: entry for entry in entries()}
    if name in known and not known[name].learns:
        parsed = parse_options(known[name], options)
        check_models(known[name].options, parsed)
        return {"name": name}, parsed
    if name in known:
        text = _("%(name)s is a method that must be trained: use the name of a trained evaluator.")
        raise BadInput(text % {"name": name})
    if name in list_shipped():
        return {"name": name}, parse_options(get_method(name), options)
    try:
        row = find_scorable(user=user, slug=name, project=project)
    except NotThere:
        alias, implied = resolve_alias(name)
        if alias == name:
            raise
        return _find_source(user, alias, project, {**implied, **options})
    if row.name not in known:
        raise NotThere(_("This installation no longer has %(name)s.") % {"name": row.name})
    if row.state == Evaluator.State.DAMAGED:
        raise BadInput(_("%(name)s cannot be used: %(damage)s") % {"name": row.slug, "damage": row.damage})
    return {"folder": row.folder, "slug": row.slug}, parse_options(known[row.name], options)


def _check_scope(user: Any) -> None:
    """Check that a token has the scope `read`; a token of a project may also use what belongs to no project."""
    token = getattr(user, "api_token", None)
    if token is not None and not {"read", "manage"} & set(token.scopes):
        raise NotAllowed(_("This token lacks the scope “read”. Create one with it under Account, Tokens."))
