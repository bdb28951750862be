#include "composit/interchange/pt2/storages.h"

#include "composit/io/chunks.h"
#include "composit/ir/error.h"

namespace composit::pt2 {

uint64_t stored_size(const Array& array) {
  const Type& type = array.type();
  const int64_t elements = type.numel() == 0 ? 0 : type.extent();
  return static_cast<uint64_t>(elements) * item_size(type.dtype);
}

void Storages::add(const std::string& name, const Array& array, bool is_parameter,
                   bool requires_grad) {
  const Type& type = array.type();
  if (type.conj || type.neg)
    throw UserError("'" + name +
                    "' is lazily conjugated or negated, which has no form in the format");
  if (type.layout != Layout::strided)
    throw UserError("'" + name + "' is sparse, which has no form in the format");
  const auto size = static_cast<int64_t>(stored_size(array));
  const auto [entry, added] = entries_.try_emplace({array.data(), size}, arrays_.size());
  if (added) arrays_.push_back(array);
  names_[name] = {{"path_name", prefix_ + std::to_string(entry->second)},
                  {"is_param", is_parameter},
                  {"use_pickle", false},
                  {"tensor_meta", tensor_meta(type, requires_grad)}};
}

uint64_t Storages::bytes() const {
  uint64_t bytes = 0;
  for (const Array& array : arrays_) bytes += stored_size(array);
  return bytes;
}

void Storages::write(const std::string& root, const std::string& table, io::ZipWriter& archive,
                     Progress& progress) const {
  const std::string folder = root + "/" + folder_ + "/";
  for (size_t i = 0; i < arrays_.size(); ++i) {
    const uint64_t size = stored_size(arrays_[i]);
    archive.begin(folder + prefix_ + std::to_string(i), size);
    io::in_chunks(arrays_[i].data(), size, progress,
                  [&](const void* bytes, size_t count) { archive.write(bytes, count); });
  }
  archive.add(folder + table, Json{{"config", names_}}.dump());
}

}  // namespace composit::pt2
