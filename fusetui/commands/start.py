"""The bare `fusetui`: what this machine offers, to choose from; the simulated accelerator where it offers nothing."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from typing import Final

from fusetui.commands import live
from fusetui.commands.doctor import has_module
from fusetui.sources.discovery import Offer, offers

_FOUND: Final = ("device", "port")
"""Kinds of offers that are not there on every machine."""


def run(args: argparse.Namespace) -> int:
    """Ask what to watch if there is a choice, watch it; 0 when the person leaves the question."""
    from fusetui.app.terminal import refusal

    found = offers(has_module=has_module, environ=os.environ)
    if worth_asking(found) and refusal() is None:
        from fusetui.app.start import choose

        chosen = choose(found, theme=args.theme, glyphs=args.glyphs, mouse=not args.no_mouse)
        if chosen is None:
            return 0
        args.source = chosen
    return live.run(args)


def worth_asking(found: Sequence[Offer]) -> bool:
    """Whether a machine offers more than any machine does."""
    return any(offer.kind in _FOUND for offer in found)
