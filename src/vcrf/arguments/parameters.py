"""The parameters, each described once: for estimators, their docstrings, the command line and messages.

A message writes a parameter as code, "`tags` must be ..." or "use norm='l1'". So it stands in Python, and the command
line puts the option in its place (`vcrf.cli.errors.in_options`).
"""

from __future__ import annotations

from dataclasses import dataclass

from vcrf.arguments.kinds import Choice, Flag, Integer, Kind, Names, Number, Other
from vcrf.arguments.recipes import CRF, NAMES
from vcrf.errors import InputError

# Presets have a family for each word and each length: beyond this only their number grows.
_MAX_LIMIT = 100
_FROM_0 = Integer(f"an integer from 0 to {_MAX_LIMIT}", 0, _MAX_LIMIT)
_FROM_1 = Integer(f"an integer from 1 to {_MAX_LIMIT}", 1, _MAX_LIMIT)
_STRENGTH = Number("a finite number that is not negative", least=0.0)
_POSITIVE = Number("a positive number", least=0.0, is_open=True)
_SHARE = Number(
    "a number between 0 and 1, both excluded (at 0 the elastic norm would be `norm='l2'`, at 1 `norm='l1'`)",
    least=0.0, most=1.0, is_open=True,
)  # fmt: skip
# "estimate" is another name of "rademacher".
COMPLEXITIES = ("paper", "general", "massart", "rademacher", "estimate", "feature")
# Those with -max have the largest term in place of the sum: the paper's first forms.
SURROGATES = (
    "crf", "structboost", "exponential", "m3n", "structsvm", "crf-max", "structboost-max", "exponential-max",
)  # fmt: skip
COUNT = Integer("a positive integer", 1)
_AT_LEAST_2 = Integer("an integer of at least 2", 2)


@dataclass(frozen=True)
class Parameter:
    """One parameter.

    Attributes
    ----------
    default : None leaves it to the recipe, if that has a value for it
    help : a sentence or two, for the command line and the docstring
    more : the rest of the docstring
    flag : the option; "" if there is none
    metavar : how the option's value is called
    """

    name: str
    default: object
    kind: Kind
    help: str
    more: str = ""
    flag: str = ""
    metavar: str | None = None

    @property
    def option(self) -> str:
        """The option as messages name it."""
        return self.flag.partition("/")[0]

    @property
    def in_recipes(self) -> list[str]:
        """What the recipes of `VCRF` have for it: accurate and paper, once if that is the same; nothing if none."""
        values = [recipe.value(self.name, 1) for recipe in CRF.values()] if self.name in NAMES else []
        return list(dict.fromkeys(_shown(self.name, value) for value in values))


def _shown(name: str, value: object) -> str:
    if isinstance(value, float):
        return f"{value:.3g}" + (" / sentences" if name == "base_strength" else "")
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None else str(value)


def check(name: str, value: object) -> None:
    """Raise InputError unless a parameter may have the value."""
    parameter = PARAMETERS[name]
    if value is not None or parameter.default is not None:
        check_kind(name, parameter.kind, value)


def check_kind(name: str, kind: Kind, value: object) -> None:
    """Raise InputError unless the value is of the kind."""
    if not kind.accepts(value):
        raise InputError(f"`{name}` must be {kind.expected}, got {value!r}.")


# What a model file holds.
_MOST_OCCURRENCES = 2**63 - 1

