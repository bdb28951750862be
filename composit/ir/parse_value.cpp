// Types and attributes from text.
#include <algorithm>
#include <cstring>

#include "composit/ir/error.h"
#include "composit/ir/parser.h"
#include "composit/ir/print.h"
#include "composit/ir/verify.h"

namespace composit {
namespace {

std::optional<AttributeKind> element_kind(std::string_view word) {
  if (word == "any") return AttributeKind::none;
  for (auto kind = AttributeKind::boolean; kind < AttributeKind::region;
       kind = static_cast<AttributeKind>(static_cast<int>(kind) + 1))
    if (name(kind) == word) return kind;
  return std::nullopt;
}

void write_integer(int64_t value, DType dtype, std::byte* element) {
  const auto narrow = static_cast<int32_t>(value);
  if (dtype == DType::int64)
    std::memcpy(element, &value, sizeof(value));
  else if (narrow == value)
    std::memcpy(element, &narrow, sizeof(narrow));
  else
    throw UserError("[parse] expected an int32, received " + std::to_string(value));
}

}  // namespace

void Parser::fail_at(const Token& token, std::string_view expected) const {
  lexer_.fail(token.offset,
              "expected " + std::string(expected) + ", received '" + std::string(token.text) + "'");
}

// ---- types --------------------------------------------------------------------------------------

Type Parser::type() {
  const Token word = lexer_.take(TokenKind::word, "a type");
  if (word.text == "none") return undefined_type();
  const auto dtype = dtype_from_name(word.text);
  if (!dtype) fail_at(word, "a dtype");
  Type result;
  result.dtype = *dtype;
  lexer_.expect("[");
  while (!lexer_.accept("]")) {
    result.sizes.emplace_back(integer_or_formula());
    separator("]");
  }
  bool has_strides = false;
  while (lexer_.at("strides") || lexer_.at("layout") || lexer_.at("device") || lexer_.at("conj") ||
         lexer_.at("neg"))
    type_property(result, has_strides);
  if (!has_strides && result.layout == Layout::strided)
    result.strides = contiguous_strides(result.sizes);
  if (const auto fault = fault_of(result)) lexer_.fail(word.offset, *fault);
  return result;
}

void Parser::type_property(Type& type, bool& has_strides) {
  const Token property = lexer_.take();
  if (property.text == "conj") {
    type.conj = true;
    return;
  }
  if (property.text == "neg") {
    type.neg = true;
    return;
  }
  lexer_.expect("=");
  if (property.text == "strides") {
    has_strides = true;
    type.strides.clear();
    lexer_.expect("[");
    while (!lexer_.accept("]")) {
      type.strides.push_back(integer());
      separator("]");
    }
    return;
  }
  if (property.text == "device") {
    type.device = device();
    return;
  }
  const Token word = lexer_.take(TokenKind::word, "a layout");
  const auto layout = layout_from_name(word.text);
  if (!layout) fail_at(word, "a layout");
  type.layout = *layout;
}

// ---- numbers ------------------------------------------------------------------------------------

int64_t Parser::integer() {
  const Token token = lexer_.take(TokenKind::number, "an integer");
  const auto value = parse_int(token.text);
  if (!value) fail_at(token, "an integer of 64 bits");
  return *value;
}

int64_t Parser::integer_or_formula() {
  const size_t position = place_.position++;
  if (formulas_ == nullptr) return integer();
  const size_t offset = lexer_.peek().offset;
  const SizeFormula formula = read_formula(lexer_, [this](std::string_view name) {
    const LazyTensor* found = frame_ == nullptr ? nullptr : frame_->names.find(name);
    return found == nullptr ? LazyTensor() : *found;
  });
  if (formula.kind() == SizeFormula::Kind::constant) return formula.constant();
  place_.formulas.push_back({place_.of, place_.number, position, formula});
  try {
    return formula.evaluate(
        [](const LazyTensor& tensor, size_t axis) { return tensor.sizes().at(axis); });
  } catch (const UserError& error) {
    lexer_.fail(offset, error.what());
  }
}

double Parser::real() {
  const Token token = lexer_.peek();
  const auto value = parse_float(token.text);
  if (!value || (token.kind != TokenKind::number && token.kind != TokenKind::word))
    lexer_.fail_expected("a float");
  lexer_.take();
  return *value;
}

std::complex<double> Parser::complex() {
  const double re = real();
  lexer_.expect(",");
  return {re, real()};
}

Attribute Parser::number_constant() {
  if (looks_like_float(lexer_.peek().text)) return real();
  return integer_or_formula();
}

// ---- attributes ---------------------------------------------------------------------------------

Attribute Parser::constant() {
  switch (lexer_.peek().kind) {
    case TokenKind::number:
      return number_constant();
    case TokenKind::string:
      return lexer_.take_string("a string");
    case TokenKind::word:
      return word_constant();
    default:
      if (lexer_.at("(") && formulas_ != nullptr) return integer_or_formula();
      if (!lexer_.at("[")) lexer_.fail_expected("the value of an attribute");
      return list(AttributeKind::none, true);
  }
}

Attribute Parser::word_constant() {
  if (lexer_.at("region")) return region();
  if (formulas_ != nullptr && at_formula(lexer_)) return integer_or_formula();
  if (parse_float(lexer_.peek().text)) return real();  // inf, -nan, ...
  const Token word = lexer_.take();
  if (lexer_.at("(")) return call(word);
  if (lexer_.at("[")) {
    const auto element = element_kind(word.text);
    if (!element) fail_at(word, "a kind of list elements");
    return list(*element, false);
  }
  if (word.text == "none") return {};
  if (word.text == "true" || word.text == "false") return word.text == "true";
  if (const auto dtype = dtype_from_name(word.text)) return *dtype;
  if (const auto layout = layout_from_name(word.text)) return *layout;
  if (const auto format = memory_format_from_name(word.text)) return *format;
  fail_at(word, "the value of an attribute");
}

Attribute Parser::list(AttributeKind element, bool infer) {
  const size_t offset = lexer_.peek().offset;
  if (++list_depth_ > kMaxNesting)
    lexer_.fail(offset, "expected at most " + std::to_string(kMaxNesting) + " nested lists");
  List result{element, {}};
  lexer_.expect("[");
  while (!lexer_.accept("]")) {
    result.items.push_back(constant());
    separator("]");
  }
  --list_depth_;
  if (!infer) return result;
  result.element = common_kind(result);
  if (result.element == AttributeKind::none)
    lexer_.fail(offset,
                "expected the kind of the elements before '[', as in int[] or any[1, true]");
  return result;
}

Attribute Parser::call(const Token& function) {
  lexer_.expect("(");
  Attribute result;
  if (function.text == "device")
    result = device();
  else if (function.text == "generator")
    result = Generator{lexer_.take_string("the role of a generator")};
  else if (function.text == "complex")
    result = complex();
  else if (function.text == "scalar")
    result = scalar();
  else if (function.text == "array")
    result = array();
  else if (function.text == "opaque")
    lexer_.fail(function.offset,
                "expected a value that can be read, received an object that only the process knew "
                "which printed it: " +
                    std::string(lexer_.peek().text));
  else
    fail_at(function, "the value of an attribute");
  lexer_.expect(")");
  return result;
}

Device Parser::device() {
  const Token word = lexer_.take(TokenKind::word, "a device");
  const auto device = device_from_name(word.text);
  if (!device) fail_at(word, "a device");
  return *device;
}

Scalar Parser::scalar() {
  Scalar result;
  if (lexer_.at("true") || lexer_.at("false")) {
    result.value = lexer_.take().text == "true";
  } else if (lexer_.accept("complex")) {
    lexer_.expect("(");
    result.value = complex();
    lexer_.expect(")");
  } else if ((lexer_.peek().kind == TokenKind::number && !looks_like_float(lexer_.peek().text)) ||
             (formulas_ != nullptr && at_formula(lexer_))) {
    result.value = integer_or_formula();
  } else {
    result.value = real();
  }
  if (lexer_.accept(",")) {
    lexer_.expect("wrapped");
    result.wrapped = true;
  }
  return result;
}

Region Parser::region() {
  const size_t offset = lexer_.peek().offset;
  if (list_depth_ > 0) lexer_.fail(offset, "expected no region within a list");
  if (++region_depth_ > kMaxNesting)
    lexer_.fail(offset, "expected at most " + std::to_string(kMaxNesting) + " nested regions");
  lexer_.expect("region");
  auto result = std::make_shared<const Graph>(body(InputKind::block));
  --region_depth_;
  return result;
}

// ---- arrays -------------------------------------------------------------------------------------

Array Parser::array() {
  const size_t offset = lexer_.peek().offset;
  Formulas* const formulas = formulas_;
  const size_t position = place_.position;
  formulas_ = nullptr;  // its sizes are none of the node's integers
  const Type result = type();
  formulas_ = formulas;
  place_.position = position;
  if (!is_defined(result) || result.layout != Layout::strided)
    lexer_.fail(offset, "expected a strided type, received " + print(result));
  if (lexer_.accept("@")) return stored_array(result);
  lexer_.expect(",");
  return inline_array(result, offset);
}

Array Parser::stored_array(const Type& type) {
  const size_t offset = lexer_.peek().offset;
  const std::string name = lexer_.take_string("the name of an array");
  if (arrays_ == nullptr)
    lexer_.fail(offset, "expected no stored arrays here, received '" + name + "'");
  Array array;
  try {
    array = arrays_->get(name, type);
  } catch (const UserError& error) {
    lexer_.fail(offset, error.what());
  }
  COMPOSIT_ASSERT(array.defined() && array.type() == type,
                  "a store returns another type than it was asked for");
  return array;
}

Array Parser::inline_array(const Type& type, size_t offset) {
  Type dense = without_repeats(type);
  std::vector<int64_t> strides = std::move(dense.strides);
  dense.strides = contiguous_strides(dense.sizes);
  const int64_t count = dense.numel();
  std::vector<std::byte> bytes;
  lexer_.expect("[");
  for (int64_t i = 0; i < count; ++i) {
    if (i > 0) lexer_.expect(",");
    element(dense.dtype, bytes);
  }
  if (!lexer_.accept("]"))
    lexer_.fail_expected("']' behind " + std::to_string(count) + " elements");
  const int64_t spanned = type.extent() * static_cast<int64_t>(item_size(type.dtype));
  const int64_t gaps = std::max<int64_t>(spanned - dense.nbytes(), 0);
  if (gaps > kMaxArrayGaps - gaps_)
    lexer_.fail(offset, "expected strides that leave at most " + std::to_string(kMaxArrayGaps) +
                            " bytes between all arrays' elements, received " + print(type));
  gaps_ += gaps;
  const Array array = Array::copy_of(dense, bytes.data()).with_strides(std::move(strides));
  return Array(type, array.owner(), array.data());
}

void Parser::element(DType dtype, std::vector<std::byte>& bytes) {
  const auto part_dtype = part_of_complex(dtype);
  if (!part_dtype) return part(dtype, bytes);
  lexer_.expect("complex");
  lexer_.expect("(");
  part(*part_dtype, bytes);
  lexer_.expect(",");
  part(*part_dtype, bytes);
  lexer_.expect(")");
}

void Parser::part(DType dtype, std::vector<std::byte>& bytes) {
  const size_t begin = bytes.size();
  bytes.resize(begin + item_size(dtype));
  if (formulas_ != nullptr && (dtype == DType::int64 || dtype == DType::int32)) {
    write_integer(integer_or_formula(), dtype, &bytes[begin]);
    return;
  }
  const Token& token = lexer_.peek();
  const bool literal = token.kind == TokenKind::number || token.kind == TokenKind::word;
  if (!literal || !parse_element(token.text, dtype, &bytes[begin]))
    lexer_.fail_expected("an element of " + std::string(name(dtype)));
  lexer_.take();
}

}  // namespace composit
