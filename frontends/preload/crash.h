// Programs that do not end as they should: by a signal that kills them.
//
//   watch_crashes([](int signal) { session->end(strsignal(signal)); });
//
// When such a signal comes, a copy of the process (fork) writes what has been recorded, and the
// process waits for it, at most for some seconds: it may have been interrupted inside the
// allocator, and never get ready. Then the signal does what it would have done.
#pragma once

namespace flashlight::preload {

// Once per process, on the main thread. Signals that the program handles or ignores itself stay as
// they are.
void watch_crashes(void (*write)(int signal));

}  // namespace flashlight::preload
