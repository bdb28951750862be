#include "composit/op/samples.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <numeric>
#include <random>

#include "composit/ir/error.h"
#include "composit/ir/words.h"
#include "composit/op/compute_type.h"
#include "composit/op/promotion.h"

namespace composit {
namespace {

[[noreturn]] void unreadable(std::string_view text) {
  throw InternalError("cannot read '" + std::string(text) + "' in a sample", __FILE__, __LINE__);
}

// The parts of `text` between `separator`s that stand outside of brackets and quotes.
std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  int depth = 0;
  bool quoted = false;
  size_t begin = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size()) {
      if (text[i] == '\'') quoted = !quoted;
      if (text[i] == '[') ++depth;
      if (text[i] == ']') --depth;
      if (text[i] != separator || depth > 0 || quoted) continue;
    }
    if (const auto part = trimmed(text.substr(begin, i - begin)); !part.empty())
      parts.push_back(part);
    begin = i + 1;
  }
  return parts;
}

std::optional<DType> short_dtype(std::string_view name) {
  static const std::map<std::string_view, DType> names = {
      {"f16", DType::float16}, {"bf16", DType::bfloat16}, {"f32", DType::float32},
      {"f64", DType::float64}, {"c64", DType::complex64}, {"c128", DType::complex128},
      {"i8", DType::int8},     {"i16", DType::int16},     {"i32", DType::int32},
      {"i64", DType::int64},   {"u8", DType::uint8},      {"bool", DType::bool_}};
  const auto found = names.find(name);
  return found == names.end() ? std::nullopt : std::optional(found->second);
}

double parsed_number(std::string_view text) {
  if (text == "nan") return NAN;
  if (text == "inf") return INFINITY;
  if (text == "-inf") return -INFINITY;
  size_t used = 0;
  const double value = std::stod(std::string(text), &used);
  if (used != text.size()) unreadable(text);
  return value;
}

std::vector<int64_t> integers(std::string_view list) {
  std::vector<int64_t> values;
  for (std::string_view item : split(list, ','))
    values.push_back(static_cast<int64_t>(parsed_number(item)));
  return values;
}

// ---- elements -----------------------------------------------------------------------------------

using Values = std::vector<std::complex<double>>;

// Uniform in [low, high); libstdc++'s distributions may differ between versions, this does not.
double uniform(std::mt19937& random, double low, double high) {
  return low + (high - low) * (random() / 4294967296.0);
}

Values random_values(std::mt19937& random, DType dtype, size_t count) {
  Values values;
  const auto one = [&] {  // away from zero, where kinks are
    const double x = uniform(random, 0.1, 2);
    return random() % 2 == 0 ? x : -x;
  };
  for (size_t i = 0; i < count; ++i) {
    if (category(dtype) == DTypeCategory::boolean)
      values.emplace_back(random() % 2);
    else if (category(dtype) == DTypeCategory::integer)
      values.emplace_back(static_cast<double>(random() % (dtype == DType::uint8 ? 6 : 11)) -
                          (dtype == DType::uint8 ? 0 : 5));
    else
      values.emplace_back(one(), category(dtype) == DTypeCategory::complex ? one() : 0.0);
  }
  return values;
}

// Indices without repetition along any axis: a Latin pattern.
Values distinct_values(std::mt19937& random, const Type& type, int64_t end) {
  std::vector<int64_t> order(static_cast<size_t>(end));
  std::iota(order.begin(), order.end(), int64_t{0});
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random() % i]);
  Values values;
  for (int64_t i = 0; i < type.numel(); ++i) {
    int64_t rest = i, total = 0;
    for (size_t axis = type.rank(); axis-- > 0;) {
      total += rest % type.sizes[axis];
      rest /= type.sizes[axis];
    }
    values.emplace_back(static_cast<double>(order[static_cast<size_t>(total % end)]));
  }
  return values;
}

// `place` among the tensors of a call: two that are described alike differ.
Values values_of(std::string_view how, const Type& type, size_t place) {
  Hasher seed;
  seed.add(how);
  seed.add(static_cast<uint64_t>(place));
  seed.add(static_cast<uint64_t>(type.numel()));
  std::mt19937 random(static_cast<uint32_t>(seed.finish().low));
  const auto count = static_cast<size_t>(type.numel());
  if (how.empty() || how == "=nan") {
    Values values = random_values(random, type.dtype, count);
    if (!how.empty()) values.at(count / 2) = NAN;
    return values;
  }
  if (how == "=mask") {
    Values values = random_values(random, DType::bool_, count);
    const auto row = static_cast<size_t>(type.sizes.back());
    for (size_t i = 0; i < count; i += row) values[i + random() % row] = 1;
    return values;
  }
  if (how[0] == '<' || how.starts_with("=distinct<")) {
    const double end = parsed_number(how.substr(how.find('<') + 1));
    if (how[0] != '<') return distinct_values(random, type, static_cast<int64_t>(end));
    Values values;
    for (size_t i = 0; i < count; ++i) values.emplace_back(std::floor(uniform(random, 0, end)));
    return values;
  }
  if (how.starts_with("=[")) {
    Values values;
    for (std::string_view item : split(how.substr(2, how.size() - 3), ','))
      values.emplace_back(parsed_number(item));
    if (values.size() != count) unreadable(how);
    return values;
  }
  const size_t dots = how.find("..");
  if (how[0] != '=' || dots == std::string_view::npos) unreadable(how);
  Values values;
  for (size_t i = 0; i < count; ++i)
    values.emplace_back(uniform(random, parsed_number(how.substr(1, dots - 1)),
                                parsed_number(how.substr(dots + 2))));
  return values;
}

