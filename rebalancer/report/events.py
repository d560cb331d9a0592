"""Events of a cycle as lines, as they happen."""

from datetime import UTC

from rich.console import Console
from rich.text import Text

from rebalancer.execution.events import Event
from rebalancer.report.text import printable

_STYLES = {
    "bound": "bold green",
    "succeeded": "green",
    "failed": "bold red",
    "refused": "bold red",
    "stalled": "bold red",
    "dropped": "yellow",
    "not-started": "yellow",
    "hold-left": "yellow",
    "load-missing": "yellow",
    "unsure": "yellow",
    "event-lost": "yellow",
}


class EventLines:
    """A listener that prints one line per event, whatever the width of the terminal."""

    def __init__(self, console: Console) -> None:
        self.console = console

    def __call__(self, event: Event) -> None:
        line = Text()
        line.append(f"{event.at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ} ", "dim")
        line.append(f"{printable(event.code):<12} ", _STYLES.get(event.code, "cyan"))
        line.append(printable(f"{event.subject}: {event.message}"))
        self.console.print(line, soft_wrap=True)
