"""Catalogues of translations: collects the texts of the code, writes evalapp/locale/, and checks it.

    python docs/translations.py          collects, and writes each .po file and its .mo
    python docs/translations.py --check  names what is out of date or wrong; exit code 1
    python docs/translations.py --new LANGUAGE

It needs Babel (development requirements) and no gettext tools. Pages read the .mo files, which are committed.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from babel.messages.catalog import Catalog, Message
from babel.messages.extract import extract
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po
from django.utils.translation import to_locale
from django.utils.translation.template import templatize

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from evalapp.languages import WHOLE  # noqa: E402

LOCALE = ROOT / "evalapp" / "locale"
PACKAGES = ("evalapp", "annotation", "retrieval", "scoring")
DOMAINS = ("django", "djangojs")
#: Said at the top of a catalogue until a native speaker has read it; then it names the reviewer.
UNREVIEWED = "# Translation of evalapp. Not reviewed by a native speaker."
EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
#: Where the texts are that annotators see; languages that are not in `WHOLE` have only these.
ANNOTATORS = re.compile(
    r"""static/js/|templates/(base|accounts/(account|signing|display|locked|mails|people/join)|components|errors|common/home/)
    |templates/annotation/(components|judging|my|participation|writing/(page|confirm))
    |annotation/(views|services|selectors)/
        (annotator_pages|judging|own_|participa|writing(_(acts|answers|attempts|back|cand|context|hand|last|later|lists|view))?\.
        |scripted|bodies|campaign_work|texts|undo|presence)
    |annotation/(models/(campaigns|recruitment|shared|writing)|allocation/(wording|answers|texts|recruitment))
    |evalapp/accounts/(\w+\.|services/(account|identities|invitations|own_data)|views/(account|display|identities|joining|signing))
    |evalapp/common/(problem_types|errors|problems|outages|display|forms|navigation|bodies|middleware|pages|pagination
        |params|idempotency|drafts|receiving|room|turns|templatetags|views/home)
    |evalapp/(words|names|number_text|common/event_kinds)""",
    re.VERBOSE,
)
SINGULAR = {"gettext", "gettext_lazy", "gettext_noop", "pgettext", "pgettext_lazy"}
PLURAL = {"ngettext", "ngettext_lazy", "npgettext"}
SCRIPT_CALLS: dict[str, Any] = {"gettext": None, "ngettext": (1, 2)}
TEMPLATE_CALL = re.compile(r"""\b(_|n?gettext|n?pgettext)\(((?:\s*u?(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")\s*,?)+)""")
PLACEHOLDER = re.compile(r"%(?:\((\w+)\))?[-+#0]*\d*(?:\.\d+)?[sdirgfe](?![A-Za-z0-9_])|\{(\w*)\}")
ELEMENT = re.compile(r"</?\w+")

Text = str | tuple[str, str]


def list_python_texts(path: Path) -> Iterator[tuple[str | None, Text]]:
    """Yield context and text of each call of an imported translator."""
    tree = ast.parse(path.read_text("utf-8"))
    names = {
        alias.asname or alias.name: alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").endswith("translation")
        for alias in node.names
    }
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
    for node in sorted(calls, key=lambda node: (node.lineno, node.col_offset)):
        if isinstance(node.func, ast.Name) and (name := names.get(node.func.id)):
            words = [arg.value for arg in node.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
            context = words.pop(0) if "pgettext" in name and words else None
            if name in SINGULAR and words:
                yield context, words[0]
            elif name in PLURAL and len(words) > 1:
                yield context, (words[0], words[1])


def list_template_texts(path: Path) -> Iterator[tuple[str | None, Text]]:
    """Yield context and text of each translated part of a template."""
    for call, arguments in TEMPLATE_CALL.findall(templatize(path.read_text("utf-8"))):
        words = ast.literal_eval(f"[{arguments}]")
        context = words.pop(0) if "pgettext" in call else None
        yield context, (words[0], words[1]) if call.startswith("n") else words[0]


def list_script_texts(path: Path) -> Iterator[tuple[str | None, Text]]:
    """Yield the texts of a script."""
    for _, found, _, _ in extract("javascript", io.BytesIO(path.read_bytes()), keywords=SCRIPT_CALLS):
        yield None, (found[0], found[1]) if isinstance(found, tuple) else found


def list_catalogue_texts() -> Iterator[tuple[str, str]]:
    """Yield file and text of the summaries and options of the built-in evaluators, some of which are put together."""
    from scoring.ml.registry import catalogue

    for entry in catalogue():
        if not entry.plugin:
            file = f"{entry.build.__module__.replace('.', '/')}.py"
            yield file, entry.summary
            yield from ((file, option.help) for option in (*entry.options, *entry.train_options) if option.help)


def collect_texts(domain: str) -> Catalog:
    """Return the catalogue of all texts in the code, in the order of files, without translations."""
    catalog = Catalog(domain=domain)
    if domain == "djangojs":
        sources = [(path, list_script_texts) for path in sorted((ROOT / "static" / "js").glob("*.js"))]
    else:
        templates = [path for path in sorted((ROOT / "templates").rglob("*")) if path.suffix in (".html", ".txt")]
        code = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
        sources = [(path, list_template_texts) for path in templates] + [(path, list_python_texts) for path in code]
    for path, read in sources:
        for context, text in read(path):
            catalog.add(text, locations=[(path.relative_to(ROOT).as_posix(), 0)], context=context)
    for file, help_text in list_catalogue_texts() if domain == "django" else ():
        catalog.add(help_text, locations=[(file, 0)])
    return catalog


def list_languages() -> list[str]:
    """Return the codes of the languages that have a folder."""
    return sorted(path.parent.name for path in LOCALE.glob("*/LC_MESSAGES"))


def find_catalogue(language: str, domain: str) -> Path:
    return LOCALE / language / "LC_MESSAGES" / f"{domain}.po"


def read_catalogue(language: str, domain: str) -> Catalog:
    """Return the stored catalogue of a language; an empty one if there is none."""
    path = find_catalogue(language, domain)
    if not path.exists():
        return make_catalogue(language, domain)
    with path.open("rb") as file:
        return read_po(file, locale=language, domain=domain)


def merge_texts(language: str, domain: str, texts: Catalog) -> Catalog:
    """Return the texts that the language must have, with their stored translations; new ones are empty."""
    stored = read_catalogue(language, domain)
    merged = make_catalogue(language, domain, stored.header_comment)
    whole = language in {to_locale(code) for code in WHOLE}
    for text in texts:
        if text.id and (whole or any(ANNOTATORS.match(file) for file, _ in text.locations)):
            known = stored.get(text.id[0] if isinstance(text.id, tuple) else text.id, text.context)
            string = known.string if known and is_same_kind(known.id, text.id) else ""
            comments = known.user_comments if known else ()
            merged.add(text.id, string, text.locations, user_comments=comments, context=text.context)
    return merged


def is_same_kind(known: Any, wanted: Any) -> bool:
    return isinstance(known, tuple) == isinstance(wanted, tuple)


def make_catalogue(language: str, domain: str, comment: str = UNREVIEWED) -> Catalog:
    """Return an empty catalogue. It holds no dates, so that equal texts give equal files."""
    return Catalog(
        locale=language, domain=domain, header_comment=comment, project="evalapp", version="1",
        copyright_holder="the authors of evalapp", msgid_bugs_address="evalapp",
        creation_date=EPOCH, revision_date=EPOCH,
        last_translator="evalapp", language_team=language, charset="utf-8", fuzzy=False,
    )  # fmt: skip


def format_catalogue(catalog: Catalog) -> tuple[bytes, bytes]:
    """Return the bytes of the .po and of the .mo file."""
    source, compiled = io.BytesIO(), io.BytesIO()
    write_po(source, catalog, width=110, include_lineno=False)
    write_mo(compiled, catalog)
    return source.getvalue(), compiled.getvalue()


def list_faults(message: Message) -> Iterator[str]:
    """Yield what is wrong with a translation: other placeholders or elements than the text has, a missing plural."""
    texts: tuple[str, ...] = (message.id,) if isinstance(message.id, str) else tuple(message.id)
    strings: tuple[str, ...] = (message.string,) if isinstance(message.string, str) else tuple(message.string or ())
    if not any(strings):
        yield "has no translation"
        return
    if not all(strings):
        yield "lacks a plural form"
    wanted = sorted(set(map(str, PLACEHOLDER.findall(texts[-1]))))
    for string in filter(None, strings):
        found = sorted(set(map(str, PLACEHOLDER.findall(string))))
        if found != wanted and not (len(texts) > 1 and set(found) < set(wanted)):
            yield f"has the placeholders {found} instead of {wanted}"
        if sorted(ELEMENT.findall(string)) != sorted(ELEMENT.findall(texts[-1])):
            yield "has other elements"
        if string.startswith("\n") != texts[0].startswith("\n") or string.endswith("\n") != texts[0].endswith("\n"):
            yield "begins or ends with another line break"


def run(check: bool) -> int:
    """Write all catalogues, or with `check` only compare them. Returns the number of problems found."""
    problems = 0
    for domain in DOMAINS:
        texts = collect_texts(domain)
        for language in list_languages():
            merged = merge_texts(language, domain, texts)
            path = find_catalogue(language, domain)
            files = dict(zip((path, path.with_suffix(".mo")), format_catalogue(merged), strict=True))
            for message in merged:
                for fault in list_faults(message) if message.id else ():
                    print(f"{path.relative_to(ROOT)}: {message.id!r} {fault}")
                    problems += 1
            for file, content in files.items():
                if not check:
                    file.write_bytes(content)
                elif not file.exists() or file.read_bytes() != content:
                    print(f"{file.relative_to(ROOT)} is out of date: run `make translations`")
                    problems += 1
    return problems


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="only compare; exit code 1 where something is wrong")
    parser.add_argument("--new", metavar="LANGUAGE", help="begin a catalogue, for example pt or zh-hans")
    options = parser.parse_args()
    if options.new:
        (LOCALE / to_locale(options.new) / "LC_MESSAGES").mkdir(parents=True, exist_ok=True)
    return 1 if run(options.check) else 0


if __name__ == "__main__":
    sys.exit(main())
