"""The error tree: every error names the object, what is wrong with it and what to do."""


class RebalancerError(Exception):
    """Root of all errors that a user can do something about."""


class InputError(RebalancerError):
    """Something that was handed in (policy, dump, argument) cannot be used; exit code 2."""


class QuantityError(InputError):
    """A text is no Kubernetes quantity, or one that no 64-bit integer holds."""


class UnreadableObjectError(InputError):
    """An object holds a value that cannot be read; it is never taken for 0 or left out."""

    def __init__(self, kind: str, name: str, field: str, problem: str) -> None:
        self.kind = kind
        self.name = name
        self.field = field
        self.problem = problem
        super().__init__(f"{kind} {name}: {field}: {problem}")


class ClusterError(RebalancerError):
    """The cluster refused a request or did not answer it."""


class ConflictError(ClusterError):
    """An object of that name exists already, or has changed since it was read (HTTP 409)."""


class RefusedError(ClusterError):
    """The API server or a webhook refused the request; nothing was done, and the same one will be
    refused again.

    Attributes:
        code: why, as in the refusal codes of docs/plan.md.
        concerns_all: whether migrations of other VMs would be refused for the same reason.
    """

    def __init__(
        self, text: str, code: str = "create-refused", *, concerns_all: bool = False
    ) -> None:
        self.code = code
        self.concerns_all = concerns_all
        super().__init__(text)


class NotLeaderError(ClusterError):
    """Another rebalancer holds the Lease; only one may act at a time."""
