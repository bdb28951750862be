// Values whose sizes are data: how the text declares them, takes their memory, and passes them on.
#include <algorithm>

#include "flashlight/text/literal.h"
#include "flashlight/text/open_numbers.h"
#include "flashlight/text/routine_writer.h"

namespace flashlight::text {
namespace {

// Memory of more than this many times the elements of a value is kept for others.
constexpr int64_t kMostSlack = 4;

// "[12][64]": the dimensions without the first one.
std::string row_brackets(const Type& type) {
  std::vector<bool> rest(type.rank(), true);
  if (!rest.empty()) rest[0] = false;
  return brackets(type, &rest);
}

// "12, tokens, tokens".
std::string size_list(const Type& type) {
  std::string text;
  for (const int64_t size : type.sizes) text += (text.empty() ? "" : ", ") + bare_number(size);
  return text;
}

// The dimensions of a value that are in memory.
Type memory_type(const Type& type, const Storage& storage) {
  Type kept = type;
  kept.sizes.clear();
  for (size_t i = 0; i < type.rank(); ++i)
    if (storage.kept[i]) kept.sizes.push_back(type.sizes[i]);
  kept.strides.clear();
  return kept;
}

}  // namespace

Form form_of(const Type& type) {
  Form form = Form::array;
  if (current_names() == nullptr) return form;
  for (size_t i = 0; i < type.rank(); ++i)
    if (is_open_number(type.sizes[i])) form = i == 0 ? Form::rows : Form::view;
  return form;
}

std::string declared(const Type& type, const std::string& declarator) {
  const std::string element = type_name(type.dtype);
  if (form_of(type) == Form::view)
    return "fl::View<" + element + ", " + std::to_string(type.rank()) + ">" +
           (declarator.empty() ? "" : " ") + declarator;
  if (type.rank() > 1) return element + " (*" + declarator + ")" + row_brackets(type);
  return element + (declarator.empty() ? "*" : "* ") + declarator;
}

std::string parameter_type(const Type& type, bool is_const) {
  const std::string text = declared(type, "");
  if (!is_const) return text;
  return form_of(type) == Form::view ? "fl::View<const " + text.substr(text.find('<') + 1)
                                     : "const " + text;
}

std::string view_of(const std::string& pointer, const Type& type) {
  return "fl::view(" + pointer + ", " + size_list(type) + ")";
}

std::string moved(const std::string& text, const Type& type, const Type& as, bool is_const) {
  if (type.sizes == as.sizes) return text;
  const bool from_view = form_of(type) == Form::view;
  const std::string data = from_view ? text + ".data" : text;
  if (form_of(as) == Form::rows && !(from_view && as.rank() == 1))
    return "reinterpret_cast<" + parameter_type(as, is_const) + ">(" + data + ")";
  if (form_of(as) == Form::rows) return data;
  if (from_view || type.rank() == 1) return view_of(data, as);
  return view_of(std::string("reinterpret_cast<") + (is_const ? "const " : "") +
                     type_name(as.dtype) + "*>(" + data + ")",
                 as);
}

bool is_local(const Routine& function, const ScheduledRoutine& scheduled, ValueId value) {
  const Type type = memory_type(function.values[value].type, scheduled.schedule.storage[value]);
  return scheduled.is_local[value] && form_of(type) == Form::array;
}

Form RoutineWriter::form(ValueId value) const {
  const Value& one = function_.values[value];
  if (one.role == Role::constant) return Form::array;
  const Storage& storage = schedule_.storage[value];
  if (current_names() != nullptr)
    return one.role == Role::weight ? Form::array : form_of(memory_type(one.type, storage));
  if (!has_open_numbers()) return Form::array;
  const bool is_number =
      is_local(value) && std::count(storage.kept.begin(), storage.kept.end(), true) == 0;
  return is_number ? Form::array : Form::flat;
}

// ---- memory -------------------------------------------------------------------------------------

// The last of the function's own items that touches each value.
void RoutineWriter::find_last_items() {
  last_item_.assign(function_.values.size(), 0);
  for (size_t item = 0; item < schedule_.items.size(); ++item)
    for (const StepId step : steps_of(schedule_.items[item]))
      for (const ValueIds& values : {reads(function_.steps[step]), writes(function_.steps[step])})
        for (const ValueId value : values) last_item_[value] = item;
}

// Memory that nothing needs any more, at all sizes large enough; nullptr if there is none.
RoutineWriter::Taken* RoutineWriter::free_memory(const Type& type) {
  Taken* best = nullptr;
  for (Taken& one : taken_memory_) {
    const bool fits = one.last_item < item_ && one.type.dtype == type.dtype &&
                      one.type.numel() <= kMostSlack * type.numel() &&
                      one.type.numel() >= type.numel() &&
                      current_names()->same_sizes(one.type.numel(), type.numel());
    if (fits && (best == nullptr || one.type.numel() < best->type.numel())) best = &one;
  }
  return best;
}

// Memory of a size that is data, until the end of the function.
Code RoutineWriter::taken_declaration(ValueId value, bool takes_turns) {
  const Type type = memory_type(function_.values[value].type, schedule_.storage[value]);
  const std::string element = type_name(type.dtype),
                    &name = takes_turns ? arrays_.at(value) : names_[value];
  takes_memory_ = true;
  const Form now = form_of(type);
  if (now == Form::array)
    return assignment("auto& " + name, "*frame.take<" + element + (takes_turns ? "[2]" : "") +
                                           brackets(type) + ">(1)");
  const std::string declarator = name + (takes_turns ? "[2]" : ""),
                    target = now == Form::view ? "const " + declared(type, declarator)
                                               : declared(type, "const " + declarator);
  if (Taken* free = takes_turns ? nullptr : free_memory(type)) {
    free->last_item = last_item_[value];
    return assignment(target, moved(free->name, free->type, type, false));
  }
  const std::string taken =
      now == Form::view
          ? "frame.view<" + element + ">(" + size_list(type) + ")"
          : "frame.take<" + element + row_brackets(type) + ">(" + bare_number(type.sizes[0]) + ")";
  if (!takes_turns) taken_memory_.push_back({name, type, last_item_[value]});
  return assignment(target, takes_turns ? "{" + taken + ", " + taken + "}" : taken);
}

}  // namespace flashlight::text
