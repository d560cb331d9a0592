from hypothesis import given
from hypothesis import strategies as st

from rebalancer.report.text import printable


@given(st.text())
def test_printable_text_holds_nothing_that_a_terminal_acts_upon(text: str) -> None:
    assert printable(text).isprintable()


@given(st.text())
def test_printable_text_stays_as_it_is(text: str) -> None:
    assert printable(printable(text)) == printable(text)


@given(st.text(st.characters(exclude_characters="\\")))
def test_nothing_is_lost(text: str) -> None:
    escaped = printable(text).encode("ascii", "backslashreplace").decode()
    assert escaped.encode().decode("unicode_escape") == text


def test_escapes_are_those_that_programmers_know() -> None:
    assert printable("a\x1b[31mb\n\u202ec\ufefföß語") == "a\\x1b[31mb\\n\\u202ec\\ufefföß語"
