#include "composit/ir/error.h"
#include "frontends/cli/commands.h"

namespace cli {

[[noreturn]] static void refuse() {
  throw composit::UserError(
      "[check] runs the capture through LibTorch, and this build has none; all else works");
}

int check(const std::string&, std::ostream&) { refuse(); }
int check_grad(const std::string&, size_t, std::ostream&) { refuse(); }

}  // namespace cli
