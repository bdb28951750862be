// Makes a diagram shorter without making it say something else. To be applied in this order.
#pragma once

#include <cstddef>

#include "composit/io/drawing/diagram.h"

namespace composit::drawing {

// Boxes that only hold boxes, and whose nodes run alternately with others' (`resnets` and
// `attentions` of a UNet's block), give way to what they hold: `resnets.0`, `attentions.0`,
// `resnets.1`, ...
void dissolve_interleaved(Diagram& diagram);

// Sibling boxes with consecutive numbers, `layer.0` to `layer.11`, that are equal and feed each
// other become one box with `repeats` 12. Equal: the same operations, attributes, types, parameters
// and inner edges in the same order; the last may end with a few more, which are drawn after it.
void fold_repeats(Diagram& diagram);

// A box that holds one item becomes the item's caption; one that holds one box is merged with it.
void simplify(Diagram& diagram);

// Divides what a box holds directly, when it is more than `limit`, into boxes "part 1 of 3", ...
void split(Diagram& diagram, size_t limit);

}  // namespace composit::drawing
