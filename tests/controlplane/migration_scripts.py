"""What the tests want to become of migrations."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class MigrationScript:
    """What becomes of a migration once it runs.

    It ends as `outcome` says after `duration_seconds`; with "stall" only when it is released, and
    then it succeeds.
    """

    duration_seconds: float = 0.2
    outcome: Literal["succeed", "fail", "stall"] = "succeed"


class MigrationScripts:
    """The scripts by name of the VMI. Tests write from their thread, the node agent reads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._default = MigrationScript()
        self._by_name: dict[str, list[MigrationScript]] = {}
        self._released: set[str] = set()

    def set(self, vmi_name: str, scripts: Sequence[MigrationScript]) -> None:
        with self._lock:
            self._by_name[vmi_name] = list(scripts)

    def set_default(self, script: MigrationScript) -> None:
        with self._lock:
            self._default = script

    def release(self, vmi_name: str) -> None:
        with self._lock:
            self._released.add(vmi_name)

    def clear(self) -> None:
        with self._lock:
            self._default = MigrationScript()
            self._by_name.clear()
            self._released.clear()

    def take(self, vmi_name: str) -> MigrationScript:
        """The script for a migration that begins now; the last one of a VMI is never used up."""
        with self._lock:
            self._released.discard(vmi_name)
            scripts = self._by_name.get(vmi_name)
            if not scripts:
                return self._default
            return scripts.pop(0) if len(scripts) > 1 else scripts[0]

    def is_released(self, vmi_name: str) -> bool:
        with self._lock:
            return vmi_name in self._released
