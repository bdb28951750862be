// Weights and constants of an archive as arrays: in the mapped file where they lie aligned there.
//
//   const StoredTensors weights(archive, "data/weights", "model_weights_config.json");
//   Array weight = weights.array("fc.weight");
#pragma once

#include <map>
#include <string>

#include "composit/interchange/pt2_read/archive.h"
#include "composit/ir/array.h"

namespace composit::pt2_read {

// How a name's tensor lies in an entry.
struct StoredTensor {
  std::string entry;   // "weight_0"
  Type type;           // with its strides
  int64_t offset = 0;  // of the first element, in elements
  bool requires_grad = false;
  bool operator==(const StoredTensor&) const = default;  // the same memory, read the same way
};

class StoredTensors {
 public:
  // `table`: names, in an entry of `folder`. The archive has to outlive this. UserError for tensors
  // that are pickled, or do not lie within their entries.
  StoredTensors(const Archive& archive, const std::string& folder, const std::string& table);

  // UserError where there is no such name.
  const StoredTensor& find(const std::string& name) const;
  bool contains(const std::string& name) const { return tensors_.contains(name); }
  // The same array for names that are tied.
  Array array(const std::string& name);

 private:
  StoredTensor stored(const Json& payload) const;

  const Archive& archive_;
  std::string folder_;
  std::map<std::string, StoredTensor> tensors_;
  std::map<std::string, std::vector<std::pair<StoredTensor, Array>>> made_;  // by entry
};

// A tensor whose first element stands at `offset`, in elements, in `bytes` of `file`: in the
// mapping, or where it is not aligned there a copy. UserError where it does not lie within them.
Array array_in(const std::shared_ptr<const io::MappedFile>& file, std::string_view bytes,
               const Type& type, int64_t offset);

}  // namespace composit::pt2_read
