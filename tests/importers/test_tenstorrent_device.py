"""Tenstorrent device logs: zones paired per core and processor, in each variant of the header."""

from __future__ import annotations

from pathlib import Path

import pytest
from kineto_samples import MEMORY, rows_of, write
from small_captures import tt_device_log

from fusetui.importers import tenstorrent_device
from fusetui.telemetry.errors import TelemetryError

_ZONES = [
    (0, 1, 2, "BRISC", "BRISC-FW", 10_000, 20_000),
    (0, 1, 2, "BRISC", "BRISC-KERNEL", 10_135, 11_485),
    (0, 2, 2, "BRISC", "BRISC-KERNEL", 10_135, 14_185),
    (0, 2, 2, "NCRISC", "NCRISC-KERNEL", 10_270, 11_620),
    (0, 2, 2, "BRISC", "my zone", 10_200, 10_300),
    (3, 1, 1, "BRISC", "BRISC-KERNEL", 11_485, 12_835),
]


def opened(tmp_path: Path, content: bytes) -> tuple[list[tuple[object, ...]], list[str], dict[str, str]]:
    capture = tenstorrent_device.read(write(tmp_path / "log.csv", content), MEMORY)
    keys = ("name", "device", "core", "stream", "start_ns", "end_ns", "request")
    rows = [tuple(row.get(key) for key in keys) for row in rows_of(capture)]
    return sorted(rows, key=str), capture.notes, dict(capture.header.hardware)


def test_kernel_zones_are_executions_of_cores(tmp_path: Path) -> None:
    content = tt_device_log(_ZONES)
    assert tenstorrent_device.sniff(content)
    rows, notes, hardware = opened(tmp_path, content)
    assert rows == [
        ("BRISC-KERNEL", 0, 1, "BRISC", 0, 1000, 1024),
        ("BRISC-KERNEL", 0, 2, "BRISC", 0, 3000, 1024),
        ("BRISC-KERNEL", 3, 0, "BRISC", 1000, 2000, 1024),
        ("NCRISC-KERNEL", 0, 2, "NCRISC", 100, 1100, 1024),
    ]
    assert hardware == {"chip": "blackhole at 1350 MHz", "core 0": "x=1 y=1", "core 1": "x=1 y=2", "core 2": "x=2 y=2"}
    assert notes == ["zones around or inside the KERNEL zones left out: 2"]


def test_repeated_zones_pair_in_order_and_orphans_are_counted(tmp_path: Path) -> None:
    lines = tt_device_log([(0, 0, 0, "TRISC_0", "TRISC-FW", at, at + 100) for at in (1000, 2000, 3000)], 1000)
    cut = lines.decode().splitlines()
    del cut[3]  # the end of the first
    rows, notes, _ = opened(tmp_path, "\n".join(cut).encode())
    assert [row[4:6] for row in rows] == [(0, 100), (1000, 1100)]
    assert notes == ["begins or ends of zones without the other: 1"]


@pytest.mark.parametrize(
    "header",
    [
        "PCIe slot, core_x, core_y, RISC processor type, timer_id, time[cycles since reset], stat value, run ID, "
        "run host ID, zone name, zone phase, source line, source file",
        "Run ID, PCIe slot, core_x, core_y, RISC processor type, timer_id, time[cycles since reset], zone name, type",
    ],
)
def test_other_headers(tmp_path: Path, header: str) -> None:
    values = {
        "PCIe slot": "0", "core_x": "4", "core_y": "5", "RISC processor type": "BRISC", "zone name": "BRISC-KERNEL",
        "run host ID": "9", "Run ID": "9", "timer_id": "1", "stat value": "0", "run ID": "3", "source line": "1",
        "source file": "a",
    }  # fmt: skip
    lines = ["ARCH: wormhole_b0, CHIP_FREQ[MHz]: 1000", header]
    for at, kind, phase in ((500, "ZONE_START", "begin"), (900, "ZONE_END", "end")):
        row = {**values, "time[cycles since reset]": str(at), "type": kind, "zone phase": phase}
        lines.append(", ".join(row[name] for name in header.split(", ")))
    rows, _, _ = opened(tmp_path, "\n".join(lines).encode())
    assert rows == [("BRISC-KERNEL", 0, 0, "BRISC", 0, 400, 9)]


def test_a_log_that_cannot_be_paired_is_refused(tmp_path: Path) -> None:
    header = "PCIe slot, core_x, core_y, RISC processor type, timer_id, time[cycles since reset]"
    with pytest.raises(TelemetryError, match="do not say which begin"):
        opened(tmp_path, f"ARCH: grayskull, CHIP_FREQ[MHz]: 1202\n{header}\n0,1,1,BRISC,1,100\n".encode())


def test_an_unknown_clock_is_told(tmp_path: Path) -> None:
    rows, notes, _ = opened(tmp_path, tt_device_log(_ZONES[1:2], 0))
    assert [row[4:6] for row in rows] == [(0, 1350)]
    assert "the log does not know the chip's clock: times are cycles, not ns" in notes
