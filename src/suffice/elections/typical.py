"""Which of the responses that gave the elected answer stands for them."""

from collections.abc import Sequence

from suffice.response import Response


def typical(responses: Sequence[Response]) -> Response | None:
    """The complete one of median length, and of two such the earlier; one that was cut off only where all were.

    >>> typical([Response("It is 7, as you can see from a long and winding road of thoughts."), Response("7"),
    ...          Response("So it is 7.")]).text
    'So it is 7.'
    """
    said = [one for one in responses if one.is_complete and one.said] or list(responses)
    if not said:
        return None
    by_length = sorted(range(len(said)), key=lambda place: (len(said[place].said or ""), place))
    length = len(said[by_length[(len(said) - 1) // 2]].said or "")
    return next(one for one in said if len(one.said or "") == length)
