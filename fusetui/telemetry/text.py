"""Strings that came from data, made safe for a terminal and for a person."""

from __future__ import annotations

import re
import unicodedata

MAX_CHARS = 4096
"""Longest string kept from data: the longest C++ kernel names seen stay whole, a 10 kB attack does not."""

_PLAIN = re.compile(r"[\x20-\x7e]*\Z")
# Cc control and C1, Cf bidi and zero width, Cs lone surrogates, Co private use, Cn unassigned, Zl and Zp line breaks.
_UNSAFE_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_MAX_COMBINING = 2
REPLACEMENT = "\N{MIDDLE DOT}"


def safe_text(text: str, max_chars: int = MAX_CHARS) -> str:
    """`text` with nothing left that a terminal would obey or that would disturb the layout.

    Control, escape, bidi, zero-width, surrogate and private-use characters become a middle dot (tabs and
    line breaks a space), at most two combining marks stay on a letter, and the result has at most
    `max_chars` characters, the last one an ellipsis when something was cut. Markup characters stay as they
    are: callers must never hand a data string to a markup parser.
    """
    if len(text) <= max_chars and _PLAIN.match(text):
        return text
    # Normalising can expand a string 18-fold, so cut first.
    cut = text[: max_chars * 2]
    if not cut.isascii():
        cut = unicodedata.normalize("NFC", cut)
    out: list[str] = []
    marks = 0
    for char in cut:
        category = unicodedata.category(char)
        if category in ("Mn", "Me", "Mc"):
            marks += 1
            if marks <= _MAX_COMBINING:
                out.append(char)
            continue
        marks = 0
        if char in "\t\n\r\x0b\x0c":
            out.append(" ")
        elif category in _UNSAFE_CATEGORIES:
            out.append(REPLACEMENT)
        else:
            out.append(char)
    if len(out) > max_chars or len(text) > max_chars * 2:
        out[max_chars - 1 :] = "…"
    return "".join(out)
