#include "flashlight/mosaic/step_texts.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <utility>

#include "composit/ir/error.h"
#include "flashlight/mosaic/prepare.h"
#include "flashlight/text/literal.h"

namespace flashlight::mosaic {
namespace {

// "const float N3 = fl::real_of<float>(N[3]);"
std::string declaration(size_t number, composit::DType dtype) {
  const std::string type = text::type_name(dtype);
  return dtype == composit::DType::int64
             ? fmt::format("  const int64_t N{0} = N[{0}];\n", number)
             : fmt::format("  const {0} N{1} = fl::real_of<{0}>(N[{1}]);\n", type, number);
}

size_t data_count(const std::vector<bool>& is_data) {
  return static_cast<size_t>(std::count(is_data.begin(), is_data.end(), true));
}

// A kernel's numbers are variables of its own: what it writes to memory cannot change them.
std::string kernel_text(const text::OpenText& text, const std::vector<bool>& is_data) {
  if (text.text.empty()) return "";
  std::string declarations;
  size_t next = 0;
  const std::string filled = text::filled(text, [&](size_t place) {
    if (!is_data[place]) return text::constant_text(text, place);
    declarations += declaration(next, text.dtypes[place]);
    return fmt::format("N{}", next++);
  });
  const size_t mark = filled.find(kDeclarationsMark), line = filled.rfind('\n', mark) + 1;
  return filled.substr(0, line) + declarations + filled.substr(filled.find('\n', mark) + 1);
}

std::string entry_text(const text::OpenText& text, size_t next) {
  return text::filled(text, [&](size_t) { return fmt::format("N[{}]", next++); });
}

// Of what decides the text, so that equal texts have equal names in all processes.
std::string name_of(const OpenStep& step, const std::vector<bool>& is_data) {
  composit::Hasher hasher;
  hasher.add(step.key);
  for (size_t i = 0; i < is_data.size(); ++i)
    hasher.add(is_data[i] ? uint64_t{1} << 63 | 1 : static_cast<uint64_t>(step.kernel.numbers[i]));
  return "step_" + hasher.finish().str();
}

}  // namespace

std::string text_of(const StepText& step, const std::string& space, const std::string& entry) {
  return fmt::format(
      "\nnamespace {0} {{\n\n{1}\n"
      "{3}([[maybe_unused]] const fl::Team& team,\n"
      "    [[maybe_unused]] void* const* at, [[maybe_unused]] std::byte* arena,\n"
      "    [[maybe_unused]] fl::Generator* generator, [[maybe_unused]] const int64_t* N) {{\n"
      "{2}}}\n\n}}  // namespace {0}\n",
      space, step.kernel, step.entry, entry);
}

// What is to be compiled.
struct StepTexts::Unit {
  const OpenStep* step;
  std::vector<bool> is_data;
  std::shared_ptr<const StepText> text;
};

bool StepTexts::Code::fits(const std::vector<int64_t>& numbers) const {
  for (size_t i = 0; i < numbers.size(); ++i)
    if (!is_data[i] && numbers[i] != constants[i]) return false;
  return true;
}

// The code with the most constants: it is the fastest.
const StepTexts::Code* StepTexts::Text::find(const std::vector<int64_t>& numbers) const {
  const Code* best = nullptr;
  for (const Code& one : codes)
    if (one.fits(numbers) && (!best || data_count(one.is_data) < data_count(best->is_data)))
      best = &one;
  return best;
}

void StepTexts::see(const OpenProgram& at) {
  for (const auto* list : {&at.prepare, &at.run})
    for (const OpenStep& step : *list) {
      const std::vector<int64_t>& numbers = step.kernel.numbers;
      Text& text = texts_[step.key];
      text.is_data.resize(numbers.size());
      const auto [found, is_new] = text.sites.try_emplace(step.site, Seen{numbers});
      if (is_new) continue;
      found->second.again = true;
      for (size_t i = 0; i < numbers.size(); ++i)
        if (numbers[i] != found->second.numbers[i]) text.is_data[i] = true;
    }
}

bool StepTexts::has_news(const OpenProgram& at) const {
  const auto is_new = [&](const OpenStep& step) {
    if (step.kernel.numbers.empty()) return false;
    const auto text = texts_.find(step.key);
    if (text == texts_.end()) return true;
    const auto seen = text->second.sites.find(step.site);
    return seen == text->second.sites.end() || !seen->second.again;
  };
  return std::any_of(at.prepare.begin(), at.prepare.end(), is_new) ||
         std::any_of(at.run.begin(), at.run.end(), is_new);
}

std::optional<std::vector<ReadyStep>> StepTexts::find(const std::vector<OpenStep>& steps) const {
  std::vector<ReadyStep> all;
  for (const OpenStep& step : steps) {
    const auto text = texts_.find(step.key);
    const Code* code = text == texts_.end() ? nullptr : text->second.find(step.kernel.numbers);
    if (code == nullptr) return std::nullopt;
    ReadyStep ready = {.enter = code->enter, .library = code->library, .text = code->text};
    for (size_t i = 0; i < code->is_data.size(); ++i)
      if (code->is_data[i]) ready.numbers.push_back(step.kernel.numbers[i]);
    ready.numbers.insert(ready.numbers.end(), step.entry.numbers.begin(), step.entry.numbers.end());
    all.push_back(std::move(ready));
  }
  return all;
}

std::optional<ReadySteps> StepTexts::find(const OpenProgram& at) const {
  std::optional<std::vector<ReadyStep>> prepare = find(at.prepare), run = find(at.run);
  if (!prepare || !run) return std::nullopt;
  return ReadySteps{std::move(*prepare), std::move(*run)};
}

void StepTexts::add_missing(const OpenProgram& program,
                            std::map<std::string, Unit>& missing) const {
  for (const auto* list : {&program.prepare, &program.run})
    for (const OpenStep& step : *list) {
      const Text& text = texts_.at(step.key);
      if (text.find(step.kernel.numbers) != nullptr) continue;
      const std::string name = name_of(step, text.is_data);
      if (missing.contains(name)) continue;
      const auto written = std::make_shared<const StepText>(
          StepText{name, kernel_text(step.kernel, text.is_data),
                   entry_text(step.entry, data_count(text.is_data)), step.tiles});
      missing.emplace(name, Unit{&step, text.is_data, written});
    }
}

void StepTexts::compile(const std::vector<const OpenProgram*>& programs) {
  std::map<std::string, Unit> missing;  // by name
  Units tiles;
  std::set<std::string> headers;
  for (const OpenProgram* program : programs) {
    add_missing(*program, missing);
    headers.insert(program->source.headers.begin(), program->source.headers.end());
  }
  if (missing.empty()) return;
  Source source;
  source.headers = {headers.begin(), headers.end()};
  std::vector<std::string> texts;
  for (const auto& [name, unit] : missing) {
    texts.push_back(text_of(*unit.text, name, "extern \"C\" void " + name + "_enter"));
    for (const auto& [file, statements] : unit.text->tiles)
      tiles[file].insert(statements.begin(), statements.end());
  }
  source.tiles = tile_files(tiles);
  source.units = units_of(texts, source.headers);
  ++compilations_;
  const auto library = std::make_shared<const toolchain::Library>(build({source}, flags_));
  for (auto& [name, unit] : missing)
    texts_.at(unit.step->key)
        .codes.push_back({.is_data = std::move(unit.is_data),
                          .constants = unit.step->kernel.numbers,
                          .enter = library->symbol<fl::StepEntry>(name + "_enter"),
                          .library = library,
                          .text = unit.text});
}

}  // namespace flashlight::mosaic
