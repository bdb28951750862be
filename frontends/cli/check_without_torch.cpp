#include "composit/ir/error.h"
#include "frontends/cli/commands.h"

namespace cli {

int check(const std::string&, std::ostream&) {
  throw composit::UserError(
      "[check] runs the capture through LibTorch, and this build has none; all else works");
}

}  // namespace cli
