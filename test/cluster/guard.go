package cluster

import (
	"fmt"
	"io"
	"os/exec"
	"sync"

	"github.com/pawl-dev/pawl/internal/child"
)

// guardScript kills the processes that are noted when its input ends: when this process was killed itself.
const guardScript = `
trap '' INT TERM HUP
pids=' '
while read -r word pid; do
  case "$word" in
    add) pids="$pids$pid " ;;
    drop) case "$pids" in *" $pid "*) pids="${pids%% "$pid" *} ${pids#* "$pid" }" ;; esac ;;
  esac
done
for pid in $pids; do kill -KILL "$pid" 2>/dev/null; done
`

// guard sees to it that no process outlives this one, not even a suspended one.
type guard struct {
	cmd *exec.Cmd

	mu    sync.Mutex
	input io.WriteCloser // guarded by mu
}

func startGuard() (*guard, error) {
	cmd := exec.Command("/bin/sh", "-c", guardScript, "pawl-guard")
	child.InSession(cmd)
	input, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("starting the guard of the processes: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the guard of the processes: %w", err)
	}
	return &guard{cmd: cmd, input: input}, nil
}

func (g *guard) tell(word string, pid int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, _ = fmt.Fprintln(g.input, word, pid) // without a guard the processes are still stopped by Close
}

func (g *guard) close() {
	g.mu.Lock()
	_ = g.input.Close()
	g.mu.Unlock()
	_ = g.cmd.Wait() // it kills nobody who is still noted by mistake: all have ended
}
