"""Reports by link: who may create one, what it contains, and when the link ends."""

from __future__ import annotations

import io
import re
from datetime import timedelta
from html import unescape

import pypdf
import pytest
from django.urls import reverse
from django.utils import timezone

from annotation.models import Comparison, Item, Output, Rating, System
from evalapp.accounts.authentication import digest
from evalapp.accounts.models import AttemptCount, Project
from evalapp.common.deletion import delete_with_contents
from evalapp.common.errors import BadInput, Conflict
from evalapp.common.models import AuditEvent
from evalapp.common.runner import execute_run
from scoring.boards.render.report import build_document, show_share
from scoring.models import SharedReport
from scoring.services import leaderboards
from scoring.services.shared_reports import create_report
from tests.factories import make_items, make_outputs
from tests.pages import read_page

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("few_draws")]


def place(name, *rest):
    return reverse(f"scoring:{name}", args=["alpha", *rest])


def share(cast, **options):
    row, secret = create_report(project=cast.project, user=cast.owner, **options)
    return row, f"/reports/{secret}/"


def read_pdf(response):
    return "\n".join(page.extract_text() for page in pypdf.PdfReader(io.BytesIO(response.content)).pages)


@pytest.fixture
def rated(scored):
    """Raters with ids that are words, and texts that can be found again."""
    for number, rater in enumerate(("r0", "r1")):
        Rating.objects.filter(rater=rater).update(rater=f"hidden-rater-{number}@example.org")
    Output.objects.filter(item=Item.objects.order_by("pk").first()).update(text="A secret example text.")
    return scored


def test_the_link_is_shown_once_and_opens_without_signing_in(rated, client):
    client.force_login(rated.owner)
    made = client.post(place("report-create"), {"days": "30", "label": "Reviewers"})
    (link,) = re.findall(r'value="http://testserver(/reports/[\w-]{32}/)"', read_page(made))
    assert made.headers["Cache-Control"] == "no-store"
    row = SharedReport.objects.get()
    assert row.digest == digest(link.split("/")[2])
    assert timedelta(days=29) < row.expires_at - timezone.now() <= timedelta(days=30)
    assert link not in read_page(client.get(place("report-list")))
    client.logout()
    shown = client.get(link)
    assert shown.status_code == 200
    assert shown.headers["Cache-Control"] == "private, no-store"
    assert shown.headers["Referrer-Policy"] == "no-referrer"
    assert shown.headers["X-Robots-Tag"].startswith("noindex")
    assert not shown.cookies
    assert 'name="robots" content="noindex' in read_page(shown)
    pdf = client.get(f"{link}report.pdf")
    assert pdf.headers["Content-Type"] == "application/pdf"
    assert pdf.headers["X-Robots-Tag"].startswith("noindex")
    row.refresh_from_db()
    assert row.opens == 2
    assert row.opened_at is not None
    assert {"report.shared"} <= set(AuditEvent.objects.values_list("verb", flat=True))


@pytest.mark.parametrize("who", ["researcher", "viewer"])
def test_only_owners_share_and_revoke(rated, client, who):
    row, _ = share(rated)
    client.force_login(getattr(rated, who))
    assert client.get(place("report-list")).status_code == 200
    assert client.get(place("report", row.pk)).status_code == 200
    assert client.get(place("report-create")).status_code == 403
    assert client.post(place("report-create"), {"days": "3"}).status_code == 403
    assert client.post(place("report-revoke", row.pk)).status_code == 403
    assert SharedReport.objects.get().state == "open"


def test_links_that_do_not_work_have_the_same_answer(rated, client):
    revoked, revoked_link = share(rated)
    expired, expired_link = share(rated)
    client.force_login(rated.owner)
    assert client.post(place("report-revoke", revoked.pk)).status_code == 302
    SharedReport.objects.filter(pk=expired.pk).update(expires_at=timezone.now())
    client.logout()
    answers = [client.get(link) for link in (revoked_link, expired_link, "/reports/unknown/")]
    answers += [client.get(f"{link}report.pdf") for link in (revoked_link, expired_link, "/reports/unknown/")]
    assert {answer.headers["Referrer-Policy"] for answer in answers} == {"no-referrer"}
    assert all("noindex" in answer.headers["X-Robots-Tag"] for answer in answers)
    assert {answer.status_code for answer in answers} == {404}
    # Each answer has its own address and token against forged forms.
    own = r"\w{64}|/reports/[\w-]+/(report\.pdf)?"
    pages = {re.sub(own, "", read_page(answer)) for answer in answers}
    assert len(pages) == 1
    assert f'href="{reverse("home")}"' in pages.pop()
    assert AttemptCount.objects.get(limit="link").count == 6
    client.force_login(rated.owner)
    shown = read_page(client.get(place("report-list")))
    assert 'data-state="revoked"' in shown
    assert 'data-state="expired"' in shown
    # Members still read what was shared.
    assert client.get(place("report", revoked.pk)).status_code == 200


