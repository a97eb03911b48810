"""The one error that bad telemetry raises: a line a person can act on."""

from __future__ import annotations

from fusetui.telemetry.text import safe_text


class TelemetryError(Exception):
    """Bad or unreadable telemetry.

    `str(error)` is one line, free of control characters: ``where: what; remedy``.

    where   file, socket or batch and column at fault
    what    what is wrong there
    remedy  what the person can do about it ("" when nothing helps)
    """

    def __init__(self, where: str, what: str, remedy: str = "") -> None:
        self.where = safe_text(where, 300)
        self.what = safe_text(what, 400)
        self.remedy = safe_text(remedy, 300)
        line = f"{self.where}: {self.what}"
        super().__init__(f"{line}; {self.remedy}" if self.remedy else line)
