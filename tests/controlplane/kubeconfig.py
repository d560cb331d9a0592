"""Kubeconfig files, written as JSON, which is YAML too."""

import base64
import json
from pathlib import Path


def write_kubeconfig(file: Path, server: str, token: str, ca_file: Path | None) -> Path:
    """Write one for the bearer of `token`; without `ca_file` the server must speak plain HTTP."""
    cluster = {"server": server}
    if ca_file is not None:
        cluster["certificate-authority-data"] = base64.b64encode(ca_file.read_bytes()).decode()
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "test", "cluster": cluster}],
        "users": [{"name": "test", "user": {"token": token}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        "current-context": "test",
    }
    file.write_text(json.dumps(content, indent=2))
    file.chmod(0o600)
    return file
