// Writes much memory in pieces, so that work of seconds shows how far it is.
//
//   OutputFile file("weights");
//   Progress progress("writing weights", bytes);
//   in_chunks(weight.data(), bytes, progress,
//             [&](const void* piece, size_t size) { file.write(piece, size); });
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "composit/io/log.h"

namespace composit::io {

template <class Write>
void in_chunks(const std::byte* data, uint64_t size, Progress& progress, const Write& write) {
  constexpr uint64_t kChunk = 1 << 24;
  for (uint64_t begin = 0; begin < size; begin += kChunk) {
    const uint64_t chunk = std::min(kChunk, size - begin);
    write(data + begin, chunk);
    progress.advance(chunk);
  }
}

}  // namespace composit::io
