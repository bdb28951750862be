// Types and attributes as text.
#include <cstring>

#include "composit/ir/literal.h"
#include "composit/ir/overload.h"
#include "composit/ir/printer.h"

namespace composit {
namespace {

// An enumerator by its name; by its number where it is none of ours.
template <class Enum>
std::string word(Enum value) {
  if (is_valid(value)) return std::string(name(value));
  return "unknown_" + std::to_string(static_cast<int>(value));
}
std::string word(Device device) {
  return is_valid(device) ? name(device) : "unknown_" + std::to_string(device.type);
}

template <class Items, class Print>
void append_list(std::string& text, const Items& items, Print print) {
  text += '[';
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) text += ", ";
    print(items[i]);
  }
  text += ']';
}

template <class T>
int64_t read(const std::byte* element) {
  T value;
  std::memcpy(&value, element, sizeof(T));
  return value;
}

}  // namespace

void Printer::type(const Type& type) {
  if (type == undefined_type()) {
    text_ += "none";
    return;
  }
  text_ += word(type.dtype);
  append_list(text_, type.sizes, [this](int64_t size) { integer(size); });
  if (type.layout != Layout::strided) text_ += " layout=" + word(type.layout);
  const bool default_strides = type.layout == Layout::strided ? is_contiguous(type)  //
                                                              : type.strides.empty();
  if (!default_strides) {
    text_ += " strides=";
    append_list(text_, type.strides, [this](int64_t stride) { append_int(text_, stride); });
  }
  if (type.device != Device{}) text_ += " device=" + word(type.device);
  if (type.conj) text_ += " conj";
  if (type.neg) text_ += " neg";
}

void Printer::value(const Attribute& attribute) {
  std::visit(Overload{[this](std::monostate) { text_ += "none"; },
                      [this](bool value) { text_ += value ? "true" : "false"; },
                      [this](int64_t dim) { integer(dim); },
                      [this](double value) { append_float(text_, value); },
                      [this](std::complex<double> value) { complex(value); },
                      [this](const std::string& value) { append_quoted(text_, value); },
                      [this](DType dtype) { text_ += word(dtype); },
                      [this](Device device) { call("device", word(device)); },
                      [this](Layout layout) { text_ += word(layout); },
                      [this](MemoryFormat format) { text_ += word(format); },
                      [this](const Generator& value) { call_quoted("generator", value.role); },
                      [this](const Scalar& value) { scalar(value); },
                      [this](const List& value) { list(value); },
                      [this](const Array& value) { array(value); },
                      [this](const Region& value) { region(value); },
                      [this](const Opaque& value) { call_quoted("opaque", value.description); }},
             attribute.value());
}

void Printer::integer(int64_t value) {
  const size_t position = place_.position++;
  if (place_.formulas != nullptr)
    for (const IntegerFormula& one : *place_.formulas)
      if (one.of == place_.of && one.number == place_.number && one.position == position) {
        text_ += print(one.formula, *place_.names);
        return;
      }
  append_int(text_, value);
}

void Printer::call(std::string_view function, std::string_view word) {
  text_.append(function).append("(").append(word).append(")");
}

void Printer::call_quoted(std::string_view function, std::string_view text) {
  text_.append(function).append("(");
  append_quoted(text_, text);
  text_ += ')';
}

void Printer::complex(std::complex<double> value) {
  text_ += "complex(";
  append_float(text_, value.real());
  text_ += ", ";
  append_float(text_, value.imag());
  text_ += ')';
}

void Printer::scalar(const Scalar& scalar) {
  text_ += "scalar(";
  std::visit([this](auto number) { value(Attribute(number)); }, scalar.value);
  text_ += scalar.wrapped ? ", wrapped)" : ")";
}

void Printer::list(const List& list) {
  if (list.element == AttributeKind::none || list.element != common_kind(list))
    text_ += list.element == AttributeKind::none ? "any" : name(list.element);
  append_list(text_, list.items, [this](const Attribute& item) { value(item); });
}

void Printer::array(const Array& array) {
  if (!array.defined()) {
    text_ += "array()";
    return;
  }
  text_ += "array(";
  const Place place = place_;
  place_ = {};  // its sizes are none of the node's integers
  type(array.type());
  place_ = place;
  const bool large = without_repeats(array.type()).numel() > options_.inline_elements;
  if (large && options_.arrays != nullptr) {
    text_ += " @ ";
    append_quoted(text_, options_.arrays->put(array, array_hint_));
  } else if (large && options_.brief) {
    text_ += ", ...";
  } else {
    text_ += ", ";
    elements(array);
  }
  text_ += ')';
}

void Printer::elements(const Array& array) {
  const Array distinct =
      Array(without_repeats(array.type()), array.owner(), array.data()).contiguous();
  const DType dtype = distinct.type().dtype;
  const std::optional<DType> part = part_of_complex(dtype);
  const std::byte* element = distinct.data();
  text_ += '[';
  for (int64_t i = 0; i < distinct.type().numel(); ++i, element += item_size(dtype)) {
    if (i > 0) text_ += ", ";
    if (dtype == DType::int64 || dtype == DType::int32) {
      integer(dtype == DType::int64 ? read<int64_t>(element) : read<int32_t>(element));
      continue;
    }
    if (!part) {
      append_element(text_, dtype, element);
      continue;
    }
    text_ += "complex(";
    append_element(text_, *part, element);
    text_ += ", ";
    append_element(text_, *part, element + item_size(*part));
    text_ += ')';
  }
  text_ += ']';
}

void Printer::region(const Region& region) {
  if (region == nullptr)
    text_ += "region()";
  else if (options_.brief)
    text_ += "region(...)";
  else
    graph(*region, "region");
}

}  // namespace composit
