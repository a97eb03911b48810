"""`fusetui live` and the bare `fusetui`: watch telemetry as it comes."""

from __future__ import annotations

import argparse
import re
from typing import BinaryIO

from fusetui.commands.inputs import open_live
from fusetui.commands.watch import watch


def run(args: argparse.Namespace) -> int:
    """Open the source, watch it."""
    stdin: BinaryIO | None = None
    if args.source in ("-", "neuron:-"):
        from fusetui.app.terminal import stdin_is_data

        stdin = stdin_is_data()
    source = open_live(args.source, args, stdin)
    return watch(
        source,
        args,
        title="stdin" if args.source == "-" else args.source,
        bookmarks_key="live-" + re.sub(r"\W+", "-", args.source),
    )