# In the order of the signature of `VCRF`.
ESTIMATOR = (
    Parameter(
        "recipe", "accurate", Choice(tuple(CRF)),
        "Values of the parameters that are left open: what labels best in cross-validation, or the paper's.",
        "A parameter that is given changes its own value and nothing else.",
        flag="--recipe",
    ),
    Parameter(
        "families", "default", Choice(("default", "paper"), "a list of Family objects"),
        "Which features there are.",
        '"default" is a set for tagging; "paper" is H(k1, k2, k3), k1 <= words, 1 <= k2 <= tags, k3 <= affix. For '
        'feature dicts, attribute lists or arrays "default" is one family a feature name and tag patterns.',
        flag="--families",
    ),
    Parameter(
        "words", None, _FROM_0, "How far neighbouring words are read.", flag="--words", metavar="N"
    ),
    Parameter("tags", None, _FROM_1, "Longest tag pattern.", flag="--tags", metavar="N"),
    Parameter("affix", None, _FROM_0, "Longest prefix and suffix.", flag="--affix", metavar="N"),
    Parameter(
        "complexity_strength", None, _STRENGTH,
        "Penalty on a family's complexity.",
        "The paper's lambda. At 0 every family is penalised alike.",
        flag="--complexity-strength", metavar="X",
    ),
    Parameter(
        "base_strength", None, _STRENGTH,
        "Penalty on every family.",
        "The paper's beta.",
        flag="--base-strength", metavar="X",
    ),
    Parameter(
        "norm", None, Choice(("l1", "l2", "elastic", "lp", "group", "family")),
        "Norm of the penalty.",
        "With c_k the strength of a family: c_k |w|, c_k w^2 / 2, c_k (l1_ratio |w| + (1 - l1_ratio) w^2 / 2) or c_k "
        '|w|^p / p of each weight; "group" is c_k times the Euclidean norm of the weights of each attribute of the '
        'family, which come in together or not at all; "family" is c_k ||w_k||_p, of all weights of the family.',
        flag="--norm",
    ),
    Parameter(
        "norms", None, Other("mapping", "a mapping from family name to 'l1', 'l2', 'elastic' or 'lp'"),
        "Norms of single families, like word=l2; the others have that of the penalty.",
        "For crf, structboost and exponential, with a norm of single weights (l1, l2, elastic or lp).",
        flag="--norm-of", metavar="FAMILY=NORM",
    ),
    Parameter(
        "power", None, Number("a number above 1 and at most 2", least=1.0, most=2.0),
        "The p of lp, below 2, and of family. Default: 1.5 and 2.",
        flag="--power", metavar="X",
    ),
    Parameter(
        "l1_ratio", None, _SHARE, "Share of L1 in elastic.", flag="--l1-ratio", metavar="X"
    ),
    Parameter(
        "count_power", None, Number("a finite number"),
        "The quadratic part grows with the attribute's count to this power.",
        "It is multiplied by n ** count_power, n the number of tokens that have the attribute: weights of frequent "
        "attributes pay more. At 0 it is the formula above.",
        flag="--count-power", metavar="X",
    ),
    Parameter(
        "factors", None, Flag(),
        "Whether families that are many and rare pay more.",
        "`base_strength` is then multiplied by `Family.factor`: of the default families, 2 for pairs of words, 1.5 for "
        "words of neighbours and 1 for the others.",
        flag="--factors/--no-factors",
    ),
    Parameter(
        "loss", "auto", Other('"auto", None, str or vcrf.losses.Loss'),
        "Task loss inside the surrogate: none, hamming, edit, ngram; with other surrogates than crf hamming unless "
        "given.",
        'A name ("hamming" is the share of wrong labels in the sentence; see docs/losses.md) or a loss object. None is '
        '0. "auto" is that of the recipe; "hamming:normalised=False,cost=3" is three times the number of wrong '
        "labels.",
        flag="--loss", metavar="NAME",
    ),
    Parameter(
        "temperature", None, _POSITIVE,
        "The weights of the model are divided by it after training.",
        "The best labels stay the same; probabilities become less sure, as they have to after training with the loss "
        "of the accurate recipe. Without a loss set it to 1.",
    ),
    Parameter(
        "candidates", "all", Choice(("all", "observed")),
        "Which pairs of attribute and tag pattern may have a weight: all, or those seen in training.",
    ),
    Parameter(
        "complexities", "paper", Choice(COMPLEXITIES, "a mapping from family name to number"),
        "What a family's complexity is: the paper's formula, its general form, a bound, an estimate; feature: one for "
        "each feature.",
        'The r_k; "paper" is sqrt(2 log|H_k| / m), "massart" Theorem 2\'s upper bound, "rademacher" (or "estimate") '
        "the Monte-Carlo estimate, both of the unit ball of `norm` (elastic: l1); see "
        "`vcrf.complexity.family_complexities`. "
        'With "feature" every feature has an r_j of its own, which grows with the square root of how often its '
        "attribute occurs; see `vcrf.complexity.feature_complexities`. Without a `complexity_strength` they change "
        "nothing, and `fit` warns.",
        flag="--complexities",
    ),
    Parameter(
        "tol", None, _POSITIVE,
        "Certified relative gap to reach: 1e-2 with m3n and structsvm unless given.",
        "Training stops when the duality gap is at most tol times the objective. The accurate recipe aims at a third "
        "of it (unless it is below 1e-4): it takes a tenth more passes, and the labels are then those of the optimum.",
        flag="--tol", metavar="X",
    ),
    Parameter(
        "max_passes", None, COUNT, "Limit on passes over the data.", flag="--max-passes", metavar="N"
    ),
    Parameter(
        "n_jobs", None, Other("int"),
        "Threads: all cores available unless given. The model is the same.",
        flag="--threads", metavar="N",
    ),
    Parameter(
        "patience", None, Integer("a positive number of rounds", 1),
        "Stop after so many rounds without a better development error; keep the best. Without development data a tenth "
        "of the sentences is held out.",
        "The error is the token error on the set given to `fit`; the sentences are drawn by `random_state`. None "
        "trains to the optimum.",
        flag="--patience", metavar="N",
    ),
    Parameter("verbose", False, Other("bool"), "Write progress to stderr."),
    Parameter(
        "callback", None, Other("callable"),
        "Called with an `IterationRecord` after each round; returning True stops the training.",
    ),
    Parameter(
        "random_state", None, Other("int, numpy Generator or RandomState"),
        "Seed for what is drawn at random.",
        "That is `sample`, and the sentences that `patience` holds out; training draws nothing else.",
        flag="--seed", metavar="N",
    ),
    Parameter(
        "constraints", None, Other("str, list of pairs or Constraints"),
        "Only label sequences that are valid spans: BIO, BILOU and the like.",
        "Used at every prediction, not in training. Or a list of forbidden pairs (label, next label), or "
        "`vcrf.decoding.Constraints`. Methods that predict can override it.",
        flag="--constraints", metavar="SCHEME",
    ),
    Parameter(
        "inference", "auto", Choice(("auto", "dense", "patterns")),
        "Sum over all tag histories, or over the patterns in use. By default the cheaper. Same result.",
        'How training sums over label sequences: "dense" over all histories of tags - 1 labels, "patterns" on the '
        "automaton of the tag patterns in use.",
        flag="--inference",
    ),
    Parameter(
        "dual_start", True, Flag(),
        "Whether training begins by visiting the sentences one by one, where the norm has an l2 part. Same result.",
        "Dual ascent: it takes about two fifths of the time of steps from zero to the same certificate. Not with "
        "labels left open, nor with another loss than a cost for each wrong label.",
        flag="--dual-start/--no-dual-start",
    ),
    Parameter(
        "word_classes", None, Other("path, mapping or WordClasses"),
        "Word classes: word TAB class lines, of `vcrf classes` or a lexicon.",
        "The path of such a file, or a mapping from words to names (`vcrf.classes.learn_classes`). Families that read "
        "the class of the word and of its neighbours are added. The model keeps the table.",
        flag="--word-classes", metavar="FILE",
    ),
    Parameter(
        "components", None, Other(*["'all', 'positions', or names of components like 'UPOS,Case'"] * 2),
        "Features of parts of labels too: all of bundles, names like UPOS,Case, or positions of tags like NNN-3SN--.",
        "Each family of single labels gets a second one, with a complexity of its own, on the components NAME=VALUE of "
        "labels like UPOS=NOUN|Case=Nom: rare labels share what is known of their parts. Of positional tags the "
        "components are their characters. None: whole labels alone.",
        flag="--components", metavar="all|NAMES",
    ),
    Parameter(
        "component_pairs", None, Other(*["'all', or names of components like 'UPOS,Case'"] * 2),
        "Pairs of values of a component at neighbouring words, like UPOS,Case: Case=Nom before Case=Nom.",
        "Each component gets a family of its own, with a complexity of its own: tag patterns of two of its values, "
        "beside those of whole labels, which must not be longer than two. Of many labels a pass costs the labels and "
        "the pairs of classes that these values tell apart. None: pairs of whole labels alone.",
        flag="--component-pairs", metavar="all|NAMES",
    ),
    Parameter(
        "known_labels", None, Integer(f"an integer from 1 to {_MOST_OCCURRENCES:,}", 1, _MOST_OCCURRENCES),
        "A word seen at least N times in training takes only labels it was seen with. Off unless given.",
        "A hard restriction, in training as in prediction: all other labels of such a word have probability 0, and "
        "passes do not look at them. Rarer words may have every label. What it excludes wrongly no weight brings back: "
        "`vcrf eval` counts it. None: no restriction.",
        flag="--known-labels", metavar="N",
    ),
    Parameter(
        "memory", None, Other('size such as "2GB", or None'),
        "Arrays that grow with the data are in files, and about so much of them is in memory. Same result.",
        'A size: "2GB", "500MB", "1.5GiB" or a number of bytes; the program itself takes about 300 MB of it. The files '
        "are in the directory for temporary files (TMPDIR), have no names and go with the training. `path` takes no "
        "notice of it.",
        flag="--memory", metavar="SIZE",
    ),
    Parameter(
        "solver", "certified", Choice(("certified", "sgd", "gd")),
        "certified: to a proven gap. sgd, gd: the paper's own steps, for study, with the gap where they end.",
        "`sgd` takes a step for each sentence in random order (seeded by `random_state`), `gd` one a pass, 50 passes "
        "unless `max_passes` is given; see docs/claim.md. They are for crf without a loss or with the Hamming loss, L1 "
        "and tag patterns of up to 2 labels.",
        flag="--solver",
    ),
    Parameter(
        "rule", "fobos", Choice(("fobos", "cumulative", "subgradient")),
        "How sgd and gd take the penalty: soft thresholds, Tsuruoka's cumulative penalty, or its subgradient.",
        flag="--rule",
    ),
    Parameter("eta", 0.01, _POSITIVE, "Length of the steps of sgd and gd.", flag="--eta", metavar="X"),
    Parameter(
        "eta_decay", 0.0, _STRENGTH,
        "Pass p = 0, 1, ... of sgd and gd has steps of eta / (1 + decay p).",
        flag="--eta-decay", metavar="X",
    ),
    Parameter(
        "kappa", "1", Choice(("1/m", "1", "m")),
        "Share of the penalty in a step of sgd and gd: 1 is that of the objective, m what the paper's appendix says "
        "word for word (m sentences).",
        flag="--kappa",
    ),
    Parameter(
        "radius", None, _POSITIVE,
        "The constrained form: minimise the surrogate alone where the penalty is at most this.",
        "The paper's Lambda, over the balls of voted risk minimisation: with complexity_strength=1 and "
        "base_strength=0 the constraint is sum_k r_k ||w_k||_1 <= radius. The gap is that of the constrained problem. "
        "For crf, structboost and exponential, with a norm of single weights.",
        flag="--radius", metavar="X",
    ),
    Parameter(
        "logarithm", True, Flag(),
        "With structboost and exponential: whether the logarithm of 1 + the paper's objective is minimised, or that "
        "itself.",
        "Both have the same path of solutions: strength c of the logarithm is c (1 + F) of F, at its minimum. F is as "
        "large as there are label sequences, and overflows with long sentences.",
        flag="--logarithm/--no-logarithm",
    ),
)  # fmt: skip

