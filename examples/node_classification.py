"""
Nodes of a network
==================

Node classification with networkx: which of three groups each node of a network belongs to.

Nodes know a little by themselves; most friends are of the same group. A fourth of the labels of the training networks
is unknown (None): training ends at a stationary point and claims no gap. The labels found are proven best all the same.
"""

from __future__ import annotations

import sys

import networkx
import numpy as np

from vcrf import GraphCRF
from vcrf.graphs import draw_graph, from_networkx

GROUPS = ("red", "green", "blue")


def draw_network(rng: np.random.Generator, unknown: float) -> networkx.Graph:
    """Three groups of eight: friends within are likely, between them rare."""
    network = networkx.random_partition_graph([8, 8, 8], 0.5, 0.03, seed=int(rng.integers(2**31)))
    for node, data in network.nodes(data=True):
        group = node // 8
        data["vector"] = np.eye(3)[group] + rng.normal(size=3)
        data["truth"] = GROUPS[group]
        data["label"] = None if rng.random() < unknown else GROUPS[group]
    return network


def main(picture: str | None = None) -> None:
    """With friends and without."""
    rng = np.random.default_rng(0)
    networks = [draw_network(rng, 0.25) for _ in range(20)], [draw_network(rng, 0.0) for _ in range(20)]
    for name in ("alone", "with friends"):
        train, test = (
            [network if name != "alone" else networkx.create_empty_copy(network) for network in part]
            for part in networks
        )
        X, y = zip(*(from_networkx(network, features="vector", label="label") for network in train), strict=True)
        crf = GraphCRF(directed=False, base_strength=1e-2, tol=1e-2).fit(X, y)
        X_test, y_test = zip(*(from_networkx(network, "vector", label="truth") for network in test), strict=True)
        proven = sum(one.is_proven for one in crf.certify(X_test))
        print(f"{name}: {crf.score(X_test, y_test):.1%} right, {proven} of 20 networks proven best; {crf.status_.name}")
    if picture:
        draw_graph(X_test[0], marginals=crf.predict_marginals(X_test[:1])[0], path=picture)


if __name__ == "__main__":
    main(*sys.argv[1:2])
