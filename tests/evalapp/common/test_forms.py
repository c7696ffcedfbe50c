"""Numbers in addresses and forms, which anybody can edit."""

from __future__ import annotations

import pytest

from evalapp.common.forms import read_number


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("7", 7),
        ("007", 7),
        ("", None),
        ("-1", None),
        ("1.5", None),
        ("x", None),
        ("9" * 18, 10**18 - 1),
        ("9" * 19, None),
    ],
)
def test_numbers(text: str, number: int | None) -> None:
    assert read_number(text) == number


def test_thousands_of_digits_are_no_server_error() -> None:
    assert read_number("9" * 5000) is None
