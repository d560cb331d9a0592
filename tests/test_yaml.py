"""YAML is read as its version 1.2 has it, and errors say where."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalancer.errors import InputError
from rebalancer.yaml import compose_documents, load_documents


def load(text: str) -> object:
    (document,) = load_documents(text, "f.yaml")
    return document


@pytest.mark.parametrize(
    "text",
    ["Off", "no", "yes", "On", "2026-12-02", "1:30", "1_000", ".inf", ".nan", "=", "12e03x", "y"],
)
def test_words_that_yaml_1_1_would_turn_into_something_else_stay_strings(text: str) -> None:
    assert load(text) == text


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        ("FALSE", False),
        ("~", None),
        ("a:", {"a": None}),
        ("010", 10),
        ("0o10", 8),
        ("0x1F", 31),
        ("-7", -7),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("'true'", "true"),
        ("!!str 5", "5"),
        ("[1, {a: b}]", [1, {"a": "b"}]),
        ("true: 1\n5: 2\n~: 3", {"true": 1, "5": 2, "~": 3}),
        ("a: &x {b: 1}\nc: *x", {"a": {"b": 1}, "c": {"b": 1}}),
        ("'<<': 1", {"<<": 1}),
        ("\ufeffa: 1", {"a": 1}),
    ],
)
def test_core_schema(text: str, value: object) -> None:
    assert load(text) == value


def test_empty_documents_are_left_out() -> None:
    assert load_documents("---\n---\na: 1\n--- \n# nothing\n---\nb: 2\n...\n", "f") == [
        {"a": 1},
        {"b": 2},
    ]
    assert load_documents("", "f") == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nb:\n  c: 1\n  c: 2\n", "f.yaml:4:3: the key 'c' occurs twice"),
        ("a: {b", "f.yaml:2:1: did not find expected"),
        ("a: b: c", "f.yaml:1:5: mapping values are not allowed"),
        ("a: 1\n\tb: 2", "f.yaml:2:1: "),
        ("x: 1\n<<: {a: 1}", "f.yaml:2:1: merge keys"),
        ("a: !!python/object:os.system x", "f.yaml:1:4: the tag"),
        ("a: !!set {b}", "f.yaml:1:4: the tag"),
        ("a: !!int x", "f.yaml:1:4: 'x' is no usable int"),
        ("a: 1e999", "f.yaml:1:4: '1e999' is no usable float"),
        ("a: " + "9" * 5000, "f.yaml:1:4: '999"),
        ("? [a]\n: b", "f.yaml:1:3: a key must be a string"),
        ("a: &x [*x]", "f.yaml:1:4: contains itself"),
        ("a: *x", "f.yaml:1:4: found undefined alias"),
        ("a: ü\nb: \x00", "f.yaml: line 2: control characters"),
        ("a: \ud800", "f.yaml: surrogates not allowed at character 3"),
        ("[" * 900 + "]" * 900, "f.yaml: nested too deeply"),
        ("[" * 5000 + "]" * 5000, "f.yaml:1:1001: exceeded maximum nesting depth"),
    ],
)
def test_error_says_where(text: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        load_documents(text, "f.yaml")
    assert str(error.value).startswith(message)


def test_aliases_cannot_blow_a_text_up() -> None:
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    levels += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 9)]
    with pytest.raises(InputError, match="blow this document up"):
        load_documents("\n".join(levels), "f.yaml")


def test_nodes_know_their_places() -> None:
    (document,) = compose_documents("# policy\nmode: Off\n", "f.yaml")
    ((_, value),) = document.value
    assert (value.start_mark.line, value.start_mark.column) == (1, 6)
    assert value.value == "Off"


@given(st.text())
def test_any_text_is_values_or_an_input_error(text: str) -> None:
    try:
        load_documents(text, "f.yaml")
    except InputError as error:
        message = str(error)
    else:
        message = "f.yaml"
    assert message.startswith("f.yaml")
