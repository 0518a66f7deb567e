"""`write_pretraining_data_with_beam`: the shards of `write_pretraining_data`, made by an Apache Beam pipeline.

    blocks ──► Create ──► Reshuffle ──► Map(make_shard)          each shard on whichever worker is free

Blocks, records and files are the same code as without Beam, so the shards are the same, byte for byte. All workers must
see the text files and the output folder under the same paths, as on a file system that they share.
"""

from keras_bert_kit.data.pretraining_settings import PretrainingSettings
from keras_bert_kit.data.shards import config_of, make_shard_elsewhere
from keras_bert_kit.data.write_pretraining import PretrainingData, begin


def write_pretraining_data_with_beam(
    paths, tokenizer, out, settings: PretrainingSettings, options=None, report=print
) -> PretrainingData:
    """Writes the shards of a corpus on whatever runs Apache Beam: this machine, Flink, Spark.

    Args:
        paths, tokenizer, out, settings, report: as in `write_pretraining_data`. A rerun goes on, here and there.
        options: `apache_beam.options.pipeline_options.PipelineOptions`. Default: Beam's own runner on this machine.

    Returns:
        `PretrainingData`.

    Raises:
        ImportError: Apache Beam is not installed.
        DataError: As `write_pretraining_data`.
        OSError: Shards are missing after the pipeline ended. Those that are finished stay.
    """
    try:
        import apache_beam as beam
    except ImportError as error:
        raise ImportError("This needs Apache Beam. Run: pip install 'keras_bert_kit[beam]'") from error

    work = begin(paths, tokenizer, out, settings)
    report(f"{work}; by Apache Beam")
    with beam.Pipeline(options=options) as pipeline:
        (
            pipeline
            | beam.Create(work.jobs)
            | beam.Reshuffle()  # else the runner may fuse all steps, and one worker makes every shard
            | beam.Map(make_shard_elsewhere, tokenizer_config=config_of(tokenizer), settings=settings)
        )
    return work.finish()
