"""Snapshots by pages, API and commands: they stay unchanged, and state later changes."""

from __future__ import annotations

import io
import json
import re
from datetime import timedelta

import pytest
from django.core.cache import cache
from django.core.management import CommandError, call_command
from django.urls import reverse

from annotation.models import Rating
from evalapp.common.errors import BadInput, Conflict
from evalapp.common.models import AuditEvent, Run
from scoring.boards.metrics.query import EvaluatorsQuery
from scoring.boards.registry import get_board
from scoring.boards.systems.query import SystemsQuery
from scoring.models import ScoreSet, Snapshot
from scoring.selectors.snapshots import compare_tables
from scoring.services import leaderboards, snapshots
from scoring.services.snapshots import take_snapshot
from tests.pages import read_page

pytestmark = pytest.mark.django_db


def place(name, *rest):
    return reverse(f"scoring:{name}", args=["alpha", *rest])


@pytest.fixture
def board(cast):
    from tests.factories import make_items, make_outputs, make_ratings

    make_ratings(cast.project, make_outputs(cast.project, make_items(cast.project, 6)))
    return cast


def test_snapshot_stays_while_the_data_change(board, client):
    client.force_login(board.researcher)
    answer = client.post(place("snapshots"), {"board": "systems", "title": "Before the paper", "note": "for Table 2"})
    assert answer.headers["Location"] == place("snapshot", "before-the-paper")
    kept = Snapshot.objects.get()
    Rating.objects.filter(output__system__name="sys-a").update(value=5)
    Rating.objects.order_by("-pk").first().delete()  # so that the data version changes
    shown = read_page(client.get(place("snapshot", "before-the-paper")))
    assert "for Table 2" in shown
    assert Snapshot.objects.get().table == kept.table
    assert kept.table["signature"] in shown
    changed = read_page(client.get(place("snapshots-compare") + "?first=before-the-paper"))
    assert "the current table" in changed
    assert "<strong>+" in changed  # sys-a rose beyond its interval
    assert "ratings: 24 then, 23 now" in changed
    assert read_page(client.get(place("snapshot-file", "before-the-paper", "tex"))).startswith("% method:mean")
    verbs = list(AuditEvent.objects.values_list("verb", flat=True))
    assert "snapshot.taken" in verbs
    assert client.post(place("snapshot-delete", "before-the-paper")).status_code == 302
    assert client.get(place("snapshot", "before-the-paper")).status_code == 404
    assert AuditEvent.objects.filter(verb="snapshot.deleted", project=board.project).exists()


def test_simulated_ratings_are_marked_in_a_comparison(board, client):
    Rating.objects.filter(rater="r0").update(simulated=True)
    client.force_login(board.researcher)
    client.post(place("snapshots"), {"board": "systems", "title": "One", "note": ""})
    assert "badge simulated" in read_page(client.get(place("snapshots-compare") + "?first=one"))


def test_double_click_takes_one_snapshot(board, client, monkeypatch):
    client.force_login(board.researcher)
    words = {"board": "systems", "title": "Once", "note": "n"}
    places = [client.post(place("snapshots"), given).headers["Location"] for given in (words, words)]
    assert places == [place("snapshot", "once")] * 2
    other = client.post(place("snapshots"), {**words, "note": "another"})
    assert other.headers["Location"] == place("snapshot", "once-2")
    monkeypatch.setattr(snapshots, "DOUBLE_CLICK", timedelta(0))
    later = client.post(place("snapshots"), words)
    assert later.headers["Location"] == place("snapshot", "once-3")


def test_members_only_and_viewers_take_none(board, client):
    row = take_snapshot(project=board.project, user=board.researcher, query=SystemsQuery())
    for who, status in ((board.viewer, 200), (board.annotator, 403), (board.stranger, 404)):
        client.force_login(who)
        assert client.get(place("snapshot", row.slug)).status_code == status
    client.force_login(board.viewer)
    assert client.post(place("snapshots"), {"board": "systems"}).status_code == 403


