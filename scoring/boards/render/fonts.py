"""Fonts of PDF files: Noto Sans for every script, from Python packages, so that no font of the machine is needed.

Fonts are read at their default weight, because choosing a weight of a variable font takes seconds.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from pathlib import Path

from evalapp.markup import show_hidden


@dataclass(frozen=True)
class Font:
    """A font file. `number` is the place in a collection."""

    name: str
    path: Path
    number: int = 0


#: Package and file of the main font, tried first.
MAIN = ("manimgx_fonts", "NotoSans[wght].ttf")
#: Chinese, Japanese and Korean: in this collection, the font for simplified Chinese has all characters.
CJK = ("manimgx_fonts_cjk", "NotoSansCJK-VF.otf.ttc", 2)


@lru_cache(maxsize=1)
def list_fonts() -> tuple[Font, ...]:
    """Return all fonts, the main font first and the largest last."""
    folder = Path(str(import_module(MAIN[0]).__file__)).parent
    main = Font("noto", folder / MAIN[1])
    others = [path for path in sorted(folder.glob("*.ttf")) if "Italic" not in path.name and path != main.path]
    large = Path(str(import_module(CJK[0]).__file__)).parent / CJK[1]
    scripts = [Font(path.name.partition("[")[0].lower(), path) for path in others]
    return (main, *scripts, Font("cjk", large, CJK[2]))


@lru_cache(maxsize=64)
def read_characters(font: Font) -> frozenset[int]:
    """Return the code points that a font can show."""
    from fontTools.ttLib import TTFont

    with TTFont(font.path, fontNumber=font.number, lazy=True) as opened:
        return frozenset(opened.getBestCmap())


def choose_fonts(texts: Iterable[str]) -> tuple[list[Font], frozenset[int]]:
    """Return the main font with the others that `texts` need, and the code points that none can show."""
    main, *others = list_fonts()
    missing = {ord(char) for text in texts for char in text if not char.isspace()} - read_characters(main)
    fonts = [main]
    for font in others:
        if not missing:
            break
        if found := missing & read_characters(font):
            fonts.append(font)
            missing -= found
    return fonts, frozenset(missing)


def spell_out(text: str, missing: frozenset[int]) -> str:
    """Return `text` with line breaks, control characters and `missing` code points written as `<U+10331>`."""
    shown = show_hidden(text)
    return "".join(f"<U+{ord(char):04X}>" if ord(char) in missing else char for char in shown)
