// Zeros around a value whose layout has some: before the first kernel that writes it.
#pragma once

#include "flashlight/mosaic/kernels/forms.h"

namespace flashlight::mosaic {

struct Border : KernelData {
  explicit Border(ValueId value) : value(value) {}
  ValueId value;
};

Kernel border_kernel(ValueId value);

}  // namespace flashlight::mosaic
