// Example arguments as torch.save writes them: an inner zip with a pickle and the tensors' bytes.
#pragma once

#include <vector>

#include "composit/interchange/pt2_read/archive.h"
#include "composit/interchange/pt2_read/structure.h"
#include "composit/ir/array.h"
#include "composit/ir/error.h"

namespace composit::pt2_read {

// Thrown for an example that has objects which only Python can make.
class ObjectsNotRead : public UserError {
 public:
  using UserError::UserError;
};

// The tensors in the order of the leaves of `arguments`; none where the file has no example.
// UserError for what is no example of these arguments, or damaged; ObjectsNotRead.
std::vector<Array> example_inputs(const Archive& archive, const Structure& arguments);

}  // namespace composit::pt2_read
