"""Answers of Prometheus's HTTP API."""

from collections.abc import Iterable, Mapping
from typing import Any

from tests.cluster.api_server import Answer

RANGE = "/api/v1/query_range"
INSTANT = "/api/v1/query"

Json = dict[str, Any]


def series(labels: Mapping[str, str], *values: tuple[float, str]) -> Json:
    return {"metric": labels, "values": [list(value) for value in values]}


def sample(value: str, **labels: str) -> Json:
    return {"metric": labels, "value": [0, value]}


def matrix(*all_series: Json) -> Answer:
    return success("matrix", all_series)


def vector(*samples: Json) -> Answer:
    return success("vector", samples)


def success(kind: str, result: Iterable[Any]) -> Answer:
    data = {"resultType": kind, "result": list(result)}
    return Answer(body={"status": "success", "data": data, "warnings": ["some store is away"]})


def error(status: int, kind: str, text: str) -> Answer:
    return Answer(status, {"status": "error", "errorType": kind, "error": text})
