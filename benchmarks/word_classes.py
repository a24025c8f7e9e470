"""What word classes from raw text bring to a small treebank: token error on other sentences, paired tests.

    python benchmarks/word_classes.py [--sets english ...] [--labelled 1000] [--numbers 64 128 256] [--threads 1]

A thousand sentences of the training split are labelled; the raw text is the whole training split without labels; 1,500
other sentences of it are held out, and with `--apart` they are not in the raw text either. No development or test
sentence is read. p is that of a permutation test over sentences against the default without classes. The treebanks are
read from `../shared/data`.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
import peers

from vcrf import VCRF
from vcrf.classes import learn_classes
from vcrf.metrics import compare, token_error

HELD = 1500


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", default=["english", "finnish-tdt", "basque", "dutch-alpino", "hindi"])
    parser.add_argument("--labelled", type=int, default=1000)
    parser.add_argument("--numbers", type=int, nargs="+", default=[64, 128, 256])
    parser.add_argument("--min-counts", type=int, nargs="+", default=[3])
    parser.add_argument("--apart", action="store_true", help="keep the held-out sentences out of the raw text")
    parser.add_argument("--threads", type=int, help="threads of each training; all cores by default")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| set | raw tokens | classes | least | words | error | less default | interval | p | weights | learning |")
    print("|---" * 11 + "|")
    for name in options.sets:
        X, y = peers.read_treebank(name, "train")
        order = np.random.default_rng(0).permutation(len(X))
        part, rest = sorted(order[: options.labelled].tolist()), sorted(order[options.labelled :][:HELD].tolist())
        train, held = ([X[i] for i in part], [y[i] for i in part]), ([X[i] for i in rest], [y[i] for i in rest])
        held_out = set(rest)
        raw = [sentence for i, sentence in enumerate(X) if i not in held_out] if options.apart else X
        n_tokens = sum(map(len, raw))
        tagger = VCRF(n_jobs=options.threads).fit(*train)
        without = tagger.predict(held[0])
        error = 100 * token_error(held[1], without).rate
        print(f"| {name} | {n_tokens:,} | none | | | {error:.2f} | | | | {tagger.n_active_:,} | |", flush=True)
        for number in options.numbers:
            for min_count in options.min_counts:
                began = time.process_time()
                classes = learn_classes(raw, number, min_count=min_count).classes
                seconds = time.process_time() - began
                tagger = VCRF(word_classes=classes, n_jobs=options.threads).fit(*train)
                c = compare(held[1], tagger.predict(held[0]), without)
                print(
                    f"| {name} | {n_tokens:,} | {number} | {min_count} | {len(classes):,} | {100 * c.error_a:.2f} | "
                    f"{100 * c.difference:+.2f} | {100 * c.low:+.2f} to {100 * c.high:+.2f} | {c.p_value:.3f} | "
                    f"{tagger.n_active_:,} | {seconds:.1f} s |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
