"""Text from the cluster made safe to show."""


def printable(text: str) -> str:
    """The text with everything that a terminal would act upon shown as an escape instead."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
