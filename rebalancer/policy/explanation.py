"""What pydantic found, said in the words of the file and the environment."""

import json
from collections.abc import Mapping
from typing import NamedTuple

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from rebalancer.policy.environment import Override
from rebalancer.policy.file import PolicyFile
from rebalancer.policy.problems import Problem, nearest
from rebalancer.policy.schema import Key, KeyPath, dotted

_SHOWN_CHARACTERS = 60
"""Of a wrong value; the rest is cut."""


class Explainer(NamedTuple):
    file: PolicyFile
    keys: Mapping[KeyPath, Key]
    overrides: Mapping[KeyPath, Override]

    def problems(self, error: ValidationError) -> list[Problem]:
        """One for each key, in the order of the file; those from the environment come last."""
        by_key: dict[str, Problem] = {}
        for detail in error.errors(include_url=False):
            problem = self._problem(detail)
            by_key.setdefault(problem.key, problem)
        return sorted(by_key.values(), key=lambda p: (p.line is None, p.line))

    def _problem(self, detail: ErrorDetails) -> Problem:
        path = self._path(detail["loc"])
        match detail["type"]:
            case "extra_forbidden" if path not in self.overrides:
                return self._unknown(path)
            case "value_error":
                return self._contradiction(path, str(detail["ctx"]["error"]))
            case "missing":
                return self._missing(detail["loc"])
        return self._wrong(path, detail["input"], otherwise=detail["msg"])

    def _path(self, location: KeyPath) -> KeyPath:
        """Without what pydantic appends, such as the member of a union that it tried."""
        while location and not (location in self.keys or location in self.file.lines):
            location = location[:-1]
        return location

    def _missing(self, path: KeyPath) -> Problem:
        allowed = self._allowed(path)
        return Problem(
            f"is missing; must be {allowed}" if allowed else "is missing",
            key=dotted(path),
            file=self.file.name,
            line=self._line(path),
            allowed=allowed,
        )

    def _wrong(self, path: KeyPath, value: object, otherwise: str) -> Problem:
        override = self.overrides.get(path)
        is_part = override is not None and override.value != value
        allowed = "" if is_part else self._allowed(path)
        return Problem(
            f"must be {allowed}, not {_shown(value)}"
            if allowed
            else f"{otherwise}; this is {_shown(value)}",
            key=dotted(path),
            file=None if override else self.file.name,
            line=None if override else self._line(path),
            variables=(override.variable,) if override else (),
            allowed=allowed,
        )

    def _unknown(self, path: KeyPath) -> Problem:
        """Suggests where a key of that name belongs, else the key here that is most like it."""
        name = str(path[-1])
        here = [str(key[-1]) for key in self.keys if key[:-1] == path[:-1]]
        elsewhere = (dotted(key) for key in self.keys if key[-1] == name)
        suggestion = next(elsewhere, "") or nearest(name, here)
        allowed = ", ".join(here)
        hint = f"did you mean {suggestion}?" if suggestion else f"the keys here are {allowed}"
        return Problem(
            f"unknown key; {hint}",
            key=dotted(path),
            file=self.file.name,
            line=self._line(path),
            allowed=allowed,
            suggestion=suggestion,
        )

    def _contradiction(self, path: KeyPath, message: str) -> Problem:
        """Between values that may come from the file, the environment or both."""
        variables = tuple(
            override.variable
            for key, override in self.overrides.items()
            if key[: len(path)] == path
        )
        is_in_file = path not in self.overrides and (path in self.file.lines or not variables)
        return Problem(
            message,
            key=dotted(path),
            file=self.file.name if is_in_file else None,
            line=self._line(path) if is_in_file else None,
            variables=variables,
        )

    def _allowed(self, path: KeyPath) -> str:
        return self.keys[path].allowed if path in self.keys else ""

    def _line(self, path: KeyPath) -> int | None:
        """That of the key, or of the nearest section around it that the file has."""
        while path and path not in self.file.lines:
            path = path[:-1]
        return self.file.lines.get(path)


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"
