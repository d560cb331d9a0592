"""From Pending launcher pods to proposals."""

from collections.abc import Sequence

from rebalancer.model.plan import Proposal
from rebalancer.planning.view import View
from rebalancer.policy.model import Section
from rebalancer_strategies.fit_pending_vms.settings import FitPendingVMsSettings
from rebalancer_strategies.fit_pending_vms.several import propose_all
from rebalancer_strategies.fit_pending_vms.triage import pending_launchers


def propose(view: View, settings: Section) -> Sequence[Proposal]:
    """One proposal for each Pending VM, the most important first.

    Each later one is planned beside the earlier ones: it uses no room that those have taken, and
    waits for none that they will free.
    """
    assert isinstance(settings, FitPendingVMsSettings)
    return tuple(propose_all(pending_launchers(view.snapshot), view, settings))
