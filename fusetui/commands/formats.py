"""`fusetui replay --formats`: what opens, a line each."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, Final

_OWN: Final = (
    "Arrow streams of the contract: recordings, slices, what producers write",
    "Parquet with the contract's columns, as `fusetui export` writes it",
)


class ListFormats(argparse.Action):
    """An option that prints the formats and ends."""

    def __init__(self, option_strings: Sequence[str], dest: str, **more: Any) -> None:
        super().__init__(option_strings, dest, nargs=0, **more)

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        print("\n".join(format_lines()))
        parser.exit()


def format_lines() -> list[str]:
    """Every format in the words of its importer."""
    from fusetui.importers.open import importers

    return [*_OWN, *(_first_sentence(importer) for importer in importers())]


def _first_sentence(importer: object) -> str:
    paragraph = (importer.__doc__ or "").partition("\n\n")[0]
    return " ".join(paragraph.split()).partition(". ")[0].rstrip(".:")
