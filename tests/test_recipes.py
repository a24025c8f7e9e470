"""The recipes of docs/scaling.md: on Spark and Ray where they are installed, else on what stands for them."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from test_docs import ROOT, blocks_of, run
from vcrf import VCRF, load_tagger
from vcrf.data import Corpus, small_english
from vcrf.labelling.loading import FileTagger

PAGE = ROOT / "docs/scaling.md"


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> tuple[Corpus, FileTagger]:
    """What the page has made before."""
    path = tmp_path_factory.mktemp("recipes") / "my.vcrf"
    corpus = small_english(20)
    VCRF(recipe="paper").fit(corpus.tokens, corpus.labels).save(path)
    return corpus, load_tagger(path)


def in_another_process(function: Callable[[Any], Any], argument: Any) -> Any:
    """A function as it arrives at a worker."""
    cloudpickle = pytest.importorskip("cloudpickle")
    data = cloudpickle.dumps(function)
    assert len(data) < 5000
    return cloudpickle.loads(data)(argument)


def recipe(sign: str, corpus: Corpus, tagger: FileTagger, **names: Any) -> list[list[str]]:
    """Run the block of the page with a sign in it; the labels that it gives."""
    (block,) = [block for block in blocks_of(PAGE.read_text(encoding="utf-8")) if sign in block.code]
    # Names of a main program: functions are then pickled by value.
    namespace: dict[str, Any] = {"__name__": "__main__", "corpus": corpus, "tagger": tagger, **names}
    run(block, str(PAGE), namespace)
    return [list(labels) for labels in namespace["labelled"].toPandas()["labels"]]


class Table:
    """A table cut into small ones, as Spark and Ray hand them to a function."""

    def __init__(self, frame: Any) -> None:
        self.frame = frame

    def mapInPandas(self, function: Callable[[Any], Any], schema: str) -> Table:  # noqa: N802 - Spark's name
        """Tables in, tables out."""
        import pandas as pd

        assert schema == "tokens array<string>, labels array<string>"
        parts = [self.frame[i : i + 7] for i in range(0, len(self.frame), 7)]
        return Table(pd.concat(in_another_process(lambda _: list(function(iter(parts))), None)))

    def map_batches(self, function: Callable[[Any], Any], batch_format: str) -> Table:
        """A table in, a table out."""
        assert batch_format == "pandas"
        return Table(in_another_process(function, self.frame))

    def toPandas(self) -> Any:  # noqa: N802 - Spark's name
        """All of it."""
        return self.frame


def test_spark(given: tuple[Corpus, FileTagger], tmp_path: Path) -> None:
    """MapInPandas."""
    pd = pytest.importorskip("pandas")
    corpus, tagger = given
    if find_spec("pyspark") is None:
        spark: Any = SimpleNamespace(createDataFrame=lambda rows, _: Table(pd.DataFrame(rows, columns=["tokens"])))
    else:
        from pyspark.sql import SparkSession

        spark = SparkSession.builder.master("local[1]").config("spark.local.dir", str(tmp_path)).getOrCreate()
    assert recipe("mapInPandas", corpus, tagger, spark=spark) == tagger.predict(corpus.tokens)


def test_ray(given: tuple[Corpus, FileTagger]) -> None:
    """map_batches."""
    pd = pytest.importorskip("pandas")
    corpus, tagger = given
    if find_spec("ray") is None:
        ray: Any = SimpleNamespace(data=SimpleNamespace(from_items=lambda rows: Table(pd.DataFrame(rows))))
        assert recipe("map_batches", corpus, tagger, ray=ray) == tagger.predict(corpus.tokens)
        return
    import ray

    ray.init(num_cpus=1)
    ray.data.Dataset.toPandas = ray.data.Dataset.to_pandas
    assert recipe("map_batches", corpus, tagger, ray=ray) == tagger.predict(corpus.tokens)
