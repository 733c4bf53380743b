package devpg

import (
	"errors"
	"fmt"
	"io"
	"os/exec"

	"github.com/pawl-dev/pawl/internal/child"
)

// stopScript stops the server of folder $1 (fast, then at once, then by force) and removes the folder when $2 is
// "remove". The pid is taken from the server's own file, which exists only while it runs or when it crashed; the name
// of the process is compared before it is killed, so that a pid used again is spared.
const stopScript = `
stop_server() {
  tries=0
  for signal in INT QUIT KILL; do
    pid=$(head -n 1 "$1/data/postmaster.pid" 2>/dev/null) || break
    [ -n "$pid" ] || break
    args=$(tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline" || ps -o args= -p "$pid" 2>/dev/null)
    case "$args" in *postgres*"$1"*) ;; *) break ;; esac
    kill -$signal "$pid" 2>/dev/null
    waited=0
    while kill -0 "$pid" 2>/dev/null && [ $waited -lt 100 ]; do sleep 0.1; waited=$((waited+1)); done
  done
  if [ "$2" = remove ]; then rm -rf "$1"; fi
}
`

// watchScript waits for the end of file on its input, which comes when the parent closes it or dies however it dies.
// A parent that stopped the server itself says "done" before. A server that is just starting gets a second to write its
// pid.
const watchScript = stopScript + `
trap '' INT TERM HUP
read -r word && [ "$word" = done ] && exit 0
[ -f "$1/data/postmaster.pid" ] || sleep 1
stop_server "$1" "$2"
`

// watcher outlives its parent by the time it takes to stop the server.
type watcher struct {
	cmd   *exec.Cmd
	input io.WriteCloser
}

func startWatcher(dir, afterwards string) (*watcher, error) {
	cmd := exec.Command("/bin/sh", "-c", watchScript, "pawl-watcher", dir, afterwards)
	child.InSession(cmd)
	cmd.Dir = "/"
	input, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("starting the server's watcher: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the server's watcher: %w", err)
	}
	return &watcher{cmd: cmd, input: input}, nil
}

// dismiss ends the watcher of a server that has stopped.
func (w *watcher) dismiss() error {
	_, err := io.WriteString(w.input, "done\n")
	return errors.Join(err, w.input.Close(), w.cmd.Wait())
}
