"""Who owns a finding: rules in `owners.toml`, of those that fit the last one decides.

    [[owner]]
    name = "sched-team"
    class = "queueing"
    stream = "prefill*"

A rule has `name`, who owns it, and patterns in which `*` stands for anything: `class` of the bottleneck, or of the
topic where there is none; `stream`, `core`, `shape`, `counter` or `group` (operators), what the finding is about;
`plan`, of the trace's plans (one that fits is enough). A key left out fits all.

Without a file that is named, it is the `owners.toml` of the project (the working folder, and those above it up to the
root of the repository), else that of the config folder.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final, get_args

from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.text import safe_text
from fusetui.triage.finding import BOTTLENECKS, Finding, Topic
from fusetui.triage.tomlfile import read_toml

SUBJECTS: Final = ("stream", "core", "shape", "counter", "group")
KEYS: Final = ("name", "class", *SUBJECTS, "plan")
CLASSES: Final = (*BOTTLENECKS, *get_args(Topic))
MAX_CHARS: Final = 200


@dataclass(frozen=True, slots=True)
class OwnerRule:
    """Patterns, None: fits all. subjects: (what it names, pattern)."""

    name: str
    of_class: str | None = None
    subjects: tuple[tuple[str, str], ...] = ()
    plan: str | None = None

    def fits(self, of_class: str, subject_kind: str, subject: str, plans: Sequence[str]) -> bool:
        """Whether all its patterns fit."""
        if self.of_class is not None and not fnmatchcase(of_class, self.of_class):
            return False
        if self.plan is not None and not any(fnmatchcase(plan, self.plan) for plan in plans):
            return False
        return all(kind == subject_kind and fnmatchcase(subject, text) for kind, text in self.subjects)


@dataclass(frozen=True, slots=True)
class Owners:
    """Rules of one file, in order."""

    rules: tuple[OwnerRule, ...] = ()

    def owned(self, finding: Finding, plans: Sequence[str] = ()) -> Finding:
        """The finding with its owner; plans: names of the trace's plans."""
        owner = self.of(finding.bottleneck or finding.topic, finding.subject_kind, finding.subject, plans)
        return replace(finding, owner=owner) if owner else finding

    def of(self, of_class: str, subject_kind: str = "", subject: str = "", plans: Sequence[str] = ()) -> str:
        """Who owns a class of bottleneck or a topic, "" for nobody."""
        fitting = [rule.name for rule in self.rules if rule.fits(of_class, subject_kind, subject, plans)]
        return fitting[-1] if fitting else ""


def unowned(of_class: str) -> str:
    """What to say of a class that nobody owns: with the lines to add."""
    return f'unowned; add to owners.toml: [[owner]] with name = "TEAM" and class = "{of_class}"'


def default_path() -> Path:
    """`owners.toml` of the project, else that in the user's config folder, there or not."""
    try:
        folder = Path.cwd()
    except OSError:  # somebody deleted it
        return config_path()
    return next((path for path in project_paths(folder) if path.is_file()), config_path())


def config_path() -> Path:
    """`owners.toml` in the user's config folder."""
    config = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(config) / "fusetui" / "owners.toml"


def project_paths(folder: Path) -> list[Path]:
    """Where the `owners.toml` of a project may be: in `folder`, then above it up to the root of its repository."""
    above = [folder, *folder.parents]
    root = next((place for place, one in enumerate(above) if (one / ".git").exists()), 0)
    return [one / "owners.toml" for one in above[: root + 1]]


def load_owners(path: str | Path | None = None) -> Owners:
    """The owners in a file; None: of the project or the config folder, else nobody. Raises TelemetryError."""
    where = default_path() if path is None else Path(path)
    document = read_toml(where)
    if document is not None:
        return owners_of(document, str(where))
    if path is None:
        return Owners()
    raise TelemetryError(str(where), "there is no such file", "name an owners.toml")


def owners_of(document: dict[str, Any], where: str) -> Owners:
    """The owners in a document that was read. Raises TelemetryError naming the key."""
    for key in document:
        if key != "owner":
            raise TelemetryError(where, f"unknown key {key!r}", "rules are tables [[owner]]")
    rules = document.get("owner", [])
    if not isinstance(rules, list) or not all(isinstance(rule, dict) for rule in rules):
        raise TelemetryError(where, "owner is not a list of tables", "write [[owner]]")
    return Owners(tuple(_rule(rule, f"{where}: owner {number}") for number, rule in enumerate(rules, 1)))


def _rule(fields: dict[str, Any], where: str) -> OwnerRule:
    for key, value in fields.items():
        if key not in KEYS:
            raise TelemetryError(where, f"unknown key {key!r}", f"there are: {', '.join(KEYS)}")
        if not isinstance(value, str) or not value.strip():
            raise TelemetryError(where, f"{key} is not a text")
        if len(value) > MAX_CHARS:
            raise TelemetryError(where, f"{key} is over {MAX_CHARS} characters")
    if "name" not in fields:
        raise TelemetryError(where, "name is missing", "say who owns it")
    of_class = fields.get("class")
    if of_class is not None and not any(fnmatchcase(known, of_class) for known in CLASSES):
        raise TelemetryError(where, f"class {of_class!r} fits none", f"there are: {', '.join(CLASSES)}")
    subjects = tuple((kind, fields[kind]) for kind in SUBJECTS if kind in fields)
    return OwnerRule(safe_text(fields["name"], MAX_CHARS), of_class, subjects, fields.get("plan"))
