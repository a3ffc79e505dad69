"""Which of the responses that gave the elected answer is returned: a typical one."""

from collections.abc import Sequence


def typical(lengths: Sequence[int], complete: Sequence[bool] | None = None) -> int:
    """The place of a response of median length, among the complete ones if there are any; of equals the first.

    The first to arrive is the shortest more often than not, and the longest may have lost its way.

    >>> typical([5, 900, 40]), typical([5, 900, 40], [False, True, True])
    (2, 2)
    """
    if not lengths:
        raise ValueError("there must be a response to choose from")
    places = [place for place in range(len(lengths)) if complete is None or complete[place]] or range(len(lengths))
    ranked = sorted(places, key=lambda place: (lengths[place], place))
    median = lengths[ranked[(len(ranked) - 1) // 2]]
    return next(place for place in places if lengths[place] == median)
