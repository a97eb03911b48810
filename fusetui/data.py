"""Where the files that ship with fusetui are: inside the installed package, or beside it in a source tree."""

from __future__ import annotations

from pathlib import Path


def data_dir(kind: str) -> Path:
    """The folder of `kind`: "themes" or "sample_traces".

    In a source tree the folder beside the package is the truth; an installed wheel carries a copy in `_data`.
    """
    package = Path(__file__).resolve().parent
    beside = package.parent / kind
    if (package.parent / "pyproject.toml").is_file() and beside.is_dir():
        return beside
    return package / "_data" / kind
