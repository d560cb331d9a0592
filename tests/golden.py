"""Files that hold expected texts; `UPDATE_GOLDEN=1 pytest` and `make golden` write them anew."""

import os
from pathlib import Path


def assert_golden(path: Path, text: str) -> None:
    if os.environ.get("UPDATE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")
