"""fusetui: accelerator telemetry in the terminal. This module stays import-free so that `--version` is quick."""

__version__ = "0.1.0"
