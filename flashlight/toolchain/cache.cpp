#include "flashlight/toolchain/cache.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "composit/io/file.h"
#include "composit/io/log.h"
#include "composit/ir/error.h"
#include "composit/ir/knobs.h"

namespace flashlight::toolchain {
namespace {

namespace fs = std::filesystem;
using composit::Hash;
using composit::UserError;
using composit::io::throw_system_error;

constexpr auto kLifeOfBuilds = std::chrono::hours(24);
constexpr auto kTimeBetweenTrims = std::chrono::hours(1);

// ---- seals --------------------------------------------------------------------------------------

// Ends each file.
struct Seal {
  char magic[8] = {'F', 'L', 'S', 'E', 'A', 'L', '0', '1'};
  Hash key;
  Hash content;
};
static_assert(std::has_unique_object_representations_v<Seal>, "compared and written as bytes");

Seal make_seal(const Hash& key, std::string_view content) {
  composit::Hasher hasher;
  hasher.add(content);
  return {.key = key, .content = hasher.finish()};
}

bool is_sealed(std::string_view file, const Hash& key) {
  if (file.size() < sizeof(Seal)) return false;
  const Seal expected = make_seal(key, file.substr(0, file.size() - sizeof(Seal)));
  return std::memcmp(&expected, file.end() - sizeof(Seal), sizeof(Seal)) == 0;
}

// False if the file is not there, and with a warning if it is not what was stored.
bool is_intact(const fs::path& file, const Hash& key) {
  if (::access(file.c_str(), F_OK) != 0) return false;
  try {
    if (is_sealed(composit::io::MappedFile::open(file)->text(), key)) return true;
    composit::log().warn("{}: cut short or changed by another program; made again", file.string());
  } catch (const UserError& error) {
    composit::log().warn("{}; made again", error.what());
  }
  return false;
}

// ---- the folder ---------------------------------------------------------------------------------

fs::path user_folder() {
  if (const std::string set = knob(composit::Knob::cache); !set.empty()) return fs::absolute(set);
  const char* caches = std::getenv("XDG_CACHE_HOME");
  if (caches != nullptr && fs::path(caches).is_absolute()) return fs::path(caches) / "flashlight";
  const char* home = std::getenv("HOME");
  if (home != nullptr && *home != '\0') return fs::path(home) / ".cache" / "flashlight";
  throw UserError("[cache] none of FLASHLIGHT_CACHE, XDG_CACHE_HOME and HOME is set");
}

// Makes a folder with mkdtemp(): under a new name, and readable by this user alone.
fs::path make_unique_folder(const fs::path& prefix) {
  std::string name = prefix.string() + "XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) throw_system_error("mkdir", prefix, errno);
  return name;
}

// Removes itself when the process ends, but not when a fork of it does.
class TemporaryFolder {
 public:
  TemporaryFolder() : path_(make_unique_folder(fs::temp_directory_path() / "flashlight-")) {}
  ~TemporaryFolder() {
    std::error_code ignored;
    if (::getpid() == owner_) fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
  pid_t owner_ = ::getpid();
};

const fs::path& folder_of_process(const std::string& why) {
  static const TemporaryFolder folder;
  static std::once_flag warned;
  std::call_once(warned, [&] {
    composit::log().warn(
        "{}; compiled code is kept in {} until the program ends. FLASHLIGHT_CACHE names another "
        "folder",
        why, folder.path().string());
  });
  return folder.path();
}

// ---- files to remove ----------------------------------------------------------------------------

struct Entry {
  fs::path path;
  fs::file_time_type used;
  uint64_t size;
};

std::vector<Entry> entries(const fs::path& folder) {
  std::vector<Entry> result;
  std::error_code error;  // another process may remove a file while we look at it
  for (const auto& file : fs::directory_iterator(folder, error)) {
    const fs::file_time_type used = file.last_write_time(error);
    const uint64_t size = error ? 0 : file.file_size(error);
    if (!error) result.push_back({file.path(), used, size});
  }
  return result;
}

// True if `path` exists and was written longer ago than `age`.
bool is_older(const fs::path& path, std::chrono::hours age) {
  std::error_code error;
  const fs::file_time_type written = fs::last_write_time(path, error);
  return !error && written + age < fs::file_time_type::clock::now();
}

}  // namespace

Cache::Cache(const fs::path& folder) : folder_(fs::absolute(folder)) {
  std::error_code error;
  // Other users must not write files that are loaded as code. A folder that existed keeps its
  // permissions.
  if (fs::create_directories(folder_, error)) fs::permissions(folder_, fs::perms::owner_all, error);
  for (const fs::path& part : {files(), builds()}) {
    fs::create_directories(part, error);
    if (error) throw_system_error("cache", part, error.value());
    if (::access(part.c_str(), R_OK | W_OK | X_OK) != 0) throw_system_error("cache", part, errno);
  }
}

Cache Cache::of_user() {
  try {
    return Cache(user_folder());
  } catch (const std::runtime_error& error) {  // UserError, or the file system's
    return Cache(folder_of_process(error.what()));
  }
}

std::optional<fs::path> Cache::find(const Hash& key, const std::string& extension) const {
  const fs::path file = files() / (key.str() + extension);
  if (!is_intact(file, key)) return std::nullopt;
  ::utimensat(AT_FDCWD, file.c_str(), nullptr, 0);  // if it fails, the file is trimmed early
  return file;
}

fs::path Cache::store(const Hash& key, const std::string& extension, const fs::path& file) const {
  fs::path path = files() / (key.str() + extension);
  const fs::path sealed = file.string() + ".sealed";
  const auto content = composit::io::MappedFile::open(file);
  const Seal seal = make_seal(key, content->text());
  composit::io::OutputFile copy(sealed);
  copy.write(content->text());
  copy.write(&seal, sizeof seal);
  copy.commit();
  if (::rename(sealed.c_str(), path.c_str()) != 0) throw_system_error("cache", path, errno);
  return path;
}

void Cache::remove_old_builds() const {
  std::error_code error;
  for (const auto& folder : fs::directory_iterator(builds(), error))
    if (is_older(folder.path(), kLifeOfBuilds)) fs::remove_all(folder.path(), error);
}

void Cache::trim(uint64_t bytes) const {
  remove_old_builds();
  std::vector<Entry> all = entries(files());
  std::sort(all.begin(), all.end(), [](const Entry& a, const Entry& b) { return a.used > b.used; });
  uint64_t total = 0;
  std::error_code ignored;
  for (const Entry& entry : all)
    if ((total += entry.size) > bytes) fs::remove(entry.path, ignored);
}

void Cache::trim_now_and_then() const {
  const uint64_t bytes = parse_bytes(knob(composit::Knob::cache_size));
  const fs::path last = folder_ / "last_trim";
  std::error_code error;
  if (fs::exists(last, error) && !is_older(last, kTimeBetweenTrims)) return;
  const composit::io::Descriptor file(::open(last.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666));
  if (!file || ::futimens(file.get(), nullptr) != 0) throw_system_error("cache", last, errno);
  trim(bytes);
}

BuildFolder::BuildFolder(const Cache& cache) : path_(make_unique_folder(cache.builds() / "")) {}

BuildFolder::~BuildFolder() {
  std::error_code ignored;
  if (!kept_) fs::remove_all(path_, ignored);
}

uint64_t parse_bytes(const std::string& text) {
  size_t end = 0;
  uint64_t number = 0;
  try {
    if (!text.empty() && text[0] != '-') number = std::stoull(text, &end);
  } catch (const std::logic_error&) {
    end = 0;
  }
  const std::string unit = end == 0 ? "?" : text.substr(end);
  const size_t power = std::string_view("KMG").find(unit);
  if (end > 0 && unit.empty()) return number;
  if (unit.size() != 1 || power == std::string_view::npos)
    throw UserError("[cache] expected a number of bytes such as 2000000, 500M or 2G, received '" +
                    text + "'");
  return number << (10 * (power + 1));
}

}  // namespace flashlight::toolchain
