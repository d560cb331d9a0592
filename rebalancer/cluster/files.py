"""Snapshots from files: what `kubectl get -o json|yaml` prints, and must-gather folders."""

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from rebalancer.cluster.documents import read_documents
from rebalancer.cluster.dump import Dump, NotKubernetesError, Place
from rebalancer.errors import InputError
from rebalancer.model.snapshot import Snapshot

STDIN = Path("-")

_SUFFIXES = {".json", ".yaml", ".yml"}


class FilesSource:
    """Reads a snapshot from files, from folders with all that is below them, and from `-`, stdin.

    A file holds any number of objects and lists, as JSON or YAML. Objects of kinds that are not
    needed are passed over; in folders, so are files without Kubernetes objects.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = paths

    def read(self) -> Snapshot:
        """The same files always give an equal snapshot: it is taken at the latest time that an
        object bears (creation, change of a condition or phase, heartbeat), not when it is read.

        Raises: InputError, UnreadableObjectError; also if there are no nodes, pods or VMIs.
        """
        dump = Dump()
        for file in _files(self._paths):
            _add(file, dump)
        return dump.snapshot(", ".join(map(str, self._paths)))


class _File(NamedTuple):
    name: str
    data: bytes
    is_named: bool
    """Asked for by name, not found in a folder: it must hold Kubernetes objects."""


def _files(paths: Sequence[Path]) -> Iterator[_File]:
    for path in paths:
        try:
            if path == STDIN:
                yield _File("stdin", sys.stdin.buffer.read(), is_named=True)
            elif path.is_dir():
                for found in _below(path):
                    yield _File(str(found), found.read_bytes(), is_named=False)
            else:
                yield _File(str(path), path.read_bytes(), is_named=True)
        except (OSError, ValueError) as error:
            raise InputError(f"{path}: cannot be read: {error}") from error


def _below(folder: Path) -> Iterator[Path]:
    for parent, folders, names in os.walk(folder, onerror=_raise):
        folders.sort()
        for name in sorted(names):
            if Path(name).suffix.lower() in _SUFFIXES:
                yield Path(parent, name)


def _raise(error: OSError) -> None:
    raise error


def _add(file: _File, dump: Dump) -> None:
    documents = read_documents(file.data, file.name)
    if file.is_named and not documents:
        raise InputError(f"{file.name}: is empty")
    for number, document in enumerate(documents, start=1):
        place = Place(file.name, number if len(documents) > 1 else 0)
        try:
            dump.add(document, place)
        except NotKubernetesError as error:
            if file.is_named:
                raise InputError(f"{place}: not a Kubernetes object: {error}") from error