def test_names_are_free_and_titles_have_a_default(board):
    first = take_snapshot(project=board.project, query=SystemsQuery())
    second = take_snapshot(project=board.project, query=SystemsQuery())
    assert second.slug == f"{first.slug}-2"
    assert first.title.startswith("Systems, quality, 20")
    with pytest.raises(Conflict, match="taken"):
        take_snapshot(project=board.project, query=SystemsQuery(), slug=first.slug)
    with pytest.raises(BadInput, match="lower-case letters"):
        take_snapshot(project=board.project, query=SystemsQuery(), slug="Not this")
    assert take_snapshot(project=board.project, query=SystemsQuery(), title="Compare").slug == "compare-2"


def test_no_snapshot_of_a_table_under_computation(board, monkeypatch):
    monkeypatch.setattr(leaderboards, "MAX_ROWS_IN_REQUEST", 1)
    with pytest.raises(Conflict, match="being computed in run"):
        take_snapshot(project=board.project, query=SystemsQuery())


def test_snapshot_of_a_table_under_computation_stays_on_its_page(board, client, monkeypatch):
    """Once, it was a bare error page that only linked to the projects."""
    monkeypatch.setattr(leaderboards, "MAX_ROWS_IN_REQUEST", 1)
    client.force_login(board.researcher)
    words = {"board": "systems", "title": "One", "note": ""}
    shown = place("systems") + "?level=item"
    answer = client.post(place("snapshots"), words, headers={"Referer": f"http://testserver{shown}"})
    assert answer.headers["Location"] == shown
    run = Run.objects.get(kind="rank")
    warned = client.get(place("systems")).context["messages"]
    assert [str(run.pk) in str(message) for message in warned] == [True]
    answer = client.post(place("snapshots"), words, headers={"Referer": "http://elsewhere/systems/"})
    assert answer.headers["Location"] == place("snapshots")
    assert not Snapshot.objects.exists()


def test_changes_between_two_tables():
    def table(kind="systems", signature="method:mean|resamples:1000", **values):
        rows = [
            {"label": name, "rank": place, "rank_low": place, "rank_high": place, "value": value,
             "low": value and value - 0.1, "high": value and value + 0.1, "n": 5, "note": ""}
            for place, (name, value) in enumerate(values.items(), 1)
        ]  # fmt: skip
        return {"kind": kind, "signature": signature, "n_ratings": len(rows), "rows": rows}

    found = compare_tables(table(a=0.5, b=0.4, gone=0.1), table(signature="method:win-rate", b=0.9, a=0.55, new=None))
    by_name = {row.name: row for row in found.rows}
    assert list(by_name) == ["b", "a", "new", "gone"]
    assert (by_name["b"].rank_first, by_name["b"].rank_second, by_name["b"].outside) == ("2", "1", True)
    assert by_name["a"].difference == pytest.approx(0.05)
    assert not by_name["a"].outside
    assert by_name["new"].first is None
    assert by_name["new"].difference is None
    assert by_name["gone"].second is None
    assert found.settings == [("method", "mean", "win-rate"), ("resamples", "1000", None)]
    assert found.counts == []
    with pytest.raises(BadInput, match="cannot be compared"):
        compare_tables(table(), table(kind="evaluators"))


def test_commands_and_api(scored, client):
    def command(*words):
        out = io.StringIO()
        call_command("snapshot", "alpha", *words, "--json", stdout=out)
        return json.loads(out.getvalue())

    with pytest.raises(CommandError, match=r"evaluators .*levle") as refused:
        command("take", "--board", "evaluators", "--set", "levle=system")
    assert refused.value.returncode == 2
    taken = command("take", "--board", "evaluators", "--set", "level=system", "--name", "first", "--note", "x")
    assert (taken["name"], taken["params"]["level"]) == ("first", "system")
    client.force_login(scored.researcher)
    api = reverse("api-snapshot-list", args=["alpha"])
    body = {"board": "evaluators", "query": {"level": "system"}, "title": "Second"}
    made = client.post(api, body, content_type="application/json")
    assert made.status_code == 201
    assert made.json()["name"] == "second"
    assert [row["name"] for row in client.get(api).json()["results"]] == ["second", "first"]
    one = client.get(reverse("api-snapshot", args=["alpha", "first"])).json()
    assert one["table"]["level"] == "system"
    same = client.get(reverse("api-snapshot-comparison", args=["alpha", "first", "second"])).json()
    assert {row["difference"] for row in same["rows"]} <= {0.0, None}
    assert same["settings"] == []
    assert command("compare", "first", "now") == {**same, "action": "compare", "names": ["first", "now"]}
    assert client.delete(reverse("api-snapshot", args=["alpha", "second"])).status_code == 204
    assert [row["name"] for row in command("list")["results"]] == ["first"]
    assert command("show", "first")["table"] == one["table"]
    assert command("delete", "first")["name"] == "first"
    with pytest.raises(CommandError):
        command("show")
    wrong = client.post(api, {"board": "matrixx"}, content_type="application/json")
    assert wrong.status_code == 400


