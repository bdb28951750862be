#include "composit/io/gguf.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <vector>

#include "composit/io/file.h"
#include "composit/ir/error.h"
#include "composit/ops/functions.h"

namespace composit {
namespace {

static_assert(std::endian::native == std::endian::little, "GGUF's numbers are little-endian");

// How a type of ggml lies in memory, by its number.
struct Format {
  uint32_t number;
  std::string_view name;
  DType dtype;             // of an element; uint8 for blocks
  int64_t columns, bytes;  // of a block; of other types 1, and those of an element
  bool is_block() const { return columns > 1; }
};
constexpr Format kFormats[] = {
    {0, "f32", DType::float32, 1, 4},       {1, "f16", DType::float16, 1, 2},
    {2, "q4_0", DType::uint8, 32, 18},      {3, "q4_1", DType::uint8, 32, 20},
    {6, "q5_0", DType::uint8, 32, 22},      {7, "q5_1", DType::uint8, 32, 24},
    {8, "q8_0", DType::uint8, 32, 34},      {10, "q2_K", DType::uint8, 256, 84},
    {11, "q3_K", DType::uint8, 256, 110},   {20, "iq4_nl", DType::uint8, 32, 18},
    {23, "iq4_xs", DType::uint8, 256, 136}, {12, "q4_K", DType::uint8, 256, 144},
    {13, "q5_K", DType::uint8, 256, 176},   {14, "q6_K", DType::uint8, 256, 210},
    {24, "i8", DType::int8, 1, 1},          {25, "i16", DType::int16, 1, 2},
    {26, "i32", DType::int32, 1, 4},        {27, "i64", DType::int64, 1, 8},
    {28, "f64", DType::float64, 1, 8},      {30, "bf16", DType::bfloat16, 1, 2},
};

// Types of ggml that are not read, by name in errors: grids of numbers, and formats between
// kernels.
constexpr std::pair<uint32_t, std::string_view> kOthers[] = {
    {9, "q8_1"},   {15, "q8_K"},  {16, "iq2_xxs"}, {17, "iq2_xs"}, {18, "iq3_xxs"}, {19, "iq1_s"},
    {21, "iq3_s"}, {22, "iq2_s"}, {29, "iq1_m"},   {34, "tq1_0"},  {35, "tq2_0"},   {39, "mxfp4"}};

// The types of metadata, by their numbers.
enum class Kind : uint32_t {
  uint8,
  int8,
  uint16,
  int16,
  uint32,
  int32,
  float32,
  boolean,
  string,
  list,
  uint64,
  int64,
  float64
};
constexpr uint64_t kSmallest[] = {1, 1, 2, 2, 4, 4, 4, 1, 8, 12, 8, 8, 8};  // bytes of one

class Reader {
 public:
  explicit Reader(const std::filesystem::path& path)
      : path_(path), file_(io::MappedFile::open(path)) {}

  Gguf read() {
    if (file_->text().substr(0, 4) != "GGUF") fail("begins with no 'GGUF'");
    at_ = 4;
    const auto version = number<uint32_t>("version");
    if (version != 2 && version != 3)
      fail("version: expected 2 or 3, received " + std::to_string(version));
    const auto tensors = count("number of tensors", 24), entries = count("number of entries", 13);
    for (uint64_t i = 0; i < entries; ++i) read_entry();
    for (uint64_t i = 0; i < tensors; ++i) read_header();
    map_tensors();
    return std::move(result_);
  }

 private:
  struct Header {
    std::string name;
    const Format* format = nullptr;
    Dims sizes;
    uint64_t offset = 0, bytes = 0;
  };

  [[noreturn]] void fail(const std::string& what) const {
    throw UserError("[gguf] " + path_.string() + ", byte " + std::to_string(at_) + ": " + what);
  }
  uint64_t left() const { return file_->size() - at_; }

