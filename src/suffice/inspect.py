"""For Inspect (inspect_ai): epochs that stop when a sample's vote is settled, and their majority (extra: inspect).

Inspect is imported when it is needed, so that this module can be looked at without it.
"""

import asyncio
from collections.abc import Iterable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from suffice.answers import Keys
from suffice.controllers import Controller, get_controller
from suffice.controllers.base import question_random
from suffice.errors import OptionError, whole_number
from suffice.tally import DEFAULT_BUDGET, Tally

if TYPE_CHECKING:
    from inspect_ai.dataset import Sample
    from inspect_ai.log import EvalSpec
    from inspect_ai.scorer import SampleScore, Score, ScoreReducer
    from inspect_ai.util import EarlyStop

__all__ = ["EpochStopping", "early_stopping", "majority"]


def early_stopping(
    controller: str | Controller = "plan", budget: int = DEFAULT_BUDGET, scorer: str | None = None
) -> "EpochStopping":
    """What a task takes as `early_stopping`: each sample's epochs stop when the controller has seen enough answers.

    Args:
        controller: A controller, or the string that describes one.
        budget: The most epochs of a sample that count.
        scorer: The scorer whose scores have the answers; the first unless named.

    Raises:
        ControllerError: Where there is no such controller.
        OptionError: Where the budget is no whole number above 0.

    >>> early_stopping("asc", budget=8)
    EpochStopping(AdaptiveSelfConsistency(threshold=0.95), budget=8)
    """
    return EpochStopping(get_controller(controller), whole_number("budget", budget), scorer)


class EpochStopping:
    """An `inspect_ai.util.EarlyStopping`; see docs/joins.md for what it does with epochs that run at once.

    >>> EpochStopping(get_controller("sc"), budget=4)
    EpochStopping(SelfConsistency(draws=None), budget=4)
    """

    def __init__(self, controller: Controller, budget: int = DEFAULT_BUDGET, scorer: str | None = None) -> None:
        self._controller = controller
        self._budget = budget
        self._scorer = scorer
        # One task may be run for several models at once; what a task's samples inherit tells them apart.
        self._votes: ContextVar[dict[str, _Epochs]] = ContextVar("votes")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._controller}, budget={self._budget})"

    async def start_task(self, task: "EvalSpec", samples: "list[Sample]", epochs: int) -> str:
        """Begin a vote for each sample."""
        budget = min(self._budget, epochs)
        # A sample that is tried again waits for its turn behind those that would wait for it.
        patient = not task.config.retry_on_error
        serving = {
            str(sample.id): self._controller.for_question(question_random(0, str(sample.id))) for sample in samples
        }
        self._votes.set({name: _Epochs(own, budget, patient) for name, own in serving.items()})
        return f"suffice: {self._controller}, budget {budget}"

    async def schedule_sample(self, id: str | int, epoch: int) -> "EarlyStop | None":  # noqa: A002
        """Let an epoch run, once the round before it is in, or stop it."""
        from inspect_ai.util import EarlyStop

        vote = self._votes.get()[str(id)]
        if await vote.admits(epoch):
            return None
        reason = "the vote is settled" if vote.tally.left > 0 else "the budget is spent"
        return EarlyStop(id=id, epoch=epoch, reason=reason, metadata={"answer": vote.summary()["answer"]})

    async def complete_sample(self, id: str | int, epoch: int, scores: "dict[str, SampleScore]") -> None:  # noqa: A002
        """Take an epoch's answer."""
        if self._scorer is not None and self._scorer not in scores:
            raise OptionError(f'must be one of {", ".join(scores)}, not "{self._scorer}"', "scorer")
        score = scores[self._scorer or next(iter(scores))].score if scores else None
        self._votes.get()[str(id)].arrived(epoch, score.answer if score else None)

    async def complete_task(self) -> dict[str, Any]:
        """What it took, for the log: in all, and for each sample."""
        votes = self._votes.get()
        samples = {name: vote.summary() for name, vote in votes.items()}
        return {
            "controller": str(self._controller),
            "budget": next((vote.tally.budget for vote in votes.values()), self._budget),
            "epochs_run": sum(one["epochs"] for one in samples.values()),
            "epochs_stopped": sum(vote.stopped for vote in votes.values()),
            "samples": samples,
        }


