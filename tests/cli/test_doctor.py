"""`fusetui doctor`: machines written as folders, and this one for real."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from fusetui.commands.doctor import examine, lines
from fusetui.commands.doctor_here import EXTRAS, colours, config_facts, extras, version_facts
from fusetui.sources.discovery import Offer, offers
from fusetui.sources.discovery_ports import listeners, sockets

HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def pci(slot: str, vendor: str, kind: str, state: str = "active") -> dict[str, str]:
    folder = f"sys/bus/pci/devices/{slot}"
    return {
        f"{folder}/vendor": vendor + "\n",
        f"{folder}/class": kind + "\n",
        f"{folder}/power/runtime_status": state + "\n",
    }


def tcp(address: str, port: int, inode: int, state: str = "0A") -> str:
    return f"   0: {address}:{port:04X} 00000000:0000 {state} 00000000:00000000 00:00000000 00000000  0 0 {inode} 1 0\n"


def found(root: Path, *, modules: tuple[str, ...] = (), commands: tuple[str, ...] = ()) -> dict[str, Offer]:
    got = offers(
        root,
        has_module=lambda name: name in modules,
        find_command=lambda name: f"/bin/{name}" if name in commands else None,
        environ={"XDG_RUNTIME_DIR": "/run/user/7/"},
    )
    return {offer.name: offer for offer in got}


def test_an_empty_machine_still_offers_what_needs_nothing(tmp_path: Path) -> None:
    got = found(tmp_path)
    assert [(offer.kind, offer.ready, offer.command) for offer in got.values()] == [
        ("socket", True, "fusetui live unix:/run/user/7/fusetui.sock"),
        ("host", True, "fusetui live host"),
        ("sim", True, "fusetui live sim"),
    ]
    assert "no /proc" in got["this machine"].detail


def test_nvidia_devices_with_and_without_the_package(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "dev/nvidia0": "",
            "dev/nvidia1": "",
            "dev/nvidiactl": "",
            "proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  Sun\n",
            "proc/driver/nvidia/gpus/0000:04:00.0/information": "Model: \t\t NVIDIA H200\nIRQ: 5\n",
            **pci("a", "0x10de", "0x030200"),
            **pci("b", "0x10de", "0x030200"),
            **pci("c", "0x10de", "0x040300"),
        },
    )
    offer = found(tmp_path, modules=("pynvml",))["2 NVIDIA GPU"]
    assert (offer.ready, offer.command) == (True, "fusetui live nvml")
    assert offer.detail == "2 on PCI, /dev/nvidia0 and 1 more, driver 580.65.06, NVIDIA H200"
    offer = found(tmp_path)["2 NVIDIA GPU"]
    assert not offer.ready
    assert offer.detail.endswith("; the package pynvml is missing")


def test_devices_without_a_driver_asleep_or_without_their_tool(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            **pci("a", "0x10de", "0x030000", "suspended"),
            **pci("b", "0x1e52", "0x120000"),
            **pci("c", "0x1ae0", "0x020000"),  # a network card of a vendor that also makes accelerators
            "dev/tenstorrent/0": "",
            "dev/neuron0": "",
            "dev/neuron1": "",
            "dev/davinci0": "",
            "dev/dri/renderD128": "",
        },
    )
    got = found(tmp_path, modules=("pynvml",), commands=("neuron-monitor",))
    devices = {name: offer for name, offer in got.items() if offer.kind == "device"}
    assert set(devices) == {"1 NVIDIA GPU", "1 Tenstorrent device", "2 AWS Neuron device", "1 Ascend NPU"}
    assert "no device node" in devices["1 NVIDIA GPU"].detail
    assert devices["1 Tenstorrent device"].detail.endswith("tt-smi is not on PATH")
    assert devices["2 AWS Neuron device"].ready
    assert devices["1 Ascend NPU"].command == ""
    write(tmp_path, {"dev/nvidia0": ""})
    assert found(tmp_path, modules=("pynvml",))["1 NVIDIA GPU"].detail.endswith("asleep: looking would wake it")


@pytest.mark.skipif(sys.byteorder != "little", reason="the table is written as little-endian machines print it")
def test_listeners_on_loopback_by_command_and_by_port(tmp_path: Path) -> None:
    table = (
        HEAD
        + tcp("0100007F", 8123, 11)
        + tcp("00000000", 8000, 12)
        + tcp("0100007F", 9400, 13)
        + tcp("0A00000A", 30000, 14)  # 10.0.0.10, not loopback
        + tcp("7F00000A", 8080, 15)  # 10.0.0.127, not loopback either
        + tcp("0100007F", 8082, 16, "01")  # a connection, not a listener
        + tcp("0100007F", 22, 17)
        + "nonsense\n"
    )
    six = HEAD + tcp("00000000000000000000000001000000", 41611, 18) + tcp("0000000000000000FFFF00000100007F", 8431, 19)
    write(tmp_path, {"proc/net/tcp": table, "proc/net/tcp6": six, "proc/77/cmdline": "python3\0-m\0vllm.serve\0"})
    (tmp_path / "proc/77/fd").mkdir()
    os.symlink("socket:[11]", tmp_path / "proc/77/fd/3")
    got = [(item.host, item.port, item.what, item.path) for item in listeners(tmp_path)]
    assert got == [
        ("127.0.0.1", 8000, "vLLM, or another serving engine", "/metrics"),
        ("127.0.0.1", 8123, "vLLM", "/metrics"),
        ("127.0.0.1", 8431, "libtpu metrics (gRPC)", ""),
        ("127.0.0.1", 9400, "DCGM exporter", "/metrics"),
        ("[::1]", 41611, "Gaudi exporter", "/metrics"),
    ]
    offer = found(tmp_path)["vLLM"]
    assert (offer.command, offer.detail) == ("fusetui live http://127.0.0.1:8123/metrics", "port 8123, by its command")
    assert "a guess by its number" in found(tmp_path)["DCGM exporter"].detail
    assert found(tmp_path)["all of these together"].command == (
        "fusetui live http://127.0.0.1:8000/metrics,http://127.0.0.1:8123/metrics,http://127.0.0.1:9400/metrics,"
        "http://[::1]:41611/metrics"
    )


def test_sockets_in_use(tmp_path: Path) -> None:
    rows = "Num RefCount Protocol Flags Type St Inode Path\n"
    rows += "0: 2 0 00010000 0001 01 5 /run/fusetui.sock\n0: 2 0 00010000 0001 01 6 /run/other\n"
    rows += "0: 3 0 00000000 0001 03 7 /run/fusetui.sock\n0: 2 0 00010000 0001 01 8\n"
    assert sockets(write(tmp_path, {"proc/net/unix": rows})) == ["/run/fusetui.sock"]


def test_odd_machines_do_not_fail(tmp_path: Path) -> None:
    write(tmp_path, {"dev": "a file", "proc": "a file", "sys": "a file"})
    assert len(examine(tmp_path, {})["offers"]) == 3
    other = tmp_path / "other"
    write(other, {"proc/net/tcp": "\x00\xff" * 999, "proc/net/unix": "\n\n", "proc/9/fd": "a file"})
    (other / "dev/nvidia0").mkdir(parents=True)
    (other / "sys/bus/pci/devices/x/vendor").mkdir(parents=True)
    report = examine(other, {"XDG_RUNTIME_DIR": "/a b\x1b[2J", "TERM": "x\x1b]0;y"})
    text = "\n".join(lines(report))
    assert "\x1b" not in text
    assert "fusetui live 'unix:/a b·[2J/fusetui.sock'" in text
    json.dumps(report, allow_nan=False)


def test_extras_are_those_of_the_package_with_the_line_for_this_python() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    optional = {name: needs for name, needs in project["optional-dependencies"].items() if name != "test"}
    for name, _, requirement, _ in EXTRAS:
        assert optional[name] == [requirement]
    got = {extra["name"]: extra for extra in extras(lambda module: module == "onnx")}
    assert got["onnx"]["installed"]
    assert not got["nvidia"]["installed"]
    assert got["nvidia"]["install"] == f"{sys.executable} -m pip install 'nvidia-ml-py>=12.535'"


@pytest.mark.parametrize(
    ("environ", "depth"),
    [
        ({"TERM": "xterm-256color", "COLORTERM": "truecolor"}, "16 million colours"),
        ({"TERM": "xterm-direct"}, "16 million colours"),
        ({"TERM": "screen-256color"}, "256 colours"),
        ({"TERM": "linux"}, "16 colours"),
        ({"TERM": "dumb"}, "no colours"),
        ({}, "no colours"),
        ({"TERM": "xterm-256color", "NO_COLOR": ""}, "no colours (NO_COLOR)"),
    ],
)
def test_colour_depth(environ: dict[str, str], depth: str) -> None:
    assert colours(environ) == depth


def test_configuration_files_and_what_is_wrong_with_each(tmp_path: Path) -> None:
    write(
        tmp_path / "fusetui",
        {
            "keys.toml": 'nothing.such = "x"\n',
            "owners.toml": "owner = 3\n",
            "hardware/mine.toml": "name = 1\n",
            "hardware/fine.toml": 'extends = "H100"\nname = "mine"\n',
            "themes/bad.toml": "not toml",
            "constants/bad.json": "[" * 100_000,
            "constants/worse.json": '[{"dtype": "bf16"}]',
            "notes.txt": "anything",
        },
    )
    (tmp_path / "fusetui/hardware/huge.toml").write_bytes(b"#" * (1 << 20) + b"\n")
    facts = config_facts({"XDG_CONFIG_HOME": str(tmp_path)})
    assert facts["folder"] == str(tmp_path / "fusetui")
    assert len(facts["files"]) == 9
    about = "\n".join(facts["problems"])
    assert len(facts["problems"]) == 7
    for word in ("no action nothing.such", "owner is not a list", "mine.toml", "bad.toml", "bad.json", "worse.json"):
        assert word in about
    assert "huge.toml: over 1 MiB" in about
    assert config_facts({"HOME": str(tmp_path / "nobody")})["files"] == []


def test_versions() -> None:
    facts = version_facts()
    assert facts["python"] == ".".join(map(str, sys.version_info[:3]))
    assert re.fullmatch(r"[\d.]+", facts["pyarrow"] or "")


def test_the_command_here() -> None:
    command = [sys.executable, "-m", "fusetui.cli", "doctor"]
    text = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert text.stderr == ""
    for heading in ("to watch", "extras", "terminal", "configuration", "versions"):
        assert f"\n{heading}\n" in "\n" + text.stdout
    environ = {**os.environ, "PYTHONIOENCODING": "ascii", "HOME": "/no/such"}
    done = subprocess.run([*command, "--json"], capture_output=True, text=True, timeout=60, check=True, env=environ)
    report = json.loads(done.stdout)
    assert {offer["command"] for offer in report["offers"]} >= {"fusetui live host", "fusetui live sim"}
    assert report["terminal"]["columns"] is None
    assert report["terminal"]["glyphs"] == "ascii"
    assert any("no UTF-8" in note for note in report["terminal"]["notes"])
