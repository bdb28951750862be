// Weights in GGUF files, those of llama.cpp: mapped, and computed with as they lie.
//
//   const Gguf file = read_gguf("model.gguf");
//   const GgufTensor& weight = file.tensors.at("blk.0.attn_q.weight");   // weight.format == "q4_K"
//   LazyTensor w = numbers_of("q.weight", weight);                       // float32 [out, in]
//
// Numbers of one dtype are arrays of it. Blocks of numbers of few bits are bytes, uint8 with a row
// of blocks along the last axis, which `gguf::dequantize_q4_K` and its like make float32 of. The
// format is https://github.com/ggml-org/ggml/blob/master/docs/gguf.md, versions 2 and 3.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "composit/ir/array.h"
#include "composit/ir/attribute.h"
#include "composit/ir/node.h"

namespace composit {

// A tensor of a file.
struct GgufTensor {
  std::string format;  // "f32", "bf16", "i32", "q8_0", "q4_K"
  Type type;           // of the numbers: float32 where they lie in blocks; axes as torch has them
  Array data;          // as it lies in the mapped file
};

// What a file holds.
struct Gguf {
  std::map<std::string, GgufTensor> tensors = {};  // by name
  std::map<std::string, Attribute> metadata = {};  // numbers, bools, strings, lists of these
};

// UserError with file and position for a file that is none, is cut, has sizes that its bytes do not
// bear out, or a type that is not known here. Whatever the bytes are, it does not crash, and takes
// no more memory than the file is large, times a small number.
Gguf read_gguf(const std::filesystem::path& file);

// The numbers of a tensor as a value: an input `name`, a buffer that holds the data, or what the
// format's operation makes of it.
LazyTensor numbers_of(const std::string& name, const GgufTensor& tensor);

}  // namespace composit
