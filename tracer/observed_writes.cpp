#include "tracer/observed_writes.h"

#include <algorithm>
#include <cstring>

#include "composit/ir/error.h"
#include "tracer/convert.h"
#include "tracer/memory_view.h"
#include "tracer/recorder.h"

namespace flashlight::tracer {
namespace {

constexpr size_t kAllBytes = 64 * 1024;  // of an argument up to this size all are compared
constexpr size_t kPieces = 256, kPiece = 256;

const void* storage_of(const at::Tensor& tensor) {
  return tensor.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl();
}

uint32_t version_of(const at::Tensor& tensor) {
  return tensor.is_inference() ? 0
                               : tensor.unsafeGetTensorImpl()->version_counter().current_version();
}

// All bytes from the first element to the last one, or pieces at equal distances, both ends among
// them.
std::vector<std::byte> bytes_of(const at::Tensor& given) {
  if (!given.defined() || given.numel() == 0 || given._is_zerotensor()) return {};
  const at::Tensor tensor = on_host(given);
  if (!tensor.defined()) return {};
  const auto size = static_cast<size_t>(span_of(tensor));
  const auto* begin = reinterpret_cast<const std::byte*>(address_of(tensor));
  if (size <= kAllBytes) return {begin, begin + size};
  std::vector<std::byte> bytes(kPieces * kPiece);
  for (size_t i = 0; i < kPieces; ++i)
    std::memcpy(bytes.data() + i * kPiece, begin + (size - kPiece) / (kPieces - 1) * i, kPiece);
  std::memcpy(bytes.data() + (kPieces - 1) * kPiece, begin + size - kPiece, kPiece);
  return bytes;
}

}  // namespace

ArgumentContents::ArgumentContents(const OpInfo& info, c10::ArrayRef<c10::IValue> arguments)
    : info_(info), arguments_(arguments.vec()) {
  std::vector<const void*> written;  // memory of which the schema says so
  for (size_t i = 0; i < arguments.size(); ++i)
    if (info.writes[i])
      for (const at::Tensor& tensor : tensors_of(arguments[i]))
        if (tensor.defined() && tensor.has_storage()) written.push_back(storage_of(tensor));
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (info.arguments[i] == ArgumentKind::other || info.writes[i]) continue;
    for (const at::Tensor& tensor : tensors_of(arguments[i])) {
      if (!tensor.defined() || !is_readable(tensor)) continue;
      const void* storage = storage_of(tensor);
      if (std::find(written.begin(), written.end(), storage) != written.end()) continue;
      contents_.push_back({i, tensor, tensor.sizes().vec(), tensor.strides().vec(), storage,
                           address_of(tensor), version_of(tensor), bytes_of(tensor)});
    }
  }
}

bool ArgumentContents::differs(const Content& before, const OpInfo& info) {
  const at::Tensor& tensor = before.tensor;
  if (tensor.sizes() != before.sizes || tensor.strides() != before.strides ||
      storage_of(tensor) != before.storage || address_of(tensor) != before.address)
    throw composit::UserError("[trace] " + info.name.str() + " gave its argument '" +
                              info.argument_names[before.argument].str() +
                              "' other memory or sizes, which its schema does not declare: return "
                              "a new tensor instead");
  return version_of(tensor) != before.version || bytes_of(tensor) != before.bytes;
}

std::vector<int64_t> ArgumentContents::changed() const {
  std::vector<int64_t> numbers;
  for (const Content& content : contents_) {
    const auto number = static_cast<int64_t>(content.argument);
    if (differs(content, info_) && (numbers.empty() || numbers.back() != number))
      numbers.push_back(number);
  }
  return numbers;
}

}  // namespace flashlight::tracer
