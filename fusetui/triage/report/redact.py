"""Hosts, paths and users as pseudonyms: the same name is the same pseudonym all over one report and its bundle.

Pseudonyms are numbered, not hashed: the hash of a short host name is found by trying. They begin anew in each report.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

_HOME: Final = re.compile(r"(?:/home/|/Users/|[A-Za-z]:\\Users\\)([^/\\\s:'\"]+)")
_PATTERNS: Final = (
    ("user", re.compile(r"(?<![\w.])[\w.+-]+@[\w-]+(?:\.[\w-]+)+")),
    ("path", re.compile(r"\bfile://[^\s'\"]+|(?<![\w.])[A-Za-z]:\\[^\s'\":]+|\\\\[\w.-]+\\[^\s'\":]+")),
    ("path", re.compile(r"(?<![\w./<>~-])~?/(?:[\w.@+=,-]+/)+[\w.@+=,-]*|(?<![\w./<>-])~?/(?:home|root|tmp|Users)\b")),
    ("device", re.compile(r"\b(?:GPU-|MIG-)?[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b")),
    ("host", re.compile(r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w.])")),
    ("host", re.compile(r"(?<![\w:])(?:[0-9a-fA-F]{1,4}:){4,7}[0-9a-fA-F]{1,4}(?![\w:])")),
    ("host", re.compile(
        r"(?<![\w.-])(?:[A-Za-z0-9-]+\.)+(?:com|net|org|io|dev|ai|cloud|edu|gov|internal|local|lan|corp|intra|svc)"
        r"(?:\.[a-z]{2,8})*(?![\w-])"
    )),
)  # fmt: skip
_KEYS: Final = {"host": "host", "hostname": "host", "node": "host", "machine": "host", "pod": "host", "user": "user",
                "username": "user", "login": "user", "cwd": "path", "path": "path", "home": "path"}  # fmt: skip
_TELLS_NOTHING: Final = re.compile(r"(?i)(?:rank|host|node|worker|device|user|path|trace)?[ _#-]?\d*|localhost|root")
_MOST_NAMES: Final = 20_000


class Redactor:
    """Call it with a text. known: (kind, name) pairs that are taken out wherever they stand as a word."""

    def __init__(self, known: Iterable[tuple[str, str]] = ()) -> None:
        self._names: dict[str, str] = {}
        self._counts: dict[str, int] = {}
        self._word: re.Pattern[str] | None = None
        words = [(kind, name) for kind, name in known if not _TELLS_NOTHING.fullmatch(name)][:_MOST_NAMES]
        for kind, name in words:
            self._pseudonym(kind, name)
            short = name.partition(".")[0]
            if kind == "host" and short != name and not _TELLS_NOTHING.fullmatch(short):
                # A host is called by its first label too.
                self._names.setdefault(short.lower(), self._pseudonym(kind, name))
        self._forget_words()

    def stand_in(self, kind: str, name: str, text: str) -> None:
        """`name` becomes `text`."""
        self._names[name.lower()] = text
        self._counts[kind] = self._counts.get(kind, 0) + 1
        self._forget_words()

    def __call__(self, text: str) -> str:
        if not text:
            return text
        for user in _HOME.findall(text):
            if user.lower() not in self._names and not _TELLS_NOTHING.fullmatch(user):
                self._pseudonym("user", user)
                self._forget_words()
        for kind, pattern in _PATTERNS:
            text = pattern.sub(lambda found, kind=kind: self._pseudonym(kind, found[0]), text)  # type: ignore[misc]
        if self._word is None and self._names:
            every = sorted(self._names, key=len, reverse=True)
            self._word = re.compile(rf"(?i)(?<![^\W_])(?:{'|'.join(map(re.escape, every))})(?![^\W_])")
        if self._word is not None:
            text = self._word.sub(lambda found: self._names[found[0].lower()], text)
        return text

    def _pseudonym(self, kind: str, name: str) -> str:
        key = name.lower()
        if key not in self._names:
            self._counts[kind] = self._counts.get(kind, 0) + 1
            self._names[key] = f"{kind}-{self._counts[kind]}"
        return self._names[key]

    def _forget_words(self) -> None:
        self._word = None


def names_in(pairs: Mapping[str, str]) -> Iterable[tuple[str, str]]:
    """What the facts of a header call a host, a user or a path."""
    for key, value in pairs.items():
        kind = _KEYS.get(key.strip().lower().replace("-", "").replace(" ", ""))
        if kind is not None and value.strip():
            yield kind, value.strip()
