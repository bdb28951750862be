#include "composit/ir/literal.h"
#include "composit/ir/print.h"
#include "composit/op/loops.h"
#include "flashlight/loops/program_text.h"
#include "flashlight/loops/program_words.h"
#include "flashlight/loops/sizes.h"
#include "flashlight/loops/statement.h"

namespace flashlight::loops {
namespace {

using composit::Attribute;

template <class Enum>
std::string word(const std::array<std::string_view, 5>& words, Enum one) {
  return std::string(words.at(static_cast<size_t>(one)));
}

std::string quoted(std::string_view text) {
  std::string result;
  composit::append_quoted(result, text);
  return result;
}

std::string number(ValueId value) { return "%" + std::to_string(value); }

std::string numbers(const ValueIds& values) {
  std::string text;
  for (const ValueId value : values) text += " " + number(value);
  return text;
}

template <class I>
Attribute integers(const std::vector<I>& numbers) {
  return composit::int_list({numbers.begin(), numbers.end()});
}

// Writes the fields in braces; add_if() leaves out those that have their default value.
class FieldWriter {
 public:
  FieldWriter& add(const char* key, const Attribute& value) {
    text_ += (text_.empty() ? "" : ", ") + std::string(key) + "=" +
             composit::print(value, {.inline_elements = INT64_MAX});
    return *this;
  }
  FieldWriter& add_if(bool condition, const char* key, const Attribute& value) {
    return condition ? add(key, value) : *this;
  }
  template <class I>
  FieldWriter& add(const char* key, const std::vector<I>& numbers) {
    return add_if(!numbers.empty(), key, integers(numbers));
  }
  FieldWriter& add(const char* key, const std::optional<ValueId>& value) {
    return value ? add(key, Attribute(static_cast<int64_t>(*value))) : *this;
  }
  FieldWriter& add(const Origin& origin) {
    add_if(!origin.operation.empty(), "operation", origin.operation);
    add_if(!origin.module.empty(), "module", origin.module);
    return add_if(!origin.source.empty(), "source", origin.source);
  }
  std::string str() const { return "{" + text_ + "}"; }

 private:
  std::string text_;
};

Attribute origins(const std::vector<Origin>& list) {
  composit::List items = {composit::AttributeKind::string, {}};
  for (const Origin& origin : list)
    for (const std::string* part : {&origin.operation, &origin.module, &origin.source})
      items.items.emplace_back(*part);
  return items;
}

class ProgramPrinter {
 public:
  explicit ProgramPrinter(const Program& program)
      : program_(program), names_(size_names(program)) {}

  std::string run() {
    for (const NamedSize& size : program_.sizes) print_size(size);
    for (const Routine& function : program_.functions) print_function(function);
    return std::move(text_);
  }

 private:
  void line(const std::string& text) { text_ += "  " + text + "\n"; }

  void print_function(const Routine& function) {
    FieldWriter fields;
    fields.add("inputs", function.inputs).add("results", function.results);
    fields.add_if(function.is_part, "is_part", true);
    fields.add_if(function.is_loop_body, "is_loop_body", true);
    fields.add_if(function.in_parts, "in_parts", true);
    fields.add_if(function.most_steps_in_loop != Routine().most_steps_in_loop, "most_steps_in_loop",
                  static_cast<int64_t>(function.most_steps_in_loop));
    text_ += "function " + quoted(function.name) + " " + fields.str() + "\n";
    for (const ValueId i : function.values.ids()) print_value(i, function.values[i]);
    for (const auto& [value, reason] : function.kept)
      line("kept " + number(value) + " " + quoted(reason));
    for (const auto& [result, argument] : function.overwrites)
      line("overwrites " + number(result) + " " + number(argument));
    for (const Step& step : function.steps)
      std::visit([&](const auto& one) { print_step(function, one); }, step);
    text_ += "end\n";
  }

  void print_size(const NamedSize& size) {
    FieldWriter fields;
    fields.add_if(size.of.empty(), "least", size.least).add_if(size.of.empty(), "most", size.most);
    fields.add("of", size.of).add_if(size.factor != 1, "factor", size.factor);
    fields.add_if(size.divisor != 1, "divisor", size.divisor);
    fields.add_if(size.added != 0, "added", size.added);
    text_ += "size " + size.name + " = " + std::to_string(size.example) + " " + fields.str() + "\n";
  }

