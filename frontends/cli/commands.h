// What the command line does. Each returns the exit code: 0, or 1 where a comparison found a
// difference.
#pragma once

#include <iosfwd>
#include <string>

namespace cli {

int show(const std::string& folder, const std::string& svg, std::ostream& out);
int list(const std::string& folder, bool weights, std::ostream& out);
int diff(const std::string& folder, const std::string& other, std::ostream& out);
// The table of operations whose names contain `filter`: how each is defined and differentiated.
int ops(const std::string& filter, std::ostream& out);
// UserError in a build without LibTorch.
int check(const std::string& folder, std::ostream& out);

}  // namespace cli
