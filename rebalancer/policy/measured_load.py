"""The sections of a RebalancerPolicy about measured load: where Prometheus is, what it is asked."""

from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from rebalancer.policy.model import Section


class PrometheusPolicy(Section):
    """Where measured load is read from: Prometheus, or what has its HTTP API."""

    url: str | None = Field(
        default=None,
        description="Such as https://prometheus.monitoring:9090, with a path if the API is below"
        " one; unset, nothing is measured.",
    )
    timeout_seconds: int = Field(
        default=10, ge=1, le=300, description="Longest time for the answer to one query."
    )
    tls_ca_file: Path | None = Field(
        default=None,
        description="PEM file with the authorities that its certificate may come from; unset, those"
        " that the system trusts.",
    )
    bearer_token_file: Path | None = Field(
        default=None,
        description="File with the token to log in with, read anew each time; only for https.",
    )

    @field_validator("url")
    @classmethod
    def _url_is_plain(cls, url: str | None) -> str | None:
        # The value stays out of the errors, as it may hold a password.
        if url is None:
            return None
        try:
            parts = urlsplit(url)
            is_address = parts.scheme in {"http", "https"} and bool(parts.hostname)
            is_address = is_address and parts.port != 0 and url.isascii() and url.isprintable()
        except ValueError:
            is_address = False
        if not is_address or " " in url:
            raise ValueError("must be a URL such as https://prometheus.monitoring:9090")
        if "@" in parts.netloc:
            raise ValueError("must not hold a user or password; use bearerTokenFile")
        if parts.query or parts.fragment:
            raise ValueError("must end with the path, without a query or fragment")
        return url.rstrip("/")

    @model_validator(mode="after")
    def _token_is_not_sent_in_the_clear(self) -> "PrometheusPolicy":
        if self.bearer_token_file and self.url and not self.url.startswith("https:"):
            raise ValueError("bearerTokenFile needs an https url: others could read the token")
        return self


# A ratio of rates: of a counter that is younger than its range, rate() gives less than is true, and
# less idleness alone would make a node look busy that has just started.
_NODE_CPU = (
    '1 - sum by (instance) (rate(node_cpu_seconds_total{mode=~"idle|iowait"}[5m]))'
    " / sum by (instance) (rate(node_cpu_seconds_total[5m]))"
)
_VM_CPU = "sum by (namespace, name) (rate(kubevirt_vmi_cpu_usage_seconds_total[5m]))"


class MeasuredLoadPolicy(Section):
    """What Prometheus is asked, and when its answers make a node a hot one."""

    resource: Literal["cpu", "memory"] = Field(
        default="cpu", description="What all queries are about."
    )
    node_query: str = Field(
        default=_NODE_CPU,
        min_length=1,
        description="PromQL with one series for each node: how busy it is, from 0 to 1.",
    )
    node_label: str = Field(
        default="instance",
        pattern=r"^[a-zA-Z_][a-zA-Z0-9_]*$",
        description="Label of those series that says which node it is: by its name, by its label"
        " kubernetes.io/hostname or by its internal address, with or without a port.",
    )
    pressure_query: str | None = Field(
        default=None,
        min_length=1,
        description="PromQL with one series for each node, by the same label: which share of the"
        " time, from 0 to 1, tasks there wait for the resource (PSI); unset, that is not measured.",
    )
    vm_query: str | None = Field(
        default=_VM_CPU,
        min_length=1,
        description="PromQL with one sample for each VM, by the labels namespace and name: what it"
        " uses, in cores of cpu or bytes of memory; unset, VMs are not measured.",
    )
    window_seconds: int = Field(
        default=600, ge=1, description="How far back the readings of a node go; they are averaged."
    )
    step_seconds: int = Field(default=60, ge=1, description="Time from one reading to the next.")
    hot_after_readings: int = Field(
        default=5,
        ge=1,
        description="A node is hot when this many readings in a row, up to now, are too high.",
    )

    @model_validator(mode="after")
    def _queries_are_about_the_resource(self) -> "MeasuredLoadPolicy":
        if self.resource != "cpu" and (self.node_query == _NODE_CPU or self.vm_query == _VM_CPU):
            raise ValueError(
                f"resource {self.resource} needs a nodeQuery and a vmQuery of its own (or vmQuery:"
                " null): those by default are about cpu"
            )
        return self

    @model_validator(mode="after")
    def _window_has_enough_readings(self) -> "MeasuredLoadPolicy":
        readings = self.window_seconds // self.step_seconds + 1
        if readings < self.hot_after_readings:
            raise ValueError(
                f"windowSeconds ({self.window_seconds}) has {readings} readings that are"
                f" stepSeconds ({self.step_seconds}) apart; hotAfterReadings"
                f" ({self.hot_after_readings}) must not be more"
            )
        return self
