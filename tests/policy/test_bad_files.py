"""Each file in bad/ is refused with the text in golden/."""

from pathlib import Path

import pytest

from rebalancer.errors import InputError
from rebalancer.policy.load import load_policy
from tests.golden import assert_golden
from tests.policy.strategies import STRATEGIES

HERE = Path(__file__).parent
BAD = sorted(path.name for path in (HERE / "bad").iterdir())


@pytest.mark.parametrize("name", BAD)
def test_bad_file_is_refused_with_all_its_problems(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(HERE / "bad")
    with pytest.raises(InputError) as refusal:
        load_policy(Path(name), STRATEGIES, {})
    assert_golden(HERE / "golden" / f"{name}.txt", f"{refusal.value}\n")


def test_every_golden_text_has_its_bad_file() -> None:
    golden = sorted(path.name.removesuffix(".txt") for path in (HERE / "golden").iterdir())
    assert golden == BAD


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere\.yaml: cannot be read: No such file"):
        load_policy(tmp_path / "nowhere.yaml", STRATEGIES, {})


def test_file_that_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "latin.yaml"
    file.write_bytes(b"kind: R\xe9balancer")
    with pytest.raises(InputError, match=r"latin\.yaml: is not UTF-8 \(byte 7\)"):
        load_policy(file, STRATEGIES, {})
