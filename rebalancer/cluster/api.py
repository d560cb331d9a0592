"""Requests to the API server, and what its refusals mean."""

import math
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple
from urllib.parse import urlencode

import msgspec
from kubernetes.client import ApiClient, Configuration
from kubernetes.config import ConfigException
from urllib3 import BaseHTTPResponse, Retry, Timeout
from urllib3.exceptions import HTTPError, MaxRetryError, SSLError

from rebalancer.cluster.kinds import Kind
from rebalancer.errors import ClusterError

Query = Mapping[str, str]

TIMEOUT = Timeout(connect=5, read=30)
"""Seconds to connect, and to wait for the next bytes of an answer."""

_UPDATE_TIMEOUT = Timeout(connect=3, read=5)

# Reading or deleting twice does no harm. Creating or updating twice might, so that is left to
# those who know what it means.
_REPEATABLE = Retry(
    total=6,
    connect=2,
    allowed_methods=None,
    status_forcelist=(429, 500, 502, 503, 504),
    raise_on_status=False,
    backoff_factor=0.2,
    backoff_max=5,
    backoff_jitter=0.2,
    retry_after_max=30,
)
_CLOCK_TOLERANCE = timedelta(seconds=2)
"""The header Date has whole seconds, and the answer was under way: less is no difference."""


class ApiError(ClusterError):
    """A request was refused, or not answered (`status` 0).

    The text names verb, resource and object, what the server said, and what to do; `answer` is
    only what the server said.
    """

    def __init__(self, status: int, text: str, answer: str = "") -> None:
        self.status = status
        self.answer = answer
        super().__init__(text)


class Call(NamedTuple):
    """What is asked for, in the words of RBAC."""

    verb: str
    kind: Kind
    namespace: str = ""
    name: str = ""

    def __str__(self) -> str:
        place = "/".join(filter(None, (self.namespace, self.name)))
        return f"{self.verb} {self.kind.resource} {place}".rstrip()


