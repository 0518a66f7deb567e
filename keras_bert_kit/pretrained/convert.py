"""From one format to another: `load_pretrained`, then `save_pretrained`, with an account of the heads."""

from keras_bert_kit.errors import CheckpointError
from keras_bert_kit.files import require_free
from keras_bert_kit.pretrained.load import inspect_pretrained, load_pretrained
from keras_bert_kit.pretrained.save import heads_left_behind, heads_not_in, save_pretrained


def convert(source, path, format, heads=()):
    """Writes a source of weights in another format.

    Args:
        source: what `load_pretrained` takes.
        path: `pathlib.Path` of the folder to make; it must not exist, or be empty.
        format: str, what `save_pretrained` takes.
        heads: heads to keep, as `LoadReport` calls them; the pooler stays in any case. Default: all.

    Returns:
        Pair of the `LoadReport` of what was written, and the list of heads of the source that were not kept.

    Raises:
        CheckpointError: From the source; it has no vocabulary; or heads that the format, or one folder, cannot hold:
            none is dropped unless the others are named, but for the next-sentence head, which TF-Hub's never hold.
        FileExistsError: There is something at `path` already.
    """
    require_free(path)
    there = inspect_pretrained(source).heads
    bert = load_pretrained(source, heads=(*heads, *(["pooler"] if "pooler" in there else [])) if heads else None)
    kept = [head for head in bert.report.heads if head not in heads_left_behind(format, there)]
    models = [model for model in _models_of(bert) if model is not None]
    if (missing := heads_not_in(format, kept)) or len(models) > 1:
        fault = f"format {format!r} has no place for {', '.join(missing)}" if missing else "a folder holds one model"
        raise CheckpointError(
            f"The heads must fit into what is written. Received: {', '.join(kept)} in {source}, but {fault}. "
            "Name the heads to keep (--head NAME, may be given again); 'pooler' alone keeps the encoder."
        )
    if bert.tokenizer is None:
        raise CheckpointError(
            f"The source must hold a vocabulary. Received: none in {source}. Put its vocab.txt there."
        )
    save_pretrained(models[0] if models else bert.encoder, path, tokenizer=bert.tokenizer, format=format)
    return bert.report, [head for head in there if head not in kept]


def _models_of(bert):
    yield from (bert.pretrainer, bert.next_sentence, bert.classifier)
    yield from (bert.token_classifier, bert.question_answering, bert.multiple_choice)
