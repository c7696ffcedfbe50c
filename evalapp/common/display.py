"""How pages look for a person: colours, size of text, contrast and language. Stored with the account, or in a cookie
for people who are not signed in, so that the server writes it into the page and nothing flashes while it loads."""

from dataclasses import asdict, dataclass
from typing import Any

from django.http import HttpRequest

from evalapp.languages import LANGUAGES

COOKIE = "display"
COOKIE_AGE = 60 * 60 * 24 * 365
#: The first choice of each is the default.
CHOICES = {
    "theme": ("system", "light", "dark"),
    "text": ("normal", "large", "larger"),
    "contrast": ("system", "more", "normal"),
    "language": ("browser", *LANGUAGES),
}


@dataclass(frozen=True)
class Display:
    theme: str = "system"
    text: str = "normal"
    contrast: str = "system"
    language: str = "browser"

    @property
    def languages(self) -> list[tuple[str, str]]:
        """The languages to choose from, with their own names."""
        return list(LANGUAGES.items())

    @property
    def cookie(self) -> str:
        return ".".join(asdict(self).values())


def make_display(given: dict[str, Any]) -> Display:
    """The display with these choices; unknown ones become the default."""
    return Display(**{name: given[name] for name, known in CHOICES.items() if given.get(name) in known})


def choose_language(user: Any, default: str) -> str:
    """The language of a text for a person: that of their account, or `default` if there is no account or it has
    none."""
    language = make_display(user.preferences).language if user is not None else "browser"
    return default if language == "browser" else language


def read_display(request: HttpRequest | None) -> Display:
    """The display of the account, or of this browser if nobody is signed in. The language of the browser stays after
    signing in, until the account has one."""
    if request is None:
        return Display()
    browser = dict(zip(CHOICES, request.COOKIES.get(COOKIE, "").split("."), strict=False))
    user: Any = getattr(request, "user", None)
    if user is not None and user.is_authenticated:
        return make_display({"language": browser.get("language"), **user.preferences, "theme": user.theme})
    return make_display(browser)
