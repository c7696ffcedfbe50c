"""A newcomer with a spreadsheet of own columns, from an empty project to a leaderboard, in few clicks. The
page works without script. Every click is counted, also the one that opens the choice of files."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from playwright.sync_api import expect

from annotation.models import Comparison, Item, Output, Rating, Upload
from tests.browser.test_new_researcher import Mouse
from tests.browser.worker_process import execute_in_worker
from tests.cast import Cast

pytestmark = [pytest.mark.browser, pytest.mark.slow]

MOST_CLICKS = 12
ITEMS, SYSTEMS = 12, 18


def write_sheet(path: Path) -> None:
    """40 columns: id, prompt, answer by a person, a note; then the reply and the rating of each system."""
    systems = [f"model {k}" for k in range(SYSTEMS)]
    rows = [["Example", "User prompt", "Gold answer", "Topic", *systems, *(f"{name}: quality" for name in systems)]]
    for i in range(ITEMS):
        replies = [f"On day {i} I would take path {k} to the lake." for k in range(SYSTEMS)]
        ratings = [1 + (i + k) % 3 + k // 9 for k in range(SYSTEMS)]
        rows.append([f"ex{i}", f"What shall we do on day {i}?", f"Walk to lake {i}.", "trips", *replies, *ratings])
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    assert len(rows[0]) == 40


def test_from_my_spreadsheet_to_a_leaderboard(
    cast: Cast, page_for: Callable[..., Any], site: Any, axe: Callable[..., list[str]], tmp_path: Path
) -> None:
    sheet = tmp_path / "results of may.csv"
    write_sheet(sheet)
    page = page_for(cast.owner)
    mouse = Mouse(page)
    page.goto("/projects/alpha/")
    mouse.click("ol.steps li.next a.button")
    mouse.choose("input[type=file]", sheet)
    mouse.click("main form button.primary")

    # The proposal, with the first rows in both forms
    expect(page.locator("[data-made=outputs] tbody tr")).not_to_have_count(0)
    expect(page.locator("[data-made=ratings] tbody tr")).not_to_have_count(0)
    expect(page.locator("#given tbody tr")).to_have_count(5)
    expect(page.locator("select[name^=role-]")).to_have_count(40)
    assert axe(page) == []
    mouse.click("#import button.primary")
    expect(page.locator("#upload-cancel")).to_be_visible()
    execute_in_worker(site, Upload.objects.get().run_id)
    expect(page.locator(".status[data-state=done]")).to_be_visible()
    assert (Item.objects.count(), Output.objects.count()) == (ITEMS, ITEMS * SYSTEMS)
    assert Rating.objects.count() == ITEMS * SYSTEMS

    mouse.click(page.get_by_role("link", name="Results", exact=True))
    expect(page.locator("main table tbody tr", has_text="model 17")).not_to_have_count(0)
    print(f"{mouse.clicks} clicks")
    assert mouse.clicks <= MOST_CLICKS


def write_two_header_rows(path: Path) -> None:
    """A workbook with a title, and the names of two systems in merged cells above their columns."""
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.append(["Museum guide, answers of May"])
    sheet.append([])
    sheet.append(["", "", "Guide A", "", "", "Guide B", "", ""])
    sheet.append(["No.", "Visitor's question", *["Answer", "Helpful", "Polite"] * 2])
    sheet.merge_cells("C3:E3")
    sheet.merge_cells("F3:H3")
    for k in range(ITEMS):
        answers = (f"Room {k} is on the left, next to the stairs.", f"You find room {k} upstairs.")
        ratings = ((1 + k % 5, 1 + k % 4), (1 + (k + 2) % 5, 5))
        cells = [[answer, *both] for answer, both in zip(answers, ratings, strict=True)]
        sheet.append([k + 1, f"Where do I find room {k}?", *cells[0], *cells[1]])
    book.save(path)


def write_semicolons(path: Path) -> None:
    """A row per rating in German, as Excel writes it: semicolons, decimal commas, cp1252."""
    rows = ["Beispiel;Frage;Modell;Antwort;Gutachterin;Bewertung"]
    for k in range(ITEMS):
        for system in ("klein", "groß"):
            answer = f"Das Museum öffnet um {k} Uhr, sagt {system}."
            rows += [
                f'b{k};Wann öffnet Haus {k}?;{system};"{answer}";{rater};{1 + (k + n) % 4},5'
                for n, rater in enumerate(("Anna", "Eva"))
            ]
    path.write_bytes("\r\n".join([*rows, ""]).encode("cp1252"))


def write_preferences(path: Path) -> None:
    """Chosen and rejected chats with their scores, by two models."""
    lines = []
    for k in range(ITEMS):
        asked = {"role": "user", "content": f"Name {k} rivers."}
        texts = [f"Here are {k} rivers in the north.", f"I know {k}."]
        models = ["old", "new"] if k % 3 else ["new", "old"]
        chats = [[asked, {"role": "assistant", "content": text}] for text in texts]
        lines.append({
            "prompt_id": f"r{k}", "prompt": asked["content"], "chosen": chats[0], "rejected": chats[1],
            "chosen_model": models[0], "rejected_model": models[1], "score_chosen": 7.5 + k % 3, "score_rejected": 4.0,
        })  # fmt: skip
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


#: File, its writer, roles of columns that are asked, the systems on the leaderboard, and the numbers of outputs,
#: ratings and comparisons.
SHEETS: dict[str, tuple[Callable[[Path], None], dict[str, str], tuple[str, ...], tuple[int, int, int]]] = {
    "guides.xlsx": (
        write_two_header_rows, {"Visitor's question": "context"}, ("Guide A", "Guide B"), (2 * ITEMS, 4 * ITEMS, 0),
    ),
    "museum.csv": (write_semicolons, {}, ("klein", "groß"), (2 * ITEMS, 4 * ITEMS, 0)),
    "rivers.jsonl": (write_preferences, {}, ("old", "new"), (2 * ITEMS, 2 * ITEMS, ITEMS)),
}  # fmt: skip


@pytest.mark.parametrize("name", SHEETS)
def test_other_sheets_to_a_leaderboard(
    cast: Cast, page_for: Callable[..., Any], site: Any, tmp_path: Path, name: str
) -> None:
    write, answers, systems, counts = SHEETS[name]
    write(tmp_path / name)
    page = page_for(cast.owner)
    mouse = Mouse(page)
    page.goto("/projects/alpha/")
    mouse.click("ol.steps li.next a.button")
    mouse.choose("input[type=file]", tmp_path / name)
    mouse.click("main form button.primary")
    expect(page.locator("#given tbody tr")).to_have_count(5)
    for column, role in answers.items():  # what the sheet does not tell is asked
        expect(page.locator("#import button.primary")).to_be_disabled()
        line = page.get_by_role("row").filter(has=page.get_by_text(column, exact=True)).get_by_role("combobox")
        line.select_option(role)
        mouse.clicks += 2
        mouse.click("#columns button[value=show]")
    expect(page.locator("#import button.primary")).to_be_enabled()
    expect(page.locator("[data-left-out]")).to_have_count(0)
    mouse.click("#import button.primary")
    expect(page.locator("#upload-cancel")).to_be_visible()
    execute_in_worker(site, Upload.objects.get().run_id)
    expect(page.locator(".status[data-state=done]")).to_be_visible()
    assert (Output.objects.count(), Rating.objects.count(), Comparison.objects.count()) == counts
    mouse.click(page.get_by_role("link", name="Results", exact=True))
    for system in systems:
        expect(page.locator("main table tbody tr", has_text=system)).not_to_have_count(0)
    assert mouse.clicks <= MOST_CLICKS


def test_without_script(cast: Cast, page_for: Callable[..., Any], site: Any, tmp_path: Path) -> None:
    """Upload, a change of a column, the rows that follow from it, and the import, on a narrow screen."""
    sheet = tmp_path / "sheet.csv"
    sheet.write_text("id,question,gpt output,llama output,seconds\nq1,Where?,It is there.,Here it is.,3\n")
    page = page_for(cast.owner, width=390, script=False)
    page.goto("/projects/alpha/uploads/")
    page.set_input_files("input[type=file]", sheet)
    page.click("main form button.primary")
    expect(page.locator("[data-left-out]")).to_have_text(["seconds"])
    # The choice for a column is not cut off.
    box = page.locator("select[name=role-0]").bounding_box()
    assert box["x"] + box["width"] <= 390
    page.select_option("select[name=role-4]", "meta")
    page.click("#columns button[value=show]")
    expect(page.locator("[data-left-out]")).to_have_count(0)
    page.click("#import button.primary")
    execute_in_worker(site, Upload.objects.get().run_id)
    assert Output.objects.count() == 2
    assert Item.objects.get().meta == {"seconds": "3"}
