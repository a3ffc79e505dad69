"""Ours: the same sweeps, with the exact planner's frontier."""

from suffice.experiments.bench import Bench, Experiment, Jobs
from suffice.experiments.scaling import sweep_jobs, sweeps_page, swept
from suffice.report.markdown import Page

DRAWN = {quality: (("rounds", "samples"), quality) for quality in ("agreement", "accuracy")}


def frontier_jobs(bench: Bench) -> Jobs:
    return sweep_jobs(bench, {"rl": bench.setting.penalties.round})


def frontier(bench: Bench) -> Page:
    rows = swept(bench, ("sc", "asc", "esc", "plan"), frontier_jobs(bench))
    return sweeps_page(bench, "frontier", rows, DRAWN)


EXPERIMENT = Experiment("The planner's frontier", frontier, frontier_jobs)
