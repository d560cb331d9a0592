"""virt-controller's and virt-handler's work on VMs: they start, and they go."""

from functools import partial

from msgspec.structs import replace

from rebalancer.cluster.simulation.agenda import Agenda
from rebalancer.cluster.simulation.world import World
from rebalancer.model.objects import Condition, Pod, VirtualMachineInstance


class VMIController:
    def __init__(self, world: World, agenda: Agenda, *, boot_seconds: float) -> None:
        self._world = world
        self._agenda = agenda
        self._boot_seconds = boot_seconds

    def sync(self) -> None:
        for vmi in list(self._world.vmis.values()):
            if vmi.is_terminating:
                self._stop(vmi)
            elif vmi.phase in {"Pending", "Scheduling"}:
                self._sync_starting(vmi)
            elif vmi.phase == "Scheduled":
                booted = partial(self._booted, vmi)
                self._agenda.once(vmi.uid, "booted", self._boot_seconds, booted)

    def _live_launchers(self, vmi: VirtualMachineInstance) -> tuple[Pod, ...]:
        return self._world.snapshot().launchers_by_vmi.get(vmi.uid, ())

    def _sync_starting(self, vmi: VirtualMachineInstance) -> None:
        for pod in self._live_launchers(vmi):
            if pod.phase == "Running":
                self._enter(replace(vmi, phase="Scheduled", node_name=pod.node_name))

    def _booted(self, vmi: VirtualMachineInstance) -> None:
        current = self._world.vmis.get(vmi.key)
        if current is not None and current.uid == vmi.uid and not current.is_terminating:
            migratable = current.live_migratable or Condition("True")
            self._enter(replace(current, phase="Running", live_migratable=migratable))

    def _enter(self, vmi: VirtualMachineInstance) -> None:
        self._world.note(f"VM {vmi.key} is {vmi.phase} on {vmi.node_name}")
        self._world.put_vmi(vmi)

    def _stop(self, vmi: VirtualMachineInstance) -> None:
        """Its launchers are deleted; once none is left, it goes as well."""
        live = self._live_launchers(vmi)
        for pod in live:
            self._world.put_pod(replace(pod, is_terminating=True))
        if not live:
            for pod in list(self._world.pods.values()):
                if pod.vmi_uid == vmi.uid:
                    self._world.remove_pod(pod)
            self._world.note(f"VM {vmi.key} is gone")
            self._world.remove_vmi(vmi)
