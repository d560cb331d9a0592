"""One VMI in the hands of the node agent: what has to be done for it, and when."""

import logging
import time

import httpx

from . import virt_handler
from .api import Api, ApiError, Object, path_of
from .migration_scripts import MigrationScript, MigrationScripts

NEVER = float("inf")
_RETRY_SECONDS = 0.5

log = logging.getLogger(__name__)


class HandledVmi:
    """One VMI.

    `due` is the monotonic time of its next step, NEVER when an event has to come first.
    """

    def __init__(self, vmi: Object, scripts: MigrationScripts) -> None:
        self._vmi = vmi
        self._is_stale = False
        self._scripts = scripts
        self._script = MigrationScript()
        self._scripted_migration = ""
        self._ends = 0.0
        self.due = 0.0

    def update(self, vmi: Object) -> None:
        """Take a version in, unless we have a newer one from our own writes."""
        if _version(vmi) > _version(self._vmi):
            self._vmi = vmi
            self.due = 0.0

    def act(self, api: Api) -> bool:
        """Take all steps that are due and set `due`; False when the VMI is no more."""
        self.due = NEVER
        try:
            if self._is_stale:
                self._vmi = api.get(self._path())
                self._is_stale = False
            while self._step(api):
                pass
        except ApiError as error:
            if error.code == 404:
                return False
            self._is_stale = True
            self.due = time.monotonic()
            if error.code != 409:
                log.warning("node agent: %s", error)
                self.due += _RETRY_SECONDS
        except httpx.TransportError as error:
            log.warning("node agent: %s", error)
            self.due = time.monotonic() + _RETRY_SECONDS
        return True

    def _step(self, api: Api) -> bool:
        """Take the next step; False when nothing can be done before `due`."""
        status = self._vmi.get("status", {})
        phase = status.get("phase")
        if phase not in ("Scheduled", "Running"):
            return False
        if "deletionTimestamp" in self._vmi["metadata"]:
            return self._write(api, virt_handler.domain_stopped())
        if phase == "Scheduled":
            return self._write(api, virt_handler.domain_started(self._vmi))
        migration = status.get("migrationState")
        if not migration or migration.get("completed") or not migration.get("targetNode"):
            return False
        return self._step_of_migration(api, migration)

    def _step_of_migration(self, api: Api, migration: Object) -> bool:
        if not migration.get("targetNodeAddress"):
            return self._write(api, virt_handler.target_prepared())
        if not migration.get("startTimestamp"):
            return self._write(api, virt_handler.migration_started())
        if migration.get("abortRequested"):
            return self._end_migration(api, migration, succeeded=False)

        name = self._vmi["metadata"]["name"]
        if self._scripted_migration != migration["migrationUid"]:
            self._scripted_migration = migration["migrationUid"]
            self._script = self._scripts.take(name)
            self._ends = time.monotonic() + self._script.duration_seconds
        if self._script.outcome == "stall":
            if not self._scripts.is_released(name):
                return False
        elif time.monotonic() < self._ends:
            self.due = self._ends
            return False
        return self._end_migration(api, migration, succeeded=self._script.outcome != "fail")

    def _end_migration(self, api: Api, migration: Object, *, succeeded: bool) -> bool:
        vmi = self._vmi
        if succeeded:
            self._write(api, virt_handler.migration_succeeded(vmi))
            self._end_launcher(api, migration["sourceNode"], "Succeeded")
        else:
            self._write(api, virt_handler.migration_failed(vmi))
            self._end_launcher(api, migration["targetNode"], "Failed")
        return True

    def _end_launcher(self, api: Api, node: str, phase: str) -> None:
        metadata = self._vmi["metadata"]
        selector = f"kubevirt.io=virt-launcher,kubevirt.io/created-by={metadata['uid']}"
        for pod in api.list(path_of("pods", metadata["namespace"]), labelSelector=selector):
            if pod["spec"].get("nodeName") == node and pod["status"]["phase"] == "Running":
                path = path_of("pods", metadata["namespace"], pod["metadata"]["name"])
                api.patch_status(path, virt_handler.launcher_ended(pod, phase))

    def _write(self, api: Api, changes: Object) -> bool:
        # An update, as by the real virt-handler: refused if virt-controller was faster, and it
        # keeps null timestamps in conditions, without which virt-controller's own JSON patches,
        # which test for the conditions that it has read, fail for ever.
        self._vmi = api.update(self._path(), _merged(self._vmi, changes))
        return True

    def _path(self) -> str:
        metadata = self._vmi["metadata"]
        return path_of("virtualmachineinstances", metadata["namespace"], metadata["name"])


def _version(vmi: Object) -> int:
    return int(vmi["metadata"]["resourceVersion"])


def _merged(item: Object, changes: Object) -> Object:
    """The item with changes merged in: None removes a key, a list takes the place of the old."""
    result = dict(item)
    for key, value in changes.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict):
            result[key] = _merged(result.get(key, {}), value)
        else:
            result[key] = value
    return result
