"""A parser whose mistakes are one line: where, what, and where to read on."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any, NoReturn

EXIT_USAGE = 2
_CHOICES = " (choose from "


class Parser(argparse.ArgumentParser):
    """argparse's, without its page of usage in front of every mistake; a command's own mistakes name the command."""

    def error(self, message: str) -> NoReturn:
        """One line on standard error, exit 2."""
        self.exit(EXIT_USAGE, f"{self.prog}: {_nearest(message)}; see {self.prog} --help\n")

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """What is not known is an error here, where it is known whose options there are."""
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            options = [text for action in self._actions for text in action.option_strings]
            self.error(f"not understood: {' '.join(unknown)}{_hint(unknown[0].partition('=')[0], options)}")
        return found, unknown


def _nearest(message: str) -> str:
    """`invalid choice: 'repaly' (choose from …)` with the one that was meant in place of a long list."""
    told, found, listed = message.partition(_CHOICES)
    choices = listed.rstrip(")").replace("'", "").split(", ")
    if not found or len(choices) <= 8:
        return message
    word = told.rpartition(": ")[2].strip("'")
    return f"{told}{_hint(word, choices)}"


def _hint(word: str, known: Iterable[str]) -> str:
    near = get_close_matches(word, list(known), n=1, cutoff=0.7)
    return f", did you mean {near[0]}?" if near else ""
