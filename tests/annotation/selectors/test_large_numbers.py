"""Addresses and bodies may have numbers beyond those of databases: there is no such row, and no error."""

from __future__ import annotations

import pytest

from annotation.models import Campaign
from annotation.selectors.campaigns import find_campaign, get_flag
from annotation.selectors.participants import get_participant, get_recruitment
from annotation.selectors.writing import get_written
from evalapp.common.errors import NotThere
from evalapp.events.selectors import get_delivery, get_webhook

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("number", [2**63, 10**40])
@pytest.mark.parametrize("find", [
    lambda user, n: find_campaign(n, Campaign), lambda user, n: get_flag(user=user, flag_id=n),
    lambda user, n: get_written(user=user, reference_id=n), lambda user, n: get_recruitment(user=user, pk=n),
    lambda user, n: get_participant(user=user, pk=n), lambda user, n: get_webhook(user=user, pk=n),
    lambda user, n: get_delivery(user=user, pk=n),
])  # fmt: skip
def test_there_is_no_row_with_a_number_beyond_64_bits(cast, find, number):
    with pytest.raises(NotThere):
        find(cast.owner, number)
