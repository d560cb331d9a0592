"""What the sections about measured load take and refuse; no error shows what may be a secret."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from rebalancer.policy.measured_load import MeasuredLoadPolicy, PrometheusPolicy


@pytest.mark.parametrize(
    ("url", "kept"),
    [
        ("http://prometheus:9090", "http://prometheus:9090"),
        (
            "https://thanos.example/select/0/prometheus/",
            "https://thanos.example/select/0/prometheus",
        ),
        ("https://[fd00::1]:9090/", "https://[fd00::1]:9090"),
    ],
)
def test_address_is_kept_without_its_last_slash(url: str, kept: str) -> None:
    assert PrometheusPolicy(url=url).url == kept


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("prometheus:9090", "must be a URL"),
        ("ftp://verysecret", "must be a URL"),
        ("https://", "must be a URL"),
        ("https://host:0", "must be a URL"),
        ("https://host:verysecret", "must be a URL"),
        ("https://[verysecret", "must be a URL"),
        ("https://host/a b", "must be a URL"),
        ("https://host/a\nb", "must be a URL"),
        ("https://me:verysecret@host", "must not hold a user or password"),
        ("https://verysecret@host", "must not hold a user or password"),
        ("https://host?token=verysecret", "must end with the path"),
        ("https://host#verysecret", "must end with the path"),
    ],
)
def test_what_is_no_plain_address_is_refused_without_showing_it(url: str, problem: str) -> None:
    with pytest.raises(ValidationError, match=problem) as refusal:
        PrometheusPolicy(url=url)
    messages = [str(detail["ctx"]["error"]) for detail in refusal.value.errors()]
    assert "verysecret" not in " ".join(messages)


def test_token_goes_over_https_only() -> None:
    with pytest.raises(ValidationError, match="others could read the token"):
        PrometheusPolicy.model_validate({"url": "http://a", "bearerTokenFile": "/token"})
    PrometheusPolicy.model_validate({"url": "https://a", "bearerTokenFile": "/token"})


def test_queries_by_default_are_not_taken_for_another_resource() -> None:
    own = {"nodeQuery": "memory", "vmQuery": None}
    assert MeasuredLoadPolicy.model_validate({"resource": "memory", **own}).resource == "memory"
    for missing in own:
        kept = {name: value for name, value in own.items() if name != missing}
        with pytest.raises(ValidationError, match="by default are about cpu"):
            MeasuredLoadPolicy.model_validate({"resource": "memory", **kept})


@given(st.integers(1, 50), st.integers(1, 50), st.integers(1, 50))
def test_window_must_have_as_many_readings_as_make_a_node_hot(
    window: int, step: int, hot_after: int
) -> None:
    sizes = {"windowSeconds": window, "stepSeconds": step, "hotAfterReadings": hot_after}
    if len(range(0, window + 1, step)) >= hot_after:
        MeasuredLoadPolicy.model_validate(sizes)
    else:
        with pytest.raises(ValidationError, match="must not be more"):
            MeasuredLoadPolicy.model_validate(sizes)
