"""`doctor`: what this machine has; `doctor distribute`: whether many replicas give the numbers of one."""

import click

from keras_bert_kit.cli.command import command
from keras_bert_kit.doctor import check_distribution, describe_machine


@command
@click.argument("what", type=click.Choice(["machine", "distribute"]), default="machine")
def doctor(what):
    """Show versions, devices and instructions, or check training on several replicas.

    \b
    `distribute` trains a tiny BERT on one replica, on two logical CPUs, with micro-batches and in two processes.
    Example:
      keras-bert-kit doctor
      keras-bert-kit doctor distribute
    """
    if what == "machine":
        found = describe_machine()
        width = max(map(len, found))
        return found, "\n".join(f"{topic.ljust(width)}  {text}" for topic, text in found.items())
    checks = check_distribution()
    lines = [f"{'ok  ' if check.passed else 'FAIL'}  {check.name}: {check.detail}" for check in checks]
    if not all(check.passed for check in checks):
        raise click.ClickException("\n".join(lines))
    return {"checks": [check._asdict() for check in checks]}, "\n".join(lines)
