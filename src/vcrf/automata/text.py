"""AT&T text, which OpenFst and others read and write, and Graphviz drawings.

A line is an arc, "from to input output weight", or a final state, "state weight"; fields are separated by tabs, the
weight may be left out (one). The state of the first line is the start.
"""

from __future__ import annotations

from collections.abc import Mapping

from vcrf.automata.automaton import EPSILON, Automaton, Label
from vcrf.automata.semiring import TROPICAL, Semiring, Weight
from vcrf.errors import InputError


def to_att(automaton: Automaton, symbols: Mapping[Label, int] | None = None) -> str:
    """AT&T text; labels as they are, or as numbers of a symbol table (see `symbol_table`)."""
    if automaton.start < 0:
        return ""
    states = [automaton.start, *(s for s in range(automaton.n_states) if s != automaton.start)]
    lines = []
    for state in states:
        for arc in automaton.arcs[state]:
            read, write = (_field(label, symbols) for label in (arc.input, arc.output))
            lines.append(f"{state}\t{arc.to}\t{read}\t{write}\t{_number(arc.weight)}")
        if state in automaton.final:
            lines.append(f"{state}\t{_number(automaton.final[state])}")
        elif not automaton.arcs[state] and state == automaton.start:
            return ""  # nothing leaves the start: the automaton accepts nothing
    return "\n".join(lines) + "\n"


def from_att(text: str, semiring: str | Semiring = TROPICAL, symbols: Mapping[Label, int] | None = None) -> Automaton:
    """Read AT&T text; labels are strings, or looked up in a symbol table when one is given."""
    made = Automaton(semiring)
    names = None if symbols is None else {str(number): label for label, number in symbols.items()}
    for at, line in enumerate(text.splitlines(), start=1):
        fields = line.split()
        if not fields:
            continue
        if len(fields) not in (1, 2, 4, 5):
            raise InputError(f"Line {at}: expected 'from to input output [weight]' or 'state [weight]', got {line!r}.")
        is_arc = len(fields) >= 4
        states = [_state(field, at) for field in (fields[:2] if is_arc else fields[:1])]
        if made.start < 0:
            made._grow(states[0])
            made.start = states[0]
        made._grow(max(states))
        weight = _weight(fields, is_arc, made.semiring, at)
        if is_arc:
            read, write = (_label(field, names, at) for field in fields[2:4])
            made.add_arc(states[0], read, write, weight, states[1])
        else:
            made.set_final(states[0], weight)
    return made


def symbol_table(*automata: Automaton) -> dict[Label, int]:
    """A number for every label, epsilon being 0, as OpenFst wants it."""
    labels = {label for automaton in automata for _, arc in automaton.all_arcs() for label in (arc.input, arc.output)}
    rest = sorted(labels - {EPSILON}, key=lambda label: (str(type(label)), str(label)))
    return {EPSILON: 0} | {label: number for number, label in enumerate(rest, start=1)}


def symbols_to_text(symbols: Mapping[Label, int]) -> str:
    """A symbol table in OpenFst's text form: a label and its number a line."""
    return "".join(f"{_field(label, None)}\t{number}\n" for label, number in symbols.items())


def to_dot(automaton: Automaton, name: str = "automaton") -> str:
    """A drawing in Graphviz's language; render it with the program `dot`."""
    one = automaton.semiring.one
    lines = [f"digraph {_quoted(name)} {{", "  rankdir = LR;", "  node [shape = circle];"]
    for state in range(automaton.n_states):
        label, style = str(state), ""
        if state in automaton.final:
            end = automaton.final[state]
            label, style = (label if end == one else f"{state}/{_short(end)}"), ", shape = doublecircle"
        bold = ", style = bold" if state == automaton.start else ""
        lines.append(f"  {state} [label = {_quoted(label)}{style}{bold}];")
    for state, arc in automaton.all_arcs():
        label = str(arc.input) if arc.input == arc.output else f"{arc.input}:{arc.output}"
        label += "" if arc.weight == one else f"/{_short(arc.weight)}"
        lines.append(f"  {state} -> {arc.to} [label = {_quoted(label)}];")
    return "\n".join([*lines, "}"]) + "\n"


def _field(label: Label, symbols: Mapping[Label, int] | None) -> str:
    if symbols is not None:
        if label not in symbols:
            raise InputError(f"Label {label!r} is not in the symbol table.")
        return str(symbols[label])
    text = str(label)
    if not text or any(char.isspace() for char in text):
        raise InputError(f"AT&T text cannot hold the label {label!r}: it is empty or has white space. Pass symbols.")
    return text


def _label(field: str, names: Mapping[str, Label] | None, at: int) -> Label:
    if names is None:
        return field
    if field not in names:
        raise InputError(f"Line {at}: label {field} is not in the symbol table.")
    return names[field]


def _state(field: str, at: int) -> int:
    if not (field.isascii() and field.isdigit()):
        raise InputError(f"Line {at}: expected the number of a state, got {field!r}.")
    return int(field)


def _weight(fields: list[str], is_arc: bool, semiring: Semiring, at: int) -> Weight:
    if len(fields) != (5 if is_arc else 2):
        return semiring.one
    parts = fields[-1].split(",")
    try:
        return semiring.checked(tuple(map(float, parts)) if len(parts) > 1 else float(parts[0]))
    except ValueError:
        raise InputError(f"Line {at}: expected a weight of the {semiring.name} semiring, got {fields[-1]!r}.") from None


def _number(weight: Weight) -> str:
    if isinstance(weight, tuple):
        return ",".join(map(_number, weight))
    return "Infinity" if weight == float("inf") else repr(weight)


def _short(weight: Weight) -> str:
    return ",".join(f"{part:.4g}" for part in (weight if isinstance(weight, tuple) else (weight,)))


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
