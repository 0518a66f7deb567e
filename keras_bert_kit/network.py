"""Whether the network may be used: what every part of the kit that fetches something asks first."""

import os

_OFFLINE = ("KERAS_BERT_KIT_OFFLINE", "HF_HUB_OFFLINE")
_YES = ("1", "true", "yes", "on")


def offline_by():
    """Returns the name of the environment variable that forbids the network, or None."""
    return next((name for name in _OFFLINE if os.environ.get(name, "").strip().lower() in _YES), None)
