"""The screens of a bundle: what `fusetui replay slice.arrows` shows, as pictures."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

WINDOW_BYTES = 128 << 20


def screens_of(rows: bytes) -> dict[str, bytes]:
    """SVG by member name of rows as a contract file. What was renamed in the rows is renamed in the pictures."""
    from fusetui.analysis.ingest import Ingest
    from fusetui.app.pictures import pictures
    from fusetui.telemetry.open import open_trace
    from fusetui.telemetry.replay import Replay

    with TemporaryDirectory(prefix="fusetui-") as folder:
        path = Path(folder, "slice.arrows")
        path.write_bytes(rows)
        trace = open_trace(path)
        ingest = Ingest(Replay(trace, follow=True, name=path.name), memory_bytes=WINDOW_BYTES)
        ingest.start()
        try:
            made = pictures(ingest, Path(folder), title=path.name)
        finally:
            ingest.stop()
            trace.close()
    return {f"screens/{name}.svg": picture.encode() for name, picture in made.items()}
