"""Command lines of the accelerator model and its runtime."""

from __future__ import annotations

from fusetui.commands.options import (
    Commands,
    duration,
    input_options,
    number,
    screen_options,
    seed,
    size,
    source_options,
    speed,
)


def plan(commands: Commands) -> None:
    command = commands.add_parser("plan", help="fusion and tile plan of a model on a described accelerator")
    command.add_argument(
        "block",
        nargs="?",
        metavar="BLOCK|FILE",
        help="a built-in block, e.g. transformer-prefill; an ONNX file; or a capture, whose operators are planned and"
        " compared with what they took. Without it, what there is",
    )
    command.add_argument("--hardware", default="H100", metavar="H", help="a preset or a TOML file (default H100)")
    command.add_argument("--dtype", metavar="T", help="element type (default that of the file; bf16 for a block)")
    policies = ("none", "conservative", "balanced", "aggressive")
    command.add_argument("--policy", choices=policies, default="balanced", help="how far to fuse (default balanced)")
    command.add_argument(
        "--shapes", default="", metavar="N=V,…", help="e.g. model=llama-7b,batch=4; sizes of symbolic dimensions"
    )
    command.add_argument("--launch", choices=("eager", "graph"), default="eager", help="how kernels are launched")
    command.add_argument(
        "--constants",
        metavar="FILE",
        help="what `fusetui calibrate -o` wrote (default: *.json for this device and type in the folder constants of"
        " the configuration)",
    )
    command.add_argument("--pareto", action="store_true", help="of each group, the tiles to choose between")
    form = command.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="JSON on standard output; absent values are null")
    form.add_argument("--markdown", action="store_true", help="Markdown tables")
    command.set_defaults(module="plan")


def calibrate(commands: Commands) -> None:
    command = commands.add_parser("calibrate", help="fit the accelerator model to measured kernels")
    command.add_argument(
        "rows",
        metavar="ROWS.csv",
        help="columns op,dtype,latency_us and batch,m,n,k (matmul); batch,q_heads,kv_heads,q_len,kv_len,head_dim,causal"
        " (attention); bytes_in,bytes_out,rows (add, norm, softmax, ...). `host` measures this CPU instead",
    )
    command.add_argument("--hardware", required=True, metavar="H", help="a preset, host, or a .toml file")
    command.add_argument(
        "--train", type=int, metavar="N", help="rows to fit on, per dtype and family (default 20, at most half)"
    )
    command.add_argument("--seed", type=int, default=0, metavar="S", help="which rows (default 0)")
    command.add_argument("-o", "--output", metavar="FILE", help="write the constants here")
    command.add_argument("--force", action="store_true", help="overwrite FILE")
    command.add_argument("--json", action="store_true", help="JSON on stdout")
    command.set_defaults(module="calibrate")


def simulate(commands: Commands) -> None:
    command = commands.add_parser("simulate", help="telemetry of a scenario from the accelerator model")
    command.add_argument("scenario", nargs="?", help="a scenario that ships (see --list), or a TOML file")
    command.add_argument("--list", action="store_true", help="the scenarios that ship and what to see in them")
    command.add_argument("-o", "--output", metavar="FILE", help="write the trace here, e.g. burst.arrows")
    command.add_argument("--force", action="store_true", help="overwrite FILE")
    command.add_argument("--live", action="store_true", help="watch it, round after round")
    command.add_argument("--speed", type=speed, default=1.0, metavar="X", help="with --live: 0.1 to 1000")
    command.add_argument("--seed", type=seed, metavar="N", help="other draws (default: the scenario's)")
    command.add_argument("--policy", metavar="P[,P…]", help="plan under another policy; several are compared")
    command.add_argument("--json", action="store_true", help="JSON on stdout; absent values are null")
    source_options(command)
    screen_options(command)
    command.set_defaults(module="simulate")


def retune(commands: Commands) -> None:
    command = commands.add_parser("retune", help="compare plan and telemetry, and try bounded changes on what came")
    command.add_argument("trace", help="a capture, or sample:NAME")
    command.add_argument("--hardware", metavar="H", help="a preset or a TOML file, to plan what a profile shows")
    command.add_argument("--max", type=number, default=5, metavar="N", help="most proposals (default 5)")
    command.add_argument("--measured", metavar="TRACE", help="a capture of the same work after the change")
    form = command.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="JSON on stdout; absent values are null")
    form.add_argument("--markdown", action="store_true", help="Markdown, for an issue")
    command.add_argument("--window", type=duration, metavar="D", help="only the last part of the trace, e.g. 10s")
    command.add_argument("--memory", type=size, default=512 << 20, metavar="SIZE", help="memory limit (default 512MiB)")
    input_options(command)
    command.set_defaults(module="retune")
