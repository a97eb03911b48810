"""The closed loop: what the compiler planned, what came and ran, and which bounded changes would have helped.

`propose.retune(twin)` looks for changes, tries each on the requests that came, and keeps those that hold.
"""

from fusetui.analysis.retune.propose import Retuned, retune

__all__ = ["Retuned", "retune"]