  template <class T>
  T number(const char* what) {
    if (left() < sizeof(T)) fail(std::string("the file ends within ") + what);
    T value;
    std::memcpy(&value, file_->data() + at_, sizeof(T));
    at_ += sizeof(T);
    return value;
  }
  // How many things there are, each of which takes `smallest` bytes or more.
  uint64_t count(const char* what, uint64_t smallest) {
    const auto value = number<uint64_t>(what);
    if (value > left() / smallest)
      fail(std::string(what) + ": " + std::to_string(value) + " do not fit into the file");
    return value;
  }
  std::string text(const char* what) {
    const uint64_t size = count(what, 1);
    std::string value(file_->text().substr(at_, size));
    at_ += size;
    return value;
  }
  Kind kind(const std::string& key) {
    const auto value = number<uint32_t>("the type of an entry");
    if (value > static_cast<uint32_t>(Kind::float64))
      fail("entry '" + key + "': there is no type " + std::to_string(value));
    return static_cast<Kind>(value);
  }

  void read_entry() {
    std::string key = text("the name of an entry");
    const Kind type = kind(key);
    Attribute value = type == Kind::list ? list(key) : one(key, type);
    if (!result_.metadata.try_emplace(key, std::move(value)).second)
      fail("two entries are called '" + key + "'");
  }
  Attribute list(const std::string& key) {
    const Kind type = kind(key);
    if (type == Kind::list) fail("entry '" + key + "': lists of lists are not read");
    const uint64_t size = count("the length of a list", kSmallest[static_cast<size_t>(type)]);
    List items;
    items.items.reserve(size);
    for (uint64_t i = 0; i < size; ++i) items.items.push_back(one(key, type));
    return items;
  }
  Attribute one(const std::string& key, Kind type) {
    const char* what = "the value of an entry";
    switch (type) {
      case Kind::uint8:
        return int64_t{number<uint8_t>(what)};
      case Kind::int8:
        return int64_t{number<int8_t>(what)};
      case Kind::uint16:
        return int64_t{number<uint16_t>(what)};
      case Kind::int16:
        return int64_t{number<int16_t>(what)};
      case Kind::uint32:
        return int64_t{number<uint32_t>(what)};
      case Kind::int32:
        return int64_t{number<int32_t>(what)};
      case Kind::int64:
        return number<int64_t>(what);
      case Kind::uint64:
        return large(key, number<uint64_t>(what));
      case Kind::float32:
        return double{number<float>(what)};
      case Kind::float64:
        return number<double>(what);
      case Kind::boolean:
        return boolean(key, number<uint8_t>(what));
      case Kind::string:
        return text(what);
      case Kind::list:
        break;
    }
    fail("entry '" + key + "': a list where one value is expected");
  }
  int64_t large(const std::string& key, uint64_t value) const {
    if (value > static_cast<uint64_t>(INT64_MAX))
      fail("entry '" + key + "': " + std::to_string(value) +
           " is more than 64 bits with a sign hold");
    return static_cast<int64_t>(value);
  }
  bool boolean(const std::string& key, uint8_t value) const {
    if (value > 1)
      fail("entry '" + key + "': expected 0 or 1 for a bool, received " + std::to_string(value));
    return value == 1;
  }

