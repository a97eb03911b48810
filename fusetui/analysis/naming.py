"""How streams and cores are called, everywhere the same: panes, tables, reports."""

from __future__ import annotations

from fusetui.analysis.columns import OTHERS, Reader

NO_STREAM = "(no stream)"


def several_hosts(reader: Reader) -> bool:
    """More than one host was seen, so names carry their host."""
    return len(reader.hosts.words) > 2


def stream_name(reader: Reader, key: int, with_host: bool) -> str:
    """The stream, `host/stream` with its host."""
    if key >= len(reader.streams.keys):
        return OTHERS
    host, stream = reader.streams.keys[key]
    name = reader.stream_words.words[stream] if stream >= 0 else NO_STREAM
    return f"{reader.hosts.words[host]}/{name}" if with_host and host >= 0 else name


def core_label(reader: Reader, place: int, with_host: bool) -> str:
    """`device/core`, `device`, or the host where neither is known; with its host in front on demand."""
    keys, words = reader.places.keys, reader.hosts.words
    if place >= len(keys):
        return OTHERS
    host, device, core = keys[place]
    anywhere = device < 0 and core < 0
    parts = [words[host] if host >= 0 else "host"] if (with_host and host >= 0) or anywhere else []
    parts += [str(device)] if device >= 0 else []
    parts += [str(core)] if core >= 0 else []
    return "/".join(parts)
