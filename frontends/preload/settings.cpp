#include "frontends/preload/settings.h"

#include <iterator>
#include <sstream>

#include "composit/ir/error.h"

namespace flashlight::preload {
namespace {

constexpr const char* kCuts[] = {"automatic", "forward", "optimizer", "run"};

}  // namespace

const char* name(Cut cut) { return kCuts[static_cast<size_t>(cut)]; }

Cut parse_cut(const std::string& name) {
  for (size_t i = 0; i < std::size(kCuts); ++i)
    if (name == kCuts[i]) return static_cast<Cut>(i);
  throw composit::UserError(
      "[capture] --cut: expected automatic, forward, optimizer or run, received '" + name + "'");
}

// The folder comes last: it may contain anything.
std::string print(const Settings& settings) {
  std::ostringstream text;
  text << name(settings.cut) << ' ' << settings.step.value_or(-1) << ' ' << settings.steps << ' '
       << settings.lines << ' ' << settings.folder.string();
  return text.str();
}

Settings parse_settings(const std::string& text) {
  std::istringstream in(text);
  std::string cut, folder;
  int64_t step = -1;
  Settings settings;
  if (!(in >> cut >> step >> settings.steps >> settings.lines) || in.get() != ' ' ||
      !std::getline(in, folder, '\0') || folder.empty())
    throw composit::UserError(std::string("[capture] ") + kVariable +
                              " is set by `flashlight capture` alone; received '" + text + "'");
  settings.cut = parse_cut(cut);
  if (step >= 0) settings.step = step;
  settings.folder = folder;
  return settings;
}

}  // namespace flashlight::preload