class Api:
    """The API server, with bodies as bytes. Safe to use from several threads.

    The official client knows the ways to authenticate (certificates, tokens, exec plugins, OIDC,
    a pod's service account) and renews credentials before they expire.
    """

    def __init__(self, configuration: Configuration) -> None:
        self._client = ApiClient(configuration)
        self._client.user_agent = "kubevirt-rebalancer"
        self._clock_error = timedelta(0)

    @property
    def host(self) -> str:
        return str(self._client.configuration.host)

    def now(self) -> datetime:
        """The API server's time, as far as its answers have told it."""
        return datetime.now(UTC) + self._clock_error

    def get(self, kind: Kind, namespace: str, name: str) -> bytes:
        return self._repeatedly("GET", Call("get", kind, namespace, name), {})

    def list_page(self, kind: Kind, query: Query) -> bytes:
        """One page of the objects of all namespaces."""
        return self._repeatedly("GET", Call("list", kind), query)

    def delete(self, kind: Kind, namespace: str, name: str) -> bytes:
        return self._repeatedly("DELETE", Call("delete", kind, namespace, name), {})

    def create(self, kind: Kind, namespace: str, body: Mapping[str, Any], query: Query) -> bytes:
        """Never repeated: unless the error is a refusal, it may have been created."""
        call = Call("create", kind, namespace, body["metadata"]["name"])
        path = kind.path(namespace)
        return self._send("POST", call, path, query, body=msgspec.json.encode(body)).data

    def update(self, kind: Kind, namespace: str, name: str, body: Mapping[str, Any]) -> bytes:
        """Never repeated. Refused (409) if the object is no longer what `body` was made from.

        Only Leases are updated, and a late answer is of no use to their holder: times are short.
        """
        call = Call("update", kind, namespace, name)
        path = kind.path(namespace, name)
        return self._send(
            "PUT", call, path, {}, body=msgspec.json.encode(body), timeout=_UPDATE_TIMEOUT
        ).data

    def watch(self, kind: Kind, query: Query, seconds: float) -> BaseHTTPResponse:
        """Changes as they come, a JSON object each line; the caller closes it."""
        return self._send(
            "GET",
            Call("watch", kind),
            kind.path(),
            {**query, "watch": "1", "timeoutSeconds": str(math.ceil(seconds) + 1)},
            timeout=Timeout(connect=TIMEOUT.connect_timeout, read=seconds + 5),
            preload_content=False,
        )

    def _repeatedly(self, method: str, call: Call, query: Query) -> bytes:
        path = call.kind.path(call.namespace, call.name)
        return self._send(method, call, path, query, retries=_REPEATABLE).data

    def _send(
        self,
        method: str,
        call: Call,
        path: str,
        query: Query,
        *,
        body: bytes | None = None,
        retries: Retry | bool = False,
        timeout: Timeout = TIMEOUT,
        preload_content: bool = True,
    ) -> BaseHTTPResponse:
        """Raises: ApiError, also for what is no success."""
        try:
            response = self._client.rest_client.pool_manager.request(
                method,
                f"{self.host}{path}?{urlencode(query)}",
                headers=self._headers(call),
                body=body,
                retries=retries,
                redirect=False,
                timeout=timeout,
                preload_content=preload_content,
            )
        except HTTPError as error:
            raise ApiError(0, f"{call}: {_not_answered(error, self.host)}") from error
        self._note_time(response)
        if not 200 <= response.status < 300:
            answer = _answer(response)
            advice = _advice(response.status, answer, call)
            text = f"{call}: HTTP {response.status}: {answer}" + (f"; {advice}" if advice else "")
            raise ApiError(response.status, text, answer)
        return response

    def _headers(self, call: Call) -> dict[str, str]:
        headers = {
            **self._client.default_headers,
            "Accept": "application/json",
            "Accept-Encoding": "identity" if call.verb == "watch" else "gzip",
            "Content-Type": "application/json",
        }
        try:
            self._client.update_params_for_auth(headers, [], ["BearerToken"], "", "", None)
        except (ConfigException, OSError) as error:
            raise ApiError(0, f"{call}: no credentials: {error}") from error
        return headers

    def _note_time(self, response: BaseHTTPResponse) -> None:
        try:
            served_at = parsedate_to_datetime(response.headers["Date"])
        except (KeyError, ValueError):
            return
        clock_error = served_at - datetime.now(UTC)
        if abs(clock_error - self._clock_error) > _CLOCK_TOLERANCE:
            self._clock_error = clock_error


def _not_answered(error: HTTPError, host: str) -> str:
    reason = error.reason if isinstance(error, MaxRetryError) and error.reason else error
    if isinstance(reason, SSLError):
        return (
            f"no trust in the API server {host}: {reason}; check certificate-authority and"
            " tls-server-name in the kubeconfig"
        )
    return (
        f"no answer from the API server {host}: {reason}; check the address in the kubeconfig, the"
        " network and any proxy on the way, and that the API server runs"
    )


class _Status(msgspec.Struct):
    """What the API server answers instead of the object."""

    message: str = ""


def _answer(response: BaseHTTPResponse) -> str:
    data = response.data
    try:
        return msgspec.json.decode(data, type=_Status).message
    except msgspec.DecodeError:
        return data[:300].decode(errors="replace").strip()


def _advice(status: int, message: str, call: Call) -> str:
    if status == 401:
        return "log in again, or check the credentials in the kubeconfig"
    if status == 403 and f"cannot {call.verb} resource" in message:
        where = f" in namespace {call.namespace}" if call.namespace else ""
        return f"RBAC must grant the verb {call.verb} on {call.kind.resource}{where}"
    if status == 404 and message.startswith("namespaces "):
        return f"kubectl create namespace {call.namespace}"
    if status == 404 and call.verb in {"list", "create"} and call.kind.group == "kubevirt.io":
        return "KubeVirt is not installed in this cluster"
    if status == 429 or status >= 500:
        return "try again later; the API server is overloaded or in trouble"
    return ""
