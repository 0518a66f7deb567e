"""Checks of what a recipe is given, before any work: one error each, which says what to give instead."""

import math
import numbers


def require_a(kind, name, value, advice):
    """Checks that an argument is of a class of the kit.

    Args:
        kind: the class.
        name: str, of the argument.
        value: what was given.
        advice: str, where such a thing comes from.

    Raises:
        ValueError: It is something else.
    """
    if not isinstance(value, kind):
        raise ValueError(f"{name} must be of class {kind.__name__}. Received: {name}={_shown(value)}. {advice}")


def require_list_of(kind, name, values, advice):
    """The same for a list or a tuple, which must not be empty."""
    if not isinstance(values, list | tuple) or not values:
        raise ValueError(f"{name} must be a list of {kind.__name__}. Received: {name}={_shown(values)}. {advice}")
    for number, value in enumerate(values):
        require_a(kind, f"{name}[{number}]", value, advice)


def require_rate(learning_rate):
    """Checks that a learning rate is None, for the default, or a number above 0.

    Raises:
        ValueError: It is something else. A function of the step is made from it, so it cannot be one itself.
    """
    if learning_rate is not None and not (_is_number(learning_rate) and 0 < learning_rate < math.inf):
        raise ValueError(
            "learning_rate must be a number above 0, or None for one that fits the size. "
            f"Received: learning_rate={_shown(learning_rate)}."
        )


def require_share(name, value):
    """Checks that an argument is a number from 0 to 1.

    Raises:
        ValueError: It is something else.
    """
    if not (_is_number(value) and 0 <= value <= 1):
        raise ValueError(f"{name} must be a number from 0 to 1. Received: {name}={_shown(value)}.")


def _is_number(value):
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def _shown(value):
    """A value where it is short; else its class, for models and texts of a data set would fill the screen."""
    if isinstance(value, str | numbers.Number | None):
        return f"{value!r:.80}"
    return f"a {type(value).__name__}"
