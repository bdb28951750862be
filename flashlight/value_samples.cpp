#include "flashlight/value_samples.h"

#include <ATen/EmptyTensor.h>
#include <c10/util/StringUtil.h>

#include <algorithm>
#include <cstring>

#include "composit/ir/print.h"
#include "flashlight/difference.h"
#include "tracer/convert.h"
#include "tracer/geometry.h"
#include "tracer/memory_view.h"

namespace flashlight {
namespace {

constexpr int64_t kSampled = 64;

const char* bytes_of(const at::Tensor& tensor) {
  return reinterpret_cast<const char*>(tracer::address_of(tensor));
}

// Bytes from the first element to element number `index` in the order of the indices.
int64_t place_of_element(const at::Tensor& tensor, int64_t index) {
  int64_t offset = 0;
  for (int64_t axis = tensor.dim(); axis-- > 0; index /= tensor.size(axis))
    offset += index % tensor.size(axis) * tensor.stride(axis);
  return offset * static_cast<int64_t>(tensor.itemsize());
}

int64_t sampled_index(int64_t i, int64_t numel) {
  return numel <= kSampled ? i : i * (numel - 1) / (kSampled - 1);
}

std::string element_text(const at::Tensor& one) {
  const std::string text = composit::print(composit::Attribute(tracer::to_array(one)));
  const size_t begin = text.rfind('[') + 1;
  return text.substr(begin, text.rfind(']') - begin);
}

at::Tensor element(const at::Tensor& elements, int64_t i) {
  return tracer::view_memory(elements, elements.scalar_type(), {}, {}, i);
}

std::string values_text(int64_t index, const at::Tensor& program, const at::Tensor& replay) {
  return "element " + std::to_string(index) + " is " + element_text(program) +
         " in the program and " + element_text(replay) + " in the replay";
}

// Eight chains of FNV-1a over words (http://www.isthe.com/chongo/tech/comp/fnv), so that it runs at
// the speed of memory.
class MemoryDigest {
 public:
  void add(const char* data, int64_t size) {
    constexpr int64_t kBlock = 64;
    for (; size >= kBlock; size -= kBlock, data += kBlock) {
      uint64_t words[8];
      std::memcpy(words, data, kBlock);
      for (int i = 0; i < 8; ++i) lanes_[i] = (lanes_[i] ^ words[i]) * kPrime;
    }
    for (; size > 0; --size, ++data)
      lanes_[0] = (lanes_[0] ^ static_cast<unsigned char>(*data)) * kPrime;
  }
  uint64_t finish() const {
    uint64_t result = 0;
    for (const uint64_t lane : lanes_) result = (result ^ lane ^ lane >> 29) * kPrime;
    return result;
  }

 private:
  static constexpr uint64_t kPrime = 0x100000001b3ULL;
  uint64_t lanes_[8] = {1, 2, 3, 4, 5, 6, 7, 0xcbf29ce484222325ULL};
};

}  // namespace

Sample::Sample(const at::Tensor& tensor) {
  if (!tensor.defined() || !tracer::has_memory(tensor)) return;
  numel_ = tensor.numel();
  const int64_t count = std::min(numel_, kSampled);
  elements_ = at::detail::empty_cpu({count}, tensor.scalar_type());
  const auto item = static_cast<int64_t>(tensor.itemsize());
  auto* to = static_cast<char*>(elements_.mutable_data_ptr());
  for (int64_t i = 0; i < count; ++i)
    std::memcpy(to + i * item,
                bytes_of(tensor) + place_of_element(tensor, sampled_index(i, numel_)),
                static_cast<size_t>(item));
}

std::optional<std::string> Sample::difference(const at::Tensor& tensor) const {
  if (!elements_.defined() || !tensor.defined() || !tracer::has_memory(tensor)) return std::nullopt;
  if (tensor.numel() != numel_ || tensor.scalar_type() != elements_.scalar_type())
    return c10::str("has ", numel_, " elements of ", elements_.scalar_type(),
                    " in the program and ", tensor.numel(), " of ", tensor.scalar_type(),
                    " in the replay");
  const Sample other(tensor);
  const auto item = static_cast<size_t>(tensor.itemsize());
  const auto *a = bytes_of(elements_), *b = bytes_of(other.elements_);
  for (int64_t i = 0; i < elements_.numel(); ++i)
    if (std::memcmp(a + static_cast<size_t>(i) * item, b + static_cast<size_t>(i) * item, item) !=
        0)
      return values_text(sampled_index(i, numel_), element(elements_, i),
                         element(other.elements_, i));
  return std::nullopt;
}

void ValueSamples::add(tracer::RecordId id, c10::ArrayRef<at::Tensor> values) {
  std::vector<Sample>& samples = samples_[id];
  for (const at::Tensor& value : values) samples.emplace_back(value);
}

const std::vector<Sample>* ValueSamples::find(tracer::RecordId id) const {
  const auto found = samples_.find(id);
  return found == samples_.end() ? nullptr : &found->second;
}

uint64_t digest_of_memory(const at::Tensor& tensor, int64_t whole) {
  MemoryDigest digest;
  if (!tensor.defined() || !tracer::has_memory(tensor)) return digest.finish();
  constexpr int64_t kPiece = 4096;
  const int64_t pieces = std::max<int64_t>(2, whole / kPiece / 4);
  const int64_t span = tracer::span_of(tensor);
  const char* begin = bytes_of(tensor);
  if (span <= whole) {
    digest.add(begin, span);
  } else {
    for (int64_t i = 0; i < pieces; ++i)
      digest.add(begin + i * (span - kPiece) / (pieces - 1), kPiece);
  }
  return digest.finish();
}

bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  if (!a.defined() || !b.defined()) return a.defined() == b.defined();
  if (a.scalar_type() != b.scalar_type() || a.sizes() != b.sizes()) return false;
  if (!tracer::has_memory(a) || !tracer::has_memory(b))
    return a.layout() == b.layout() && a.device() == b.device() &&
           (a.is_meta() || same_bits(a.to_dense(), b.to_dense()));
  if (a.numel() == 0) return true;
  if (a.strides() == b.strides() && a.is_conj() == b.is_conj() && a.is_neg() == b.is_neg() &&
      a.is_non_overlapping_and_dense())
    return std::memcmp(bytes_of(a), bytes_of(b), a.nbytes()) == 0;
  return digest(a) == digest(b);
}

std::string first_difference(const at::Tensor& program, const at::Tensor& replay) {
  if (!program.defined() || !replay.defined()) return "is undefined in one of them";
  if (program.scalar_type() != replay.scalar_type() || program.sizes() != replay.sizes())
    return c10::str("is ", program.scalar_type(), " ", program.sizes(), " in the program and ",
                    replay.scalar_type(), " ", replay.sizes(), " in the replay");
  const auto item = static_cast<size_t>(program.itemsize());
  for (int64_t i = 0;
       i < program.numel() && tracer::has_memory(program) && tracer::has_memory(replay); ++i) {
    const int64_t a = place_of_element(program, i), b = place_of_element(replay, i);
    if (std::memcmp(bytes_of(program) + a, bytes_of(replay) + b, item) == 0) continue;
    const auto size = static_cast<int64_t>(item);
    return values_text(i, element(program, a / size), element(replay, b / size));
  }
  return "is laid out differently in memory";
}

}  // namespace flashlight
