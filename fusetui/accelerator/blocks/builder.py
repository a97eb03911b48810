"""Writing a block down: each call adds one operator and returns the name of what it computes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fusetui.accelerator.graph import Graph, Operator, Role, Tensor


class Builder:
    """Collects tensors and operators; `graph()` checks them."""

    def __init__(self, name: str, sizes: Mapping[str, int], dtype: str) -> None:
        self._name = name
        self._sizes = dict(sizes)
        self._dtype = dtype
        self._tensors: dict[str, Tensor] = {}
        self._operators: list[Operator] = []

    def graph(self) -> Graph:
        """The finished graph."""
        return Graph(self._name, self._sizes, self._tensors, tuple(self._operators))

    def tensor(self, name: str, dims: Sequence[str], role: Role = "input", dtype: str = "") -> str:
        """An input or a weight."""
        self._tensors[name] = Tensor(name, tuple(dims), dtype or self._dtype, role)
        return name

    def weight(self, name: str, *dims: str) -> str:
        """A weight."""
        return self.tensor(name, dims, "weight")

    def dims(self, name: str) -> tuple[str, ...]:
        """The dimensions of a tensor made so far."""
        return self._tensors[name].dims

    def add(self, op: Operator, out: Sequence[str]) -> str:
        """Any operator; its output has the operator's name."""
        self._tensors[op.output] = Tensor(op.output, tuple(out), self._dtype)
        self._operators.append(op)
        return op.output

    def matmul(self, name: str, left: str, right: str, out: Sequence[str]) -> str:
        """Contracts every dimension that both sides have and `out` has not."""
        shared = tuple(d for d in self.dims(left) if d in self.dims(right) and d not in out)
        return self.add(Operator(name, "matmul", (left, right), name, shared, 2.0, "matmul"), out)

    def elementwise(
        self, name: str, *inputs: str, flops: float = 1.0, cost_class: str = "elementwise", causal: bool = False
    ) -> str:
        """Point by point; smaller inputs are broadcast."""
        out = tuple(dict.fromkeys(d for t in sorted(inputs, key=lambda t: -len(self.dims(t))) for d in self.dims(t)))
        op = Operator(name, "elementwise", inputs, name, flops_per_point=flops, cost_class=cost_class, causal=causal)
        return self.add(op, out)

    def reduction(
        self, name: str, *inputs: str, row: str, flops: float, cost_class: str, keep: bool = True, online: bool = False
    ) -> str:
        """A row operator; with `keep` (softmax, norms) the row stays in the output."""
        out = tuple(d for d in self.dims(inputs[0]) if keep or d != row)
        return self.add(Operator(name, "reduction", inputs, name, (row,), flops, cost_class, online=online), out)

    def layout(self, name: str, source: str, out: Sequence[str], *, view: bool = False) -> str:
        """A transpose or copy; a view moves nothing."""
        return self.add(
            Operator(name, "layout", (source,), name, flops_per_point=0.0, cost_class="copy", is_view=view), out
        )

    def norm(self, name: str, source: str, row: str, *, rms: bool) -> str:
        """RMSNorm (one weight) or LayerNorm (two)."""
        weights = [self.weight(f"{name}.scale", row)]
        if not rms:
            weights.append(self.weight(f"{name}.shift", row))
        return self.reduction(
            name, source, *weights, row=row, flops=4.0 if rms else 7.0, cost_class="norm" if rms else "layernorm"
        )

    def linear(self, name: str, source: str, out: Sequence[str], *, bias: bool = False) -> str:
        """A matrix product with a weight, and its bias as an operator of its own."""
        contracted = [d for d in self.dims(source) if d not in out]
        fresh = [d for d in out if d not in self.dims(source)]
        product = self.matmul(name, source, self.weight(f"{name}.weight", *contracted, *fresh), out)
        if not bias:
            return product
        return self.elementwise(f"{name}.bias", product, self.weight(f"{name}.bias.weight", *fresh))
