#include "flashlight/devices/choices.h"

#include <algorithm>
#include <optional>
#include <set>
#include <sstream>

#include "composit/ir/error.h"
#include "composit/ir/words.h"
#include "flashlight/backends/registry.h"

namespace flashlight::devices {

using composit::trimmed;
using composit::UserError;

namespace {

// "first rest": nothing behind the first word gives an empty second one.
std::pair<std::string, std::string> first_word(const std::string& text) {
  const size_t space = text.find(' ');
  if (space == std::string::npos) return {text, ""};
  return {text.substr(0, space), std::string(trimmed(std::string_view(text).substr(space)))};
}

class Parser {
 public:
  // Editors may begin a file with a mark of its encoding.
  explicit Parser(std::string_view text)
      : text_(text.starts_with("\xEF\xBB\xBF") ? text.substr(3) : text) {}

  Choices run() {
    std::istringstream lines{std::string(text_)};
    for (std::string line; std::getline(lines, line);) {
      ++number_;
      std::replace(line.begin(), line.end(), '\t', ' ');
      const std::string_view text = trimmed(std::string_view(line).substr(0, line.find('#')));
      if (!text.empty()) take(std::string(text));
    }
    return std::move(choices_);
  }

 private:
  [[noreturn]] void refuse(const std::string& message) const {
    throw UserError("[devices] " + where() + ": " + message);
  }
  std::string where() const { return "choices, line " + std::to_string(number_); }

  void take(const std::string& line) {
    const size_t colon = line.rfind(": ");
    if (colon == std::string::npos)
      refuse("expected 'NAME: on DEVICE' or 'device NAME: BACKEND, OPTION VALUE', received '" +
             line + "'");
    const std::string what(trimmed(std::string_view(line).substr(0, colon))),
        rest(trimmed(std::string_view(line).substr(colon + 2)));
    if (const auto [word, name] = first_word(what); word == "device" && !name.empty())
      describe_device(name, rest);
    else
      place(what, rest);
  }

  void describe_device(const std::string& name, const std::string& text) {
    const auto has_name = [&](const DeviceChoice& device) { return device.name == name; };
    if (std::any_of(choices_.devices.begin(), choices_.devices.end(), has_name))
      refuse("expected a name that no other device has, received '" + name + "'");
    std::set<std::string> given;
    const std::vector<std::string> parts = names_between_commas(text);
    DeviceChoice device = device_named(parts.at(0), {}, where());
    device.name = name;
    for (size_t i = 1; i < parts.size(); ++i) {
      const auto [option, value] = first_word(parts[i]);
      if (value.empty())
        refuse("expected 'memory NAME' or 'OPTION VALUE', received '" + parts[i] + "'");
      if (!given.insert(option).second) refuse("'" + option + "' is given twice");
      if (option == "memory")
        device.memory = value;
      else
        set(device.backend, option, value);
    }
    choices_.devices.push_back(std::move(device));
  }

  void set(composit::BackendChoice& backend, const std::string& name,
           const std::string& value) const {
    try {
      const composit::Option& option = composit::find_option(
          backend_named(backend.name).options(), name, composit::Option::Use::calls, backend.name);
      backend.options[name] = composit::parse_option(option, value, backend.name);
    } catch (const UserError& error) {
      throw UserError(std::string(error.what()) + " (" + where() + ")");
    }
  }

  void place(const std::string& what, const std::string& rest) {
    const auto [on, device] = first_word(rest);
    if (on != "on" || device.empty()) refuse("expected 'on DEVICE', received '" + rest + "'");
    const auto is_same = [&](const Line& line) { return line.what == what; };
    if (std::any_of(choices_.lines.begin(), choices_.lines.end(), is_same))
      refuse("expected one line for '" + what + "', received another");
    choices_.lines.push_back({what, device, number_});
  }

  std::string_view text_;
  size_t number_ = 0;
  Choices choices_;
};

}  // namespace

std::vector<std::string> names_between_commas(const std::string& text) {
  std::vector<std::string> names = composit::split_at(text, ',');
  for (std::string& name : names) name = std::string(trimmed(name));
  return names;
}

Choices parse_choices(std::string_view text) {
  Choices choices = Parser(text).run();
  for (const Line& line : choices.lines)
    device_named(line.device, choices, "choices, line " + std::to_string(line.number));
  return choices;
}

DeviceChoice device_named(const std::string& name, const Choices& choices,
                          const std::string& where) {
  std::vector<std::string> names;
  for (const DeviceChoice& device : choices.devices) {
    if (device.name == name) return device;
    names.push_back(device.name);
  }
  for (const composit::Backend* backend : backends()) {
    if (backend->name() == "devices") continue;  // would hold devices itself
    if (backend->name() == name) return {name, {name}};
    names.push_back(backend->name());
  }
  std::string all;
  for (const std::string& one : names) all += (all.empty() ? "" : ", ") + one;
  throw UserError("[devices] " + where + ": expected a device, one of " + all + ", received '" +
                  name + "'");
}

std::string names_of_runners(const std::function<bool(const composit::Backend&)>& fits) {
  std::string names;
  for (const composit::Backend* backend : backends())
    if (backend->name() != "devices" && backend->compiles() && fits(*backend))
      names += (names.empty() ? "" : ", ") + backend->name();
  return names.empty() ? "no backend" : names;
}

void expect_compiles(const DeviceChoice& device) {
  if (backend_named(device.backend.name).compiles()) return;
  throw UserError("[devices] expected a device of a backend that runs code, one of " +
                  names_of_runners([](const composit::Backend&) { return true; }) + ", received '" +
                  device.name + "': " + device.backend.name +
                  " writes text alone; `flashlight emit --backend devices` prints it");
}

std::string describe(const DeviceChoice& device) {
  std::string text = device.backend.name;
  for (const auto& [name, value] : device.backend.options)
    text += ", " + name + " " + composit::text_of(value);
  if (device.memory != kCallersMemory) text += ", memory " + device.memory;
  return text;
}

}  // namespace flashlight::devices
