"""One seed for everything that is drawn at random in a training run."""

import keras
import numpy as np


def set_seed(seed, model):
    """Seeds Python, NumPy and TensorFlow, and the dropout layers of a model.

    `keras.utils.set_random_seed` alone leaves dropout layers that were made before as they are: each drew its seed when
    it was made.

    Args:
        seed: int, 0 or more.
        model: `keras.Model`.
    """
    keras.utils.set_random_seed(seed)
    states = [variable for variable in model.variables if variable.path.endswith("seed_generator_state")]
    for number, state in enumerate(states):
        (start,) = np.random.SeedSequence([seed, number]).generate_state(1)
        state.assign([start, 0])
