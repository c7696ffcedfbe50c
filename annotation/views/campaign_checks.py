"""Practice and control items of a draft: selected with their expected answer and reason, or pasted as JSON."""

import json
from typing import Any

from django.contrib import messages
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from annotation.models import Campaign, Item
from annotation.selectors.campaigns import make_campaign_plan
from annotation.selectors.judging_sheet import make_sheet
from annotation.services.campaigns import update_campaign
from annotation.services.campaigns_preview import get_item_texts
from evalapp.common.errors import Conflict, EvalappError
from evalapp.common.forms import read_number

from .campaign_pages import JUDGING
from .campaign_tables import describe_system

LISTS = ("practice", "controls")
MATCHES = 20
TOO_LONG = 2_000_000
_START = '{"practice": ['


def _number(text: str) -> float | int | str:
    """The number in a field, or its text, which the plan's rules reject with a message."""
    try:
        value = float(text)
    except ValueError:
        return text
    return int(value) if value.is_integer() else value


def _expected(request: HttpRequest, form: dict[str, Any]) -> dict[str, Any]:
    """The expected range or verdicts by question; empty questions have no expected answer."""
    expected: dict[str, Any] = {}
    for aspect in form["aspects"]:
        name = aspect["name"]
        if form["kind"] == "likert":
            low = request.POST.get(f"low.{name}", "").strip()
            high = request.POST.get(f"high.{name}", "").strip()
            if low or high:
                expected[name] = [_number(low or high), _number(high or low)]
        elif verdicts := request.POST.getlist(f"verdict.{name}"):
            expected[name] = verdicts
    return expected


def _row(request: HttpRequest, form: dict[str, Any]) -> dict[str, Any]:
    def step(name: str) -> tuple[str, int | None]:
        system, _, number = request.POST.get(name, "").rpartition("|")
        return system, read_number(number)

    row: dict[str, Any] = {"item": request.POST.get("item", ""), "expected": _expected(request, form)}
    row["system"], first = step("output_a")
    if first is not None:
        row["step"] = first
    if form["kind"] == "pairwise":
        row["system_b"], second = step("output_b")
        if second is not None:
            row["step_b"] = second
    elif form["kind"] == "turing":
        raw = request.POST.get("reference", "0")
        row["reference"] = read_number(raw) or 0
    row["why"] = request.POST.get("why", "").strip()
    return row


def _pasted(text: str) -> tuple[dict[str, list], str]:
    """The lists in pasted JSON, or an error message."""
    if len(text) > TOO_LONG:
        return {}, _("The text is too long; the maximum is 2 MB.")
    try:
        raw = json.loads(text)
    except (ValueError, RecursionError) as error:
        if not isinstance(error, json.JSONDecodeError):
            return {}, _("This is not JSON. Start with %(start)s") % {"start": _START}
        message = _("This is not JSON (line %(line)d, column %(column)d). Start with %(start)s")
        return {}, message % {"line": error.lineno, "column": error.colno, "start": _START}
    if not isinstance(raw, dict) or not raw or set(raw) - set(LISTS):
        return {}, _("Paste one object with the lists “practice” and “controls”.")
    if not all(isinstance(rows, list) for rows in raw.values()):
        return {}, _("“practice” and “controls” must be lists of rows.")
    return raw, ""