  void print_value(ValueId i, const Value& value) {
    FieldWriter fields;
    fields.add_if(value.constant.defined(), "constant", value.constant);
    fields.add_if(!value.model_sizes.empty(), "model_sizes",
                  integers(value.model_sizes, value.model_named));
    line(number(i) + ": " + type(value) + " = " + word(kRoles, value.role) + " " +
         quoted(value.name) + " " + fields.str());
  }
  std::string type(const Value& value) const {
    if (value.named.empty()) return composit::print(value.type);
    std::string sizes;
    for (size_t i = 0; i < value.named.size(); ++i)
      sizes += (i == 0 ? "" : ", ") +
               (value.named[i] ? names_[*value.named[i]] : std::to_string(value.type.sizes[i]));
    return std::string(composit::name(value.type.dtype)) + "[" + sizes + "]";
  }
  // Prints named sizes as strings in the list.
  Attribute integers(const composit::Dims& numbers, const SizeIds& named) const {
    if (named.empty()) return composit::int_list(numbers);
    composit::List list;
    for (size_t i = 0; i < numbers.size(); ++i)
      list.items.push_back(named[i] ? Attribute(names_[*named[i]]) : Attribute(numbers[i]));
    return list;
  }

  // Prints the loops with their own numbers for operands and results, in order of appearance.
  void print_step(const Routine& function, const Nest& nest) {
    const ValueIds read = reads(nest), written = writes(nest);
    FieldWriter fields;
    fields.add(nest.origin);
    fields.add_if(!nest.fused.empty(), "fused", origins(nest.fused));
    line("nest" + numbers(read) + " to" + numbers(written) + " " + fields.str());
    composit::Loops loops;
    composit::SizeNames sizes = {.names = names_, .axes = {which(nest.named)}};
    std::map<ValueId, size_t> operand, result;
    for (const ValueId value : read) {
      operand.emplace(value, loops.operands.size());
      loops.operands.push_back(function.values[value].type);
      sizes.operands.push_back(which(function.values[value].named));
    }
    for (const ValueId value : written) {
      result.emplace(value, loops.results.size());
      loops.results.push_back(function.values[value].type);
      sizes.results.push_back(which(function.values[value].named));
    }
    Statement statement = replaced(nest.statement, [&](const Expr& part) {
      if (part.kind() != ExprKind::load) return Expr();
      return Expr::load(operand.at(value_of(part)), part.dtype(), part.arguments());
    });
    for (composit::Store& store : statement.stores) store.result = result.at(value_of(store));
    loops.statements = {std::move(statement)};
    std::string text = "\n" + composit::print(loops, sizes);
    for (size_t at = 0; (at = text.find('\n', at)) != std::string::npos; at += 5)
      text.insert(at + 1, "    ");
    text_ += text.substr(1) + "\n";
  }

  void print_step(const Routine&, const Invocation& call) {
    FieldWriter fields;
    fields.add(call.origin);
    line("call " + std::to_string(call.function) + numbers(call.arguments) + " to" +
         numbers(call.results) + " " + fields.str());
  }

  void print_step(const Routine&, const RuntimeCall& call) {
    std::string options;
    for (const composit::NamedAttribute& option : call.options)
      options +=
          (options.empty() ? "" : ", ") + option.name.str() + "=" + composit::print(option.value);
    FieldWriter fields;
    fields.add_if(call.draws, "draws", true);
    fields.add_if(call.effect, "effect", true);
    fields.add_if(call.on_numbers, "on_numbers", true);
    fields.add_if(call.schema != nullptr, "schema",
                  call.schema ? composit::print(*call.schema) : std::string());
    fields.add(call.origin);
    line("runtime " + quoted(call.function.str()) + numbers(call.arguments) + " to" +
         numbers(call.results) + " (" + options + ") " + fields.str());
  }

  void print_step(const Routine&, const Control& control) {
    FieldWriter fields;
    fields.add("functions", control.functions).add("carried", control.carried);
    fields.add("sequences", control.sequences).add("outside", control.outside);
    fields.add("predicate", control.predicate).add("trips", control.trips);
    fields.add_if(control.length != 0, "length",
                  control.named_length ? Attribute(names_[*control.named_length])
                                       : Attribute(control.length));
    fields.add_if(control.limit.has_value(), "limit", control.limit.value_or(0));
    fields.add_if(control.reverse, "reverse", true);
    fields.add("results", control.results).add("next", control.next);
    fields.add_if(control.block != 0, "block", control.block);
    std::vector<int64_t> along;
    for (const auto& dimension : control.along)
      along.push_back(dimension ? static_cast<int64_t>(*dimension) : -1);
    fields.add_if(!along.empty(), "along", composit::int_list(along));
    fields.add(control.origin);
    line("control " + quoted(word(kControlKinds, control.kind)) + " " + fields.str());
  }

  static composit::SizeNames::Which which(const SizeIds& named) {
    return {named.begin(), named.end()};
  }

  const Program& program_;
  const std::vector<std::string> names_;  // of sizes
  std::string text_;
};

}  // namespace

std::string print(const Program& program) { return ProgramPrinter(program).run(); }

}  // namespace flashlight::loops
