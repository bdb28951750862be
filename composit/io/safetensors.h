// Arrays by name in one file, in the public safetensors format
// (https://huggingface.co/docs/safetensors).
//
//   write_safetensors({.tensors = {{"fc.weight", weight}}}, "weights.safetensors");
//   Safetensors again = read_safetensors("weights.safetensors");   // in the mapped file, no copy
//
// The format leaves some points open. This is our choice:
//   * Arrays of 64 bytes and more begin at a multiple of 64, smaller ones at the largest power of
//     two that divides their size. The format forbids gaps: the header is padded with spaces, and
//     arrays are ordered by alignment. Where one of odd size still stands before a large one, a
//     tensor "__padding__.N" fills the gap; reading drops it.
//   * Elements are stored in row-major order whatever the strides; what is read is contiguous.
//   * A dtype without a name in the format (complex128, qint8, ...) is stored as bytes, U8 with one
//     more axis; its name stands in the metadata as "composit.dtype:NAME OF THE ARRAY". Reading
//     restores it.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "composit/ir/array.h"

namespace composit {

// The content of a file.
struct Safetensors {
  std::map<std::string, Array> tensors;  // by name
  std::map<std::string, std::string> metadata =
      {};  // text by key, as it stands in the file's header
};

// Replaces `file` when all is written. Needs no memory beside the arrays, but for those with other
// than row-major strides, which are copied one at a time. UserError when writing fails, a name is
// reserved or not UTF-8, or an array is lazily conjugated or negated.
void write_safetensors(const Safetensors& contents, const std::filesystem::path& file);

// Maps `file`; the arrays keep the mapping alive, and one that nobody holds any more leaves memory.
// Writing to their memory is allowed and stays within this process. UserError with the file and the
// position in it for a file that is not a valid file, or not one we can represent.
Safetensors read_safetensors(const std::filesystem::path& file);

}  // namespace composit
