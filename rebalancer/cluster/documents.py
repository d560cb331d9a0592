"""The contents of a JSON or YAML file as JSON documents."""

import codecs
import json
from collections.abc import Iterator
from json import JSONDecoder

import msgspec

from rebalancer.errors import InputError
from rebalancer.yaml import load_documents

_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_YAML_SUFFIXES = (".yaml", ".yml")


def read_documents(data: bytes, name: str) -> list[bytes]:
    """Each document as JSON; several may follow one another, in JSON too.

    What starts with a bracket is JSON; should it turn out not to be, a file named .yaml or .yml
    is read as YAML nevertheless.

    Raises: InputError with name and line, if it is neither.
    """
    data = _utf8(data, name)
    text = _text(data, name)
    if not data.lstrip().startswith((b"{", b"[")):
        return _yaml(text, name)
    try:
        msgspec.json.decode(data, type=msgspec.Raw)
        return [data]
    except (msgspec.DecodeError, RecursionError):
        # The standard decoder is slower, but says where the error is, or one document ends.
        is_yaml = name.lower().endswith(_YAML_SUFFIXES)
        return _yaml(text, name) if is_yaml else list(_split(text, name))


def _yaml(text: str, name: str) -> list[bytes]:
    documents = load_documents(text, name)
    try:
        return [msgspec.json.encode(document) for document in documents]
    except (RecursionError, UnicodeEncodeError) as error:
        raise InputError(f"{name}: {error}") from error


def _split(text: str, name: str) -> Iterator[bytes]:
    decoder = JSONDecoder()
    start = _skip_space(text, 0)
    while start < len(text):
        try:
            _, end = decoder.raw_decode(text, start)
        except json.JSONDecodeError as error:
            raise InputError(f"{name}:{error.lineno}:{error.colno}: {error.msg}") from error
        except (ValueError, RecursionError) as error:
            raise InputError(f"{name}: {error}") from error
        yield text[start:end].encode()
        start = _skip_space(text, end)


def _skip_space(text: str, start: int) -> int:
    return len(text) - len(text[start:].lstrip())


def _utf8(data: bytes, name: str) -> bytes:
    """PowerShell redirects output as UTF-16."""
    if not data.startswith(_UTF16):
        return data.removeprefix(codecs.BOM_UTF8)
    try:
        return data.decode("utf-16").encode()
    except UnicodeDecodeError as error:
        raise InputError(f"{name}: not UTF-16: {error.reason}") from error


def _text(data: bytes, name: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(f"{name}:{line}: not UTF-8: {error.reason}") from error
