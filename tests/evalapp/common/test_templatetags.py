"""Filters and tags of all pages."""

from __future__ import annotations

import math
from datetime import timedelta

import pytest
from django.template import Context, Template
from django.utils import timezone

from evalapp.common.templatetags import evalapp as tags


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 s"), (0.03, "under 0.1 s"), (0.2, "0.2 s"), (0.25, "0.2 s"), (4.0, "4 s"), (9.94, "9.9 s"),
        (9.96, "10 s"), (14.4, "14 s"), (59.4, "59 s"), (59.6, "1 min"), (90, "2 min"), (3600, "1 h"),
        (86_400, "1 day"),
        (3 * 86_400, "3 days"), (7 * 86_400, "1 week"), (14 * 86_400, "2 weeks"), (90 * 86_400, "3 months"),
    ],
)  # fmt: skip
def test_durations_in_words(seconds, words):
    assert tags.span(seconds) == words


def test_relative_times_include_the_exact_one():
    moment = timezone.now() - timedelta(minutes=3)
    assert "3 min ago" in tags.ago(moment)
    assert moment.strftime("%H:%M:%S UTC") in tags.ago(moment)
    assert "in 2 weeks" in tags.ago(timezone.now() + timedelta(days=14, seconds=1))
    assert tags.ago(None) == "-"


def test_undefined_is_a_dash():
    assert [tags.figure(math.nan), tags.figure(None), tags.percent(math.nan), tags.per_second(None)] == ["-"] * 4
    assert tags.figure(-0.5, 2) == "−0.50"
    assert [tags.per_second(x) for x in (0.424, 7.34, 1250.0)] == ["0.42", "7.3", "1,250"]
    # A slow step also makes progress: “0.00/s” would mean that it stopped.
    assert [tags.per_second(x) for x in (0.0048, 0.00013, 0.00001, 0.0)] == ["0.0048", "0.00013", "<0.0001", "0.00"]


def test_options_are_written_as_in_signatures():
    assert [tags.option_value(x) for x in (True, False, None, "", 0, 1, 0.5, "f1")] == [
        "yes", "no", "-", "-", "0", "1", "0.5", "f1"
    ]  # fmt: skip


def test_missing_template_values_are_a_dash():
    """Once, a page with an imported table with fewer fields ended in an error."""
    shown = "{% load evalapp %}" + " ".join(
        f"{{{{ row.{name}|{name} }}}}" for name in ("figure", "percent", "hundredths", "thousands", "span")
    )
    assert Template(shown).render(Context({"row": {}})) == "- - - - -"


def test_link_to_a_missing_app_is_empty():
    assert tags.nav_url("nowhere:list") == ""
    assert tags.nav_url("run-list", "alpha") == "/projects/alpha/runs/"
