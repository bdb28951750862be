#include "composit/ir/symbol.h"

#include <mutex>
#include <shared_mutex>
#include <unordered_set>

namespace composit {
namespace {

// Transparent: a string_view is looked up without making a string.
struct TextHash : std::hash<std::string_view> {
  using is_transparent = void;  // NOLINT(readability-identifier-naming)
};

struct SymbolTable {
  std::shared_mutex mutex;
  std::unordered_set<std::string, TextHash, std::equal_to<>> texts;  // node based: addresses stay
};

SymbolTable& table() {
  // Never destroyed: static destructors may still compare symbols.
  static auto* instance = new SymbolTable;
  return *instance;
}

const std::string* intern(std::string_view text) {
  auto& symbols = table();
  {
    std::shared_lock lock(symbols.mutex);
    if (auto it = symbols.texts.find(text); it != symbols.texts.end()) return &*it;
  }
  std::unique_lock lock(symbols.mutex);
  return &*symbols.texts.emplace(text).first;
}

}  // namespace

Symbol::Symbol(std::string_view text) : text_(intern(text)) {}

std::string_view Symbol::domain() const {
  auto end = text_->find("::");
  return end == std::string::npos ? std::string_view() : std::string_view(*text_).substr(0, end);
}

std::string_view Symbol::base_name() const {
  std::string_view name = *text_;
  if (auto start = name.find("::"); start != std::string_view::npos) name.remove_prefix(start + 2);
  return name.substr(0, name.find('.'));
}

}  // namespace composit
