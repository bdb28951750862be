#include "flashlight/package/ports.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <utility>

#include "composit/ir/error.h"
#include "composit/ir/print.h"
#include "flashlight/text/code.h"
#include "flashlight/text/literal.h"
#include "flashlight/text/printer.h"

namespace flashlight::package {
namespace {

using composit::SizeRange;

// The first input, and its axis, that has this size alone.
std::optional<std::pair<size_t, size_t>> place_of(const std::string& name, const Ports& inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto& sizes = inputs[i].sized.sizes;
    const auto axis = std::find(sizes.begin(), sizes.end(), name);
    if (axis != sizes.end()) return std::pair(i, static_cast<size_t>(axis - sizes.begin()));
  }
  return std::nullopt;
}

std::string range_text(const SizeRange& size) {
  return fmt::format("from {} to {}", size.least, size.most) +
         (size.step == 1 ? "" : fmt::format(" in steps of {}", size.step));
}

// Sets the types of these ports in a constructor of Types.
std::string set_lines(const std::string& role, const Ports& ports) {
  std::string text;
  for (size_t i = 0; i < ports.size(); ++i) {
    const Port& port = ports[i];
    if (port.sized.sizes.empty()) continue;
    text += fmt::format("    set({0}s[{1}], {0}_{1}_.data(), {2}, {{{3}}});\n", role, i,
                        composit::item_size(port.type.dtype), fmt::join(port.sized.sizes, ", "));
  }
  return text;
}
std::string members(const std::string& role, const Ports& ports) {
  std::string text;
  for (size_t i = 0; i < ports.size(); ++i)
    if (const size_t rank = ports[i].sized.sizes.size(); rank > 0)
      text += fmt::format("  std::array<std::int64_t, {}> {}_{}_;\n", rank, role, i);
  return text;
}

}  // namespace

std::string upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

std::string type_text(const composit::Type& type) {
  return composit::print(composit::tensor_type(type.dtype, type.sizes));
}
std::string type_text(const Port& port) {
  if (port.sized.sizes.empty()) return type_text(port.type);
  return fmt::format("{}[{}]", composit::name(port.type.dtype), fmt::join(port.sized.sizes, ", "));
}

std::string port_lines(const Ports& inputs, const Ports& outputs, const std::string& start) {
  std::string text;
  for (const Ports* ports : {&inputs, &outputs})
    for (const Port& port : *ports) {
      std::string name = text::quoted(port.name);
      for (size_t at; (at = name.find("*/")) != std::string::npos;) name.insert(at + 1, " ");
      text += fmt::format("{}  {} {}: {}\n", start, ports == &inputs ? "input " : "output", name,
                          type_text(port));
    }
  return text;
}

std::string table(const std::string& role, const Ports& ports, const std::string& program) {
  std::string sizes, rows;
  for (size_t i = 0; i < ports.size(); ++i) {
    const composit::Type& type = ports[i].type;
    std::string list;
    bool is_data = false;
    for (size_t axis = 0; axis < type.rank(); ++axis) {
      const std::string number = std::to_string(type.sizes[axis]);
      const bool is_constant =
          ports[i].sized.sizes.empty() || ports[i].sized.sizes.at(axis) == number;
      is_data |= !is_constant;
      list += (list.empty() ? "" : ", ") + (is_constant ? number : "-1");
    }
    const std::string name = fmt::format("k{}{}Sizes", role, i);
    if (!list.empty()) sizes += fmt::format("const std::int64_t {}[] = {{{}}};\n", name, list);
    rows += fmt::format("\n    {{{}, {}_{}, {}, {}, {}}},", text::quoted(ports[i].name),
                        upper(program), upper(std::string(composit::name(type.dtype))), type.rank(),
                        list.empty() ? "nullptr" : name, is_data ? 0 : type.nbytes());
  }
  return sizes + fmt::format("const std::array<Info, {1}> k{0}s = {{{{{2}\n}}}};\n", role,
                             ports.size(), rows);
}

std::string unused(const Ports& ports) {
  const bool is_used = std::any_of(ports.begin(), ports.end(),
                                   [](const Port& port) { return port.type.numel() > 0; });
  return is_used ? "" : "[[maybe_unused]] ";
}

// ---- sizes that are data ------------------------------------------------------------------------

std::string passed(const SizedPort& port, const std::string& pointer) {
  if (!port.is_view) return "reinterpret_cast<" + port.parameter + ">(" + pointer + ")";
  return fmt::format("fl::view(reinterpret_cast<{}*>({}), {})", port.parameter, pointer,
                     fmt::join(port.sizes, ", "));
}

