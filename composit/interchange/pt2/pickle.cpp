#include "composit/interchange/pt2/pickle.h"

#include <cstring>
#include <string_view>
#include <utility>

#include "composit/interchange/pt2/arguments.h"
#include "composit/ir/error.h"

namespace composit::pt2 {
namespace {

// The classes of storages, as pickles of tensors name them. Newer dtypes have none: they are named
// beside a storage of bytes.
constexpr std::pair<DType, const char*> kStorageClasses[] = {
    {DType::float64, "DoubleStorage"},
    {DType::float32, "FloatStorage"},
    {DType::float16, "HalfStorage"},
    {DType::bfloat16, "BFloat16Storage"},
    {DType::int64, "LongStorage"},
    {DType::int32, "IntStorage"},
    {DType::int16, "ShortStorage"},
    {DType::int8, "CharStorage"},
    {DType::uint8, "ByteStorage"},
    {DType::bool_, "BoolStorage"},
    {DType::complex64, "ComplexFloatStorage"},
    {DType::complex128, "ComplexDoubleStorage"}};

std::string storage_class(DType dtype) {
  for (const auto& [known, name] : kStorageClasses)
    if (known == dtype) return name;
  return "";
}

// The opcodes of protocol 2 that are needed (Python's pickletools.py lists them).
class Pickle {
 public:
  Pickle() { bytes_ = "\x80\x02"; }

  void value(const Structure& structure, const std::vector<Array>& tensors) {
    switch (structure.kind) {
      case Structure::Kind::tensor:
        tensor(next_, tensors.at(next_));
        ++next_;
        return;
      case Structure::Kind::constant:
        return constant(structure.constant);
      case Structure::Kind::list:
        bytes_ += "](";
        for (const Structure& child : structure.children) value(child, tensors);
        bytes_ += 'e';
        return;
      case Structure::Kind::tuple:
        bytes_ += '(';
        for (const Structure& child : structure.children) value(child, tensors);
        bytes_ += 't';
        return;
      case Structure::Kind::dict:
        bytes_ += "}(";
        for (size_t i = 0; i < structure.children.size(); ++i) {
          text(structure.keys[i]);
          value(structure.children[i], tensors);
        }
        bytes_ += 'u';
        return;
    }
  }

  std::string take() { return std::move(bytes_ += '.'); }

 private:
  void little_endian(uint64_t value, int count) {
    for (int i = 0; i < count; ++i) bytes_.push_back(static_cast<char>(value >> 8 * i & 0xff));
  }
  void text(std::string_view text) {
    bytes_ += 'X';
    little_endian(text.size(), 4);
    bytes_ += text;
  }
  void integer(int64_t value) {
    bytes_ += "\x8a\x08";  // LONG1: eight bytes, two's complement
    little_endian(static_cast<uint64_t>(value), 8);
  }
  void truth(bool value) { bytes_ += value ? '\x88' : '\x89'; }
  void real(double value) {
    bytes_ += 'G';  // BINFLOAT is big-endian
    uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    for (int i = 7; i >= 0; --i) bytes_.push_back(static_cast<char>(bits >> 8 * i & 0xff));
  }
  void global(const std::string& module, const std::string& name) {
    bytes_ += 'c' + module + '\n' + name + '\n';
  }
  void integers(const std::vector<int64_t>& values) {
    bytes_ += '(';
    for (const int64_t value : values) integer(value);
    bytes_ += 't';
  }

  void constant(const Json& json) {
    const Json& value = json.begin().value();
    const std::string& kind = json.begin().key();
    if (kind == "as_none") bytes_ += 'N';
    if (kind == "as_bool") truth(value.get<bool>());
    if (kind == "as_int") integer(value.get<int64_t>());
    if (kind == "as_string") text(value.get<std::string>());
    if (kind == "as_float")
      real(value.is_number() ? value.get<double>() : std::stod(value.get<std::string>()));
  }

  // torch._utils._rebuild_tensor_v2(storage, offset, sizes, strides, requires_grad, hooks), or v3
  // with a dtype.
  void tensor(size_t index, const Array& array) {
    const Type& type = array.type();
    const std::string storage = storage_class(type.dtype);
    const bool named = storage.empty();
    global("torch._utils", named ? "_rebuild_tensor_v3" : "_rebuild_tensor_v2");
    bytes_ += "((";
    text("storage");
    if (named)
      global("torch.storage", "UntypedStorage");
    else
      global("torch", storage);
    text(std::to_string(index));
    text("cpu");
    integer(named ? type.nbytes() : type.numel());
    bytes_ += "tQ";  // a tuple that is a persistent id
    integer(0);
    integers(type.sizes);
    integers(contiguous_strides(type.sizes));
    truth(false);
    global("collections", "OrderedDict");
    bytes_ += ")R";
    if (named) global("torch", std::string(name(type.dtype)));
    bytes_ += "tR";
  }

  std::string bytes_;
  size_t next_ = 0;
};

}  // namespace

std::optional<DType> dtype_of_storage(std::string_view name) {
  for (const auto& [dtype, known] : kStorageClasses)
    if (known == name) return dtype;
  return std::nullopt;
}

std::string pickle_of(const Structure& structure, const std::vector<Array>& tensors) {
  Pickle pickle;
  pickle.value(structure, tensors);
  return pickle.take();
}

}  // namespace composit::pt2
