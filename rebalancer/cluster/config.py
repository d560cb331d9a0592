"""Which cluster to talk to, and as whom."""

import os
from pathlib import Path

import yaml
from kubernetes.client import Configuration
from kubernetes.config import ConfigException, load_incluster_config, load_kube_config

from rebalancer.errors import InputError

DEFAULT_KUBECONFIG = Path("~/.kube/config")


def load_config(kubeconfig: Path | None, context: str | None) -> Configuration:
    """The given kubeconfig, else those in KUBECONFIG, else ~/.kube/config, else the pod's own
    service account; `context` chooses among a kubeconfig's contexts.

    Raises: InputError.
    """
    configuration = Configuration()
    source = _kubeconfig(kubeconfig)
    try:
        if source is None:
            _load_service_account(configuration, context)
        else:
            load_kube_config(source, context, configuration)  # type: ignore[no-untyped-call]
    except (ConfigException, OSError, ValueError, TypeError, AttributeError) as error:
        # The client does not check a kubeconfig's shape before it walks through it.
        raise InputError(f"kubeconfig {source or 'of the pod'}: {error}") from error
    except yaml.YAMLError as error:
        raise InputError(f"kubeconfig {source}: not YAML: {error}") from error
    return configuration


def _kubeconfig(given: Path | None) -> str | None:
    """What to load; the client silently passes over a file that does not exist."""
    if given is not None:
        if not given.expanduser().is_file():
            raise InputError(f"kubeconfig {given}: no such file")
        return str(given)
    if named := os.environ.get("KUBECONFIG"):
        if not any(Path(part).expanduser().is_file() for part in named.split(os.pathsep) if part):
            raise InputError(f"KUBECONFIG={named}: no such file")
        return named
    return str(DEFAULT_KUBECONFIG) if DEFAULT_KUBECONFIG.expanduser().is_file() else None


def _load_service_account(configuration: Configuration, context: str | None) -> None:
    if "KUBERNETES_SERVICE_HOST" not in os.environ:
        raise InputError(
            f"no cluster: there is no {DEFAULT_KUBECONFIG}, KUBECONFIG is not set, and this is no"
            " pod of a cluster; name a kubeconfig, or read a dump with --from"
        )
    if context is not None:
        raise InputError(f"context {context}: there is no kubeconfig that could have it")
    load_incluster_config(configuration)  # type: ignore[no-untyped-call]
