"""The registry of installed strategies: a broken one is named, and never left out in silence."""

from collections.abc import Sequence
from importlib.metadata import EntryPoint

import pytest

from rebalancer.errors import InputError
from rebalancer.model.plan import Proposal
from rebalancer.policy.model import Mode, Section
from rebalancer.strategy import ENTRY_POINT_GROUP, Strategy, load_strategies


def propose(*_: object) -> Sequence[Proposal]:
    return ()


FIRST = Strategy("First", Section, propose)
SECOND = Strategy("Second", Section, propose)


def install(monkeypatch: pytest.MonkeyPatch, **values: str) -> None:
    """Entry points by name; a name that ends with `_` is another package's of the same name."""
    found = [
        EntryPoint(name.rstrip("_"), value, ENTRY_POINT_GROUP) for name, value in values.items()
    ]
    monkeypatch.setattr("rebalancer.strategy.entry_points", lambda **_: found)


def test_strategies_come_in_the_order_of_their_names(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, Second=f"{__name__}:SECOND", First=f"{__name__}:FIRST")
    assert list(load_strategies().items()) == [("First", FIRST), ("Second", SECOND)]


@pytest.mark.parametrize(
    ("values", "says"),
    [
        (
            {"First": "no_such_module:FIRST"},
            r"strategy First \(no_such_module:FIRST\) cannot be imported: No module named",
        ),
        (
            {"First": f"{__name__}:NOTHING"},
            r"strategy First \(.*:NOTHING\) cannot be imported: .*has no attribute 'NOTHING'",
        ),
        (
            {"First": f"{__name__}:propose"},
            r"strategy First \(.*:propose\) must be a rebalancer\.strategy\.Strategy,"
            " not a function",
        ),
        (
            {"First": f"{__name__}:SECOND"},
            r"strategy First \(.*:SECOND\) calls itself Second; both names must be the same",
        ),
        (
            {"First": f"{__name__}:FIRST", "First_": f"{__name__}:FIRST"},
            r"strategy First \(.*:FIRST\) is installed twice; uninstall one",
        ),
        (
            {"Second": f"{__name__}:SECOND", "First": "no_such_module:FIRST"},
            r"strategy First ",
        ),
    ],
    ids=["no-module", "no-attribute", "wrong-type", "wrong-name", "twice", "one-of-two"],
)
def test_broken_strategy_is_refused_by_name(
    values: dict[str, str], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, **values)
    with pytest.raises(InputError, match=says):
        load_strategies()


def test_module_that_fails_as_it_is_imported_is_told_with_its_cause(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def load(_: EntryPoint) -> object:
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr(EntryPoint, "load", load)
    install(monkeypatch, First="broken:FIRST")
    with pytest.raises(InputError, match="cannot be imported: division by zero") as refusal:
        load_strategies()
    assert isinstance(refusal.value.__cause__, ZeroDivisionError)


def test_no_strategy_need_be_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch)
    assert load_strategies() == {}


def test_our_own_strategy_is_installed_and_acts_by_itself() -> None:
    assert load_strategies()["FitPendingVMs"].default_mode is Mode.AUTOMATIC


def test_strategy_is_off_unless_it_says_otherwise() -> None:
    assert FIRST.default_mode is Mode.OFF