class _Epochs:
    """The vote of one sample: epochs are admitted as the controller asks, a round at a time."""

    def __init__(self, controller: Controller, budget: int, patient: bool) -> None:
        import anyio

        self.tally = Tally(budget)
        self.stopped = 0
        self._controller = controller
        self._patient = patient
        self._keys = Keys()
        self._open = 0
        """How many of the present round are still to be admitted."""
        self._running: set[int] = set()
        self._answers: dict[int, str | None] = {}
        """As the scores had them, by epoch."""
        self._uncounted: list[int] = []
        self._turn = anyio.Lock()
        self._changed = anyio.Event()

    async def admits(self, epoch: int) -> bool:
        """Whether an epoch is run; it waits while a round is under way that it is not part of."""
        if epoch in self._running or epoch in self._answers:  # it is tried again
            return True
        async with self._turn:
            if not self._open:
                await self._next_round()
            if not self._open:
                self.stopped += 1
                return False
            self._open -= 1
            self._running.add(epoch)
            self._watch(epoch)
            return True

    async def _next_round(self) -> None:
        """Wait for what is running, count it, and let the controller decide."""
        import anyio

        while self._running and self._patient:
            self._changed = anyio.Event()
            await self._changed.wait()
        if self._running and self.tally.left > len(self._running) + len(self._uncounted):
            self._open = 1  # one more than the controller asked for, rather than a wait without end
            return
        # Comparing formulas, and a plan that is made for the first time, take their time.
        self._open = await anyio.to_thread.run_sync(self._decide)

    def _decide(self) -> int:
        # In the order of epochs, as the reducer has them: which one was quicker must not settle a tie.
        arrived, self._uncounted = sorted(self._uncounted), []
        if arrived:
            self.tally.add_round(self._keys.key(self._answers[epoch]) for epoch in arrived)
        return self._controller.next_round(self.tally) if self.tally.left > 0 else 0

    def arrived(self, epoch: int, answer: str | None) -> None:
        if epoch not in self._answers:
            self._uncounted.append(epoch)
        self._answers[epoch] = answer
        self._ended(epoch)

    def _watch(self, epoch: int) -> None:
        """Notice an epoch that ends in an error: Inspect tells of those that were scored alone."""
        try:
            task = asyncio.current_task()
        except RuntimeError:  # trio: there is no telling, so nobody waits
            task = None
        if task is None:
            self._patient = False
        else:
            task.add_done_callback(lambda _: self._ended(epoch))

    def _ended(self, epoch: int) -> None:
        self._running.discard(epoch)
        self._changed.set()

    def summary(self) -> dict[str, Any]:
        tally = _tally(self._answers[epoch] for epoch in sorted(self._answers))
        rounds = self.tally.rounds + bool(self._uncounted)
        return {"answer": tally.leader, "votes": tally.votes, "epochs": tally.draws, "rounds": rounds}


def majority() -> "ScoreReducer":
    """The reducer for `Epochs`: the score of the answer that a vote elects, by our answer keys and our rule for ties.

    Its answer is the elected one, and its metadata has the votes. Where no epoch gave an answer, it is the first score.

    >>> majority.__name__
    'majority'
    """
    from inspect_ai.scorer import score_reducer

    def elect(scores: "list[Score]") -> "Score":
        tally = _tally(score.answer for score in scores)
        chosen = scores[tally.answers.index(tally.leader)] if tally.leader is not None else scores[0]
        about = {**(chosen.metadata or {}), "suffice": {"votes": tally.votes, "epochs": tally.draws}}
        return chosen.model_copy(update={"answer": tally.leader, "metadata": about})

    made: ScoreReducer = score_reducer(name="suffice_majority")(lambda: elect)()
    return made


def _tally(answers: Iterable[str | None]) -> Tally:
    keys = Keys()
    given = [keys.key(answer) for answer in answers]
    tally = Tally(max(len(given), 1))
    tally.add_round(given)
    return tally
