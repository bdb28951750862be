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

// The offset in bytes from the first element to element `index` in the order of the indices.
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

// A copy of the element at an address.
at::Tensor element(const char* address, c10::ScalarType dtype) {
  at::Tensor copy = at::detail::empty_cpu({}, dtype);
  std::memcpy(copy.mutable_data_ptr(), address, copy.itemsize());
  return copy;
}

const char* sampled_element(const at::Tensor& tensor, int64_t i) {
  return bytes_of(tensor) + place_of_element(tensor, sampled_index(i, tensor.numel()));
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

void ValueSamples::add(tracer::RecordId id, c10::ArrayRef<at::Tensor> values) {
  if (id >= of_record_.size()) of_record_.resize(id + 1);
  of_record_[id] = {static_cast<uint32_t>(samples_.size()), static_cast<uint32_t>(values.size())};
  for (const at::Tensor& given : values) {
    const at::Tensor value = tracer::on_host(given);
    const bool kept = value.defined();
    samples_.push_back({elements_.size(), kept ? value.numel() : -1,
                        kept ? value.scalar_type() : c10::ScalarType::Undefined});
    for (int64_t i = 0; kept && i < std::min(value.numel(), kSampled); ++i) {
      const char* element = sampled_element(value, i);
      elements_.insert(elements_.end(), element, element + value.itemsize());
    }
  }
}

std::optional<std::string> ValueSamples::difference(tracer::RecordId id,
                                                    const std::vector<at::Tensor>& values) const {
  if (id >= of_record_.size()) return std::nullopt;
  const auto [first, count] = of_record_[id];
  for (size_t i = 0; i < std::min<size_t>(values.size(), count); ++i)
    if (const auto found = difference(samples_[first + i], values[i]))
      return "output " + std::to_string(i) + ": " + *found;
  return std::nullopt;
}

std::optional<std::string> ValueSamples::difference(const Sample& sample,
                                                    const at::Tensor& given) const {
  const at::Tensor tensor = tracer::on_host(given);
  if (sample.numel < 0 || !tensor.defined()) return std::nullopt;
  if (tensor.numel() != sample.numel || tensor.scalar_type() != sample.dtype)
    return c10::str("has ", sample.numel, " elements of ", sample.dtype, " in the program and ",
                    tensor.numel(), " of ", tensor.scalar_type(), " in the replay");
  const size_t item = tensor.itemsize();
  const char* kept = elements_.data() + sample.begin;
  for (int64_t i = 0; i < std::min(sample.numel, kSampled); ++i, kept += item) {
    const char* replayed = sampled_element(tensor, i);
    if (std::memcmp(kept, replayed, item) != 0)
      return values_text(sampled_index(i, sample.numel), element(kept, sample.dtype),
                         element(replayed, sample.dtype));
  }
  return std::nullopt;
}

uint64_t digest_of_memory(const at::Tensor& given, int64_t whole) {
  MemoryDigest digest;
  const at::Tensor tensor = tracer::on_host(given);
  if (!tensor.defined()) return digest.finish();
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

bool same_bits(const at::Tensor& first, const at::Tensor& second) {
  if (!first.defined() || !second.defined()) return first.defined() == second.defined();
  if (first.scalar_type() != second.scalar_type() || first.sizes() != second.sizes()) return false;
  if (first.layout() != second.layout() || first.device() != second.device()) return false;
  const at::Tensor a = tracer::on_host(first), b = tracer::on_host(second);
  if (!a.defined() || !b.defined())
    return first.is_meta() || (first.layout() != c10::Layout::Strided &&
                               same_bits(first.to_dense(), second.to_dense()));
  if (a.numel() == 0) return true;
  if (a.strides() == b.strides() && a.is_conj() == b.is_conj() && a.is_neg() == b.is_neg() &&
      a.is_non_overlapping_and_dense())
    return std::memcmp(bytes_of(a), bytes_of(b), a.nbytes()) == 0;
  return digest(a) == digest(b);
}

std::string first_difference(const at::Tensor& of_program, const at::Tensor& of_replay) {
  if (!of_program.defined() || !of_replay.defined()) return "is undefined in one of them";
  if (of_program.scalar_type() != of_replay.scalar_type() ||
      of_program.sizes() != of_replay.sizes())
    return c10::str("is ", of_program.scalar_type(), " ", of_program.sizes(),
                    " in the program and ", of_replay.scalar_type(), " ", of_replay.sizes(),
                    " in the replay");
  const at::Tensor program = tracer::on_host(of_program), replay = tracer::on_host(of_replay);
  if (!program.defined() || !replay.defined()) return "is laid out differently in memory";
  const auto item = static_cast<size_t>(program.itemsize());
  for (int64_t i = 0; i < program.numel(); ++i) {
    const int64_t a = place_of_element(program, i), b = place_of_element(replay, i);
    if (std::memcmp(bytes_of(program) + a, bytes_of(replay) + b, item) == 0) continue;
    return values_text(i, element(bytes_of(program) + a, program.scalar_type()),
                       element(bytes_of(replay) + b, replay.scalar_type()));
  }
  return "is laid out differently in memory";
}

}  // namespace flashlight
