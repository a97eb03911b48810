"""Filters that choose the rows of a finding: what a stream, core or shape is called, in the language of `/`."""

from __future__ import annotations

from typing import Final

from fusetui.analysis.columns import OTHERS
from fusetui.analysis.naming import NO_STREAM
from fusetui.analysis.snapshot import Snapshot

MAX_CHARS: Final = 250
"""Longest name that is written into a filter: filters have a limit of their own."""


def joined(*filters: str) -> str:
    """One filter that passes what all of them pass."""
    used = [text for text in filters if text.strip()]
    return used[0] if len(used) == 1 else " and ".join(f"({text})" for text in used)


def equals(field: str, text: str) -> str:
    """A filter for a text as it is; where it has both kinds of quotes, for anything in their place."""
    if len(text) > MAX_CHARS:
        return ""
    if '"' not in text:
        return f'{field} = "{text}"'
    if "'" not in text:
        return f"{field} = '{text}'"
    pattern = text.replace('"', "*")
    return f'{field} ~ "{pattern}"'


def stream_filter(snapshot: Snapshot, name: str) -> str:
    """The rows of a stream as it is called; "" where that is not one stream."""
    if name in (NO_STREAM, OTHERS, ""):
        return ""
    host, slash, stream = name.partition("/")
    if not slash or not snapshot.columns_seen.get("host"):
        return equals("stream", name)
    # With several hosts names carry theirs; a stream's own name may hold a slash too.
    on_host = joined(equals("host", host), "" if stream == NO_STREAM else equals("stream", stream))
    return f"({on_host}) or {equals('stream', name)}"


def core_filter(snapshot: Snapshot, label: str) -> str:
    """The rows of a core by its label; "" where the label does not tell."""
    *hosts, last = label.split("/")
    numbers = [part for part in (*hosts[-1:], last) if part.isdecimal()]
    named = [part for part in hosts[: len(hosts) - (len(numbers) - 1)] if part] if numbers else []
    host = equals("host", named[0]) if len(named) == 1 else ""
    if len(numbers) == 2:
        return joined(host, f"device = {numbers[0]}", f"core = {numbers[1]}")
    if len(numbers) == 1:
        field = "device" if snapshot.columns_seen.get("device") else "core"
        return joined(host, f"{field} = {numbers[0]}")
    return equals("host", label) if snapshot.cores.level == "host" and snapshot.columns_seen.get("host") else ""
