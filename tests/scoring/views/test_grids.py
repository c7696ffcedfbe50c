"""Tables of results on pages: sorting, columns and intervals by the address, without script."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from annotation.models import Aspect, Comparison, Item, Output, Rating, Reference, ReferenceSet
from scoring.boards.systems import columns as systems_columns
from scoring.models import ScoreSet
from scoring.selectors import reference_sets
from tests.cast import Cast
from tests.factories import make_items, make_outputs, make_ratings
from tests.pages import read_page
from tests.scoring.views.test_pages import address

pytestmark = pytest.mark.django_db
#: Pages with a table of results, with the column of names.
BOARDS = {
    "systems": "system", "systems?by=length": "system", "evaluation": "evaluator", "evaluation/aspects": "evaluator",
    "evaluation/matrix": "evaluator", "agreement": "aspect", "agreement-raters": "rater",
    "agreement-calibration": "system",
}  # fmt: skip


@pytest.fixture
def researcher(cast: Cast, client: Client) -> Client:
    client.force_login(cast.researcher)
    return client


class Tables(HTMLParser):
    """The tables of a page: headings and rows of texts."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.heads: dict[str, dict[str, str | None]] = {}
        self.links: dict[str, str] = {}
        self.rows: list[list[str]] = []
        self.texts: list[str] = []
        self._head = ""
        self._cell = False
        self._tags: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        given = dict(attrs)
        self._tags.append(tag)
        if "data-column" in given:
            self._head = given["data-column"]
            self.heads[self._head] = given
        elif tag == "a" and self._head and given.get("id", "").startswith("sort-"):
            self.links[self._head] = given["href"]
        elif tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th") and self.rows:
            self.rows[-1].append("")
            self._cell = True

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th"):
            self._cell, self._head = False, ""

    def handle_data(self, data: str) -> None:
        if self._tags and self._tags[-1] not in ("script", "style"):
            self.texts.append(data)
        if self._cell and self.rows and self.rows[-1]:
            self.rows[-1][-1] += data.strip()


def place(name: str) -> str:
    name, _, tail = name.partition("?")
    first, _, kind = name.partition("/")
    url = reverse(f"scoring:{first}-board", args=["alpha", kind]) if kind else address(name)
    return f"{url}?{tail}"


def show(client: Client, name: str, **params: Any) -> Tables:
    response = client.get(place(name) + _tail(params))
    assert response.status_code == 200
    return Tables(read_page(response))


def _tail(params: dict[str, Any]) -> str:
    pairs = [
        (key, value) for key, values in params.items() for value in (values if isinstance(values, list) else [values])
    ]
    return "".join(f"&{key}={value}" for key, value in pairs)


@pytest.mark.parametrize("name", BOARDS)
def test_every_heading_sorts_its_table_by_a_link(scored, researcher, name):
    first = show(researcher, name)
    assert set(first.links) >= {BOARDS[name]}
    assert sum("aria-sort" in head for head in first.heads.values()) <= 2  # of two tables
    for column, link in first.links.items():
        order = "descending" if "sort=-" in link.replace("raters.", "") else "ascending"
        found = Tables(read_page(researcher.get(place(name).partition("?")[0] + link)))
        if column in found.heads and "raters." not in link and "pairs." not in link:
            assert found.heads[column].get("aria-sort") == order
            # The same rows in another order.
            assert sorted(len(row) for row in found.rows) == sorted(len(row) for row in first.rows)


def test_rows_follow_the_order_of_the_address(scored, researcher):
    def names(**params: Any) -> list[str]:
        rows = show(researcher, "systems", **params).rows
        return [
            next(cell for cell in row if cell.startswith("sys-"))
            for row in rows
            if any(c.startswith("sys-") for c in row)
        ]

    assert names(sort="system") == ["sys-a", "sys-b", "sys-c"]
    assert names(sort="-system") == ["sys-c", "sys-b", "sys-a"]
    assert names(sort="-value") == names() == names(sort="rank")
    assert names(sort="value") == names()[::-1]
    assert names(sort="nothing") == names()


