// Arrays of a model's tensors.
//
//   TensorReader reader(file, "folder/of/the/model");
//   Array weight = reader.read(graph.initializers[0]);
//
// Elements stay where they are, in the mapped files, where their place is a multiple of their size.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "composit/interchange/onnx_read/proto.h"
#include "composit/io/file.h"
#include "composit/ir/array.h"

namespace composit::onnx_read {

class TensorReader {
 public:
  // `model`: the file that protos are views of. Other files are looked for in `folder` only.
  TensorReader(std::shared_ptr<const io::MappedFile> model, std::filesystem::path folder)
      : model_(std::move(model)), folder_(std::move(folder)) {}

  // UserError for sizes that are none, other elements than the sizes say, a dtype that is no dtype
  // here, and files outside of the folder.
  Array read(const TensorProto& tensor);

 private:
  Array of_bytes(const Type& type, std::shared_ptr<const void> owner, std::string_view bytes) const;
  Array of_numbers(const Type& type, const TensorProto& tensor) const;
  Array of_other_file(const Type& type, const TensorProto& tensor);
  const std::shared_ptr<const io::MappedFile>& open(std::string_view location);

  std::shared_ptr<const io::MappedFile> model_;
  std::filesystem::path folder_;
  std::map<std::string, std::shared_ptr<const io::MappedFile>, std::less<>> files_;
};

// The type of a tensor of these sizes. UserError for a data type that is no dtype here, negative
// sizes, and more elements than memory has bytes.
Type type_of(int64_t data_type, const std::vector<int64_t>& sizes);

}  // namespace composit::onnx_read
