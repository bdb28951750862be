#include "composit/io/replacement_folder.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <system_error>

#include "composit/io/log.h"
#include "composit/ir/error.h"

namespace composit::io {
namespace {

namespace fs = std::filesystem;

fs::path resolved(const fs::path& folder) {
  std::error_code error;
  fs::path path = fs::weakly_canonical(fs::absolute(folder), error);
  if (error) throw_system_error("resolve", folder, error.value());
  if (!path.has_filename()) path = path.parent_path();  // "resnet50/"
  if (!path.has_filename()) throw UserError("expected the name of a folder");
  return path;
}

// Locks a folder for as long as `lock` lives and this process runs; other processes of this machine
// see it. 0 or errno.
int lock_folder(const fs::path& folder, Descriptor& lock) {
  lock = Descriptor(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return lock && ::flock(lock.get(), LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
}

bool is_removed(const Descriptor& folder) {
  struct stat status = {};
  return ::fstat(folder.get(), &status) != 0 || status.st_nlink == 0;
}

fs::path prefix_of(const fs::path& target) { return "." + target.filename().string() + ".saving-"; }

void rename_or_throw(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) throw_system_error("rename", from, errno);
}

}  // namespace

ReplacementFolder::ReplacementFolder(const fs::path& target) : target_(resolved(target)) {
  try {
    make_parents();
    remove_leftovers();
    create();
  } catch (const UserError&) {
    remove_parents();
    throw;
  }
}

ReplacementFolder::~ReplacementFolder() {
  std::error_code error;
  fs::remove_all(path_, error);
  if (error) log().warn("cannot remove {}: {}", path_.string(), error.message());
  remove_parents();
}

void ReplacementFolder::make_parents() {
  std::vector<fs::path> missing;
  for (fs::path parent = target_.parent_path(); !fs::exists(parent); parent = parent.parent_path())
    missing.push_back(parent);
  for (; !missing.empty(); missing.pop_back()) {
    const fs::path& folder = missing.back();
    if (::mkdir(folder.c_str(), 0777) == 0)
      made_.push_back(folder);
    else if (errno != EEXIST)  // which another process has made meanwhile
      throw_system_error("mkdir", folder, errno);
  }
}

// Those that hold nothing: not after commit(), and not where others have used them.
void ReplacementFolder::remove_parents() const {
  for (size_t i = made_.size(); i-- > 0;) ::rmdir(made_[i].c_str());
}

void ReplacementFolder::create() {
  static std::atomic<unsigned> count{0};
  for (;;) {
    path_ = target_.parent_path() / prefix_of(target_);
    path_ += std::to_string(::getpid()) + "-" + std::to_string(count++);
    if (::mkdir(path_.c_str(), 0777) != 0) {
      if (errno == EEXIST) continue;
      throw_system_error("mkdir", target_, errno);
    }
    const int error = lock_folder(path_, lock_);
    if (error == ENOLCK || error == EOPNOTSUPP) return;  // then nobody can take it for a leftover
    if (error == 0 && !is_removed(lock_)) return;
    // Before it was locked, another process took it for a leftover: again.
    if (error == 0 || error == EWOULDBLOCK || error == ENOENT) continue;
    ::rmdir(path_.c_str());
    throw_system_error("lock", path_, error);
  }
}

void ReplacementFolder::remove_leftovers() const {
  const std::string prefix = prefix_of(target_).string();
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(target_.parent_path(), error)) {
    Descriptor lock;
    if (entry.path().filename().string().starts_with(prefix) &&
        lock_folder(entry.path(), lock) == 0)
      fs::remove_all(entry.path(), error);
  }
}

void ReplacementFolder::commit() {
  sync_folder(path_);
  std::error_code error;
  fs::exists(target_, error) ? replace() : rename_or_throw(path_, target_);
  try {
    sync_folder(target_.parent_path());
    for (const fs::path& made : made_) sync_folder(made.parent_path());
  } catch (const UserError& problem) {
    // The new folder is in place, and there is no way back that cannot fail.
    log().warn("{} may not survive a power failure: {}", target_.string(), problem.what());
  }
}

// Afterwards the old folder stands at path_, for the destructor to remove.
void ReplacementFolder::replace() {
  if (::renameat2(AT_FDCWD, path_.c_str(), AT_FDCWD, target_.c_str(), RENAME_EXCHANGE) == 0) return;
  if (errno != EINVAL && errno != ENOSYS && errno != ENOTSUP)
    throw_system_error("rename", path_, errno);
  // This file system cannot exchange. For a moment there is no folder, but both are on disk.
  const fs::path aside = path_.string() + ".old";
  rename_or_throw(target_, aside);
  try {
    rename_or_throw(path_, target_);
  } catch (const UserError&) {
    rename_or_throw(aside, target_);
    throw;
  }
  path_ = aside;
}

}  // namespace composit::io
