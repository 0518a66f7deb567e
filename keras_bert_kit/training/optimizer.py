"""`create_optimizer`: AdamW or LAMB with warm-up and decay, the recipes that BERT is trained with.

Source: `create_optimizer` in google-research/bert (optimization.py) and in `official.nlp.optimization` of
tensorflow/models, whose signature is kept.
"""

from keras_bert_kit.training.adamw import AdamW
from keras_bert_kit.training.lamb import Lamb
from keras_bert_kit.training.schedule import WarmUpAndDecay

_OPTIMIZERS = {"adamw": AdamW, "lamb": Lamb}


def create_optimizer(
    init_lr,
    num_train_steps,
    num_warmup_steps,
    end_lr=0.0,
    optimizer_type="adamw",
    beta_1=0.9,
    poly_power=1.0,
    *,
    weight_decay=0.01,
    global_clipnorm=1.0,
    epsilon=1e-6,
    rate_factors=(),
):
    """Makes an optimizer whose rate rises linearly from 0 to `init_lr`, then falls to `end_lr`.

    A step is one update of the weights. With `epochs` epochs over `examples` examples, `num_train_steps` is
    `epochs * ceil(examples / batch_size)`: not `epochs * examples`, with which the rate never leaves the warm-up.

    Args:
        init_lr: float, the highest learning rate; 2e-5 to 5e-5 for a whole pretrained BERT.
        num_train_steps: int, steps in the whole run.
        num_warmup_steps: int, steps until `init_lr` is reached; or float below 1, the share of the run: a tenth is
            usual. `steps_of(examples=…, batch_size=…)` counts examples in steps.
        end_lr: float, rate after the last step.
        optimizer_type: `"adamw"`, or `"lamb"` for large batches.
        beta_1: float, decay of the mean of gradients.
        poly_power: float, the fall is `(remaining share) ** poly_power`; 1 is linear.
        weight_decay: float or None, share of a weight taken off per step, times the rate. Biases and LayerNorm's
            `gamma` and `beta` are left out: see `AdamW`.
        global_clipnorm: float or None, gradients are scaled down together to at most this norm.
        epsilon: float, added to the root of the mean square of gradients.
        rate_factors: list of (variable, factor) for variables with a rate of their own, such as `rates_by_depth` gives.

    Returns:
        `AdamW` or `Lamb`, a `keras.optimizers.Optimizer` for `Trainer`, `compile` or a loop.

    Raises:
        ValueError: A count of steps, a rate, the weight decay or the norm to clip to makes no sense.

    Example:

    >>> create_optimizer(init_lr=3e-5, num_train_steps=900, num_warmup_steps=90)
    """
    if optimizer_type not in _OPTIMIZERS:
        raise ValueError(
            f"optimizer_type must be one of {', '.join(_OPTIMIZERS)}. Received: optimizer_type={optimizer_type!r}."
        )
    if isinstance(num_warmup_steps, float) and 0 <= num_warmup_steps < 1:
        num_warmup_steps = int(num_warmup_steps * num_train_steps)
    schedule = WarmUpAndDecay(init_lr, num_train_steps, num_warmup_steps, end_lr, poly_power)
    optimizer = _OPTIMIZERS[optimizer_type](
        schedule, weight_decay, beta_1=beta_1, epsilon=epsilon, global_clipnorm=global_clipnorm
    )
    optimizer.set_rate_factors(rate_factors)
    return optimizer


def steps_of(examples, batch_size):
    """Returns the steps in which so many examples are seen, the last one perhaps short.

    Args:
        examples: int.
        batch_size: int, global: over all replicas and micro-batches.

    Raises:
        ValueError: One of them is below 1.
    """
    if examples < 1 or batch_size < 1:
        raise ValueError(
            f"examples and batch_size must be 1 or more. Received: examples={examples}, batch_size={batch_size}."
        )
    return -(-examples // batch_size)
