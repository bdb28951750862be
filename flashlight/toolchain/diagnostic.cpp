#include "flashlight/toolchain/diagnostic.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <sstream>
#include <vector>

namespace flashlight::toolchain {
namespace {

constexpr size_t kMaxLines = 20;  // of output that we cannot read

// A line of one of our files.
struct Place {
  const SourceFile* file;
  int line;
};

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// The number in "NAME:12:7: error" or "from ./NAME:12,"; 0 if `name` is not there like this.
int line_number(const std::string& text, const std::string& name) {
  const size_t at = text.find(name + ":");
  if (at == std::string::npos) return 0;
  const std::string before = text.substr(0, at);
  if (!before.empty() && !before.ends_with(' ') && !before.ends_with("./")) return 0;
  return std::atoi(text.c_str() + at + name.size() + 1);
}

std::optional<Place> place_in(const std::string& text, const Sources& sources) {
  for (const auto* files : {&sources.units, &sources.headers})
    for (const SourceFile& file : *files)
      if (const int line = line_number(text, file.name)) return Place{&file, line};
  return std::nullopt;
}

bool is_inclusion(const std::string& line) {
  return line.starts_with("In file included from ") || line.starts_with("         ");
}

// An error inside a foreign header was caused by a line of ours: g++ names it before the error
// ("required from here"), clang++ after it. Lines that tell where the header was included are tried
// last.
std::optional<Place> place_of_error(const std::vector<std::string>& output, size_t error,
                                    const Sources& sources) {
  if (auto place = place_in(output[error], sources)) return place;
  for (const bool inclusion : {false, true}) {
    const auto place_at = [&](size_t line) {
      return is_inclusion(output[line]) == inclusion ? place_in(output[line], sources)
                                                     : std::nullopt;
    };
    for (size_t line = error; line-- > 0;)
      if (auto place = place_at(line)) return place;
    for (size_t line = error + 1; line < output.size(); ++line)
      if (auto place = place_at(line)) return place;
  }
  return std::nullopt;
}

// "model.cpp:12:7: error: text", unlike "collect2: error: ld returned 1 exit status".
bool is_error(const std::string& line) {
  for (const char* label : {": error: ", ": fatal error: "})
    if (const size_t at = line.find(label); at != std::string::npos) {
      const size_t before = line.find_last_not_of("0123456789", at - 1);
      return before != std::string::npos && before + 1 < at && line[before] == ':';
    }
  return false;
}

// "model.cpp:12:7: error: text" without the word.
std::string without_label(std::string line) {
  for (const std::string label : {" fatal error:", " error:"})
    if (const size_t at = line.find(label); at != std::string::npos)
      return line.erase(at, label.size());
  return line;
}

std::string beginning(const std::vector<std::string>& lines) {
  std::string text;
  for (size_t i = 0; i < std::min(lines.size(), kMaxLines); ++i) text += "\n  " + lines[i];
  return lines.size() > kMaxLines ? text + "\n  ..." : text;
}

const LineOrigin* origin_of(const Place& place, const Sources& sources) {
  const LineOrigin* narrowest = nullptr;
  for (const LineOrigin& origin : sources.origins) {
    if (origin.file != place.file->name || place.line < origin.first_line ||
        place.line > origin.last_line)
      continue;
    if (narrowest == nullptr ||
        origin.last_line - origin.first_line < narrowest->last_line - narrowest->first_line)
      narrowest = &origin;
  }
  return narrowest;
}

std::string describe(const Place& place, const std::string& error, const Sources& sources) {
  std::string text;
  if (line_number(error, place.file->name) != place.line)
    text += fmt::format("\n  reached from {}:{}", place.file->name, place.line);
  const std::vector<std::string> lines = lines_of(place.file->text);
  if (static_cast<size_t>(place.line) <= lines.size())
    text += fmt::format("\n    {:4} | {}", place.line, lines[static_cast<size_t>(place.line) - 1]);
  if (const LineOrigin* origin = origin_of(place, sources))
    text += "\n  emitted for " + origin->origin;
  return text;
}

}  // namespace

std::string explain_failure(const Sources& sources, const Command& command,
                            const ProcessResult& result) {
  const std::vector<std::string> output = lines_of(result.output);
  const auto error = std::find_if(output.begin(), output.end(), is_error);
  std::string text = "[compile] ";
  if (error == output.end()) {
    text += fmt::format("{}: {}{}", command.words.at(0), result.end(), beginning(output));
  } else {
    text += without_label(*error);
    const auto index = static_cast<size_t>(error - output.begin());
    if (const auto place = place_of_error(output, index, sources))
      text += describe(*place, *error, sources);
  }
  return text + fmt::format("\n  sources and all of the compiler's output: {}\n  command: {}",
                            command.folder.string(), shell_text(command));
}

}  // namespace flashlight::toolchain
