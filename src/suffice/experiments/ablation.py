"""Table 2 of the paper: what counts as right in training."""

from suffice.experiments.bench import Bench, Experiment, Jobs
from suffice.experiments.main import SAMPLES, gaps_table, method_rows, paper_tables
from suffice.report.markdown import Page
from suffice.training.setting import TARGETS


def ablation_jobs(bench: Bench) -> Jobs:
    """Controllers for each target that the training pools know."""
    targets = {target: {"target": target} for target in TARGETS}
    if any(question.gold is None for pool in bench.test for p in bench.training_for(pool) for question in p.questions):
        targets.pop("gold")
    return bench.jobs(targets)


def ablation(bench: Bench) -> Page:
    jobs = ablation_jobs(bench)
    base, *others = dict.fromkeys(target for _, target, _ in jobs)
    measured = bench.measure(jobs, {})
    rows = method_rows(measured)
    differences, gaps = gaps_table(measured, [(other, base) for other in others], bench.test)
    text = "\n".join([*paper_tables(bench.test, rows, SAMPLES, base), differences])
    return Page(text, rows, gaps)


EXPERIMENT = Experiment("Reward targets: running majority, full majority, gold answer", ablation, ablation_jobs)
