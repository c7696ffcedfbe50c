"""Catalogues of translations: they are complete and current, and wrong translations are found."""

from __future__ import annotations

from pathlib import Path

import pytest
from babel.messages.catalog import Message
from django.utils.translation import to_locale

from docs import translations
from evalapp.languages import LANGUAGES


def test_catalogues_are_complete_and_current(capsys: pytest.CaptureFixture[str]) -> None:
    assert translations.list_languages() == sorted(to_locale(code) for code in LANGUAGES if code != "en-gb")
    problems = translations.run(check=True)
    assert problems == 0, capsys.readouterr().out[:4000]


def test_texts_of_python_templates_and_scripts_are_found(tmp_path: Path) -> None:
    code, template, script = tmp_path / "a.py", tmp_path / "a.html", tmp_path / "a.js"
    code.write_text(
        "from django.utils.translation import gettext as _, ngettext\n"
        "_('One %(x)s') % {'x': f'{1}'}\nngettext('%(n)s row', '%(n)s rows', 2)\nother('no')\n"
    )
    template.write_text(
        '{% translate "Two" %}{% translate "Open" context "verb" %}{{ _("Three") }}\n'
        "{% blocktranslate trimmed with n=x %}95 % of\n  {{ n }} “rows”{% endblocktranslate %}"
        "{% blocktranslate count n=x %}{{ n }} item{% plural %}{{ n }} items{% endblocktranslate %}"
    )
    script.write_text('say(gettext("Four")); say(ngettext("%(n)s key", "%(n)s keys", n)); say("no");')
    assert list(translations.list_python_texts(code)) == [
        (None, "One %(x)s"), (None, ("%(n)s row", "%(n)s rows")),
    ]  # fmt: skip
    assert sorted(map(str, translations.list_template_texts(template))) == sorted(map(str, [
        (None, "Two"), ("verb", "Open"), (None, "Three"), (None, "95 %% of %(n)s “rows”"),
        (None, ("%(n)s item", "%(n)s items")),
    ]))  # fmt: skip
    assert list(translations.list_script_texts(script)) == [(None, "Four"), (None, ("%(n)s key", "%(n)s keys"))]


@pytest.mark.parametrize(
    ("text", "translation", "fault"),
    [
        ("%(n)s of %(all)s", "%(all)s 中的 %(n)s", ""),
        ("%(n)s rows", "rows", "placeholders"),
        ("%(n)s rows", "%(m)s rows", "placeholders"),
        ("<b>%(n)s</b>", "%(n)s", "elements"),
        ("Open", "", "no translation"),
        (("%(n)s row", "%(n)s rows"), ("eine Zeile", "%(n)s Zeilen"), ""),
        (("%(n)s row", "%(n)s rows"), ("eine Zeile", ""), "plural"),
        ("uses %s", "braucht", "placeholders"),
        ("95 %", "95 %", ""),
    ],
)
def test_wrong_translation_is_found(text: str, translation: str, fault: str) -> None:
    faults = " ".join(translations.list_faults(Message(text, translation)))
    assert (fault in faults) if fault else faults == ""
