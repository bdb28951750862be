#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <vector>

#include "composit/io/file.h"
#include "composit/io/safetensors.h"
#include "composit/io/safetensors_format.h"
#include "composit/ir/error.h"

namespace composit {
namespace {

using nlohmann::json;

// Finds faults of a header that is valid JSON, in one walk over the text. JSON allows an object to
// repeat a key without saying what that means; such a header is refused. Depth is limited because a
// level of nesting takes one byte in the file and about a hundred in memory.
class HeaderCheck : public nlohmann::json_sax<json> {
 public:
  // Empty: nothing. What is no JSON at all is left to the parser.
  const std::string& problem() const { return problem_; }

  bool start_object(size_t) override { return enter(); }
  bool start_array(size_t) override { return enter(); }
  bool end_object() override { return leave(); }
  bool end_array() override { return leave(); }
  bool key(std::string& key) override {
    if (open_.back().insert(key).second) return true;
    problem_ = fmt::format("key '{}' stands twice", key);
    return false;
  }
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(int64_t) override { return true; }
  bool number_unsigned(uint64_t) override { return true; }
  bool number_float(double, const std::string&) override { return true; }
  bool string(std::string&) override { return true; }
  bool binary(json::binary_t&) override { return true; }
  bool parse_error(size_t, const std::string&, const json::exception&) override { return false; }

 private:
  static constexpr size_t kMaxDepth = 3;

  bool enter() {
    if (open_.size() == kMaxDepth) {
      problem_ = fmt::format("nested more than {} deep", kMaxDepth);
      return false;
    }
    open_.emplace_back();
    return true;
  }
  bool leave() {
    open_.pop_back();
    return true;
  }

  std::vector<std::set<std::string>> open_;  // keys of the objects, none of lists
  std::string problem_;
};

// A tensor as the header describes it; offsets count from the start of the data.
struct Entry {
  std::string name;
  Type type;
  uint64_t begin = 0;
  uint64_t end = 0;
  bool stored_as_bytes = false;
};

class Reader {
 public:
  explicit Reader(const std::filesystem::path& path)
      : path_(path), file_(io::MappedFile::open(path)) {}

  Safetensors read() {
    const std::string_view header = header_text();
    data_ = file_->data() + sizeof(uint64_t) + header.size();
    data_size_ = file_->size() - sizeof(uint64_t) - header.size();
    const json fields = parse_header(header);
    for (const auto& [key, value] : fields.items())
      key == io::kMetadataKey ? read_metadata(value) : read_entry(key, value);
    check_coverage();
    restore_dtypes();
    return make_arrays();
  }

 private:
  template <class... Parts>
  [[noreturn]] void fail(fmt::format_string<Parts...> format, Parts&&... parts) const {
    throw UserError(fmt::format("[read] {}: {}", path_.string(),
                                fmt::format(format, std::forward<Parts>(parts)...)));
  }

  std::string_view header_text() const {
    const std::string_view text = file_->text();
    constexpr size_t kPrefix = sizeof(uint64_t);
    if (text.size() < kPrefix)
      fail("a safetensors file has at least 8 bytes, this one {}", text.size());
    uint64_t size = 0;
    for (size_t byte = 0; byte < kPrefix; ++byte)
      size |= static_cast<uint64_t>(static_cast<unsigned char>(text[byte])) << 8 * byte;
    const uint64_t limit = std::min<uint64_t>(text.size() - kPrefix, io::kMaxHeaderSize);
    if (size > limit)
      fail("header: its length is given as {} bytes, there can be {} at most", size, limit);
    return text.substr(kPrefix, size);
  }

  // In two walks: the parser's own callback takes time quadratic in the number of tensors.
  json parse_header(std::string_view text) const {
    HeaderCheck check;
    json::sax_parse(text, &check);
    if (!check.problem().empty()) fail("header: {}", check.problem());
    try {
      json header = json::parse(text);
      if (!header.is_object())
        fail("header: expected a JSON object, received {}", header.type_name());
      return header;
    } catch (const json::exception& error) {
      fail("header: {}", error.what());
    }
  }

  void read_metadata(const json& fields) {
    if (!fields.is_object())
      fail("{}: expected an object, received {}", io::kMetadataKey, fields.type_name());
    for (const auto& [key, value] : fields.items()) {
      if (!value.is_string())
        fail("{}: '{}': expected a string, received {}", io::kMetadataKey, key, value.type_name());
      metadata_[key] = value.get<std::string>();
    }
  }

  void read_entry(const std::string& name, const json& fields) {
    if (!fields.is_object())
      fail("tensor '{}': expected an object, received {}", name, fields.type_name());
    for (const auto& [key, value] : fields.items())
      if (key != "dtype" && key != "shape" && key != "data_offsets")
        fail("tensor '{}': unknown key '{}'", name, key);
    Entry entry;
    entry.name = name;
    entry.type = tensor_type(read_dtype(name, fields), {});
    read_shape(entry, fields);
    read_offsets(entry, fields);
    entries_.push_back(std::move(entry));
  }

  const json& field(const std::string& tensor, const json& fields, const char* key) const {
    const auto found = fields.find(key);
    if (found == fields.end()) fail("tensor '{}': '{}' is missing", tensor, key);
    return *found;
  }

  DType read_dtype(const std::string& name, const json& fields) const {
    const json& value = field(name, fields, "dtype");
    const auto dtype = value.is_string()
                           ? io::dtype_from_safetensors(value.get_ref<const std::string&>())
                           : std::nullopt;
    if (!dtype) fail("tensor '{}': unknown dtype {}", name, shown(value));
    return *dtype;
  }