def test_snapshot_of_evaluators_shows_the_same_as_the_page(scored, client):
    client.force_login(scored.viewer)
    row = take_snapshot(project=scored.project, query=EvaluatorsQuery())
    shown = read_page(client.get(place("snapshot", row.slug) + "?coefficient=kendall"))
    assert "Kendall, 95 %" in shown
    assert place("evaluation-svg") not in shown
    other = take_snapshot(project=scored.project, query=EvaluatorsQuery(ratings="z"))
    changed = client.get(place("snapshots-compare") + f"?first={row.slug}&second={other.slug}&coefficient=kendall")
    assert 'data-differ="ratings"' in read_page(changed)


def test_every_table_can_be_stored_and_compared(scored, client):
    from annotation.models import Item
    from scoring.selectors.leaderboards import parse_query

    for number, item in enumerate(scored.project.items.order_by("pk")):
        Item.objects.filter(pk=item.pk).update(meta={"domain": "ab"[number % 2]})
    client.force_login(scored.researcher)
    says = {"agreement": "quality, ratings: ", "slices": "length, a", "matrix": "length, token-f1"}
    says |= {"aspects": "length, quality", "enhanced": "token-f1, original"}
    for kind, words in says.items():
        answer = client.post(place("snapshots"), {"board": kind, "title": f"kept {kind}"})
        assert answer.headers["Location"] == place("snapshot", f"kept-{kind}"), kind
        assert words in read_page(client.get(place("snapshot", f"kept-{kind}"))), kind
        for ending in ("csv", "tex", "json"):
            assert client.get(place("snapshot-file", f"kept-{kind}", ending)).status_code == 200
        changed = read_page(client.get(place("snapshots-compare") + f"?first=kept-{kind}&second=kept-{kind}"))
        assert words in changed
        assert "Rank then" not in changed
    detail = parse_query(get_board("agreement").query, {"aspect": "quality", "judged": "ratings"})
    row = take_snapshot(project=scored.project, query=detail)
    assert not {"raters", "pairs"} & set(row.table)
    assert "r0" not in json.dumps(row.table)
    kept = Snapshot.objects.get(slug="kept-agreement").table
    Rating.objects.filter(rater="r1").update(value=1)
    Rating.objects.order_by("-pk").first().delete()
    out = io.StringIO()
    call_command("snapshot", "alpha", "compare", "kept-agreement", "now", "--json", stdout=out)
    told = json.loads(out.getvalue())
    assert any(row["difference"] for row in told["rows"])
    assert Snapshot.objects.get(slug="kept-agreement").table == kept
    for address in ("agreement/", "evaluation/matrix/", "references/enhanced/"):
        assert "Save snapshot" in read_page(client.get(f"/projects/alpha/{address}")), address