def test_columns_are_chosen_by_tick_boxes_without_script(scored, researcher):
    text = read_page(researcher.get(address("systems") + "?aspect=quality"))
    form = text[text.index('data-columns="columns"') :]
    assert '<input type="hidden" name="aspect" value="quality">' in form
    assert re.search(r'type="checkbox" name="columns" value="kind" checked', form)
    shown = show(researcher, "systems", columns=["system", "value"])
    assert list(shown.heads) == ["lines", "system", "value"]
    assert {len(row) for row in shown.rows if row} == {3}
    # Links of headings and the form above keep the choice.
    assert shown.links["value"].count("columns=") == 2
    assert 'type="hidden" form="query" name="columns" value="value"' in read_page(
        researcher.get(place("systems") + _tail({"columns": ["system", "value"]}))
    )


def test_columns_of_intervals_follow_their_own_switch(scored, researcher):
    assert 'type="checkbox" name="columns" value="low"' not in read_page(researcher.get(place("systems")))
    assert list(show(researcher, "systems", columns=["system", "low"]).heads) == ["lines", "system"]
    with_them = show(researcher, "systems", columns=["system", "value"], intervals=1)
    assert list(with_them.heads) == ["lines", "system", "value", "low", "high"]


def test_unknown_columns_are_ignored(scored, researcher):
    plain = list(show(researcher, "systems").heads)
    assert list(show(researcher, "systems", columns="nothing").heads) == plain
    assert list(show(researcher, "systems", columns=["nothing", "value"]).heads) == ["lines", "system", "value"]


def test_many_overlapping_systems_have_letters_instead_of_lines(scored, researcher, monkeypatch):
    heads = show(researcher, "systems").heads
    assert "lines" in heads
    assert "letters" not in heads
    monkeypatch.setattr(systems_columns, "MOST_LINES", 0)
    found = show(researcher, "systems")
    assert "lines" not in found.heads
    column = list(found.heads).index("letters")
    assert {row[column] for row in found.rows if len(row) == len(found.heads)} <= {"a", "b", "c", "ab", "bc"}


def test_scores_of_an_evaluator_are_sorted_by_the_address(scored, researcher):
    url = reverse("scoring:evaluator", args=["alpha", "length"])
    text = read_page(researcher.get(url))
    assert text.index("distribution.svg") < text.index('data-column="mean"'), "the picture is first"
    rows = [row["label"] for row in researcher.get(url + "?sort=-system").context["grid"].rows]
    assert rows == ["sys-c", "sys-b", "sys-a"]


def test_tabs_of_people_and_evaluators_keep_the_choice_of_systems(scored, researcher):
    text = read_page(researcher.get(address("systems") + "?systems=machine"))
    tabs = text[text.index('class="tabs"') : text.index("inline-form")]
    kept = "systems=machine"
    expected = [kept, f"assist=token-f1&amp;{kept}", f"by=token-f1&amp;{kept}"]
    assert re.findall(r'href="[^"]*\?([^"]*)"', tabs) == expected


def test_tabs_keep_the_choices_that_they_have_too(scored, researcher):
    text = read_page(researcher.get(address("evaluation") + "?coefficient=spearman"))
    tabs = dict(re.findall(r'href="[^"]*/evaluation/(\w*)/?\?([^"]*)"', text[text.index('class="tabs"') :]))
    assert tabs["matrix"]
    assert "coefficient=spearman" in tabs["matrix"]


@pytest.mark.parametrize("name", ["systems", "evaluation", "evaluation/aspects", "evaluation/matrix", "agreement"])
def test_intervals_are_shown_on_demand(scored, researcher, name):
    text = read_page(researcher.get(place(name)))
    assert 'data-intervals="off"' in text
    with_them = read_page(researcher.get(place(name) + "&intervals=1"))
    assert 'data-intervals="on"' in with_them
    assert len(with_them) > len(text)
    low = re.compile(r"[−0-9.]+ to [−0-9.]+")
    body = text[text.index("<tbody>") : text.index("</tbody>")]
    assert not low.search(body)
    assert 'data-column="low"' in with_them or low.search(with_them[with_them.index("<tbody>") :])


