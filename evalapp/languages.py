"""Languages of the interface, by the code that browsers send, with their own names."""

LANGUAGES = {
    "en-gb": "English",
    "ar": "العربية",
    "de": "Deutsch",
    "es": "Español",
    "fa": "فارسی",
    "fr": "Français",
    "hi": "हिन्दी",
    "ja": "日本語",
    "ko": "한국어",
    "pt": "Português",
    "ru": "Русский",
    "zh-hans": "简体中文",
}
#: Languages with all texts; the others have those that annotators see.
WHOLE = frozenset({"en-gb", "de", "es", "zh-hans"})


def lower_word(label: str, language: str | None) -> str:
    """Return a label as it stands inside a sentence; German nouns keep their capital."""
    return label if language == "de" else label.lower()
