#include "composit/interchange/onnx/stored_weights.h"

#include <cstring>
#include <nlohmann/json.hpp>

#include "composit/io/capture_format.h"
#include "composit/io/safetensors.h"
#include "composit/ir/error.h"

namespace composit::onnx {
namespace {

namespace fs = std::filesystem;

// The path from the folder of `model`, with "/".
std::string path_from(const fs::path& model, const fs::path& weights) {
  const fs::path folder = fs::weakly_canonical(fs::absolute(model).parent_path());
  const fs::path relative = fs::weakly_canonical(weights).lexically_relative(folder);
  if (relative.empty() || *relative.begin() == "..")
    throw UserError("its weights lie in " + weights.string() +
                    ", and a model of ONNX may only refer to files in or below its own folder: "
                    "write it beside the capture, or into it");
  return relative.generic_string();
}

// Tools refuse links, lest a model reads files that are not its own.
void expect_no_link(const fs::path& weights) {
  if (fs::is_symlink(weights) || fs::hard_link_count(weights) > 1)
    throw UserError(weights.string() +
                    " is a link, or has a further name, which tools refuse for weights of a model");
}

}  // namespace

StoredWeights::StoredWeights(const fs::path& where, const fs::path& model,
                             const SavedCapture& capture)
    : capture_(capture) {
  const fs::path weights = fs::is_directory(where) ? where / io::kWeightsFile : where;
  const Safetensors contents = read_safetensors(weights);  // tells what is wrong with it
  location_ = path_from(model, weights);
  expect_no_link(weights);
  file_ = io::MappedFile::open(weights);
  uint64_t length = 0;
  std::memcpy(&length, file_->data(), sizeof(length));
  const uint64_t data = sizeof(length) + length;
  const auto header = nlohmann::json::parse(file_->text().substr(sizeof(length), length));
  for (const auto& [name, array] : contents.tensors)
    places_.emplace(
        name, Place{array.type(), data + header.at(name).at("data_offsets").at(0).get<uint64_t>()});
}

bool StoredWeights::has(const Place& place, const Array& value) const {
  if (place.type.dtype != value.type().dtype || place.type.sizes != value.type().sizes)
    return false;
  const Array plain = value.contiguous();
  return std::memcmp(file_->data() + place.offset, plain.data(),
                     static_cast<size_t>(plain.type().nbytes())) == 0;
}

const StoredWeights::Place* StoredWeights::find(const std::string& name, const Array& value) const {
  const auto place = places_.find(name);
  if (place != places_.end()) return &place->second;
  // What is tied is stored once, under another name.
  for (const auto& [other, weight] : capture_.weights)
    if (weight.defined() && weight.data() == value.data() && places_.contains(other))
      return &places_.at(other);
  return nullptr;
}

uint64_t StoredWeights::offset_of(const std::string& name, const Array& value) const {
  const Place* place = find(name, value);
  if (place == nullptr) throw UserError(location_ + " has no weight '" + name + "'");
  if (!has(*place, value))
    throw UserError("the weight '" + name + "' is another one in " + location_ +
                    ": save the capture again");
  return place->offset;
}

}  // namespace composit::onnx
