"""The model needs numpy alone: it can be embedded where no telemetry and no screen is."""

from __future__ import annotations

import json
import subprocess
import sys

FOREIGN = {"textual", "rich", "polars", "pyarrow", "psutil", "msgspec"}


def test_planning_loads_numpy_alone() -> None:
    code = (
        "import json, sys\n"
        "from fusetui.accelerator.blocks import build_block\n"
        "from fusetui.accelerator.constants import default_constants\n"
        "from fusetui.accelerator.plan import make_plans\n"
        "from fusetui.accelerator.presets import load_hardware\n"
        "hw = load_hardware('H100')\n"
        "make_plans(build_block('mlp'), hw, default_constants(hw, 'bf16'), 'bf16')\n"
        "print(json.dumps(sorted(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    loaded = json.loads(done.stdout)
    assert "numpy" in loaded
    assert not FOREIGN & {name.split(".")[0] for name in loaded}
    ours = {".".join(name.split(".")[:2]) for name in loaded if name.startswith("fusetui.")}
    assert ours == {"fusetui.accelerator"}
