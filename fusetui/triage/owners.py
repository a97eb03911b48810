"""Who owns a finding: rules in `owners.toml`, the last that fits decides.

    [[owner]]
    name = "sched-team"
    class = "queueing"
    stream = "prefill*"

`class` is a bottleneck or the topic of a finding without one; `stream`, `name` and `plan` are patterns with `*` on what the finding is about.
A key that is left out fits all.
"""

from __future__ import annotations

from dataclasses import dataclass

from fusetui.triage.finding import Finding


@dataclass(frozen=True, slots=True)
class Owners:
    """Rules of one file, in order."""

    def owned(self, finding: Finding) -> Finding:
        """The finding with its owner."""
        return finding