std::string size_lines(const std::vector<SizeRange>& sizes, const Ports& inputs,
                       const std::string& type, const std::string& indent,
                       const std::function<std::string(size_t input, size_t axis)>& size) {
  std::string text;
  for (const SizeRange& one : sizes) {
    const auto place = place_of(one.name, inputs);
    if (!place)
      throw composit::UserError("[compile] expected an input with an axis of '" + one.name +
                                "' elements, received none: its number would be unknown");
    text += fmt::format("{}[[maybe_unused]] const {} {} = {};\n", indent, type, one.name,
                        size(place->first, place->second));
  }
  return text;
}

std::string types_class(const std::vector<SizeRange>& sizes, const Ports& inputs,
                        const Ports& outputs) {
  std::string checks;
  for (const SizeRange& size : sizes)
    checks += fmt::format("    check_size(\"{}\", {}, {}, {}, {}, \"{}\");\n", size.name, size.name,
                          size.least, size.most, size.step, range_text(size));
  return R"(void check_size(const char* name, std::int64_t size, std::int64_t least, std::int64_t most,
                std::int64_t step, const char* range) {
  if (size < least || size > most || (size - least) % step != 0)
    throw BadArgument(std::string("size '") + name + "': expected a number " + range +
                      ", received " + std::to_string(size));
}

// The types of all tensors of a call, whose inputs say what the sizes are.
class Types {
 public:
  Types(const Tensor* given, std::size_t count) : inputs(kInputs), outputs(kOutputs) {
    check_ranks(given, count);
)" +
         size_lines(sizes, inputs, "std::int64_t", "    ",
                    [](size_t input, size_t axis) {
                      return fmt::format("given[{}].sizes[{}]", input, axis);
                    }) +
         checks + set_lines("input", inputs) + set_lines("output", outputs) + R"(  }
  Types(const Types&) = delete;
  Types& operator=(const Types&) = delete;

)" +
         fmt::format("  std::array<Info, {}> inputs;\n  std::array<Info, {}> outputs;\n",
                     inputs.size(), outputs.size()) +
         R"(

 private:
  static void check_ranks(const Tensor* given, std::size_t count) {
    if (count != kInputs.size())
      throw BadArgument("expected " + std::to_string(kInputs.size()) + " inputs, received " +
                        std::to_string(count));
    if (given == nullptr) throw BadArgument("inputs are NULL");
    for (std::size_t i = 0; i < count; ++i) {
      const std::string place = std::string("input '") + kInputs[i].name + "': ";
      if (given[i].rank != kInputs[i].rank)
        throw BadArgument(place + "expected rank " + std::to_string(kInputs[i].rank) +
                          ", received " + std::to_string(given[i].rank));
      if (given[i].rank > 0 && given[i].sizes == nullptr)
        throw BadArgument(place + "sizes are NULL");
    }
  }
  static void set(Info& info, std::int64_t* to, std::int64_t item,
                  std::initializer_list<std::int64_t> sizes) {
    std::copy(sizes.begin(), sizes.end(), to);
    info.sizes = to;
    for (const std::int64_t size : sizes) item *= size;
    info.bytes = static_cast<std::size_t>(item);
  }

)" + members("input", inputs) +
         members("output", outputs) + "};\n\n";
}

std::string declared_sizes(const std::string& name, const std::vector<SizeRange>& sizes) {
  std::string list;
  for (const SizeRange& size : sizes) list += " *   " + size.name + ": " + range_text(size) + "\n";
  const std::string head =
      str(text::call(name + "_status " + name + "_output_sizes",
                     {"const " + name + "_tensor* inputs", "size_t input_count", "size_t index",
                      "int64_t* sizes", "char* message", "size_t message_size"}));
  return "\n/* Sizes are data of a call. These types have -1 where they depend on\n" + list +
         " * Inputs have them as the names above say, and outputs follow: this writes the sizes of "
         "output\n * `index`, as many as its rank, for inputs of which only ranks and sizes are "
         "looked at. */\n" +
         head;
}

std::string defined_sizes(const std::string& name, const std::string& upper_name) {
  const std::string head =
      str(text::call("Status " + name + "_output_sizes",
                     {"const Tensor* inputs", "std::size_t input_count", "std::size_t index",
                      "std::int64_t* sizes", "char* message", "std::size_t message_size"},
                     " {"));
  return head + "  return guarded(message, message_size, " + upper_name + R"(_BAD_VALUE, [&] {
    const Types types(inputs, input_count);
    if (index >= types.outputs.size())
      throw BadArgument("there is no output " + std::to_string(index));
    const Info& info = types.outputs[index];
    if (info.rank > 0 && sizes == nullptr) throw BadArgument("sizes are NULL");
    std::copy(info.sizes, info.sizes + info.rank, sizes);
  });
}

)";
}

}  // namespace flashlight::package
