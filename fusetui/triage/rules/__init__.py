"""The rules, one file per family: every module here has a tuple `RULES`. Adding a family is adding its file."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from fusetui.triage.rule import Rule


@cache
def all_rules() -> tuple[Rule, ...]:
    """Every rule, by id."""
    found: list[Rule] = []
    for info in pkgutil.iter_modules(__path__):
        found.extend(importlib.import_module(f"{__name__}.{info.name}").RULES)
    return tuple(sorted(found, key=lambda rule: rule.id))
