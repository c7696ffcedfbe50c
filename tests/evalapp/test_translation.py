"""Messages of pure packages are translated by Django once the applications are loaded."""

from django.utils import translation as django_translation

from evalapp import translation


def test_pure_packages_use_the_language_of_the_request():
    # Django's own catalogue holds this message.
    with django_translation.override("de"):
        assert translation.gettext("This field is required.") == "Dieses Feld ist zwingend erforderlich."
    assert translation.gettext("This field is required.") == "This field is required."


def test_plural_without_translator(monkeypatch):
    monkeypatch.setattr(translation, "_translate_plural", None)
    assert [translation.ngettext("row", "rows", n) for n in (0, 1, 2)] == ["rows", "row", "rows"]
