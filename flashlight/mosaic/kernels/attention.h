// Attention as a call of fl::attend_all.
#pragma once

#include "flashlight/mosaic/attention.h"
#include "flashlight/mosaic/kernels/forms.h"

namespace flashlight::mosaic {

struct AttentionData : KernelData {
  explicit AttentionData(Attention attention) : attention(std::move(attention)) {}
  Attention attention;
};

Kernel attention_kernel(Attention attention);

// The data of a kernel that is attention; nullptr for others.
const AttentionData* attention_data(const Kernel& kernel);

}  // namespace flashlight::mosaic