  std::vector<uint64_t> read_numbers(const std::string& name, const json& fields,
                                     const char* key) const {
    const json& list = field(name, fields, key);
    if (!list.is_array())
      fail("tensor '{}': {}: expected a list, received {}", name, key, shown(list));
    std::vector<uint64_t> numbers;
    for (const json& item : list) {
      if (!item.is_number_unsigned())
        fail("tensor '{}': {}: expected non-negative integers, received {}", name, key,
             shown(item));
      numbers.push_back(item.get<uint64_t>());
    }
    return numbers;
  }

  // Sizes are bounded as if none of them were 0, so that strides cannot overflow either.
  void read_shape(Entry& entry, const json& fields) const {
    auto bound = static_cast<int64_t>(item_size(entry.type.dtype));
    Dims sizes;
    for (uint64_t size : read_numbers(entry.name, fields, "shape")) {
      if (__builtin_mul_overflow(bound, std::max<uint64_t>(size, 1), &bound))
        fail("tensor '{}': shape: its size in bytes exceeds 64 bits", entry.name);
      sizes.emplace_back(static_cast<int64_t>(size));
    }
    entry.type = tensor_type(entry.type.dtype, std::move(sizes));
  }

  void read_offsets(Entry& entry, const json& fields) const {
    const std::vector<uint64_t> offsets = read_numbers(entry.name, fields, "data_offsets");
    if (offsets.size() != 2)
      fail("tensor '{}': data_offsets: expected 2 numbers, received {}", entry.name,
           offsets.size());
    entry.begin = offsets[0];
    entry.end = offsets[1];
    if (entry.begin > entry.end || entry.end > data_size_)
      fail("tensor '{}': data_offsets: {} to {} is no range within the {} bytes of data",
           entry.name, entry.begin, entry.end, data_size_);
    if (entry.end - entry.begin != static_cast<uint64_t>(entry.type.nbytes()))
      fail("tensor '{}': data_offsets: dtype and shape need {} bytes, {} to {} are {}", entry.name,
           entry.type.nbytes(), entry.begin, entry.end, entry.end - entry.begin);
  }

  // The tensors must cover the data without overlaps and gaps.
  void check_coverage() {
    std::sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) {
      return std::tie(a.begin, a.end) < std::tie(b.begin, b.end);
    });
    uint64_t end = 0;
    for (const Entry& entry : entries_) {
      if (entry.begin < end)
        fail("tensor '{}': data_offsets: overlaps the tensor before it, which ends at {}",
             entry.name, end);
      if (entry.begin > end)
        fail("tensor '{}': data_offsets: bytes {} to {} belong to no tensor", entry.name, end,
             entry.begin);
      end = entry.end;
    }
    if (end != data_size_) fail("the last tensor ends at {}, the data at {}", end, data_size_);
  }

  // Turns bytes into elements of the dtypes that the metadata names, and takes those remarks out of
  // it.
  void restore_dtypes() {
    std::map<std::string, Entry*> by_name;
    for (Entry& entry : entries_) by_name[entry.name] = &entry;
    for (auto remark = metadata_.lower_bound(std::string(io::kDTypePrefix));
         remark != metadata_.end() && remark->first.starts_with(io::kDTypePrefix);
         remark = metadata_.erase(remark)) {
      const auto found = by_name.find(remark->first.substr(io::kDTypePrefix.size()));
      if (found == by_name.end())
        fail("{}: '{}': there is no such tensor", io::kMetadataKey, remark->first);
      restore_dtype(*found->second, remark->second);
    }
  }

  void restore_dtype(Entry& entry, const std::string& dtype_name) const {
    const auto dtype = dtype_from_name(dtype_name);
    if (!dtype || io::safetensors_name(*dtype))
      fail("{}: tensor '{}': '{}' is no dtype that is stored as bytes", io::kMetadataKey,
           entry.name, dtype_name);
    Dims sizes = entry.type.sizes;
    if (entry.type.dtype != DType::uint8 || sizes.empty() ||
        sizes.back() != static_cast<int64_t>(item_size(*dtype)))
      fail("tensor '{}': shape: {} needs U8 with a last axis of {}", entry.name, dtype_name,
           item_size(*dtype));
    sizes.pop_back();
    entry.type = tensor_type(*dtype, std::move(sizes));
    entry.stored_as_bytes = true;
  }

  Safetensors make_arrays() {
    Safetensors contents;
    contents.metadata = std::move(metadata_);
    for (Entry& entry : entries_) {
      if (entry.name.starts_with(io::kPaddingPrefix)) continue;
      contents.tensors.emplace(entry.name, make_array(entry));
    }
    return contents;
  }

  // A program that sees only bytes may have moved stored data to an address where its elements are
  // not aligned.
  Array make_array(const Entry& entry) const {
    const std::byte* data = data_ + entry.begin;
    if (reinterpret_cast<uintptr_t>(data) % item_size(entry.type.dtype) == 0)
      return Array(entry.type, file_->part(data, entry.end - entry.begin), data);
    if (entry.stored_as_bytes) return Array::copy_of(entry.type, data);
    fail("tensor '{}': data_offsets: its {} elements are not aligned", entry.name,
         name(entry.type.dtype));
  }

  // A value for a message, cut to a readable length.
  static std::string shown(const json& value) {
    std::string text = value.dump(-1, ' ', true, json::error_handler_t::replace);
    return text.size() <= 40 ? text : text.substr(0, 37) + "...";
  }

  const std::filesystem::path& path_;
  std::shared_ptr<const io::MappedFile> file_;
  const std::byte* data_ = nullptr;
  uint64_t data_size_ = 0;
  std::vector<Entry> entries_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace

Safetensors read_safetensors(const std::filesystem::path& file) { return Reader(file).read(); }

}  // namespace composit
