"""What happens during execution, told to whoever shows or records it."""

from collections.abc import Callable
from datetime import datetime

from msgspec import Struct


class Event(Struct, frozen=True):
    """One step, in words; `subject` is the object that it is about."""

    at: datetime
    code: str
    subject: str
    message: str


Listener = Callable[[Event], None]
