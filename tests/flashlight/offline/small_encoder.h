// An encoder in the manner of BERT, small enough to be evaluated by definition: a capture with
// weights, an example and its results.
#pragma once

#include "composit/io/saved_capture.h"

namespace flashlight::test {

// Inputs: "tokens" int64 [1, 6] below 20, "mask" bool [1, 6]. Results: float32 [1, 6, 8], and one
// number, "loss". Three layers "encoder.layer.N", "decoder.weight" tied to "embeddings.weight".
composit::SavedCapture small_encoder();

}  // namespace flashlight::test
