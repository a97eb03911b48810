"""A PyTorch CPU profile of training steps whose sequence length changes: `sample_traces/torch-training.arrows`.

    python tests/samples/torch_training.py torch-training.json.gz
    fusetui export torch-training.json.gz -o torch-training.arrows

Needs PyTorch.
"""

import sys

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile, schedule

LENGTHS = (16, 64, 32, 128, 16, 256, 48, 64) * 6
WARM_UP = 2


def main() -> None:
    """Profile all steps but the first."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    block = nn.TransformerEncoderLayer(256, 8, 1024, batch_first=True, dropout=0.0)
    head = nn.Linear(256, 256)
    optimiser = torch.optim.AdamW([*block.parameters(), *head.parameters()], fused=True)
    plan = schedule(wait=0, warmup=WARM_UP, active=len(LENGTHS) - WARM_UP, repeat=1)
    with profile(
        activities=[ProfilerActivity.CPU],
        record_shapes=True,
        schedule=plan,
        on_trace_ready=lambda done: done.export_chrome_trace(sys.argv[1]),
    ) as profiler:
        for length in LENGTHS:
            loss = head(block(torch.randn(4, length, 256))).square().mean()
            loss.backward()
            optimiser.step()
            optimiser.zero_grad()
            profiler.step()


if __name__ == "__main__":
    main()
