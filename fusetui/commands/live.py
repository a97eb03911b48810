"""`fusetui live` and the bare `fusetui`: watch telemetry as it comes."""

from __future__ import annotations

import argparse
import re

from fusetui.commands.inputs import open_live
from fusetui.commands.watch import watch


def run(args: argparse.Namespace) -> int:
    """Open the source, watch it."""
    if args.source == "-":
        from fusetui.app.terminal import stdin_is_data

        stdin_is_data()
    source = open_live(args.source, args)
    return watch(source, args, title=args.source, bookmarks_key="live-" + re.sub(r"\W+", "-", args.source))
