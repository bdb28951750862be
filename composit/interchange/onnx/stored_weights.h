// Weights that lie in a file already, which a model can refer to: that of a saved capture.
//
//   const StoredWeights stored("bert/weights.safetensors", "bert.onnx", capture);
//   stored.location();                             // "bert/weights.safetensors", as the model says
//   stored.offset_of("pooler.weight", array);      // of its first byte in that file
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "composit/io/file.h"
#include "composit/io/saved_capture.h"

namespace composit::onnx {

class StoredWeights {
 public:
  // `where`: a file of safetensors, or the folder of a saved capture. UserError where a model in
  // `model` cannot refer to it: ONNX takes files in or below the model's folder only, and no links.
  StoredWeights(const std::filesystem::path& where, const std::filesystem::path& model,
                const SavedCapture& capture);

  // The path from the model's folder.
  const std::string& location() const { return location_; }
  // Of the elements of a weight in row-major order. UserError where the file has not these.
  uint64_t offset_of(const std::string& name, const Array& value) const;

 private:
  struct Place {
    Type type;
    uint64_t offset;
  };
  const Place* find(const std::string& name, const Array& value) const;
  bool has(const Place& place, const Array& value) const;

  const SavedCapture& capture_;
  std::string location_;
  std::shared_ptr<const io::MappedFile> file_;
  std::map<std::string, Place> places_;
};

}  // namespace composit::onnx
