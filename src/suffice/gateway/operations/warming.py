"""What takes long the first time is done before the gateway says that it is ready."""

import threading

from suffice.controllers import get_controller
from suffice.gateway.settings import Settings
from suffice.planning import LARGEST_BUDGET, certainty, prepare
from suffice.tally import Tally

WARM_UP_SECONDS = 60.0
"""So long the gateway may take to start on account of plans; they are finished behind its back then."""

MOST_VOTES = 64
"""The certainty of a leader with so many votes, or fewer, is at hand from the beginning."""


def warm_up(settings: Settings, seconds: float = WARM_UP_SECONDS) -> bool:
    """Prepare the plans, confidences and certainties of the settings; whether they were ready in time.

    Plans are left on disk: where there are workers, the one who starts them plans for all.
    """
    failed: list[Exception] = []

    def prepare_all() -> None:
        try:
            for budget in dict.fromkeys([settings.budget, min(settings.most_draws, LARGEST_BUDGET)]):
                _prepare(settings, budget)
        except Exception as error:
            failed.append(error)

    thread = threading.Thread(target=prepare_all, name="suffice-warm-up", daemon=True)
    thread.start()
    thread.join(seconds)
    if failed:
        raise failed[0]
    return not thread.is_alive()


def _prepare(settings: Settings, budget: int) -> None:
    get_controller(settings.controller).next_round(Tally(budget))
    prepare(budget)
    for votes in range(1, min(budget, MOST_VOTES) + 1):
        tally = Tally(budget)
        tally.add_round(["agreed"] * votes)
        certainty(tally)
