"""`vcrf show`: what a model has learnt."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from vcrf.cli.options import AsJson, ModelFile
from vcrf.cli.output import print_json, print_table

if TYPE_CHECKING:
    from vcrf.model import Feature, Model


def show(
    model: ModelFile,
    top: Annotated[int, typer.Option(metavar="N", min=0, help="Heaviest features to show of each label.")] = 5,
    label: Annotated[
        list[str] | None, typer.Option(metavar="L", help="Show the features of this label only; may be repeated.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Show a model: its families, how it was trained, and its heaviest features.

    \b
    vcrf show my.vcrf
    vcrf show my.vcrf --label VERB --top 30

    A family's strength is the penalty on each unit of weight; its complexity r_k is part of that (with --complexities
    feature, both are means over the family's attributes). A feature belongs to the label that its tag pattern ends in.
    """
    from vcrf.model.file import load_model, read_facts

    loaded = load_model(model)
    document = read_facts(model)
    labels = _chosen(loaded, label)
    heaviest = {name: loaded.heaviest(name, top) for name in labels}
    if json:
        print_json(_as_json(loaded, document, heaviest))
        return
    _print_facts(loaded, document)
    _print_families(loaded)
    for name, features in heaviest.items():
        rows = [(f.family, f.attribute, " ".join(map(str, f.labels)), f.weight) for f in features]
        if rows:
            print_table(f"label {name}", ["family", "attribute", "tag pattern", "weight"], rows, left=3)


def _chosen(model: Model, asked: list[str] | None) -> list[Any]:
    from vcrf.errors import InputError

    by_text = {str(label): label for label in model.labels}
    unknown = [name for name in asked or [] if name not in by_text]
    if unknown:
        raise InputError(f"--label {unknown[0]}: expected a label of the model, one of {', '.join(by_text)}.")
    return [by_text[name] for name in asked] if asked else list(model.labels)


def _as_json(model: Model, document: dict[str, Any], heaviest: dict[Any, list[Feature]]) -> dict[str, Any]:
    facts = {key: value for key, value in (document.get("facts") or {}).items() if key != "history"}
    return {
        "estimator": document["estimator"],
        "parameters": document["parameters"],
        "in_force": _in_force(document),
        "labels": model.labels,
        "order": model.order,
        "norm": _in_force(document).get("norm", model.norm),
        "n_weights": len(model.weights),
        **({} if model.known is None else {"known_labels": {"least": model.known.least, "words": len(model.known)}}),
        "training": {**facts, **_relative_gap(facts)},
        "calibration": document.get("calibration"),
        "families": [_family_row(model, i) for i in range(len(model.families))],
        "features": {
            str(label): [
                {"family": f.family, "attribute": f.attribute, "labels": f.labels, "weight": f.weight} for f in features
            ]
            for label, features in heaviest.items()
        },
    }


def _in_force(document: dict[str, Any]) -> dict[str, Any]:
    """Values of the parameters that the recipe is about, as the training took them; a loss object as it was given."""
    from vcrf.arguments.recipes import NAMES

    fitted, given = document["fitted"], document["parameters"]
    if "norm_" not in fitted:  # compat.CRF has no recipe, nor has a vote
        return {}
    return {name: fitted.get(f"{name}_", given.get(name)) for name in NAMES}


def _relative_gap(facts: dict[str, Any]) -> dict[str, Any]:
    gap, objective = facts.get("gap"), facts.get("objective")
    is_known = isinstance(gap, float) and isinstance(objective, float) and objective > 0.0
    return {"relative_gap": gap / objective if is_known else None}  # type: ignore[operator]


def _family_row(model: Model, index: int) -> dict[str, Any]:
    family = model.families[index]
    return {
        "name": family.name, "tags": family.tags, "complexity": family.complexity, "strength": family.l1 + family.l2,
        "l1": family.l1, "l2": family.l2, "n_candidates": family.n_candidates, "n_columns": family.n_columns,
        "n_active": family.n_active, "l1_mass": family.l1_mass,
    }  # fmt: skip


def _print_facts(model: Model, document: dict[str, Any]) -> None:
    facts = document.get("facts") or {}
    rows: list[tuple[str, object]] = [
        ("estimator", document["estimator"]),
        ("labels", f"{model.n_labels}: {' '.join(map(str, model.labels))}"),
        ("longest tag pattern", str(model.order)),
        ("norm", str(_in_force(document).get("norm", model.norm))),
        ("weights", f"{len(model.weights):,} of single attributes"),
    ]
    if model.known is not None:
        rows.append(("known labels", model.known.told))
    shown = ("n_sentences", "n_tokens", "n_candidates", "n_columns", "objective", "gap")
    rows += [(key, _number(facts[key])) for key in shown if key in facts]
    if "n_active" in facts:
        rows.append(("n_active", f"{facts['n_active']:,} (attributes that occur at the same tokens count as one)"))
    rows += [("relative gap", _number(_relative_gap(facts)["relative_gap"])), ("status", _status(facts))]
    rows += [(key, _number(facts[key])) for key in ("n_passes", "seconds") if key in facts]
    if model.calibration is not None:
        found = model.calibration
        told = f"with {found.n_sentences:,} sentences, at temperature {found.calibration_temperature:.4g}"
        rows.append(("calibrated", told))
    in_force = _in_force(document)
    given = {key: value for key, value in document["parameters"].items() if value is not None and key not in in_force}
    rows += [(key, str(value)) for key, value in (given | in_force).items() if key != "norm"]
    print_table("model", ["", ""], rows, left=2)


def _number(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.6g}" if isinstance(value, float) else str(value)


def _status(facts: dict[str, Any]) -> str:
    from vcrf.solvers.result import Status

    return Status[facts["status"]].value if "status" in facts else "unknown"


def _print_families(model: Model) -> None:
    rows = []
    for i in range(len(model.families)):
        row = _family_row(model, i)
        names = ("name", "tags", "complexity", "strength", "n_candidates", "n_columns", "n_active", "l1_mass")
        rows.append([row[name] for name in names])
    columns = ["family", "tags", "complexity", "strength", "candidates", "columns", "active", "L1 mass"]
    print_table("families", columns, rows)
