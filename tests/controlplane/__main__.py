"""`python -m tests.controlplane`: the request's cluster, by hand, until Ctrl-C."""

import argparse
import signal
from contextlib import ExitStack

from .build import ALL, ensure_built
from .cluster import ControlPlane
from .jaeger import Jaeger
from .scenario import BIG_VM, load_request_scenario, start_big_vm


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.controlplane", description=__doc__)
    parser.add_argument("--empty", action="store_true", help="start without nodes and VMs")
    parser.add_argument("--jaeger", action="store_true", help="start Jaeger too")
    parser.add_argument("--build-only", action="store_true", help="build everything and stop")
    arguments = parser.parse_args()
    if arguments.build_only:
        ensure_built(ALL)
        return
    # Ends as by Ctrl-C: in order, with the folders removed.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with ExitStack() as stack:
            _start(stack, empty=arguments.empty, jaeger=arguments.jaeger)
            signal.pause()
    except KeyboardInterrupt:
        print("stopped", flush=True)


def _start(stack: ExitStack, *, empty: bool, jaeger: bool) -> None:
    control_plane = stack.enter_context(ControlPlane())
    if not empty:
        load_request_scenario(control_plane)
        start_big_vm(control_plane)
        print(f"# six VMs run, {BIG_VM} is Pending for memory")
    print(f"# logs are in {control_plane.logs}; end with Ctrl-C")
    if jaeger:
        traces = stack.enter_context(Jaeger())
        print(f"# traces: {traces.address}/api/traces?service=NAME")
        print(f"export OTEL_EXPORTER_OTLP_ENDPOINT={traces.otlp_http_endpoint}")
    print(f"export KUBECONFIG={control_plane.kubeconfig()}", flush=True)


if __name__ == "__main__":
    main()