def test_exports_do_not_depend_on_the_page(scored, researcher):
    for ending in ("csv", "json", "tex"):
        file = reverse("scoring:systems-file", args=["alpha", ending])
        plain = researcher.get(file).content
        assert researcher.get(file + "?sort=-system&columns=system&intervals=1").content == plain


def test_a_symmetric_table_is_shown_once(scored, researcher):
    body = [row for row in show(researcher, "evaluation/matrix").rows if row]
    n = len(body)
    assert n >= 3
    for number, row in enumerate(body):
        assert [bool(cell) for cell in row[1:]] == [place < number for place in range(n)]
    # In another order a triangle would hide pairs.
    other = [row for row in show(researcher, "evaluation/matrix", sort="-evaluator").rows if row]
    assert all(sum(not cell for cell in row) == 1 for row in other)


def test_n_is_stated_once(scored, researcher):
    text = read_page(researcher.get(address("evaluation")))
    assert re.search(r'data-same="n">n 24<', text)
    assert 'data-column="n"' not in text
    # Where rows differ, each has its own.
    found = ScoreSet.objects.get(evaluator__slug="token-f1")
    found.scores.filter(pk__in=found.scores.values("pk")[:2]).delete()
    found.data_hash = "none"  # so that no cache file of columns is written for it
    found.scored_at = timezone.now()
    found.save()
    text = read_page(researcher.get(address("evaluation")))
    assert 'data-column="n"' in text


@pytest.mark.parametrize("name", BOARDS)
def test_numbers_have_true_minus_signs(scored, researcher, name):
    found = show(researcher, name, intervals=1)
    wrong = [text for text in found.texts if re.search(r"(?<![\w.:,/@|-])-\d", text) and "|" not in text]
    assert wrong == []


def test_some_number_is_negative(scored, researcher):
    """So the test above can fail."""
    assert any("−0." in text for text in show(researcher, "evaluation", intervals=1).texts)


def test_tab_of_evaluators_opens_one_with_scores(scored, researcher):
    def opened() -> str | None:
        found = re.search(r'\?by=([^"]*)"', read_page(researcher.get(address("systems"))))
        return found and found[1]

    assert opened() == "token-f1"  # not a trivial baseline
    ScoreSet.objects.filter(evaluator__slug="token-f1").update(scored_at=None)
    assert opened() == "length"
    ScoreSet.objects.all().delete()
    assert opened() == "length"  # the first of all, which the page then explains


def test_tab_by_reference_set_keeps_tabs_and_navigation(scored, researcher):
    def tabs(url: str) -> list[str]:
        text = read_page(researcher.get(url))
        return re.findall(
            r'href="([^"]*/(?:evaluation|references)/[^"]*)"',
            text[text.index('class="tabs"') : text.index("inline-form")],
        )

    assert tabs(address("enhanced")) == tabs(address("evaluation"))
    text = read_page(researcher.get(address("enhanced")))
    assert re.search(rf'href="{address("evaluation")}"[^>]* aria-current="\w+"', text[: text.index("<h1")])


def test_comparison_shows_parts_of_the_differences(scored, researcher, monkeypatch):
    first = ReferenceSet.objects.create(project=scored.project, name="s2")
    second = ReferenceSet.objects.create(project=scored.project, name="s10")
    a, b, c, d = Item.objects.filter(project=scored.project).order_by("order_key")[:4]
    kept = {
        first: {a: ["same", "old"], b: ["same"], c: ["gone"]},
        second: {a: ["new", "same"], b: ["same"], d: ["more"]},
    }
    for of, texts in kept.items():
        for item, lines in texts.items():
            for position, text in enumerate(lines):
                Reference.objects.create(set=of, item=item, position=position, text=text)
    url = address("reference-sets-compare") + "?first=s2&second=s10"
    text = read_page(researcher.get(url))
    assert re.findall(r'data-count="(\d+)"', text) == ["1", "1", "1"]
    assert re.findall(r'data-item="([^"]+)"', text) == [a.key]
    # Additions come first; what is unchanged is folded.
    part = text[text.index(f'data-item="{a.key}"') :]
    assert part.index('class="added"') < part.index(">new<") < part.index('class="removed"') < part.index(">old<")
    assert part.index("<details>") < part.index(">same<")
    for name, item, kind in (("second", d, "added"), ("first", c, "removed")):
        text = read_page(researcher.get(f"{url}&part={name}"))
        assert re.findall(r'data-item="([^"]+)"', text) == [item.key]
        assert f'class="{kind}"' in text
    monkeypatch.setattr(reference_sets, "MOST_COUNTED", 3)
    text = read_page(researcher.get(url))
    assert re.findall(r'data-count="(\d*)"', text) == ["", "1", "1"]
    assert re.findall(r'data-item="([^"]+)"', text) == [a.key]
    assert f"{address('enhanced')}?set=s2&amp;set=s10&amp;first=s2" in text
    same = read_page(researcher.get(address("reference-sets-compare") + "?first=s2&second=s2"))
    assert 'data-empty="differences"' in same


