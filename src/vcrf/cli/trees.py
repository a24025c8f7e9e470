"""Trees on the command line: `vcrf train --structure tree`, and the other commands on such a model.

A model of trees labels the words of CoNLL-U files whose HEAD is filled in: each word given its head. It is a `GraphCRF`
that remembers the field of its labels as the layout of its training file.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vcrf import GraphCRF
    from vcrf.complexity.report import RiskReport
    from vcrf.data.pieces import Shard
    from vcrf.graphs.trees import Trees
    from vcrf.labelling.explain import TokenExplanation
    from vcrf.losses import Loss

# Options of `vcrf train` that trees have too, besides data, output, split, development data, tag and --json.
TREE_OPTIONS = (
    "loss", "norm", "l1_ratio", "base_strength", "complexity_strength", "complexities", "surrogate", "tol",
    "max_passes", "n_jobs", "random_state",
)  # fmt: skip


def is_tree_model(model: Path) -> bool:
    """Whether a file holds a model of trees."""
    from vcrf.model.file import GRAPH_ESTIMATORS, read_facts

    return read_facts(model).get("estimator") in GRAPH_ESTIMATORS


def load_trees(model: Path) -> tuple[GraphCRF, str]:
    """The estimator of a model of trees, and the field of its labels."""
    import vcrf
    from vcrf.errors import InputError
    from vcrf.graphs.trees import LABEL_FIELDS

    found = vcrf.load(model)
    facts = found.model_.facts
    field = facts.tag_column if facts is not None and facts.file_format == "conllu" else -1
    names = {number: name for name, number in LABEL_FIELDS.items()}
    if field not in names:
        raise InputError(
            f"{model} labels graphs that were built in Python, not trees of a file: read it with `vcrf.load`."
        )
    return found, names[field]


def read_many(paths: list[Path], label: str, split: str | None) -> Trees:
    """The trees of several files."""
    from vcrf.graphs.trees import Trees, read_trees

    found = Trees([], [], [], [])
    for path in paths:
        one = read_trees(path, label, split)
        found.graphs.extend(one.graphs)
        found.labels.extend(one.labels)
        found.words.extend(one.words)
        found.sources.extend(one.sources)
    return found


def label_field(tag: str | int | None) -> str:
    """The field of --tag: a name, or the number of one; "deprel" if none is given."""
    from vcrf.errors import InputError
    from vcrf.graphs.trees import LABEL_FIELDS

    names = {number: name for name, number in LABEL_FIELDS.items()}
    chosen = "deprel" if tag is None else names.get(tag, str(tag)) if isinstance(tag, int) else tag
    if chosen not in LABEL_FIELDS:
        raise InputError(f"--tag {tag}: trees have labels in {', '.join(LABEL_FIELDS)}.")
    return chosen


def tree_estimator(given: dict[str, Any], tag: str | int | None) -> tuple[GraphCRF, str]:
    """The estimator of the options of `vcrf train`; those that mean nothing for trees are refused."""
    from vcrf import GraphCRF
    from vcrf.arguments.parameters import ESTIMATOR
    from vcrf.errors import InputError

    others = [p for p in ESTIMATOR if p.name in given and p.name not in TREE_OPTIONS]
    for parameter in others:
        if given[parameter.name] != parameter.default:
            raise InputError(f"{parameter.option} is not for --structure tree: leave it out.")
    for name in ("form", "start", "folds", "plot", "partial"):
        if given[name] is not None:
            raise InputError(f"--{name} is not for --structure tree: leave it out.")
    if given["tune"] or given["input_format"] not in ("auto", "conllu"):
        raise InputError("--structure tree reads CoNLL-U and trains once: leave --tune and --input-format out.")
    if given["surrogate"] == "structsvm" or given["surrogate"].endswith("-max"):
        raise InputError(
            f"--surrogate {given['surrogate']} is not for trees: use crf, m3n, structboost or exponential."
        )
    parameters = {name: given[name] for name in TREE_OPTIONS}
    parameters["loss"] = {None: "auto", "none": None}.get(given["loss"], given["loss"])
    return GraphCRF(**parameters), label_field(tag)


def with_field(model: Any, label: str) -> Any:
    """A model that remembers the field of its labels."""
    from dataclasses import replace

    from vcrf.data.layout import conllu_layout
    from vcrf.graphs.trees import LABEL_FIELDS

    return replace(model, facts=model.facts.with_layout(conllu_layout(LABEL_FIELDS[label])))


def tag_trees(model: Path, file: Path, has_marginals: bool, shard: Shard | None = None) -> Iterator[bytes]:
    """A CoNLL-U file, or a part of it, with the labels filled in; with marginals their probabilities in MISC."""
    from vcrf.data.blocks import split_blocks
    from vcrf.data.conllu import word_rows
    from vcrf.data.text import read_text
    from vcrf.graphs.trees import LABEL_FIELDS, trees_of

    tagger, label = load_trees(model)
    text = read_text(file)
    blocks = list(split_blocks(text.content))
    blocks = blocks if shard is None else list(shard.select(blocks))
    trees = trees_of(blocks, text.name, label, is_labelled=False)
    labels = iter(tagger.predict(trees.graphs))
    posteriors = iter(tagger.predict_marginals(trees.graphs)) if has_marginals else None
    for block in blocks:
        lines, rows = list(block.lines), word_rows(block, text.name)
        if rows:
            found = next(labels)
            sure = next(posteriors) if posteriors is not None else None
            for v, (index, row) in enumerate(rows):
                row[LABEL_FIELDS[label]] = str(found[v])
                if sure is not None:
                    note = f"Prob={sure[v][found[v]]:.4f}"
                    row[-1] = note if row[-1] in ("_", "") else f"{row[-1]}|{note}"
                lines[index] = "\t".join(row)
        yield ("\n".join(lines) + "\n\n").encode()


def bound_of_trees(
    model: Path, data: Path, split: str | None, loss: Loss, delta: float, rho: float | None
) -> RiskReport:
    """Bounds on the risk of a model of trees, from the trees of a file."""
    from dataclasses import replace

    from vcrf.errors import InputError
    from vcrf.graphs.trees import read_trees

    tagger, label = load_trees(model)
    trees, known = read_trees(data, label, split), set(tagger.model_.labels)
    for source, labels in zip(trees.sources, trees.labels, strict=True):
        unknown = next((one for one in labels if one not in known), None)
        if unknown is not None:
            raise InputError(
                f"{source}: this sentence has the label {unknown!r}, which the model does not have. A bound is about "
                "the labels it was trained with: pass the data it was trained on."
            )
    report = tagger.bound(trees.graphs, trees.labels, loss, delta, rho)
    return replace(report, n_tokens=sum(map(len, trees.labels)))


def explain_tree(model: Path, file: Path) -> tuple[list[TokenExplanation], list[str]]:
    """Why each word of the first sentence of a file has its label, and its words; a feature stands at its dependent."""
    from vcrf.data.blocks import split_blocks
    from vcrf.data.text import read_text
    from vcrf.errors import InputError
    from vcrf.graphs.trees import trees_of
    from vcrf.labelling.explain import Contribution, TokenExplanation

    tagger, label = load_trees(model)
    text = read_text(file)
    trees = trees_of(split_blocks(text.content), text.name, label, is_labelled=False)
    if not trees.graphs:
        raise InputError(f"{text.name}: no sentences. Expected CoNLL-U. Check that this is the right file.")
    words = trees.words[0]
    found = [
        TokenExplanation(
            words[each.node], each.label, each.probability, each.runner_up, each.runner_up_probability, [],
            each.difference,
            [Contribution(c.family, c.attribute, c.nodes[-1], c.labels, c.value) for c in each.contributions],
        )
        for each in tagger.explain(trees.graphs[0])
    ]  # fmt: skip
    return found, words
