"""Mutated scenario files: read or refused in one line, never a crash."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from fusetui.accelerator.errors import AcceleratorError
from fusetui.accelerator.scenario.parse import load_scenario, scenario_names

_TOKENS = (
    "=",
    "[",
    "]",
    "{",
    "}",
    '"',
    "-1",
    "1e308",
    "nan",
    "inf",
    "true",
    "0",
    "9" * 30,
    "[[stream]]",
    "\0",
    "é",
    "#",
)
_EACH = 60


def mutated(text: str, noise: random.Random) -> str:
    for _ in range(noise.randint(1, 4)):
        at, other = sorted((noise.randrange(len(text)), noise.randrange(len(text))))
        match noise.randrange(5):
            case 0:
                text = text[:at] + noise.choice(_TOKENS) + text[at:]
            case 1:
                text = text[:at] + text[at + noise.randint(1, 12) :]
            case 2:
                text = text[:at] + text[at : min(other, at + 60)] + text[at:]
            case 3:
                lines = text.splitlines(keepends=True)
                noise.shuffle(lines)
                text = "".join(lines)
            case _:
                text = text[:at] + noise.choice("0123456789.e-") + text[at + 1 :]
    return text


@pytest.mark.parametrize("name", scenario_names())
def test_mutations_are_read_or_refused(tmp_path: Path, name: str) -> None:
    original = Path(load_scenario(name).where).read_text()
    path = tmp_path / "fuzz.toml"
    read = 0
    lines: list[str] = []
    for case in range(_EACH):
        path.write_text(mutated(original, random.Random(case)))
        try:
            load_scenario(str(path))
        except AcceleratorError as error:
            lines.append(str(error))
        else:
            read += 1
    assert read + len(lines) == _EACH
    assert read > 0
    assert not any("\n" in line for line in lines)