#: Pages of results whose tables may be empty.
RESULTS = (
    "systems", "evaluation", "evaluation/pairs", "evaluation/aspects", "evaluation/slices", "evaluation/matrix",
    "enhanced", "agreement", "agreement-raters", "agreement-calibration", "steps", "snapshots",
    "reference-sets-compare",
)  # fmt: skip


@pytest.mark.parametrize("name", RESULTS)
@pytest.mark.parametrize("filled", ["nothing", "outputs", "ratings", "comparisons"])
def test_every_empty_page_links_to_the_next_step(cast, researcher, name, filled):
    if filled != "nothing":
        outputs = make_outputs(cast.project, make_items(cast.project, 2), ("sys-a", "sys-b"))
        if filled == "ratings":
            make_ratings(cast.project, outputs)
        elif filled == "comparisons":
            aspect = Aspect.objects.create(project=cast.project, name="better")
            Comparison.objects.create(
                project=cast.project, output_a=outputs[0], output_b=outputs[2], aspect=aspect,
                rater="r1", verdict="a",
            )  # fmt: skip
    text = read_page(researcher.get(place(name)))
    main = text[text.index("<main") : text.index("</main>")]
    empty = re.findall(r'<div class="empty".*?</div>', main, re.S)
    assert empty or "<tbody>" in main
    for part in empty:
        link = re.search(r'<a class="button primary" href="([^"]*)"', part)
        assert link, part
        assert researcher.get(link[1] if link[1] != "?" else place(name)).status_code == 200


def test_best_steps_are_sorted_by_the_address(scored, researcher):
    for step, output in enumerate(Output.objects.filter(project=scored.project).order_by("pk")):
        Output.objects.filter(pk=output.pk).update(step=10 * (1 + step % 2))
    first = show(researcher, "steps")
    assert {"system", "panel", "step", "value", "people"} <= set(first.links)
    steps = [row for row in show(researcher, "steps", sort="step").rows if len(row) == 5]
    assert len(steps) > 3
    assert [int(row[2]) for row in steps] == sorted(int(row[2]) for row in steps)


def test_page_of_an_item_states_equal_numbers_of_ratings_once(scored, researcher):
    item = Item.objects.filter(project=scored.project).order_by("order_key").first()
    url = reverse("annotation:item-show", args=["alpha", item.pk])
    text = read_page(researcher.get(url))
    assert re.findall(r'data-same="n">([^<]*)<', text) == ["n 2"]
    Rating.objects.filter(output__item=item, rater="r1", output__system__name="sys-a").delete()
    text = read_page(researcher.get(url))
    assert "data-same" not in text
    assert text.count(">n 2<") == 2
    assert text.count(">n 1<") == 1


def test_intervals_of_a_table_have_one_scale_and_one_line_through_all_rows(scored, researcher):
    text = read_page(researcher.get(place("evaluation")))
    lines = re.findall(r'class="reference"[^>]*><line x1="([\d.]+)%"', text)
    assert len(set(lines)) == 1
    assert len(lines) == len(re.findall(r'<td class="[^"]*drawn', text)) > 1
    assert text.count('class="ticks"') == 1
