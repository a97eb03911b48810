"""Events to measures: window, quantiles, queue, imbalance, fairness. Knows only the contract."""
