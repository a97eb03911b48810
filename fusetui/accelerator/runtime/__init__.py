"""Runtime simulation: compile plan -> runtime queue -> core placement -> completion, deterministic by seed.

`simulate.simulate(load, config)` gives an `outcome.Outcome`, `executions.executions(outcome)` its kernels.
"""
