"""Ours: the same sweeps, with the exact planner's frontier."""

from collections.abc import Mapping

from suffice.experiments.bench import Bench, Experiment
from suffice.experiments.scaling import Curves, Jobs, sweep_jobs, sweeps_page, swept
from suffice.report.markdown import Page

DRAWN = {quality: (("rounds", "samples"), quality) for quality in ("agreement", "accuracy")}


def frontier_jobs(bench: Bench) -> Jobs:
    """Controllers with the bench's price of a round."""
    return sweep_jobs(bench, {"rl": bench.setting.penalties.round})


def frontier(bench: Bench) -> Mapping[str, Curves]:
    """The same sweeps, and the exact planner's."""
    return swept(bench, ("sc", "asc", "esc", "plan"), frontier_jobs(bench))


def frontier_page(found: Mapping[str, Curves], bench: Bench) -> Page:
    """The curves with the planner's."""
    return sweeps_page("frontier", TITLE, DRAWN, found, bench)


TITLE = "The planner's frontier"
EXPERIMENT = Experiment(TITLE, frontier, frontier_page, frontier_jobs)
