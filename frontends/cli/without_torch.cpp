#include "composit/ir/error.h"
#include "frontends/cli/commands.h"

namespace cli {

[[noreturn]] static void refuse(const std::string& what) {
  throw composit::UserError(what + ", and this build has none; all else works");
}

int check(const std::string&, std::ostream&) {
  refuse("[check] runs the capture through LibTorch");
}
int check_compiled(const CheckCompiledArguments& arguments, std::ostream& out) {
  return check(arguments.folder, out);
}
void replay_example(const std::string&) {}  // those of a backend stay
int check_grad(const std::string& folder, size_t, std::ostream& out) { return check(folder, out); }
int import_torchscript(const ImportArguments&, std::ostream&) {
  refuse("[import] reads TorchScript with LibTorch");
}

int capture(const CaptureArguments&, std::ostream&) {
  refuse("[capture] captures what LibTorch does");
}

}  // namespace cli
