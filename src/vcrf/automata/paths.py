"""Best paths of tropical automata."""

from __future__ import annotations

import heapq
from itertools import count

from vcrf.automata.automaton import Automaton, Path
from vcrf.automata.determinise import determinise
from vcrf.automata.distance import distance_to_end
from vcrf.automata.operations import connect
from vcrf.errors import InputError


def shortest_path(automaton: Automaton) -> Path | None:
    """The cheapest path; None if there is no path."""
    best = n_shortest(automaton, 1)
    return best[0] if best else None


def n_shortest(automaton: Automaton, n: int, unique: bool = False) -> list[Path]:
    """The n cheapest paths, cheapest first; fewer if there are fewer.

    Parameters
    ----------
    automaton : Automaton
        Over the tropical semiring; `convert` others first.
    n : int
    unique : bool
        Different label sequences rather than different paths: the automaton, acyclic and not a transducer, is
        determinised first.
    """
    if not automaton.semiring.is_path:
        raise InputError(
            f"Best paths need the tropical semiring, got {automaton.semiring.name}. Use convert(automaton, TROPICAL)."
        )
    if n < 1:
        raise InputError(f"n must be at least 1, got {n}.")
    kept = connect(determinise(automaton) if unique else automaton)
    if kept.start < 0:
        return []
    to_end = distance_to_end(kept)
    # A* with the exact cost to go: what is taken from the heap never gets dearer. The second entry breaks ties.
    ticket = count()
    heap = [(to_end[kept.start], next(ticket), kept.start, Path((), (), 0.0))]
    found: list[Path] = []
    while heap and len(found) < n:
        _, _, state, path = heapq.heappop(heap)
        if state < 0:
            found.append(path)
            continue
        if state in kept.final:
            whole = path.weight + kept.final[state]
            heapq.heappush(heap, (whole, next(ticket), -1, path._replace(weight=whole)))
        for arc in kept.arcs[state]:
            cost = path.weight + arc.weight
            heapq.heappush(heap, (cost + to_end[arc.to], next(ticket), arc.to, path.followed(arc, cost)))
    return found
