"""The command line of each component: what is set, and why it is not left at its default."""

from pathlib import Path

LOOPBACK = "127.0.0.1"

# Leader election is for pairs; here it could only end a program on a machine that stalls.
_ALONE = "--leader-elect=false"

# Of KWOK's stages: nodes become ready and stay so; pods become ready at once, end if they belong
# to a Job, and are gone as soon as they are deleted.
_KWOK_STAGES = (
    "node/fast/node-initialize.yaml",
    "node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
    "pod/fast/pod-ready.yaml",
    "pod/fast/pod-complete.yaml",
    "pod/fast/pod-delete.yaml",
)


def etcd(program: Path, data: Path, client_port: int, peer_port: int) -> list[str]:
    client = f"http://{LOOPBACK}:{client_port}"
    peer = f"http://{LOOPBACK}:{peer_port}"
    return [
        str(program),
        f"--data-dir={data}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--log-level=warn",
        # The data is thrown away with the process.
        "--unsafe-no-fsync",
    ]


def apiserver(program: Path, certificates: Path, tokens: Path, port: int, etcd: int) -> list[str]:
    return [
        str(program),
        f"--etcd-servers=http://{LOOPBACK}:{etcd}",
        f"--secure-port={port}",
        f"--bind-address={LOOPBACK}",
        f"--advertise-address={LOOPBACK}",
        # Nobody reaches the API server by the service `kubernetes`, and a loopback address is
        # refused as its endpoint.
        "--endpoint-reconciler-type=none",
        *_serving(certificates),
        f"--token-auth-file={tokens}",
        "--authorization-mode=RBAC",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={certificates / 'service-accounts.key'}",
        f"--service-account-signing-key-file={certificates / 'service-accounts.key'}",
        "--service-cluster-ip-range=10.96.0.0/16",
        # It would add a token volume to every launcher pod, and refuse pods in namespaces whose
        # default service account has not been made yet.
        "--disable-admission-plugins=ServiceAccount",
        "--allow-privileged",
        # Published in the ConfigMap extension-apiserver-authentication, without which virt-api does
        # not start. Nobody comes through an aggregated API here.
        f"--requestheader-client-ca-file={certificates / 'ca.crt'}",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
    ]


def scheduler(program: Path, certificates: Path, kubeconfig: Path, port: int) -> list[str]:
    return [
        str(program),
        f"--kubeconfig={kubeconfig}",
        f"--secure-port={port}",
        f"--bind-address={LOOPBACK}",
        *_serving(certificates),
        _ALONE,
    ]


def controller_manager(program: Path, certificates: Path, kubeconfig: Path, port: int) -> list[str]:
    return [
        *scheduler(program, certificates, kubeconfig, port),
        # Each controller acts with its own built-in role; the user alone may do little.
        "--use-service-account-credentials",
        f"--root-ca-file={certificates / 'ca.crt'}",
    ]


def kwok(program: Path, stages: Path, kubeconfig: Path, port: int) -> list[str]:
    return [
        str(program),
        f"--kubeconfig={kubeconfig}",
        "--manage-all-nodes=true",
        f"--server-address={LOOPBACK}:{port}",
        *(f"--config={stages / stage}" for stage in _KWOK_STAGES),
    ]


def virt_controller(program: Path, certificates: Path, kubeconfig: Path, port: int) -> list[str]:
    return [
        str(program),
        f"--kubeconfig={kubeconfig}",
        f"--listen={LOOPBACK}",
        f"--port={port}",
        # Never pulled: KWOK runs no containers.
        "--launcher-image=virt-launcher:test",
        f"--prom-cert-file={certificates / 'server.crt'}",
        f"--prom-key-file={certificates / 'server.key'}",
        # Its leader election cannot be switched off, and at 15 s it ends the program on a machine
        # that stalls.
        "--leader-elect-lease-duration=300s",
        "--leader-elect-renew-deadline=240s",
    ]


def virt_api(program: Path, certificates: Path, kubeconfig: Path, port: int) -> list[str]:
    certificate, key = certificates / "server.crt", certificates / "server.key"
    return [
        str(program),
        f"--kubeconfig={kubeconfig}",
        f"--listen={LOOPBACK}",
        f"--port={port}",
        f"--tls-cert-file={certificate}",
        f"--tls-key-file={key}",
        # Shown to virt-handlers, of which there are none.
        f"--handler-cert-file={certificate}",
        f"--handler-key-file={key}",
    ]


def _serving(certificates: Path) -> list[str]:
    return [
        f"--tls-cert-file={certificates / 'server.crt'}",
        f"--tls-private-key-file={certificates / 'server.key'}",
    ]
