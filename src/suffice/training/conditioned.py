"""One network for all budgets and penalties: warmed up by imitating the planner, then trained by PPO."""

from dataclasses import asdict, replace
from typing import Any

import numpy as np
import torch
from stable_baselines3.common.base_class import BaseAlgorithm

from suffice.controllers.conditioned import TOP, ConditionedController
from suffice.executors import Link
from suffice.penalties import Penalties
from suffice.planning.model import UNIVERSAL
from suffice.planning.simulation import simulate
from suffice.pools import Pool, Question
from suffice.replay import evaluate, mean_over_pools
from suffice.training import learner
from suffice.training.imitation import BATCH, HIDDEN, PlannerExamples, imitate, planner_examples
from suffice.training.mixed import ConditionedSupply, ConditionedVecEnv
from suffice.training.setting import TrainingJob

COPIES = 256
OPTIONS: dict[str, Any] = {"n_steps": 64, "batch_size": BATCH, "n_epochs": 4, "clip_range": 0.1}
RATE_AFTER_IMITATION, RATE_ALONE = 3e-5, 1e-3

LEAST_ROUND = 1e-3
"""What a round costs in training even where rounds are free: they take time, and this hardly costs anything else."""

WATCHES = 20
WATCHED_BUDGETS = (4, 8, 16, 32, 64, 128, 256)
WATCHED_PENALTIES = (Penalties(0.002, 0.01), Penalties(0.0075, 0.0), Penalties(0.0075, 0.005), Penalties(0.025, 0.02))
WATCHED_QUESTIONS = 300
"""The best moment is chosen by the mean reward at all of these, on so many questions of each pool and of the model."""


def learn_conditioned(job: TrainingJob, link: Link | None = None) -> learner.Trained:
    """Imitate the planner, go on by PPO, and keep the best moment; an interrupt keeps the best so far."""
    torch.set_num_threads(1)  # the network is so small that threads only get into each other's way
    watcher = _RangeWatcher(job, link or Link())
    imitated = imitate(_examples(job, watcher), job.seed, watcher.hear) if job.lessons else None
    model = _model(job)
    if imitated:
        _warm_up(model, *imitated)
    watcher.watch(model)
    results = learner.measure(watcher.best, job.pools, job.setting)
    card = {
        **watcher.best.card,
        "steps": model.num_timesteps,
        "best_after_steps": watcher.best_steps,
        "imitation_reward": watcher.first_reward,
        "target_reward": watcher.best_reward,
        **learner.figures(results),
        "rules": learner.figures_of_rules(job),
    }
    return learner.Trained(ConditionedController(watcher.best.layers, card, job.setting.penalties), results)


def _examples(job: TrainingJob, watcher: "_RangeWatcher") -> PlannerExamples:
    made = []
    for budget, examples in planner_examples(job.within, job.setting.actions, LEAST_ROUND, job.lessons, job.seed):
        watcher.hear(f"planning at a budget of {budget}")
        made.append(examples)
    return PlannerExamples(np.concatenate([one.inputs for one in made]), np.concatenate([one.worths for one in made]))


def _model(job: TrainingJob) -> BaseAlgorithm:
    supply = ConditionedSupply(job.pools, job.within, job.seed)
    options = {"learning_rate": RATE_AFTER_IMITATION if job.lessons else RATE_ALONE, **OPTIONS}
    network = {"net_arch": list(HIDDEN), "activation_fn": torch.nn.ReLU}
    preset = learner.Preset(COPIES, options, annealed=True, policy_options=network)
    return learner.model_in(ConditionedVecEnv(supply, job.setting, COPIES, LEAST_ROUND), "ppo", preset, job.seed)


def _warm_up(model: BaseAlgorithm, actor: torch.nn.Sequential, critic: torch.nn.Sequential) -> None:
    """Let the policy be what was imitated."""
    policy: Any = model.policy
    for hidden, last, imitated in (
        (policy.mlp_extractor.policy_net, policy.action_net, actor),
        (policy.mlp_extractor.value_net, policy.value_net, critic),
    ):
        hidden.load_state_dict(imitated[:-1].state_dict())
        last.load_state_dict(imitated[-1].state_dict())


class _RangeWatcher(learner.PolicyWatcher):
    """Keeps the policy that does best at several budgets and penalties."""

    def __init__(self, job: TrainingJob, link: Link) -> None:
        super().__init__(job.steps, link)
        self.job = job
        self.first_reward: float | None = None
        low, high = job.within.budgets
        self.budgets = sorted({low, high, *(budget for budget in WATCHED_BUDGETS if low <= budget <= high)})
        # Every so many of the questions are enough to watch.
        some = [pool.questions[:: -(-len(pool.questions) // WATCHED_QUESTIONS)] for pool in job.pools]
        self.pools = [replace(pool, questions=chosen) for pool, chosen in zip(job.pools, some, strict=True)]
        self.pools.append(simulated_pool(high, WATCHED_QUESTIONS, learner.WATCH_SEED))

    def hear(self, note: str) -> None:
        """Tell what is under way before there are steps."""
        self.link.check()
        self.link.tell(learner.Watched(0, 0.0, 0.0, 0.0, note))

    def consider(self, model: Any) -> learner.Watched:
        """Measure the present policy and keep it if it is the best."""
        self.next_look = model.num_timesteps + self.job.steps // WATCHES
        controller = ConditionedController(learner.network(model), _card(self.job), self.job.setting.penalties)
        results = [
            result
            for budget in self.budgets
            for penalties in WATCHED_PENALTIES
            for result in evaluate(
                [pool for pool in self.pools if _responses(pool) >= budget],
                controller.at(self.job.within.nearest(penalties)),
                budget=budget,
                repeats=max(2, 32 // budget),
                seed=learner.WATCH_SEED,
                penalties=self.job.within.nearest(penalties),
                confidence=False,
            )
        ]
        reward, samples, rounds = (mean_over_pools(results, what) or 0.0 for what in ("reward", "samples", "rounds"))
        if self.first_reward is None:
            self.first_reward = reward
        if reward > self.best_reward:
            self.best, self.best_reward, self.best_steps = controller, reward, model.num_timesteps
        return learner.Watched(model.num_timesteps, reward, samples, rounds)


def _responses(pool: Pool) -> int:
    return min(len(question.answers) for question in pool.questions)


def simulated_pool(responses: int, questions: int, seed: int) -> Pool:
    """Questions whose answers follow the model."""
    answers = np.stack([step.answer for step in simulate(UNIVERSAL, responses, questions, seed)], axis=1)
    rows = [tuple(map(str, row)) for row in answers.tolist()]
    return Pool("model", tuple(Question(f"{number}", None, row, None) for number, row in enumerate(rows)))


def _card(job: TrainingJob) -> dict[str, Any]:
    within = asdict(job.within)
    return {
        "kind": "conditioned",
        "ranges": {"budget": within["budgets"], "penalty_draw": within["draw"], "penalty_round": within["round"]},
        "top": TOP,
        "lessons": job.lessons,
        "activation": "relu",
        **learner.common_card(job),
    }
