#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "composit/io/chunks.h"
#include "composit/io/file.h"
#include "composit/io/log.h"
#include "composit/io/safetensors.h"
#include "composit/io/safetensors_format.h"
#include "composit/ir/error.h"

namespace composit {
namespace {

using nlohmann::json;

// A piece of the data and its offset; `array` is undefined for padding.
struct Piece {
  std::string name;
  Array array;
  uint64_t begin = 0;
  uint64_t size = 0;
};

uint64_t alignment_of(uint64_t size) {
  const uint64_t lowest_bit = size & ~(size - 1);
  return size >= io::kAlignment || size == 0 ? io::kAlignment : lowest_bit;
}

void check_writable(const std::string& name, const Array& array) {
  if (name == io::kMetadataKey || name.starts_with(io::kPaddingPrefix))
    throw UserError(
        fmt::format("[write] the name '{}' is reserved by the safetensors format", name));
  if (!array.defined()) throw UserError(fmt::format("[write] array '{}' is undefined", name));
  if (array.type().conj || array.type().neg)
    throw UserError(fmt::format(
        "[write] array '{}' is lazily conjugated or negated; its elements are not its values",
        name));
}

// Those first after which any other is aligned, then the others by falling alignment: only large
// ones of odd size can need padding.
std::vector<Piece> arrange(const std::map<std::string, Array>& tensors) {
  std::vector<Piece> pieces;
  for (const auto& [name, array] : tensors) {
    check_writable(name, array);
    pieces.push_back({name, array, 0, static_cast<uint64_t>(array.type().nbytes())});
  }
  const auto rank = [](const Piece& piece) {
    return piece.size % io::kAlignment == 0 ? 2 * io::kAlignment : alignment_of(piece.size);
  };
  std::stable_sort(pieces.begin(), pieces.end(),
                   [&](const Piece& a, const Piece& b) { return rank(a) > rank(b); });

  std::vector<Piece> arranged;
  uint64_t end = 0;
  uint64_t gaps = 0;
  for (Piece& piece : pieces) {
    if (const uint64_t excess = end % alignment_of(piece.size)) {
      const uint64_t gap = alignment_of(piece.size) - excess;
      arranged.push_back({fmt::format("{}{}", io::kPaddingPrefix, gaps++), {}, end, gap});
      end += gap;
    }
    piece.begin = end;
    end += piece.size;
    arranged.push_back(std::move(piece));
  }
  return arranged;
}

json entry_of(const Piece& piece, json& metadata) {
  std::string dtype = "U8";
  json shape = json::array();
  if (!piece.array.defined()) {
    shape.push_back(piece.size);
  } else {
    const Type& type = piece.array.type();
    shape = type.sizes;
    if (const auto known = io::safetensors_name(type.dtype)) {
      dtype = *known;
    } else {
      shape.push_back(item_size(type.dtype));
      metadata[fmt::format("{}{}", io::kDTypePrefix, piece.name)] = name(type.dtype);
    }
  }
  return {{"dtype", dtype},
          {"shape", shape},
          {"data_offsets", {piece.begin, piece.begin + piece.size}}};
}

// The length of the header, the header, and the spaces that align what follows.
std::string header_of(const std::vector<Piece>& pieces, const Safetensors& contents) {
  json header = json::object();
  json metadata = json::object();
  for (const auto& [key, value] : contents.metadata) {
    if (key.starts_with(io::kDTypePrefix))
      throw UserError(fmt::format("[write] the metadata key '{}' is reserved", key));
    metadata[key] = value;
  }
  for (const Piece& piece : pieces) header[piece.name] = entry_of(piece, metadata);
  if (!metadata.empty()) header[std::string(io::kMetadataKey)] = std::move(metadata);

  std::string text = header.dump();
  const size_t prefix = sizeof(uint64_t);
  text.resize(
      (prefix + text.size() + io::kAlignment - 1) / io::kAlignment * io::kAlignment - prefix, ' ');
  if (text.size() > io::kMaxHeaderSize)
    throw UserError(
        fmt::format("[write] the safetensors header needs {} bytes; the format allows {}",
                    text.size(), io::kMaxHeaderSize));
  std::string length;
  for (size_t byte = 0; byte < prefix; ++byte)
    length.push_back(static_cast<char>(text.size() >> 8 * byte & 0xff));
  return length + text;
}

void write_array(const Array& array, io::OutputFile& output, Progress& progress) {
  const Array elements = array.contiguous();
  io::in_chunks(elements.data(), static_cast<uint64_t>(elements.type().nbytes()), progress,
                [&](const void* data, size_t size) { output.write(data, size); });
}

}  // namespace

void write_safetensors(const Safetensors& contents, const std::filesystem::path& file) {
  const std::vector<Piece> pieces = arrange(contents.tensors);
  std::string header;
  try {
    header = header_of(pieces, contents);
  } catch (const json::type_error& error) {  // text that is not UTF-8
    throw UserError(fmt::format("[write] {}: {}", file.string(), error.what()));
  }
  const uint64_t data_size = pieces.empty() ? 0 : pieces.back().begin + pieces.back().size;
  Progress progress("writing " + file.string(), data_size);
  io::OutputFile output(file);
  output.write(header);
  for (const Piece& piece : pieces)
    piece.array.defined() ? write_array(piece.array, output, progress)
                          : output.write(std::string(piece.size, '\0'));
  output.sync();
  output.commit();
}

}  // namespace composit
