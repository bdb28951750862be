#include "frontends/cli/sizes.h"

#include <algorithm>

#include "composit/ir/literal.h"

namespace cli {

std::optional<composit::SizeRange> parse_range(const std::string& text) {
  const size_t equals = text.rfind('='), dots = text.find("..", equals);
  if (equals == std::string::npos) return std::nullopt;
  const size_t colon =
      dots == std::string::npos ? text.size() : std::min(text.find(':', dots), text.size());
  const auto number = [&](size_t begin, size_t end) {
    return composit::parse_int(text.substr(begin, end - begin));
  };
  const auto least = number(equals + 1, std::min(dots, colon)),
             most = dots == std::string::npos ? least : number(dots + 2, colon),
             step = colon == text.size() ? 1 : number(colon + 1, text.size());
  if (!least || !most || !step || *least > *most || *step < 1) return std::nullopt;
  return composit::SizeRange{text.substr(0, equals), *least, *most, *step};
}

}  // namespace cli