# Of functions: readers, `tune`, `learn_classes`, bounds.
FUNCTIONS = (
    Parameter("split", None, Other("str"), "Only the sentences with a comment `# split = NAME`.",
              flag="--split", metavar="NAME"),
    Parameter("dev_split", None, Other("str"), "Split of the development data; without --dev, of DATA itself.",
              flag="--dev-split", metavar="NAME"),
    Parameter("tag", None, Other("str or int"),
              "Column of the labels; upos+feats: a bundle.",
              flag="--tag", metavar="upos|xpos|A+B|N"),
    Parameter("form", None, Other("int"), "Column of the tokens: by default 1 in CoNLL-U, 0 in a column file.",
              flag="--form", metavar="N"),
    Parameter("format", "auto", Choice(("auto", "conllu", "columns", "annotations")),
              "Format of the data; auto looks at the name and the first line.", flag="--input-format"),
    Parameter("structure", "chain", Choice(("chain", "tree")),
              "What labels depend on: the neighbours in the sentence, or the head in CoNLL-U's HEAD (--tag deprel).",
              flag="--structure"),
    Parameter("surrogate", "crf", Choice(SURROGATES),
              "Convex bound on the loss.", flag="--surrogate"),
    Parameter("tune", False, Flag(), "Choose the strengths that are not given, on --dev or by cross-validation.",
              flag="--tune"),
    Parameter("folds", None, _AT_LEAST_2, "Folds of --tune without development data. Default: 5.",
              flag="--folds", metavar="K"),
    Parameter("number", 128, _AT_LEAST_2, "Number of classes.", flag="--number", metavar="N"),
    Parameter("min_count", 3, COUNT, "Rarer words get no class.", flag="--min-count", metavar="N"),
    Parameter("rho", None, Other("float"), "Margin; by default the best for each bound.", flag="--rho", metavar="X"),
    Parameter("delta", 0.05, Other("float"), "Each bound may fail with this probability.", flag="--delta", metavar="X"),
    Parameter("jobs", 1, COUNT, "Processes; same text.", flag="--jobs", metavar="N"),
    Parameter("shard", None, Other("str"),
              "Label the I-th of N parts of the file; all parts, one after the other, are the whole.",
              flag="--shard", metavar="I/N"),
    Parameter("start", None, Other("fitted tagger"),
              "Begin with the weights of this model: the same optimum, in fewer passes if little is new.",
              flag="--start", metavar="MODEL"),
    Parameter("allow_seen", False, Flag(),
              "Take sentences that the model has seen in training: new text repeats them as often.",
              flag="--allow-seen"),
    Parameter("max_error", 0.01, Other("float"),
              "Mark what a person has to check, so that at most this share of the rest is wrong: 1% or 0.01.",
              flag="--max-error", metavar="SHARE"),
    Parameter("confidence", 0.95, Other("float"), "How sure the promise has to be: 95% or 0.95.",
              flag="--confidence", metavar="SHARE"),
    Parameter("unit", "token", Choice(("token", "sentence", "span")),
              "What is accepted or not, and what sets are about.", flag="--unit"),
    Parameter("average", "sentences", Choice(("sentences", "pooled")),
              "Promise a mean over sentences, or a share of all units together, which needs more sentences.",
              flag="--average"),
    Parameter("longest", None, COUNT,
              "With --average pooled: sentences with more units are never accepted; fix it beforehand. Default: twice "
              "the mean length in training.", flag="--longest", metavar="N"),
    Parameter("miss", 0.05, Other("float"),
              "Write sets of labels that miss the true one with this probability: Labels=NOUN,PROPN in MISC.",
              flag="--label-sets", metavar="SHARE"),
    Parameter("by", "least-confidence", Choice(("least-confidence", "margin", "entropy", "span")),
              "What makes a sentence useful: improbable best labels, second best ones that are close, entropy, or "
              "(BIO, BILOU) doubts about spans.", flag="--by"),
    Parameter("per", "sentence", Choice(("sentence", "token")), "Usefulness of the whole sentence, or a token of it.",
              flag="--per"),
    Parameter("diversity", 0.0, Number("a number from 0 to 1", 0.0, 1.0),
              "How much words chosen before count against a sentence.", flag="--diversity", metavar="X"),
    Parameter("noise", 0.2, Number("a number from 0 to 1", 0.0, 1.0), "Share of flipped labels.",
              flag="--noise", metavar="X"),
)  # fmt: skip

