"""The TPU source against a gRPC server with libtpu's own messages: `python tests/bench/bench_tpu_truth.py`.

tpu-info must be installed; there is no TPU: the figures are made up, the wire and the messages are the vendor's.
"""

from __future__ import annotations

import sys
import time
from concurrent import futures
from contextlib import closing
from typing import Any

from fusetui.sources.registry import open_source


def serve() -> tuple[Any, int]:
    """A server that knows three metrics of two chips."""
    import grpc
    from tpu_info.proto import tpu_metric_service_pb2 as pb
    from tpu_info.proto import tpu_metric_service_pb2_grpc as stubs

    def chip(n: int) -> Any:
        return pb.Attribute(key="device-id", value=pb.AttrValue(int_attr=n))

    def ordinal(n: int) -> Any:
        told = pb.Attribute(key="device_ordinal", value=pb.AttrValue(string_attr=str(n)))
        return pb.Attribute(key="core", value=pb.AttrValue(kvlist_attr=pb.KeyValueList(attributes=[told])))

    options = pb.Distribution.BucketOptions(
        exponential_buckets=pb.Distribution.BucketOptions.Exponential(num_finite_buckets=4, growth_factor=2, scale=100)
    )
    runs = pb.Distribution(count=200, mean=333.0, bucket_counts=[0, 0, 190, 8, 0, 2], bucket_options=options)
    known = {
        "tpu.runtime.tensorcore.dutycycle.percent": [
            pb.Metric(attribute=chip(n), gauge=pb.Gauge(as_double=40.0 + n)) for n in (0, 1)
        ],
        "tpu.runtime.hbm.memory.usage.bytes": [pb.Metric(attribute=chip(1), gauge=pb.Gauge(as_int=1 << 33))],
        "hlo.execution.timing.distribution.microseconds": [pb.Metric(attribute=ordinal(1), distribution=runs)],
    }

    class Service(stubs.RuntimeMetricServiceServicer):  # type: ignore[misc]
        def GetRuntimeMetric(self, request: Any, context: Any) -> Any:
            if request.metric_name not in known:
                context.abort(grpc.StatusCode.NOT_FOUND, "no such metric")
            return pb.MetricResponse(metric=pb.TPUMetric(name=request.metric_name, metrics=known[request.metric_name]))

    server = grpc.server(futures.ThreadPoolExecutor(2))
    stubs.add_RuntimeMetricServiceServicer_to_server(Service(), server)
    port = server.add_secure_port("localhost:0", grpc.local_server_credentials())
    server.start()
    return server, port


def main() -> None:
    server, port = serve()
    expected = {
        ("tensorcore busy", 0): 40.0, ("tensorcore busy", 1): 41.0, ("memory used", 1): float(1 << 33),
        ("program run n", 1): 200.0, ("program run p95 lo", 1): 200e-6, ("program run p95 hi", 1): 400e-6,
        ("program run p99 lo", 1): 400e-6, ("program run p99 hi", 1): 800e-6,
    }  # fmt: skip
    with closing(open_source(f"tpu:port={port},period=0.2")) as source:
        rows = [row for batch in source.poll(5.0) for row in batch.to_pylist()]
        found = {(row["name"], row["device"]): row["value"] for row in rows}
        print(f"{source.health().state}, {len(rows)} rows; cannot tell: {len(source.health().missing)} lines")
        wrong = [key for key, value in expected.items() if abs(found.get(key, 0.0) - value) > 1e-12]
        print(f"{len(expected) - len(wrong)} of {len(expected)} figures as served {wrong or ''}")
        server.stop(0)
        time.sleep(1.5)
        print(f"server gone: {source.health().last_error}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
