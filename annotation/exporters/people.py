"""Rater ids in an export. Annotators of this installation have pseudonyms; uploaded ids are kept unless they may
identify a person."""

import hashlib
import hmac
import re
from collections.abc import Callable
from functools import lru_cache

from django.conf import settings

from annotation.selectors.filters import list_rater_keys
from evalapp.accounts.models import Project, User
from evalapp.accounts.selectors import rater_names

#: kept: replace addresses and names of accounts only; pseudonyms: replace all ids; as-uploaded: replace none.
NAMINGS = ("kept", "pseudonyms", "as-uploaded")

_PSEUDONYM = re.compile(r"rater-[0-9a-f]{10}")


def as_stored(rater: str) -> str:
    return rater


def naming(project: Project, how: str) -> Callable[[str], str]:
    """A function from rater ids to those in the export. A pseudonym is the same in every export of the project, and
    cannot be resolved without the key of this installation. Existing pseudonyms stay, so that re-exporting an imported
    export gives the same ids. Ids that the statistics attribute to the same person get the same pseudonym."""
    if how == "as-uploaded":
        return as_stored
    from evalapp.stats.agreement.judged import AGAIN, split_key

    names = rater_names(project.pk)
    pseudonyms = set(names.values())
    known = pseudonyms.union(list_rater_keys(project))
    accounts = User.objects.filter(pk__in=names).values_list("username", "email")
    identifying = {name.lower() for pair in accounts for name in pair if name}
    key = f"{settings.SECRET_KEY}|raters|{project.pk}".encode()

    @lru_cache(maxsize=1 << 16)
    def called(rater: str) -> str:
        name = AGAIN.sub("", rater)
        safe = name in pseudonyms or _PSEUDONYM.fullmatch(name) is not None
        if safe or (how == "kept" and "@" not in name and name.lower() not in identifying):
            return rater
        person, _ = split_key(rater, known)
        return f"rater-{hmac.new(key, person.encode(), hashlib.sha256).hexdigest()[:10]}{rater[len(person) :]}"

    return called
