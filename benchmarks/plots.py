"""What the benchmarks measured, as SVG files. Equal figures give equal files."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure


def plot_shares(path: Path, seconds: Mapping[str, Sequence[float]], totals: Sequence[int]) -> None:
    """For each group the share of all its clusters that are proven within a time.

    `seconds`: of those that are proven; `totals`: how many clusters each group has.
    """
    figure, axes = _figure()
    for (name, times), total in zip(seconds.items(), totals, strict=True):
        shares = [100 * count / total for count in range(1, len(times) + 1)]
        axes.step(sorted(times), shares, where="post", label=name)
    axes.set(xlabel="seconds of a core", ylabel="% of clusters proven", xscale="log")
    axes.set_ylim(0, 102)
    _save(figure, axes, path)


def plot_beside(path: Path, times: Mapping[str, Sequence[tuple[float, float]]]) -> None:
    """For each solver a point for each cluster: what the planner and what the solver takes, in
    seconds; and lines where the solver takes so many times as long.
    """
    figure, axes = _figure()
    for (name, pairs), marker in zip(times.items(), "ox", strict=True):
        axes.scatter(*zip(*pairs, strict=True), label=name, marker=marker)
    ours = [our for pairs in times.values() for our, _ in pairs]
    ends = [min(ours), max(ours)]
    for ratio in (1, 10, 100, 1000):
        axes.plot(ends, [ratio * end for end in ends], color="grey", linewidth=0.8)
        axes.annotate(f"{ratio} times", (ends[0], ratio * ends[0]), color="grey")
    axes.set(xlabel="planner, seconds of a core", ylabel="solver, seconds of a core")
    axes.set(xscale="log", yscale="log")
    _save(figure, axes, path)


def _figure() -> tuple[Figure, Axes]:
    figure = Figure(figsize=(7, 4), layout="constrained")
    return figure, figure.subplots()


def _save(figure: Figure, axes: Axes, path: Path) -> None:
    axes.grid(alpha=0.4)
    axes.legend()
    # Text as text makes small files; a salt and no date make equal ones.
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "rebalancer"}):
        figure.savefig(path, format="svg", metadata={"Date": None})