Array array_of(const Type& type, const Values& values) {
  return with_storage(type.dtype, [&]<class S>(std::type_identity<S>) {
    std::vector<std::byte> bytes(values.size() * sizeof(S));
    for (size_t i = 0; i < values.size(); ++i) {
      const S stored =
          kIsComplex<Compute<S>> ? convert<S>(values[i]) : convert<S>(values[i].real());
      std::memcpy(bytes.data() + i * sizeof stored, &stored, sizeof stored);
    }
    return Array::copy_of(type, bytes.data());
  });
}

// ---- arguments ----------------------------------------------------------------------------------

class Reader {
 public:
  explicit Reader(DType floats) : floats_(floats) {}

  // The tensor `text` describes, or nothing where it is no tensor.
  std::optional<LazyTensor> tensor(const std::string& name, std::string_view text) {
    const size_t open = text.find('['), close = text.find(']');
    if (open == std::string_view::npos) return std::nullopt;
    std::optional<DType> dtype = short_dtype(text.substr(0, open));
    if (!dtype) return std::nullopt;
    if (*dtype == DType::float32) dtype = floats_;
    if (*dtype == DType::complex64 && floats_ == DType::float64) dtype = DType::complex128;
    const auto sizes = integers(text.substr(open + 1, close - open - 1));
    const Type type = tensor_type(*dtype, sizes);
    values_.push_back(array_of(type, values_of(text.substr(close + 1), type, values_.size())));
    return input(name, type);
  }

  ArgumentValue argument(const SchemaArgument& argument, std::string_view text) {
    if (text == "None") return none(argument);
    if (auto found = tensor(argument.name, text)) return *found;
    if (argument.is_tensor() && argument.list) return tensors(argument, text);
    if (argument.is_tensor()) values_.emplace_back();  // a number: a constant
    return data(text);
  }
  std::vector<Array> take_values() { return std::move(values_); }

 private:
  ArgumentValue none(const SchemaArgument& argument) {
    if (!argument.is_tensor()) return {};
    values_.emplace_back();
    return LazyTensor();
  }
  ArgumentValue tensors(const SchemaArgument& argument, std::string_view text) {
    LazyTensors items;
    for (std::string_view item : split(text.substr(1, text.size() - 2), ',')) {
      const std::string name = argument.name + std::to_string(items.size());
      auto found = item == "None" ? std::nullopt : tensor(name, item);
      if (!found) values_.emplace_back();
      items.push_back(found.value_or(LazyTensor()));
    }
    return items;
  }
  Attribute data(std::string_view text) {
    if (text == "True") return true;
    if (text == "False") return false;
    if (text.front() == '\'') return std::string(text.substr(1, text.size() - 2));
    if (text.front() == '[') return list(text.substr(1, text.size() - 2));
    if (const auto dtype = dtype_from_name(text))
      return *dtype == DType::float32 ? floats_ : *dtype;
    if (text.find_first_of(".ena") == std::string_view::npos)
      return static_cast<int64_t>(parsed_number(text));
    return parsed_number(text);
  }
  Attribute list(std::string_view text) {
    List items;
    for (std::string_view item : split(text, ',')) items.items.push_back(data(item));
    items.element = common_kind(items);
    return items;
  }

  DType floats_;
  std::vector<Array> values_;
};

}  // namespace

std::vector<std::string> split_samples(std::string_view text) {
  std::vector<std::string> samples;
  for (std::string_view sample : split(text, '|')) samples.emplace_back(sample);
  return samples;
}

std::pair<std::string, std::string> split_message(std::string_view text) {
  const size_t colon = text.find(": ");
  if (colon == std::string_view::npos) unreadable(text);
  return {std::string(text.substr(0, colon)), std::string(text.substr(colon + 2))};
}

SampleCall parse_sample(const Schema& schema, std::string_view text, DType floats) {
  Reader reader(floats);
  std::vector<ArgumentValue> arguments;
  for (std::string_view argument : split(text, ' ')) {
    COMPOSIT_ASSERT(arguments.size() < schema.arguments.size(),
                    "too many arguments in '" + std::string(text) + "' for " + schema.name.str());
    arguments.push_back(reader.argument(schema.arguments[arguments.size()], argument));
  }
  Call call(schema, std::move(arguments));
  std::vector<Array> values = reader.take_values();
  values.resize(call.tensors().size());
  for (size_t i = 0; i < values.size(); ++i)  // numbers in place of tensors
    if (!values[i].defined() && call.tensors()[i].defined())
      values[i] = call.tensors()[i].node->attribute("value").as<Array>();
  return {std::string(text), "", std::move(call), std::move(values)};
}

}  // namespace composit