def test_no_rater_and_no_text_without_the_owners_choice(rated, client):
    _, plain = share(rated)
    _, full = share(rated, raters=True, texts=True)
    raters, text = ("hidden-rater", "rater-"), "A secret example text."
    for link in (plain, f"{plain}report.pdf"):
        answer = client.get(link)
        shown = read_pdf(answer) if link.endswith("pdf") else read_page(answer)
        assert text not in shown
        assert not any(word in shown for word in raters)
        assert not any(word.encode() in answer.content for word in (*raters, text))
    stored = SharedReport.objects.get(has_raters=False)
    assert not any(word in str(stored.content) for word in (*raters, text))
    for shown in (read_page(client.get(full)), read_pdf(client.get(f"{full}report.pdf"))):
        assert "hidden-rater" not in shown
        assert len(set(re.findall(r"rater-[0-9a-f]{10}", shown))) == 2
        assert text in shown


def test_the_pdf_has_every_text_of_the_page(rated, client):
    Rating.objects.filter(rater__contains="1@").update(simulated=True)
    _, link = share(rated)
    page, pdf = read_page(client.get(link)), read_pdf(client.get(f"{link}report.pdf"))
    cells = [unescape(cell).strip() for cell in re.findall(r"<t[dh][^>]*>([^<]*)</t[dh]>", page)]
    figures = [cell for cell in cells if re.search(r"\d", cell)]
    assert len(figures) > 20
    words = " ".join(pdf.split())
    assert [cell for cell in figures if cell not in words] == []
    # Lines may break within long signatures and sentences.
    letters = "".join(pdf.split())
    for part in re.findall(r"<d[dt][^>]*>([^<]*)</d[dt]>|<h2[^>]*>([^<]*)<", page):
        assert "".join(unescape("".join(part)).split()) in letters
    assert page.count("badge simulated") == words.count("50 % of the judgements are simulated") == 4


def test_a_report_stays_as_it_was(rated, client):
    _, link = share(rated)
    before = client.get(link).content
    Rating.objects.all().delete()
    rated.project.name = "Renamed"
    rated.project.save()
    assert client.get(link).content == before


def test_counts(rated):
    a, b = Output.objects.order_by("pk")[:2]
    aspect = Rating.objects.first().aspect
    Comparison.objects.create(
        project=rated.project, output_a=a, output_b=b, aspect=aspect, rater="r9", verdict="a", simulated=True
    )
    counts = share(rated)[0].content["counts"]
    assert counts == {
        "items": 8, "systems": {"machine": 3}, "outputs": 24, "references": 16, "ratings": 48, "comparisons": 1,
        "raters": 3, "simulated": 1, "judged_here": 0, "campaigns": 0, "annotators": 0,
    }  # fmt: skip


def test_sections_say_why_there_is_nothing(cast):
    with pytest.raises(BadInput):
        share(cast)
    make_outputs(cast.project, make_items(cast.project, 2))
    project = Project.objects.get(pk=cast.project.pk)  # whether there are outputs is cached
    document = build_document(create_report(project=project, user=cast.owner)[0].content)
    sections = {section.key: section for section in document.sections}
    assert list(sections) == ["systems", "metrics", "agreement", "data"]  # nothing is computed, so nothing is signed
    for name in ("systems", "metrics", "agreement"):
        assert sections[name].grid is None
        assert sections[name].notes[0]


def test_large_tables_are_computed_first(rated, monkeypatch, client):
    monkeypatch.setattr(leaderboards, "MAX_ROWS_IN_REQUEST", 10)
    with pytest.raises(Conflict) as waiting:
        share(rated)
    client.force_login(rated.owner)
    answer = client.post(place("report-create"), {"days": "7"})
    assert answer.status_code == 422
    assert not SharedReport.objects.exists()
    for number in re.findall(r"\d+", waiting.value.detail):
        execute_run(int(number))
    assert share(rated)[0].content["tables"]["systems"]["table"]["rows"]
    # While people judge, no table is current: the last one is shared, with its date.
    Rating.objects.create(
        project=rated.project, output=Output.objects.last(), aspect=Rating.objects.first().aspect, rater="late", value=3
    )
    sections = build_document(share(rated)[0].content).sections
    (dated,) = [note for note in sections[0].notes if "later changes" in note]
    assert f"{timezone.now():%Y-%m-%d}" in dated


@pytest.mark.parametrize(("simulated", "shown"), [(1, "<1 %"), (500, "50 %"), (997, ">99 %")])
def test_few_real_or_simulated_judgements_are_not_rounded_away(simulated, shown):
    assert show_share(simulated, 1000).startswith(shown)


def test_boxes_without_effect_are_not_noted(cast):
    outputs = make_outputs(cast.project, make_items(cast.project, 2))
    assert outputs
    row, _link = share(cast, raters=True, texts=True)
    assert (row.has_raters, row.has_texts) == (False, False)


@pytest.mark.parametrize("days", [0, 366])
def test_the_end_is_limited(rated, days):
    with pytest.raises(BadInput) as refused:
        share(rated, days=days)
    assert refused.value.faults[0].field == "days"


def test_deleting_the_project_ends_its_links(rated, client, monkeypatch):
    _, link = share(rated)
    monkeypatch.setattr("evalapp.common.deletion.SMALL", 5)  # the rows are removed later, by a run
    run = delete_with_contents(project=rated.project, actor=rated.owner)
    assert client.get(link).status_code == 404
    execute_run(run.pk)
    assert not SharedReport.objects.exists()


def test_example_texts_are_of_systems_only(rated, client):
    System.objects.filter(name="sys-b").update(kind="control")
    (first, *_rest) = share(rated, texts=True)[0].content["examples"]
    assert [output["system"] for output in first["outputs"]] == ["sys-a", "sys-c"]
