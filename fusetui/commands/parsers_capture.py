"""Command lines of what reads telemetry: captures, live sources, the box itself."""

from __future__ import annotations

from fusetui.commands.formats import ListFormats
from fusetui.commands.limits import retention, rotation
from fusetui.commands.options import (
    Commands,
    duration,
    input_options,
    screen_options,
    size,
    socket_options,
    source_options,
    speed,
)


def replay(commands: Commands) -> None:
    command = commands.add_parser("replay", help="open captures of any known tool: files, folders, archives")
    command.add_argument("trace", nargs="+", help="file, or sample:NAME; several files are ranks of one run")
    command.add_argument("--formats", action=ListFormats, help="list what opens, and end")
    command.add_argument("--speed", type=speed, metavar="X", help="play from the start at this speed, 0.1 to 1000")
    command.add_argument("--from", dest="from_", metavar="T", help="begin at 03:10:41.2, 37%% or 12.5s")
    command.add_argument("--to", metavar="T", help="end there")
    command.add_argument("--loop", action="store_true", help="begin again at the end")
    command.add_argument("--baseline", metavar="TRACE", help="a capture from before, drawn and judged beside this one")
    command.add_argument("--follow", action="store_true", help="stay at the end of a capture that is still written")
    input_options(command)
    source_options(command)
    screen_options(command)
    command.set_defaults(module="replay")


def live(commands: Commands) -> None:
    command = commands.add_parser("live", help="watch telemetry as it comes")
    command.add_argument(
        "source",
        nargs="?",
        default="host",
        help="host (default), sim, sim:scenario=NAME, - (stdin), unix:PATH, tcp:HOST:PORT, a pipe, Arrow Flight"
        " (grpc://HOST:PORT/NAME asks, flight:HOST:PORT listens), an engine's http://…/metrics, a vLLM or SGLang log,"
        " or devices: nvml, amdsmi, neuron, tt-smi, xpu-smi, hl-smi, tpu; `fusetui doctor` tells what is here",
    )
    command.add_argument(
        "--record", metavar="OUT", help="record what comes to a file or a folder, as `fusetui record` does"
    )
    command.add_argument("--force", action="store_true", help="overwrite FILE")
    command.add_argument("--baseline", metavar="TRACE", help="a capture to compare with, drawn and judged beside it")
    input_options(command)
    socket_options(command)
    source_options(command)
    screen_options(command)
    command.set_defaults(module="live")


def doctor(commands: Commands) -> None:
    command = commands.add_parser("doctor", help="what there is to watch on this machine, and what is in the way")
    command.add_argument("--json", action="store_true", help="JSON on stdout; absent values are null")
    command.set_defaults(module="doctor")


def snapshot(commands: Commands) -> None:
    command = commands.add_parser("snapshot", help="print every measure of a source or capture once")
    command.add_argument("source", help="a live source, a capture, or sample:NAME")
    command.add_argument("--json", action="store_true", help="JSON on stdout; absent values are null")
    command.add_argument(
        "--coverage", action="store_true", help="instead: what a capture tells of how many rows, and what it cannot"
    )
    command.add_argument(
        "--causes", action="store_true", help="also what caused the tail, by simulating its arrivals (seconds)"
    )
    input_options(command)
    socket_options(command)
    source_options(command)
    command.set_defaults(module="snapshot")


def record(commands: Commands) -> None:
    command = commands.add_parser("record", help="record a live source as Arrow stream segments")
    command.add_argument("source", help="host, sim, -, unix:PATH, a metrics page, …: whatever `fusetui live` takes")
    command.add_argument(
        "-o",
        "--output",
        required=True,
        metavar="OUT",
        help="night.arrows: one recording; a folder, like night/: a recording that every start goes on with",
    )
    command.add_argument("--for", dest="for_ns", type=duration, metavar="D", help="stop after this long")
    command.add_argument(
        "--rotate",
        type=rotation,
        action="append",
        default=[],
        metavar="AMOUNT",
        help="next segment after 256MB or 1h, whichever comes first (the defaults); may be given twice",
    )
    command.add_argument(
        "--keep",
        type=retention,
        action="append",
        default=[],
        metavar="AMOUNT",
        help="of a folder, keep the newest 2GB, 24h or 100 (segments); default: everything",
    )
    command.add_argument("--metrics", metavar="HOST:PORT", help="serve the measures to Prometheus, e.g. 127.0.0.1:9464")
    command.add_argument("--alerts", metavar="FILE", help="watch the rules of an alerts.toml, run its hooks")
    command.add_argument("--force", action="store_true", help="overwrite existing files")
    socket_options(command)
    source_options(command)
    command.set_defaults(module="record")


def stream(commands: Commands) -> None:
    command = commands.add_parser("stream", help="send a live source to a viewer, also on another machine")
    command.add_argument("source", help="host, sim, -, devices, a metrics page, …: whatever `fusetui live` takes")
    command.add_argument(
        "--to",
        required=True,
        metavar="ADDRESS",
        help="where `fusetui live` listens: tcp:HOST:PORT, unix:PATH, or grpc://HOST:PORT[/NAME] (Arrow Flight);"
        " offer:HOST:PORT[/NAME] waits for `fusetui live grpc://…` instead",
    )
    command.add_argument("--host", metavar="NAME", help="what to call this machine (default: its own name)")
    command.add_argument("--for", dest="for_ns", type=duration, metavar="D", help="stop after this long")
    socket_options(command)
    source_options(command)
    command.set_defaults(module="stream")


def export(commands: Commands) -> None:
    command = commands.add_parser("export", help="convert a capture to other formats, also of trace viewers")
    command.add_argument("trace", nargs="+", help="file, or sample:NAME")
    command.add_argument("-o", "--output", metavar="FILE", help="default: standard output (csv and json)")
    command.add_argument(
        "--format",
        choices=("arrows", "parquet", "csv", "json", "chrome", "perfetto"),
        help="default: by the ending of FILE; chrome and perfetto open in ui.perfetto.dev",
    )
    command.add_argument("--force", action="store_true", help="overwrite FILE")
    input_options(command)
    command.add_argument("--memory", type=size, default=512 << 20, metavar="SIZE", help="memory limit (default 512MiB)")
    command.set_defaults(module="export")


def slice(commands: Commands) -> None:
    command = commands.add_parser("slice", help="part of a capture as a small file; prints the hash of what is in it")
    command.add_argument("trace", nargs="+", help="file, or sample:NAME; several files are ranks of one run")
    command.add_argument("--from", dest="from_", metavar="T", help="first event time: 03:10:41.2, 37%% or 12.5s")
    command.add_argument("--to", metavar="T", help="last event time, included")
    command.add_argument("--filter", default="", metavar="EXPR", help="only rows that pass, e.g. 'core = 3'")
    command.add_argument("-o", "--output", required=True, metavar="FILE", help="e.g. evidence.arrows")
    command.add_argument("--force", action="store_true", help="overwrite FILE")
    input_options(command)
    command.add_argument("--memory", type=size, default=512 << 20, metavar="SIZE", help="memory limit (default 512MiB)")
    command.set_defaults(module="slice")
