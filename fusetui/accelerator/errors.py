"""Errors of the accelerator model: one line that names the file or option at fault."""

from __future__ import annotations


class AcceleratorError(Exception):
    """Bad input to the model. `str(error)` is one printable line: ``where: what; remedy``."""

    def __init__(self, where: str, what: str, remedy: str = "") -> None:
        line = f"{where}: {what}; {remedy}" if remedy else f"{where}: {what}"
        super().__init__("".join(c if c.isprintable() else "�" for c in line)[:800])


class HardwareError(AcceleratorError):
    """A hardware description that is missing, incomplete or impossible."""
