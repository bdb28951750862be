"""Writes digits.safetensors from the copy of the data set that scikit-learn carries.

    make_digits.py OUT          # needs scikit-learn, numpy, safetensors

1,797 handwritten digits of 43 people, 8x8 pixels from 0 to 16 ("images", uint8 [1797, 8, 8]), and
which digit each is ("labels", uint8 [1797]), in the data set's order.

Source: E. Alpaydin and C. Kaynak, Optical Recognition of Handwritten Digits, UCI Machine Learning
Repository, 1998, https://doi.org/10.24432/C50P49, licensed under CC BY 4.0; of it, the test set.
"""

import sys

import numpy as np
from safetensors.numpy import save_file
from sklearn.datasets import load_digits

digits = load_digits()
save_file(
    {"images": digits.images.astype(np.uint8), "labels": digits.target.astype(np.uint8)},
    sys.argv[1],
    {"source": "https://doi.org/10.24432/C50P49", "license": "CC BY 4.0"},
)
