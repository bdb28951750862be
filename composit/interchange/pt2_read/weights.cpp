#include "composit/interchange/pt2_read/weights.h"

#include <cstring>
#include <vector>

#include "composit/interchange/pt2_read/sizes.h"
#include "composit/ir/error.h"
#include "composit/ir/parse.h"

namespace composit::pt2_read {
namespace {

// Elements from the first to the last; 0 where there are none.
int64_t extent_of(const Type& type) { return type.numel() == 0 ? 0 : type.extent(); }

void expect_within(const Type& type, int64_t offset, uint64_t bytes) {
  const auto item = static_cast<int64_t>(item_size(type.dtype));
  int64_t end = 0;
  if (offset < 0 || __builtin_add_overflow(offset, extent_of(type), &end) ||
      __builtin_mul_overflow(end, item, &end) || static_cast<uint64_t>(end) > bytes)
    throw UserError("a tensor that begins at element " + std::to_string(offset) + " and has " +
                    std::to_string(extent_of(type)) + " does not lie within " +
                    std::to_string(bytes) + " bytes");
}

}  // namespace

Array array_in(const std::shared_ptr<const io::MappedFile>& file, std::string_view bytes,
               const Type& type, int64_t offset) {
  expect_within(type, offset, bytes.size());
  const size_t item = item_size(type.dtype);
  const auto* data = reinterpret_cast<const std::byte*>(bytes.data()) + item * offset;
  const size_t size = item * extent_of(type);
  if (size > 0 && reinterpret_cast<uintptr_t>(data) % item == 0)
    return Array(type, file->part(data, size), data);
  // Room for all strides, as in the file.
  auto copy = std::make_shared<std::vector<std::byte>>(std::max<size_t>(size, 1));
  if (size > 0) std::memcpy(copy->data(), data, size);
  const std::byte* first = copy->data();
  return Array(type, std::move(copy), first);
}

StoredTensors::StoredTensors(const Archive& archive, const std::string& folder,
                             const std::string& table)
    : archive_(archive), folder_(folder) {
  const Json names = archive.json(folder + "/" + table);
  for (const auto& [name, payload] : object_of(field(names, "config")).items()) {
    try {
      tensors_.emplace(name, stored(payload));
    } catch (const UserError& error) {
      throw UserError("'" + name + "': " + error.what());
    }
  }
}

StoredTensor StoredTensors::stored(const Json& payload) const {
  if (const Json* pickled = find_field(payload, "use_pickle"); pickled && truth_of(*pickled))
    throw UserError("a pickled object, which could run code; save a program of plain tensors");
  const Json& meta = field(payload, "tensor_meta");
  StoredTensor tensor{text_of(field(payload, "path_name")), Sizes().type(meta),
                      Sizes().value(field(meta, "storage_offset")),
                      truth_of(field(meta, "requires_grad"))};
  expect_within(tensor.type, tensor.offset, archive_.entry(folder_ + "/" + tensor.entry).size());
  return tensor;
}

const StoredTensor& StoredTensors::find(const std::string& name) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) throw UserError("'" + name + "' has no value in the archive");
  return found->second;
}

Array StoredTensors::array(const std::string& name) {
  const StoredTensor& tensor = find(name);
  auto& made = made_[tensor.entry];
  for (const auto& [known, array] : made)
    if (known == tensor) return array;
  made.emplace_back(tensor, array_in(archive_.file(), archive_.entry(folder_ + "/" + tensor.entry),
                                     tensor.type, tensor.offset));
  return made.back().second;
}

}  // namespace composit::pt2_read
