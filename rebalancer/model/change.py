"""What a later goal sees besides what is there, once others have been accepted."""

from msgspec import Struct

from rebalancer.model.objects import Migration, Pod


class Change(Struct, frozen=True):
    """Pods and migrations more, and pods that have got a node; nothing goes away."""

    pods: tuple[Pod, ...] = ()
    bound: tuple[Pod, ...] = ()
    """As they are on their node; each is there before under the same uid."""
    migrations: tuple[Migration, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.pods or self.bound or self.migrations)
