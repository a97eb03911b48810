"""The characters the screen is made of, in three sets: braille, block and 7-bit ASCII.

Everything drawn goes through `Glyphs.text` or a field here, so the ASCII set really is 7-bit, data strings included.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

_BRAILLE_BITS: Final = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
_QUADRANTS: Final = " ▘▝▀▖▌▞▛▗▚▐▜▄▙▟█"

# One cell for one cell, so that nothing shifts when the set changes.
_TO_ASCII: Final = str.maketrans(
    {
        **dict(zip("╭╮╰╯├┤┬┴┼╷╵│─╌┊", "++++++++++||---"[:11] + "|--:", strict=True)),
        **dict(zip("▁▂▃▄▅▆▇█", "..--==##", strict=True)),
        **dict(zip("▏▎▍▌▋▊▉", "|||||==", strict=True)),
        **dict(zip("░▒▓", ".:%", strict=True)),
        **dict(zip("✓▲✗◆⚑●○▶◀▸◂↑↓→←", "+!x*P*o><><^v><", strict=True)),
        **dict(zip("—–−·…≥≤≈±×µλΣ∞²‥△∅", "---..><~~xuLS^2:dO", strict=True)),
    }
)


@dataclass(frozen=True, slots=True)
class Glyphs:
    """One set of characters.

    box          corners and edges: top left, horizontal, top right, vertical, bottom left, bottom right
    columns      vertical bars from empty to full, 9 steps
    rows         horizontal bars from empty to full, 9 steps
    shades       heat, 8 steps from little to much (a step may share its glyph with its neighbour)
    dots         plot dots per cell (across, down)
    dot_chars    the character of every pattern of them; the bit of a dot is its line times `across` plus its column
    axis, rule   left axis with a tick; dashed limit line; meter: filled and empty part of a thin bar
    mark         a moment worth showing; was: a point of a baseline
    """

    name: str
    box: str
    columns: str
    rows: str
    shades: str
    dots: tuple[int, int]
    dot_chars: str
    axis: str = "│"
    tick: str = "┤"
    rule: str = "╌"
    meter: str = "━─"
    mark: str = "┊"
    was: str = "◦"
    play: str = "▶"
    first: str = "◀"
    step: str = "▸"
    ok: str = "✓"
    warn: str = "▲"
    breach: str = "✗"
    ascii_only: bool = False

    def text(self, text: str) -> str:
        """`text` as this set can show it: unchanged, or 7-bit with `?` for what has no likeness."""
        if not self.ascii_only or text.isascii():
            return text
        return text.translate(_TO_ASCII).encode("ascii", "replace").decode()


def _braille_chars() -> str:
    chars = []
    for pattern in range(256):
        code = 0x2800
        for bit in range(8):
            if pattern >> bit & 1:
                code |= _BRAILLE_BITS[bit // 2][bit % 2]
        chars.append(chr(code))
    return " " + "".join(chars[1:])


BRAILLE: Final = Glyphs(
    name="braille",
    box="╭─╮│╰╯",
    columns=" ▁▂▃▄▅▆▇█",
    rows=" ▏▎▍▌▋▊▉█",
    shades="░░▒▒▓▓██",
    dots=(2, 4),
    dot_chars=_braille_chars(),
)
BLOCK: Final = Glyphs(
    name="block",
    box="┌─┐│└┘",
    columns=" ▁▂▃▄▅▆▇█",
    rows=" ▏▎▍▌▋▊▉█",
    shades="░░▒▒▓▓██",
    dots=(2, 2),
    dot_chars=_QUADRANTS,
    was="o",
)
ASCII: Final = Glyphs(
    name="ascii",
    box="+-+|++",
    columns=" .:-=+*##",
    rows="    ====#",
    shades=".:-=+*#@",
    dots=(1, 2),
    dot_chars=" '.:",
    axis="|",
    tick="+",
    rule="-",
    meter="=-",
    mark=":",
    was="o",
    play=">",
    first="<",
    step=">",
    ok="+",
    warn="!",
    breach="x",
    ascii_only=True,
)

SETS: Final[Mapping[str, Glyphs]] = {glyphs.name: glyphs for glyphs in (BRAILLE, BLOCK, ASCII)}
