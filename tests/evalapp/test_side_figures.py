"""A failed side figure is logged and named; without a collector, and in tests, it is raised."""

from __future__ import annotations

import logging

import pytest

from evalapp.side_figures import collect_failures, failure_sentence, failures_so_far, side_figure, side_note


def fail() -> str:
    raise ZeroDivisionError("injected")


def test_failure_is_named_and_logged_with_its_traceback(lenient_figures, caplog):
    with caplog.at_level(logging.ERROR), collect_failures() as failed:
        for name in ("The noise ceiling", "The bias of the side", "The noise ceiling"):
            with side_figure(name):
                fail()
        with side_figure("What does not fail"):
            pass
        assert side_note(fail) == ""
        assert failures_so_far() == failed
    assert failed == ["The noise ceiling", "The bias of the side", "The note of the table"]
    assert failures_so_far() == []
    assert [record.exc_info[0] for record in caplog.records] == [ZeroDivisionError] * 4
    assert failure_sentence(failed).startswith(
        "The noise ceiling, the bias of the side and the note of the table could not be computed"
    )
    assert failure_sentence([]) == ""


def test_collectors_are_separate_per_table(lenient_figures):
    with collect_failures() as outer:
        with collect_failures() as inner, side_figure("Inside"):
            fail()
        with side_figure("Outside"):
            fail()
    assert (inner, outer) == (["Inside"], ["Outside"])


def test_failure_without_a_collector_is_raised(lenient_figures):
    with pytest.raises(ZeroDivisionError, match="injected"), side_figure("A figure"):
        fail()


def test_tests_see_every_error():
    with pytest.raises(ZeroDivisionError, match="injected"), collect_failures(), side_figure("A figure"):
        fail()


def test_unrelated_exceptions_are_not_caught(lenient_figures):
    with pytest.raises(KeyboardInterrupt), collect_failures(), side_figure("A figure"):
        raise KeyboardInterrupt