# Of estimators of graphs.
GRAPHS = (
    Parameter(
        "directed", True, Names("bool or names of edge types", "True, False or a list of names of edge types"),
        "Whether the order of an edge's two nodes matters; or the names of the edge types where it does.",
        "Where it does not, both orders of two labels have one weight.",
    ),
    Parameter(
        "scale", True, Flag(),
        "Whether columns of arrays are brought to mean 0 and standard deviation 1.",
        "Columns of 0 and 1 stay as they are, and sparse ones are not shifted.",
    ),
    Parameter(
        "max_table", 200_000, COUNT,
        "Entries of the largest table of exact sums.",
        "Graphs that need larger ones are relaxed: their sums are bounded from above by those of blocks, and the "
        "certificate is of that problem.",
    ),
    Parameter(
        "block_width", 2, COUNT,
        "Rows and columns of the strips that a grid is cut into where it is relaxed.",
        "Wider ones are tighter and slower. Other graphs are cut into forests.",
    ),
)  # fmt: skip
# Of the estimator of several labels.
LABELS = (
    Parameter(
        "edges", "full", Other('"full", "tree", "none" or pairs of labels'),
        "Which labels depend on each other: all pairs, those of a tree, none, or given ones.",
        "The tree is that of the largest mutual information in the training data (Chow and Liu). Sums over all pairs "
        "are exact up to 17 labels with the default `max_table`.",
    ),
    Parameter(
        "decode", "map", Choice(("map", "marginals")),
        "Which labels are predicted: the likeliest together, or each that is likelier than not.",
        "The first makes the most rows right as a whole, the second the most single labels.",
    ),
)  # fmt: skip
# In the order of the signature of `GraphCRF`.
GRAPH_ESTIMATOR = (
    "surrogate", "loss", "norm", "l1_ratio", "base_strength", "complexity_strength", "complexities", "directed",
    "scale", "max_table", "block_width", "tol", "max_passes", "n_jobs", "verbose", "callback", "random_state",
)  # fmt: skip

# In the order of the signature of `MultiLabelCRF`.
MULTILABEL_ESTIMATOR = (
    "edges", "decode", "scale", "surrogate", "loss", "norm", "l1_ratio", "base_strength", "complexity_strength",
    "complexities", "max_table", "tol", "max_passes", "n_jobs", "verbose", "callback", "random_state",
)  # fmt: skip

PARAMETERS = {parameter.name: parameter for parameter in (*ESTIMATOR, *FUNCTIONS, *GRAPHS, *LABELS)}
