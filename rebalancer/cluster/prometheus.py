"""Queries to Prometheus, or to what has its HTTP API, and what its refusals mean.

Source: prometheus.io/docs/prometheus/latest/querying/api.
"""

import re
import ssl
from collections.abc import Mapping
from pathlib import Path
from time import monotonic
from typing import TypeVar
from urllib.parse import urlencode

import msgspec
from msgspec import Raw, Struct
from msgspec.json import Decoder
from urllib3 import BaseHTTPResponse, PoolManager, Retry, Timeout
from urllib3.exceptions import HTTPError, MaxRetryError

from rebalancer.errors import ClusterError
from rebalancer.policy.measured_load import PrometheusPolicy

Sample = tuple[float, str]
"""Seconds since 1970, and the value as text, such as `0.5`, `NaN` or `+Inf`."""

T = TypeVar("T")

LONGEST_ANSWER_BYTES = 64 * 2**20
"""About six times what 100,000 VMs take."""

_CHUNK_BYTES = 2**16
_LONGEST_MESSAGE_CHARACTERS = 300
_TOKEN = re.compile(r"[!-~]+")

# One more try: load that is missing once is read in the next cycle, and VMs that wait for room must
# not wait for Prometheus.
_RETRY = Retry(
    total=1,
    read=0,
    status_forcelist=(429, 502, 503, 504),
    raise_on_status=False,
    respect_retry_after_header=False,
    backoff_factor=0.2,
)


class PrometheusError(ClusterError):
    """Prometheus refused a query, did not answer it, or answered with what is of no use."""


class Series(Struct, frozen=True, gc=False):
    """One of the series that a query gives, over a range of time."""

    metric: Mapping[str, str]
    values: tuple[Sample, ...] = ()
    """None where the series is of histograms."""


class LatestSample(Struct, frozen=True, gc=False):
    """One of the samples that a query gives for one instant."""

    metric: Mapping[str, str]
    value: Sample | None = None
    """None where it is a histogram."""


class Prometheus:
    """Connections last for one query, so that new certificates and tokens are taken up."""

    def __init__(self, url: str, policy: PrometheusPolicy) -> None:
        self._url = url
        self._policy = policy

    def query_range(self, query: str, start: float, end: float, step: int) -> list[Series]:
        """Samples every `step` seconds. Raises: PrometheusError."""
        parameters = {"start": f"{start:.3f}", "end": f"{end:.3f}", "step": str(step)}
        return _result(self._ask("query_range", query, parameters), "matrix", _MATRIX)

    def query(self, query: str, at: float) -> list[LatestSample]:
        """Samples of one instant. Raises: PrometheusError."""
        return _result(self._ask("query", query, {"time": f"{at:.3f}"}), "vector", _VECTOR)

    def _ask(self, endpoint: str, query: str, parameters: Mapping[str, str]) -> bytes:
        seconds = self._policy.timeout_seconds
        token = self._token()
        form = urlencode({"query": query, **parameters, "timeout": f"{seconds}s"})
        headers = {"Accept": "application/json", "User-Agent": "kubevirt-rebalancer"}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        deadline = monotonic() + seconds
        with PoolManager(ssl_context=self._trust()) as connections:
            try:
                # GET: what stands before a Prometheus often lets nobody POST.
                response = connections.request(
                    "GET",
                    f"{self._url}/api/v1/{endpoint}?{form}",
                    headers=headers,
                    retries=_RETRY,
                    redirect=False,
                    timeout=Timeout(connect=seconds, read=seconds),
                    preload_content=False,
                )
                data = _bounded(response, deadline)
            except HTTPError as error:
                reason = (isinstance(error, MaxRetryError) and error.reason) or error
                raise PrometheusError(
                    f"no answer from {self._url}: {reason}; check prometheus.url and the network"
                ) from error
        if response.status != 200:
            message = _message(data)
            # Whoever is asked may show what it was sent.
            message = message.replace(token, "(token)") if token else message
            raise PrometheusError(
                f"{self._url}: HTTP {response.status}: {message}{_advice(response.status)}"
            )
        return data

    def _trust(self) -> ssl.SSLContext | None:
        if not self._url.startswith("https:"):
            return None
        file = self._policy.tls_ca_file
        try:
            return ssl.create_default_context(cafile=file)
        except OSError as error:
            raise PrometheusError(f"prometheus.tlsCaFile {file}: {error}") from error

    def _token(self) -> str:
        file = self._policy.bearer_token_file
        if file is None:
            return ""
        token = _read(file).strip()
        if not _TOKEN.fullmatch(token):
            raise PrometheusError(f"prometheus.bearerTokenFile {file}: does not hold a token")
        return token


def _read(file: Path) -> str:
    try:
        return file.read_text()
    except (OSError, ValueError) as error:
        problem = error.strerror if isinstance(error, OSError) else "is no text"
        raise PrometheusError(f"prometheus.bearerTokenFile {file}: {problem}") from error


def _bounded(response: BaseHTTPResponse, deadline: float) -> bytes:
    """The whole answer; the timeout of the connection is only for each part of it."""
    data = bytearray()
    while chunk := response.read1(_CHUNK_BYTES):
        data += chunk
        if len(data) > LONGEST_ANSWER_BYTES:
            size = LONGEST_ANSWER_BYTES // 2**20
            raise PrometheusError(
                f"the answer is larger than {size} MiB; aggregate by node or VM, or ask for less"
            )
        if monotonic() > deadline:
            raise PrometheusError("the answer takes longer than prometheus.timeoutSeconds")
    return bytes(data)


class _Data(Struct, rename="camel"):
    result_type: str
    result: Raw


class _Answer(Struct):
    data: _Data


class _Refusal(Struct, rename="camel"):
    error: str
    error_type: str = ""


_ANSWER = Decoder(_Answer)
_REFUSAL = Decoder(_Refusal)
_MATRIX = Decoder(list[Series])
_VECTOR = Decoder(list[LatestSample])


def _result(data: bytes, kind: str, decoder: Decoder[list[T]]) -> list[T]:
    try:
        answer = _ANSWER.decode(data).data
        if answer.result_type != kind:
            found = answer.result_type[:20]
            raise PrometheusError(f"the query gives a {found!r}, not a {kind} with labels")
        return decoder.decode(answer.result)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise PrometheusError(
            f"the answer is not Prometheus's ({error}); does prometheus.url lead to its API?"
        ) from error


def _message(data: bytes) -> str:
    """What the answer gives as the reason, cut where it is longer than any reason."""
    try:
        refusal = _REFUSAL.decode(data)
        text = f"{refusal.error_type}: {refusal.error}" if refusal.error_type else refusal.error
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        text = data.decode(errors="replace").strip()
    return text[:_LONGEST_MESSAGE_CHARACTERS]


def _advice(status: int) -> str:
    if status in {401, 403}:
        return "; check prometheus.bearerTokenFile and what the token allows"
    if status == 404 or 300 <= status < 400:
        return "; does prometheus.url lead to the API, without the path /api/v1?"
    if status in {400, 422}:
        return "; try the queries of measuredLoad in Prometheus"
    return ""
