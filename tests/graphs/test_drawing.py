"""Pictures of labelled graphs: what is drawn, files, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from vcrf import Graph, GraphCRF
from vcrf.errors import InputError
from vcrf.graphs import draw_graph, draw_grid, draw_tables, draw_training, from_grid

pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def fitted() -> GraphCRF:
    """Grids of one colour with noise."""
    rng = np.random.default_rng(0)
    labels = [np.repeat(rng.integers(0, 2), 6) for _ in range(12)]
    graphs = [from_grid((y + 0.5 * rng.normal(size=6)).reshape(2, 3)) for y in labels]
    return GraphCRF().fit(graphs, [["sea" if value else "land" for value in y] for y in labels])


def texts_of(axes) -> list[str]:
    """What is written at the nodes."""
    return [text.get_text() for text in axes.texts]


def test_graphs_with_labels_and_marginals(tmp_path: Path) -> None:
    """Labels are written; the likeliest are drawn where only marginals are given, paler where less likely."""
    graph = Graph(3, [(0, 1), (1, 2)], edge_type=["next", "same"])
    assert texts_of(draw_graph(graph, ["A", None, 7])) == ["A", "", "7"]
    marginals = [{"A": 0.9, "B": 0.1}, {"A": 0.4, "B": 0.6}, {"A": 1.0}]
    axes = draw_graph(graph, marginals=marginals, path=tmp_path / "graph.png")
    assert texts_of(axes) == ["A", "B", "A"]
    assert (tmp_path / "graph.png").stat().st_size > 0
    alphas = [points.get_alpha() for points in axes.collections if points.get_alpha() is not None]
    assert alphas[1] < alphas[0] < alphas[2]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["next", "same"]
    with pytest.raises(InputError, match="`labels` has 2 entries for 3 nodes"):
        draw_graph(graph, ["A", "B"])
    with pytest.raises(InputError, match="`marginals` has 1 entries for 3 nodes"):
        draw_graph(graph, ["A", "B", "A"], [{"A": 1.0}])


def test_grids_of_labels_and_numbers(fitted: GraphCRF, tmp_path: Path) -> None:
    """Labels have a legend, numbers and marginals a heat map."""
    axes = draw_grid((2, 2), ["b", "a", "b", "b"], tmp_path / "grid.svg")
    assert axes.images[0].get_array().tolist() == [[1, 0], [1, 1]]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["a", "b"]
    assert (tmp_path / "grid.svg").stat().st_size > 0
    assert draw_grid((1, 3), np.array([0.1, 0.5, 0.9])).images[0].get_array().tolist() == [[0.1, 0.5, 0.9]]
    (marginals,) = fitted.predict_marginals([from_grid(np.zeros((2, 3)))])
    shown = draw_grid((2, 3), marginals).images[0].get_array()
    np.testing.assert_allclose(np.ravel(shown), [max(node.values()) for node in marginals])
    with pytest.raises(InputError, match="3 values for 2 x 2 cells"):
        draw_grid((2, 2), [1, 2, 3])


def test_tables_are_those_of_the_model(fitted: GraphCRF, tmp_path: Path) -> None:
    """One picture a type of edges, with the labels."""
    every = draw_tables(fitted, tmp_path / "tables.pdf")
    assert [axes.get_title() for axes in every] == ["right", "down"]
    for axes in every:
        np.testing.assert_array_equal(axes.images[0].get_array(), fitted.model_.table(f"{axes.get_title()} bias"))
        assert [tick.get_text() for tick in axes.get_yticklabels()] == ["land", "sea"]
    assert (tmp_path / "tables.pdf").stat().st_size > 0
    alone = GraphCRF().fit([Graph([{"w": "a"}]), Graph([{"w": "b"}])], [["A"], ["B"]])
    with pytest.raises(InputError, match="no edges"):
        draw_tables(alone)


def test_training_is_between_its_bounds(fitted: GraphCRF, tmp_path: Path) -> None:
    """The objective ends above the best bound, by the gap at most."""
    axes = draw_training(fitted.history_, tmp_path / "training.png")
    values, bounds = (line.get_ydata() for line in axes.lines)
    assert values[-1] == pytest.approx(fitted.objective_)
    assert 0.0 <= values[-1] - bounds[-1] <= fitted.gap_ + 1e-12
    assert np.all(np.diff(bounds) >= 0.0)
    with pytest.raises(InputError, match="history is empty"):
        draw_training([])


def test_given_axes_are_used_and_nothing_is_written(tmp_path: Path) -> None:
    """As `draw` does."""
    from vcrf.plots import new_figure

    axes = new_figure(3, 3).subplots()
    assert draw_grid((1, 2), [0, 1], tmp_path / "no.png", axes) is axes
    assert not (tmp_path / "no.png").exists()
