#!/usr/bin/env bash
# run_sanitized.sh PROGRAM ARGUMENTS: runs a test program under AddressSanitizer, and once more where
# LeakSanitizer itself broke down: at the end of a process it stops all threads to look at their
# memory, and crashes when one of them is just ending. Reports of leaks and errors stand.
set -uo pipefail

said=$(mktemp)
trap 'rm -f "$said"' EXIT
"$@" 2>"$said"
code=$?
cat "$said" >&2
if [[ $code -ne 0 ]] && grep -q "LeakSanitizer has encountered a fatal error" "$said" &&
  ! grep -q "ERROR: \(Address\|Leak\)Sanitizer\|runtime error:" "$said"; then
  echo "run_sanitized.sh: again, since LeakSanitizer broke down" >&2
  "$@"
  code=$?
fi
exit $code
