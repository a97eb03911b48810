"""The commands that print the figures of a report again."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from fusetui.triage.finding import Slice
from fusetui.triage.report.material import Material
from fusetui.triage.report.moments import position
from fusetui.triage.where import joined


@dataclass(frozen=True, slots=True)
class Commands:
    """Of one material."""

    material: Material

    def snapshot(self, *, causes: bool = False) -> str:
        """Every measure, with `causes` also what caused the tail."""
        return self._told("snapshot", "--causes" if causes else "", "--json")

    def report(self) -> str:
        """This report as data."""
        m = self.material
        baseline = f"--baseline {shlex.quote(m.baseline)}" if m.baseline else ""
        hardware = f"--hardware {shlex.quote(m.hardware)}" if m.hardware else ""
        quality = self._quality() if m.baseline else []
        return self._told("report", baseline, *quality, hardware, *m.options, "--json")

    def compare(self) -> str:
        """The comparison with the baseline."""
        material = self.material
        both = f"fusetui compare {shlex.quote(material.baseline)} {shlex.quote(material.spec)}"
        return " ".join((both, *self.limits(), *self._quality(), "--json"))

    def _quality(self) -> list[str]:
        return [shlex.quote(word) for word in self.material.quality_options]

    def retune(self) -> str:
        """The closed loop."""
        hardware = self.material.hardware
        return self._told("retune", f"--hardware {shlex.quote(hardware)}" if hardware else "", "--json")

    def replay(self, shown: Slice) -> str:
        """The rows that show a finding, on the screen."""
        return self._at("replay", shown)

    def slice(self, shown: Slice) -> str:
        """The same rows as a small file."""
        return f"{self._at('slice', shown)} -o evidence.arrows"

    def _at(self, command: str, shown: Slice) -> str:
        m = self.material
        words = [f"fusetui {command} {shlex.quote(m.spec)}"]
        if shown.from_ns > m.snapshot.window_start_ns or m.window_ns is not None:
            words.append(f"--from {position(shown.from_ns, m.first_ns)}")
        if shown.to_ns < m.snapshot.now_ns:
            words.append(f"--to {position(shown.to_ns, m.first_ns, up=True)}")
        only = joined(m.filter, shown.filter)
        return " ".join([*words, f"--filter {shlex.quote(only)}"] if only else words)

    def _told(self, command: str, *options: str) -> str:
        words = ["fusetui", command, shlex.quote(self.material.spec), *self.limits(), *options]
        return " ".join(word for word in words if word)

    def limits(self) -> list[str]:
        """The window and the filter, as options."""
        window_ns, only = self.material.window_ns, self.material.filter
        return [
            *([] if window_ns is None else [f"--window {window_ns}ns"]),
            *([f"--filter {shlex.quote(only)}"] if only else []),
        ]
