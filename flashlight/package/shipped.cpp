#include "flashlight/package/shipped.h"

#include <regex>

#include "composit/ir/error.h"

namespace flashlight::package {

const std::string& shipped_text(const std::string& name) {
  static const std::map<std::string, std::string> kFiles = {
#include <flashlight_shipped.inc>
  };
  return kFiles.at(name);
}

toolchain::SourceFile shipped_file(const std::string& name) { return {name, shipped_text(name)}; }

std::string filled(const std::string& text, const std::map<std::string, std::string>& values) {
  static const std::regex kGap("@([A-Za-z_]+)@");
  std::string result;
  auto last = text.begin();
  for (std::sregex_iterator gap(text.begin(), text.end(), kGap), end; gap != end; ++gap) {
    const auto value = values.find((*gap)[1]);
    COMPOSIT_ASSERT(value != values.end(), "no text for " + gap->str());
    result.append(last, (*gap)[0].first);
    result += value->second;
    last = (*gap)[0].second;
  }
  return result.append(last, text.end());
}

}  // namespace flashlight::package
