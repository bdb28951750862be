// Options of a backend: a table of what there is, and values by name.
//
//   const OptionTable table = {{.name = "threads", .fallback = 0, .help = "of a call"}};
//   const Options all = complete({{"threads", 2}}, table, Option::Use::calls, "mine");
//   option<int64_t>(all, "threads");                             // 2
//
// A backend may keep its options as the members of a struct, from which OptionFields makes the
// table:
//
//   struct Mine {
//     int64_t threads = 0;
//   };
//   const OptionFields<Mine> fields({{{.name = "threads", .help = "of a call"}, &Mine::threads}});
//   const Mine mine = fields.typed({{"threads", 2}});
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace composit {

// The value of an option; an integer may stand for a number.
using OptionValue = std::variant<bool, int64_t, double, std::string>;
using Options = std::map<std::string, OptionValue>;  // by name

// A row of a backend's table of options.
struct Option {
  // The use of an option: for code that is called in this process, for programs that are built
  // elsewhere, or for both.
  enum class Use : uint8_t { both, calls, programs };

  std::string name = {};         // an identifier, as Python writes it: "link_aten"
  OptionValue fallback = false;  // its type is the option's
  std::string help = {};         // one line
  Use use = Use::both;           // see Use
  bool of_one_graph = false;     // names what one graph has: derivatives are compiled without it
  bool is_file = false;          // text that the command line reads from a file
  std::string flag = {};         // on the command line, if not "--name VALUE": "--link aten"
};
using OptionTable = std::vector<Option>;  // in the order in which help lists them

// "true or false", "an integer", "a number", "text"
std::string type_name(const OptionValue& value);
// "true", "2", "'text'"
std::string text_of(const OptionValue& value);

// The given options, and the defaults of all others for this use. UserError that names `backend`
// for an option that the table does not have for this use, or for a value of another type. An
// integer is accepted as a number.
Options complete(Options given, const OptionTable& table, Option::Use use,
                 const std::string& backend);
// The option of this name for this use. UserError that lists the options there are.
const Option& find_option(const OptionTable& table, const std::string& name, Option::Use use,
                          const std::string& backend);
// A value from text, as the command line has it. UserError where it is of another type.
OptionValue parse_option(const Option& option, const std::string& text, const std::string& backend);
// UserError: `received` is no value of this option.
[[noreturn]] void refuse_value(const Option& option, const std::string& received,
                               const std::string& backend);

// An option of complete ones.
template <class T>
const T& option(const Options& options, const std::string& name) {
  return std::get<T>(options.at(name));
}

// A backend by its name, with options.
struct BackendChoice {
  BackendChoice(std::string backend, Options chosen = {})
      : name(std::move(backend)), options(std::move(chosen)) {}
  BackendChoice(const char* backend) : name(backend) {}

  std::string name;      // name of a registered backend
  Options options = {};  // those that differ from their fallbacks
};

// Options as the members of a struct, whose defaults are the fallbacks.
template <class T>
class OptionFields {
 public:
  // An option, and the member that has its value.
  struct Field {
    Option option;  // its fallback is the member's default
    std::variant<bool T::*, int64_t T::*, double T::*, std::string T::*>
        member;  // has the type of the option
  };

  explicit OptionFields(std::vector<Field> fields) : fields_(std::move(fields)) {
    for (const Field& field : fields_) {
      table_.push_back(field.option);
      table_.back().fallback = value_of(field, T());
    }
  }

  // The table, with the members' defaults.
  const OptionTable& table() const { return table_; }
  // Those that differ from their fallbacks.
  Options options(const T& typed) const {
    Options chosen;
    for (size_t i = 0; i < fields_.size(); ++i)
      if (const OptionValue value = value_of(fields_[i], typed); value != table_[i].fallback)
        chosen.emplace(table_[i].name, value);
    return chosen;
  }
  // The typed form of options; a missing option keeps its default.
  T typed(const Options& options) const {
    T typed;
    for (const Field& field : fields_) {
      const auto found = options.find(field.option.name);
      if (found == options.end()) continue;
      std::visit(
          [&](auto member) {
            auto& value = typed.*member;
            value = std::get<std::decay_t<decltype(value)>>(found->second);
          },
          field.member);
    }
    return typed;
  }

 private:
  static OptionValue value_of(const Field& field, const T& typed) {
    OptionValue value;
    std::visit([&](auto member) { value = typed.*member; }, field.member);
    return value;
  }

  std::vector<Field> fields_;
  OptionTable table_;
};

}  // namespace composit
