"""The paper's figures: data, errors, numbers of features, errors with noise (its appendix on experiments).

Read them with care: with noise, Chinese and Twitter look like failed runs (over 90 % of the tokens wrong), Dutch has
equal numbers of features and different errors, and a hundred million features say that nothing was exactly zero.
"""

from __future__ import annotations

from typing import NamedTuple


class Spread(NamedTuple):
    """Mean and standard deviation over the runs, in per cent."""

    mean: float
    sd: float


class Row(NamedTuple):
    """Errors of VCRF and L1-CRF; whether the difference is said to be significant at 5 %."""

    vcrf_token: Spread
    vcrf_sentence: Spread
    crf_token: Spread
    crf_sentence: Spread
    is_significant: bool


class DataSize(NamedTuple):
    """Size of a data set."""

    sentences: int
    tokens: int
    unique: int
    labels: int


def _row(*figures: float, bold: bool) -> Row:
    pairs = [Spread(*figures[i : i + 2]) for i in range(0, 8, 2)]
    return Row(pairs[0], pairs[1], pairs[2], pairs[3], bold)


DATA = {
    "Basque": DataSize(8993, 121443, 26679, 16),
    "Chinese": DataSize(28295, 782901, 47570, 37),
    "Dutch": DataSize(13735, 200654, 29123, 16),
    "English": DataSize(16622, 254830, 23016, 17),
    "Finnish": DataSize(13581, 181018, 53104, 12),
    "Finnish-FTB": DataSize(18792, 160127, 46756, 15),
    "Hindi": DataSize(16647, 351704, 19232, 16),
    "Tamil": DataSize(600, 9581, 3583, 14),
    "Turkish": DataSize(5635, 67803, 19125, 32),
    "Twitter": DataSize(929, 12318, 4479, 25),
}

# Token and sentence error of VCRF, then of L1-CRF; each mean and standard deviation.
RESULTS = {
    "Basque": _row(7.26, 0.13, 57.67, 0.82, 7.68, 0.20, 59.78, 1.39, bold=True),
    "Chinese": _row(7.38, 0.15, 67.73, 0.46, 7.67, 0.12, 68.88, 0.49, bold=True),
    "Dutch": _row(5.97, 0.08, 49.27, 0.71, 6.01, 0.92, 49.48, 1.02, bold=False),
    "English": _row(5.51, 0.04, 44.40, 1.30, 5.51, 0.06, 44.32, 1.31, bold=False),
    "Finnish": _row(7.48, 0.05, 55.96, 0.64, 7.86, 0.13, 57.17, 1.36, bold=True),
    "Finnish-FTB": _row(9.79, 0.22, 51.23, 1.21, 10.55, 0.22, 52.98, 0.75, bold=True),
    "Hindi": _row(4.84, 0.10, 51.69, 1.07, 4.93, 0.08, 53.18, 0.75, bold=True),
    "Tamil": _row(19.82, 0.69, 89.83, 2.13, 22.50, 1.57, 92.00, 1.54, bold=True),
    "Turkish": _row(11.28, 0.40, 59.63, 1.55, 11.69, 0.37, 61.15, 1.01, bold=True),
    "Twitter": _row(17.98, 1.25, 75.57, 1.25, 19.81, 1.09, 76.96, 1.37, bold=True),
}

NOISE = {
    "Basque": _row(9.13, 0.18, 67.43, 0.93, 9.42, 0.31, 68.61, 1.08, bold=True),
    "Chinese": _row(96.43, 0.33, 100.00, 0.01, 96.81, 0.43, 100.00, 0.01, bold=True),
    "Dutch": _row(8.16, 0.52, 62.15, 1.77, 8.57, 0.30, 63.55, 0.87, bold=True),
    "English": _row(8.79, 0.23, 61.27, 1.21, 9.20, 0.11, 63.60, 1.18, bold=True),
    "Finnish": _row(9.38, 0.27, 64.96, 0.89, 9.62, 0.18, 65.91, 0.93, bold=True),
    "Finnish-FTB": _row(11.39, 0.29, 72.56, 1.30, 11.76, 0.25, 73.63, 1.19, bold=True),
    "Hindi": _row(6.63, 0.51, 63.84, 2.86, 7.85, 0.33, 71.93, 1.20, bold=True),
    "Tamil": _row(20.77, 0.70, 93.00, 1.35, 21.36, 0.86, 93.50, 1.78, bold=False),
    "Turkish": _row(14.28, 0.46, 69.72, 1.51, 14.31, 0.53, 69.62, 2.04, bold=False),
    "Twitter": _row(90.92, 1.67, 100.00, 0.00, 92.27, 0.71, 100.00, 0.00, bold=False),
}

# Average number of features of VCRF and of L1-CRF.
FEATURES = {
    "Basque": (7028, 94712653),
    "Chinese": (219736, 552918817),
    "Dutch": (2646231, 2646231),
    "English": (4378177, 357011992),
    "Finnish": (32316, 89333413),
    "Finnish-FTB": (53337, 5735210),
    "Hindi": (108800, 448714379),
    "Tamil": (1583, 668545),
    "Turkish": (498796, 3314941),
    "Twitter": (18371, 26660216),
}