def test_snapshot_with_the_test_of_0_1_0_also_shows_current_letters(cast, score, client):
    """FAULTS A1: its figures stay; a notice explains the error and has the letters recomputed."""
    from tests.factories import make_items, make_outputs, make_ratings

    outputs = make_outputs(cast.project, make_items(cast.project, 9), systems=tuple("s" * (k + 1) for k in range(8)))
    for index, output in enumerate(outputs):
        output.text += " more" * (index * index % 7)
        output.save()
    make_ratings(cast.project, outputs)
    for name in ("length", "random"):
        score(cast.project, name)
    query = EvaluatorsQuery(aspect="quality", level="system")
    row = take_snapshot(project=cast.project, query=query, title="Old")
    assert row.table["test"].get("test") == "perm-systems", row.table["test"]
    client.force_login(cast.researcher)
    assert 'id="earlier-test"' not in read_page(client.get(place("snapshot", "old")))
    row.table["test"] |= {"test": "perm-both", "population": "", "changed": "", "smallest_p": None}
    for number, one in enumerate(row.table["rows"]):
        one["letters"] = "ab"[number % 2]
    row.params["test"] = "perm-both"
    row.save()
    shown = read_page(client.get(place("snapshot", "old")))
    assert 'id="earlier-test" data-letters="same data"' in shown
    assert "Letters recomputed" in shown
    assert "PERM-SYSTEMS" in shown
    tex = read_page(client.get(place("snapshot-file", "old", "tex")))
    assert "false positives" in tex
    told = client.get("/api/v1/projects/alpha/snapshots/old/").json()
    assert "false positives" in told["notice"]


def test_all_pairs_has_no_cells_below_the_diagonal(cast, client):
    """FAULTS A11: they read 1.000, also in older tables."""
    from scoring.boards.render.page import list_p_values as _pairs

    test = {"names": ["a", "b", "c"], "p_holm": [[None, 0.01, None], [1.0, None, 0.5], [1.0, 1.0, None]]}
    rows = _pairs({"test": test})
    shown = [[cell["p"] if cell["is_tested"] else "" for cell in row["cells"]] for row in rows]
    assert shown == [["", 0.01, None], ["", "", 0.5], ["", "", ""]]


def test_comparison_shows_the_chosen_snapshots_in_its_form(board, client):
    client.force_login(board.viewer)
    for name in ("one", "two"):
        take_snapshot(project=board.project, user=board.researcher, query=SystemsQuery(), slug=name)
    text = read_page(client.get(place("snapshots-compare") + "?first=one&second=two"))
    part = text[text.index('<select id="second"') :]
    assert part[: part.index("</select>")].count('value="two" selected') == 1


def test_snapshot_shows_the_coefficient_that_it_was_ordered_by(board, client):
    ScoreSet.objects.all().delete()
    table = take_snapshot(
        project=board.project, user=board.researcher, query=EvaluatorsQuery(coefficient="kendall"), slug="tau"
    ).table
    client.force_login(board.viewer)
    assert table["coefficient"] == "kendall"
    assert client.get(place("snapshot", "tau")).context["coefficient"] == "kendall"
    assert client.get(place("snapshot", "tau") + "?coefficient=spa").status_code == 400


@pytest.mark.parametrize("kind", ["systems", "evaluators", "matrix", "agreement"])
def test_snapshot_draws_its_own_table(scored, client, kind):
    query = get_board(kind).query()
    take_snapshot(project=scored.project, user=scored.researcher, query=query, slug="kept")
    client.force_login(scored.viewer)
    page = read_page(client.get(place("snapshot", "kept")))
    assert place("snapshot-svg", "kept") in page

    def draw() -> bytes:
        content: bytes = client.get(place("snapshot-svg", "kept")).content
        assert content.startswith(b"<svg")
        return re.sub(rb'(id="|url\(#)[^")]*', b"", content)  # names of parts, which count up

    drawn = draw()
    assert client.get(place("snapshot-pdf", "kept")).content.startswith(b"%PDF-")
    Rating.objects.update(value=1)
    cache.clear()
    assert draw() == drawn


def test_figures_of_a_snapshot_are_sorted_by_the_address(scored, client):
    take_snapshot(project=scored.project, user=scored.researcher, query=get_board("matrix").query(), slug="kept")
    client.force_login(scored.viewer)

    def values(order: str) -> list[float]:
        rows = client.get(place("snapshot", "kept") + f"?sort={order}").context["grid"].rows
        return [row["value"] for row in rows if row["value"] is not None]

    assert values("value") == sorted(values("value")) == values("-value")[::-1]
    assert len(set(values("value"))) > 1