@require_http_methods(["GET", "POST"])
def checks(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """`?q=` searches items; `?item=` shows one with its texts and the form for the expected answer."""
    campaign = JUDGING.find(request, slug, pk, "write")
    if campaign.state != Campaign.State.DRAFT:
        message = _("Practice and control items are fixed once a campaign has been opened. Copy it to change them.")
        raise Conflict(message)
    form = make_sheet(campaign).shown_form()
    plan = make_campaign_plan(campaign)
    errors: list[str] = []
    errors_pasted: list[str] = []
    if request.method == "POST":
        wanted = request.POST.get("do", "")
        if wanted == "paste":
            rows, message = _pasted(request.POST.get("pasted", ""))
            errors_pasted = [message] if message else []
            changes = {name: plan[name] + added for name, added in rows.items()}
        else:
            name = request.POST.get("list", "")
            changes = {name: [*plan[name], _row(request, form)]} if name in LISTS else {}
            errors = [] if changes else [_("Choose practice or control.")]
        if changes:
            try:
                update_campaign(campaign=campaign, user=request.user, changes=changes)
            except EvalappError as error:
                is_pasted = wanted == "paste"
                shown = _list_errors(error, plan, is_pasted)
                errors, errors_pasted = ([], shown) if is_pasted else (shown, [])
            else:
                messages.success(request, _("Saved."))
                return redirect("annotation:campaign-checks", slug, pk)
    return JUDGING.show(
        request,
        "checks",
        campaign,
        status=422 if errors or errors_pasted else 200,
        form=form,
        plan=plan,
        errors=errors,
        errors_pasted=errors_pasted,
        pasted=request.POST.get("pasted", ""),
        typed=request.POST,
        lists=[(name, [_words(row, form) for row in plan[name]]) for name in LISTS],
        sides=_sides(form),
        questions=_questions(request, form),
        example=_example(form),
        **_chosen(request, campaign),
    )


def _words(row: dict[str, Any], form: dict[str, Any]) -> dict[str, Any]:
    """A row of the plan, for the table."""
    verdicts = {verdict["value"]: verdict["label"] for verdict in form["verdicts"]}

    def value(expected: Any) -> str:
        if isinstance(expected, list) and form["kind"] == "likert":
            return _(" to ").join(dict.fromkeys(f"{one:g}" for one in expected))
        return _(" or ").join(
            verdicts.get(one, str(one)) for one in (expected if isinstance(expected, list) else [expected])
        )

    def name(system: str, step: str) -> str:
        if row.get(step) is None:
            return row[system]
        return _("%(system)s at step %(step)d") % {"system": row[system], "step": row[step]}

    shown = [name("system", "step")]
    if "system_b" in row:
        shown.append(name("system_b", "step_b"))
    if "reference" in row:
        shown.append(_("reference %(number)d") % {"number": row["reference"] + 1})
    words = ", ".join(
        value(expected) if len(form["aspects"]) == 1 else f"{aspect} {value(expected)}"
        for aspect, expected in row["expected"].items()
    )
    return {**row, "shown": " / ".join(shown), "words": words}


def _sides(form: dict[str, Any]) -> list[tuple[str, str]]:
    if form["kind"] == "pairwise":
        return [("output_a", _("First text")), ("output_b", _("Second text"))]
    return [("output_a", _("First text: the output") if form["kind"] == "turing" else _("Text"))]


def _example(form: dict[str, Any]) -> str:
    """An example of JSON with this campaign's questions."""
    aspect = form["aspects"][0]
    row: dict[str, Any] = {"item": "i12", "system": "a"}
    if form["kind"] == "pairwise":
        row["system_b"] = "b"
    expected = [aspect["high"] - 1, aspect["high"]] if form["kind"] == "likert" else ["a"]
    row |= {"expected": {aspect["name"]: expected}, "why": _("It answers the question.")}
    return json.dumps({"practice": [row], "controls": []}, ensure_ascii=False)


def _list_errors(error: EvalappError, plan: dict[str, Any], pasted: bool) -> list[str]:
    """Error messages with the row number in the pasted text, not counting existing rows."""
    lines = []
    for fault in error.faults:
        list_name, bracket, rest = fault.field.partition("[")
        number, _bracket, inside = rest.partition("]")
        if pasted and bracket and number.isdecimal() and list_name in LISTS:
            row = int(number) - len(plan[list_name]) + 1
            place = _("%(list)s, row %(row)d") % {"list": list_name, "row": row} + inside.replace(".", ", ")
            lines.append(f"{place}: {fault.message}")
        else:
            lines.append(fault.message)
    return lines or [error.detail]


def _questions(request: HttpRequest, form: dict[str, Any]) -> list[dict[str, Any]]:
    """The questions with the submitted expected answers."""
    return [
        {
            **aspect,
            "typed_low": request.POST.get(f"low.{aspect['name']}", ""),
            "typed_high": request.POST.get(f"high.{aspect['name']}", ""),
            "ticked": request.POST.getlist(f"verdict.{aspect['name']}"),
        }
        for aspect in form["aspects"]
    ]


def _chosen(request: HttpRequest, campaign: Campaign) -> dict[str, Any]:
    """The selected item with its texts, or the items that match the search."""
    key = request.POST.get("item") or request.GET.get("item", "")
    items = Item.objects.filter(project=campaign.project_id)
    item = items.filter(key=key).first() if key else None
    if item is not None:
        outputs, references = get_item_texts(campaign, item)
        typed = {side: request.POST.get(side, "") for side in ("output_a", "output_b")}
        for output in outputs:
            output.choice = f"{output.system.name}|{'' if output.step is None else output.step}"
            output.words = describe_system(output)
            output.typed = typed
        return {"item": item, "outputs": outputs, "references": references}
    words = request.GET.get("q", "").strip()
    if words:
        items = items.filter(Q(key__icontains=words) | Q(source__icontains=words) | Q(context__icontains=words))
    return {"q": words, "matches": list(items.order_by("order_key")[:MATCHES]), "missing": key}


@require_POST
def check_remove(request: HttpRequest, slug: str, pk: int, name: str, number: int) -> HttpResponse:
    campaign = JUDGING.find(request, slug, pk, "write")
    rows = make_campaign_plan(campaign)[name] if name in LISTS else []
    if number >= len(rows):
        raise Conflict(_("That row no longer exists. Reload the page."))
    update_campaign(campaign=campaign, user=request.user, changes={name: rows[:number] + rows[number + 1 :]})
    messages.success(request, _("Removed."))
    return redirect("annotation:campaign-checks", slug, pk)
