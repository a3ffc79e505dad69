"""Table 2 of the paper: what counts as right in training."""

from suffice.experiments.bench import Bench, Experiment
from suffice.experiments.main import SAMPLES, Jobs, Methods, differences_table, long_rows, paper_tables
from suffice.report.markdown import Page
from suffice.training.setting import TARGETS


def ablation_jobs(bench: Bench) -> Jobs:
    """Controllers for each target that the training pools know."""
    targets = {target: {"target": target} for target in TARGETS}
    if any(question.gold is None for pool in bench.test for p in bench.training_for(pool) for question in p.questions):
        targets.pop("gold")
    return bench.jobs(targets)


def ablation(bench: Bench) -> Methods:
    """Table 2: what counts as right in training."""
    jobs = ablation_jobs(bench)
    base, *others = dict.fromkeys(name for _, name, _ in jobs)
    return Methods(bench.measure(jobs, {}), base, [(other, base) for other in others])


def ablation_page(found: Methods, bench: Bench) -> Page:
    """Table 2."""
    differences, rows = differences_table(found, bench.test)
    text = "\n".join([*paper_tables(bench.test, found.measured, SAMPLES, found.base), differences])
    return Page(text, long_rows(found.measured), {"differences": rows})


TITLE = "Reward targets: running majority, full majority, gold answer"
EXPERIMENT = Experiment(TITLE, ablation, ablation_page, ablation_jobs)
