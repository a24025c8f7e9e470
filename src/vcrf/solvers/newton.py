"""placeholder"""
from vcrf.surrogates.crf import CrfSurrogate
class NewtonStep:
    def __init__(self, surrogate: CrfSurrogate) -> None:
        self.surrogate = surrogate
