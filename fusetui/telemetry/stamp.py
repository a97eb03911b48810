"""What a sender and a viewer tell each other beside the rows: how many there were, and what time it is.

A sender puts a `Stamp` into the metadata of an Arrow message (key `fusetui.stamp`; other readers pass over it), also on
empty batches when it has nothing to say. A viewer on a two-way connection answers with lines: see `Answer`.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any, Final, Self

STAMP_KEY: Final = b"fusetui.stamp"
RUN_KEY: Final = b"fusetui.run"
"""In the schema's metadata: one run of a sender, over all its connections; its counts begin at 0."""

MAX_BYTES: Final = 1024
ANSWER_PREFIX: Final = b"FUSETUI-HEARD "
BYE: Final = b"FUSETUI-BYE\n"
"""Said by a viewer that ends: the sender sends its final stamp, and the answer to that says what has come."""
_LIMIT: Final = 1 << 62


@dataclass(frozen=True, slots=True)
class Stamp:
    """What a sender says with a batch. Times are ns since 1970 on its own clock.

    rows      sent in this run, this batch included
    taken     rows it has taken from its source in this run: `taken - rows` are about to come
    sent_ns   when it was sent
    asks      it reads answers
    final     nothing comes after it
    echo_ns, heard_ns  `Answer.said_ns` of the latest answer, and when it came
    """

    rows: int
    taken: int
    sent_ns: int
    asks: bool = False
    final: bool = False
    echo_ns: int | None = None
    heard_ns: int | None = None

    def to_bytes(self) -> bytes:
        """As the value of STAMP_KEY."""
        return json.dumps({k: v for k, v in asdict(self).items() if v is not None}).encode()

    @classmethod
    def read(cls, raw: bytes) -> Self | None:
        """Back from bytes; None for what is none."""
        fields = _numbers(raw, ("rows", "taken", "sent_ns"), ("echo_ns", "heard_ns"))
        if fields is None:
            return None
        flags = {key: fields.pop(key) is True for key in ("asks", "final") if key in fields}
        return cls(**fields, **flags)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a viewer says back: a line `FUSETUI-HEARD {"said_ns": …, "through": …}`.

    said_ns  when it was said, ns since 1970 on the viewer's clock
    through  `Stamp.rows` of the last batch that came in this run
    """

    said_ns: int
    through: int

    def to_bytes(self) -> bytes:
        """As a line."""
        return ANSWER_PREFIX + json.dumps(asdict(self)).encode() + b"\n"

    @classmethod
    def read(cls, line: bytes) -> Self | None:
        """Back from a line; None for what is none."""
        if not line.startswith(ANSWER_PREFIX):
            return None
        fields = _numbers(line[len(ANSWER_PREFIX) :], ("said_ns", "through"), ())
        return None if fields is None else cls(fields["said_ns"], fields["through"])


def _numbers(raw: bytes, needed: tuple[str, ...], optional: tuple[str, ...]) -> dict[str, Any] | None:
    """The known fields of a JSON object whose numbers are all 0 … 2^62; None when it is no such thing."""
    if len(raw) > MAX_BYTES:
        return None
    try:
        fields = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    if not isinstance(fields, dict) or not all(key in fields for key in needed):
        return None
    numbers = {key: fields[key] for key in (*needed, *optional) if key in fields}
    if not all(type(value) is int and 0 <= value <= _LIMIT for value in numbers.values()):
        return None
    return {**numbers, **{key: fields[key] for key in ("asks", "final") if key in fields}}
