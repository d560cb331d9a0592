"""Quantities are exact integers, or an error that shows the text; never 0 and never a guess."""

import contextlib
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalancer.errors import QuantityError
from rebalancer.model.quantity import format_amount, parse_amount, parse_quantity


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("0.5Gi", 536870912),
        ("1.5Gi", 1610612736),
        ("1.5Ti", 1649267441664),
        ("2.5Mi", 2621440),
        ("16G", 16000000000),
        ("1Pi", 1125899906842624),
        ("1Ei", 1152921504606846976),
        ("1E", 1000000000000000000),
        ("128974848000m", 128974848),
        ("1e3", 1000),
        ("1E3", 1000),
        ("129e6", 129000000),
        ("1e-3", 1),
        ("379136Ki", 388235264),
        ("285374536", 285374536),
        ("1M", 1000000),
        ("40M", 40000000),
        ("50M", 50000000),
        ("1k", 1000),
        ("34087042032", 34087042032),
        ("5.", 5),
        (".5Gi", 536870912),
        ("+1", 1),
        ("0", 0),
    ],
)
def test_memory_and_counts_of_public_reports(text: str, amount: int) -> None:
    """calfonso/rusternetes#86 read the first ones as 0; kubevirt/kubevirt#9912 and #5730."""
    assert parse_amount(text, "memory") == amount


@pytest.mark.parametrize(
    ("text", "millicores"),
    [("500m", 500), ("0.5", 500), ("0.1", 100), ("2", 2000), ("891736742n", 892), ("1u", 1)],
)
def test_cpu_is_in_millicores_rounded_up(text: str, millicores: int) -> None:
    assert parse_amount(text, "cpu") == millicores


def test_room_left_on_a_node_is_exact_to_the_byte() -> None:
    allocatable, first, second = (parse_amount(q, "memory") for q in ("1.5Gi", "0.5Gi", "512M"))
    free = allocatable - first - second
    assert free == 561741824
    assert parse_amount("128974848000m", "memory") <= free
    assert parse_amount("561741825", "memory") > free


NO_QUANTITIES = (
    *("", " ", "1 Gi", " 1", "1Gi\n", "1K", "12Qi", "1,5Gi", "0x10", "1_000", "NaN", "inf", "1e"),
    *(".", "--1", "1Gi1", "1mi", "e3", "+", "1e3Gi", "\u0663"),
)


@pytest.mark.parametrize("text", NO_QUANTITIES)
def test_text_that_is_no_quantity_is_refused_and_shown(text: str) -> None:
    with pytest.raises(QuantityError, match="is not a quantity") as error:
        parse_quantity(text)
    assert repr(text) in str(error.value)


@pytest.mark.parametrize("text", ["8Ei", "9223372036854775808", "1e19", "1e999", "-1e999", "9e18E"])
def test_quantity_beyond_64_bits_is_refused(text: str) -> None:
    with pytest.raises(QuantityError):
        parse_amount(text, "memory")


def test_millicores_beyond_64_bits_are_refused() -> None:
    with pytest.raises(QuantityError, match="larger"):
        parse_amount("1E", "cpu")


def test_negative_amount_is_refused() -> None:
    with pytest.raises(QuantityError, match="negative"):
        parse_amount("-1", "memory")


_SUFFIXES = {
    "": Fraction(1),
    **{suffix: Fraction(1, 1000 ** (3 - i)) for i, suffix in enumerate("num")},
    **{suffix: Fraction(1000 ** (i + 1)) for i, suffix in enumerate("kMGTPE")},
    **{f"{suffix}i": Fraction(1024 ** (i + 1)) for i, suffix in enumerate("KMGTPE")},
    **{
        f"{e}{sign}{power}": Fraction(10) ** power
        for e in "eE"
        for sign, power in [("", 3), ("+", 6)]
    },
    "e-3": Fraction(1, 1000),
}


@given(
    whole=st.integers(0, 10**6),
    decimals=st.text("0123456789", max_size=6),
    suffix=st.sampled_from(sorted(_SUFFIXES)),
)
def test_value_is_number_times_suffix_exactly(whole: int, decimals: str, suffix: str) -> None:
    expected = Fraction(f"{whole}.{decimals or 0}") * _SUFFIXES[suffix]
    text = f"{whole}.{decimals}{suffix}"
    if expected > 2**63 - 1:
        with pytest.raises(QuantityError):
            parse_quantity(text)
    else:
        assert parse_quantity(text) == expected
        assert 0 <= parse_amount(text, "memory") - expected < 1


@given(st.text())
def test_any_text_is_a_quantity_or_an_error(text: str) -> None:
    with contextlib.suppress(QuantityError):
        assert abs(parse_quantity(text)) <= 2**63 - 1


@given(st.integers(0, 2**63 - 1))
def test_whole_numbers_stand_for_themselves(amount: int) -> None:
    assert parse_amount(str(amount), "devices.kubevirt.io/kvm") == amount


@pytest.mark.parametrize(
    ("amount", "resource", "text"),
    [
        (1500, "cpu", "1500m"),
        (2**30, "memory", "1024 MiB"),
        (2**20 + 2**19, "ephemeral-storage", "1.5 MiB"),
        (2**21, "hugepages-2Mi", "2 MiB"),
        (3, "nvidia.com/gpu", "3"),
    ],
)
def test_amounts_are_shown_in_the_unit_people_use(amount: int, resource: str, text: str) -> None:
    assert format_amount(amount, resource) == text
