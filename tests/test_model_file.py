"""The model file: what is saved comes back, whatever else is refused."""

from __future__ import annotations

import vcrf
from vcrf import VCRF
from vcrf.compat import CRF

X = [["the", "cat", "sleeps"], ["a", "dog", "sleeps"]]
Y = [["DET", "NOUN", "VERB"], ["DET", "NOUN", "VERB"]]


def test_a_saved_tagger_predicts_the_same(tmp_path):
    """Also for feature dicts and the stand-in for sklearn-crfsuite."""
    dicts = [[{"w": word} for word in sentence] for sentence in X]
    for data, fresh in ((X, VCRF(base_strength=0.01)), (dicts, VCRF(tags=3)), (dicts, CRF(c1=0.01))):
        fitted = fresh.fit(data, Y)
        path = tmp_path / "model.vcrf"
        fitted.save(path)
        loaded = vcrf.load(path)
        assert type(loaded) is type(fitted)
        assert loaded.predict(data) == fitted.predict(data)
        assert loaded.predict_marginals(data) == fitted.predict_marginals(data)
        assert (loaded.objective_, loaded.gap_, loaded.status_) == (fitted.objective_, fitted.gap_, fitted.status_)
