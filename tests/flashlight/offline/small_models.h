// Models in miniature with what large ones are made of, as captures with an example.
#pragma once

#include "composit/io/saved_capture.h"

namespace flashlight::test {

// A stem with a pool, residual blocks with batch norms, one of which halves the image, a
// classifier.
composit::SavedCapture small_resnet();
// As Stable Diffusion's: group norms, attention over pixels, down, up and what is kept between.
composit::SavedCapture small_unet();
// The loss of a convolution, a norm and a linear layer, its derivatives, and what becomes of the
// parameters.
composit::SavedCapture small_training_step();

}  // namespace flashlight::test
