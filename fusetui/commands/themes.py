"""`fusetui themes`: what there is to choose from, and what is wrong with a file that was left out."""

from __future__ import annotations

import argparse

from fusetui.commands.inputs import say


def run(args: argparse.Namespace) -> int:
    """One theme a line; broken files on standard error, exit code 3 when there are any."""
    from fusetui.app.themes import load_themes

    themes = load_themes()
    for name in sorted(themes.usable):
        print(name)
    for problem in themes.problems:
        say(f"fusetui: {problem}")
    return 3 if themes.problems else 0