  void read_header() {
    Header header;
    header.name = text("the name of a tensor");
    const auto axes = number<uint32_t>("the number of axes");
    if (axes > 4)
      fail("tensor '" + header.name + "': expected at most 4 axes, received " +
           std::to_string(axes));
    uint64_t numel = 1;
    for (uint32_t axis = 0; axis < axes; ++axis) {
      const auto size = number<uint64_t>("a size");
      // An element takes more than a quarter of a byte.
      if (size == 0 || numel > 4 * file_->size() / size)
        fail("tensor '" + header.name + "': its sizes are 0, or do not fit into the file");
      numel *= size;
      header.sizes.insert(header.sizes.begin(),
                          static_cast<int64_t>(size));  // the first is the last
    }
    header.format = &format_of(header.name, number<uint32_t>("the type of a tensor"));
    header.offset = number<uint64_t>("the place of a tensor");
    header.bytes = bytes_of(header, numel);
    headers_.push_back(std::move(header));
  }
  const Format& format_of(const std::string& tensor, uint32_t number) const {
    std::string known;
    for (const Format& format : kFormats) {
      if (format.number == number) return format;
      known += (known.empty() ? "" : ", ") + std::string(format.name);
    }
    std::string other;
    for (const auto& [value, name] : kOthers)
      if (value == number) other = " (" + std::string(name) + ")";
    fail("tensor '" + tensor + "' is of type " + std::to_string(number) + other +
         " of ggml, which is not read; those that are: " + known);
  }
  uint64_t bytes_of(const Header& header, uint64_t numel) const {
    const auto columns = static_cast<uint64_t>(header.format->columns);
    const int64_t row = header.sizes.empty() ? 1 : header.sizes.back();
    if (row % header.format->columns != 0)
      fail("tensor '" + header.name + "': " + std::to_string(row) + " columns are no blocks of " +
           std::to_string(columns) + ", of which " + std::string(header.format->name) + " is made");
    return numel / columns * static_cast<uint64_t>(header.format->bytes);
  }

  uint64_t alignment() const {
    const auto found = result_.metadata.find("general.alignment");
    if (found == result_.metadata.end()) return 32;
    const auto* value = found->second.get_if<int64_t>();
    if (value == nullptr || *value <= 0 || *value > (1 << 20) || (*value & (*value - 1)) != 0)
      fail("general.alignment: expected a power of 2 up to 2^20");
    return static_cast<uint64_t>(*value);
  }

  // Data begins at the next aligned byte; offsets count from there.
  void map_tensors() {
    const uint64_t unit = alignment(), begin = (at_ + unit - 1) / unit * unit;
    const uint64_t size = begin <= file_->size() ? file_->size() - begin : 0;
    std::vector<std::pair<uint64_t, uint64_t>> ranges;
    for (const Header& header : headers_) {
      if (header.offset % unit != 0)
        fail("tensor '" + header.name + "' begins at no multiple of " + std::to_string(unit));
      if (header.bytes > size || header.offset > size - header.bytes)
        fail("tensor '" + header.name + "': its " + std::to_string(header.bytes) +
             " bytes reach beyond the end of the file");
      if (header.bytes > 0) ranges.emplace_back(header.offset, header.offset + header.bytes);
      add(header, file_->data() + begin + header.offset);
    }
    std::sort(ranges.begin(), ranges.end());
    for (size_t i = 1; i < ranges.size(); ++i)
      if (ranges[i].first < ranges[i - 1].second) fail("two tensors share bytes of the file");
  }
  void add(const Header& header, const std::byte* data) {
    const Format& format = *header.format;
    Dims sizes = header.sizes;
    if (format.is_block()) sizes.back() = sizes.back() / format.columns * format.bytes;
    const Type lies = tensor_type(format.dtype, sizes);
    const bool aligned = reinterpret_cast<uintptr_t>(data) % item_size(format.dtype) == 0;
    GgufTensor tensor{
        .format = std::string(format.name),
        .type = tensor_type(format.is_block() ? DType::float32 : format.dtype, header.sizes),
        .data = aligned ? Array(lies, file_->part(data, header.bytes), data)
                        : Array::copy_of(lies, data)};
    if (!result_.tensors.try_emplace(header.name, std::move(tensor)).second)
      fail("two tensors are called '" + header.name + "'");
  }

  const std::filesystem::path& path_;
  std::shared_ptr<const io::MappedFile> file_;
  uint64_t at_ = 0;
  std::vector<Header> headers_;
  Gguf result_;
};

}  // namespace

Gguf read_gguf(const std::filesystem::path& file) { return Reader(file).read(); }

LazyTensor numbers_of(const std::string& name, const GgufTensor& tensor) {
  const LazyTensor held = held_input(name, tensor.data, InputKind::buffer);
  if (tensor.data.type() == tensor.type) return held;
  return apply_one("gguf::dequantize_" + tensor.format, {held});
}

}  // namespace composit
