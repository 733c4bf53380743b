package demo

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/pawl-dev/pawl/internal/child"
)

// program is one entry of the demo's list of processes: a name, and how it is started, in any language. A process stops
// at the end of its standard input, so that it also ends when the demo is killed.
type program struct {
	name     string
	command  []string
	dir      string   // to run in; default: the demo's
	env      []string // beside the demo's own
	language string   // of a worker
	queues   []string // that a worker serves
}

// process is a program that runs, may be killed, and is started again.
type process struct {
	program
	logFile string

	mu      sync.Mutex // guards what follows
	cmd     *exec.Cmd
	stdin   io.Closer
	exited  chan struct{}
	stopped bool // by us, for good
	kills   int
}

func newProcess(p program, dir string) *process {
	return &process{program: p, logFile: filepath.Join(dir, p.name+".log")}
}

func (p *process) start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return nil
	}
	log, err := os.OpenFile(p.logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("opening the log of %s: %w", p.name, err)
	}
	defer log.Close() // the process has its own handle
	cmd := exec.Command(p.command[0], p.command[1:]...)
	cmd.Dir, cmd.Env = p.dir, append(os.Environ(), p.env...)
	cmd.Stdout, cmd.Stderr = log, log
	child.InGroup(cmd) // Ctrl-C reaches the demo alone, which stops the rest in order
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("starting %s: %w", p.name, err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", p.name, err)
	}
	exited := make(chan struct{})
	go func() {
		_ = cmd.Wait() // how it ended is in its log, or was our doing
		close(exited)
	}()
	p.cmd, p.stdin, p.exited = cmd, stdin, exited
	return nil
}

// kill ends the process with SIGKILL and returns the pid it had.
func (p *process) kill() (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return 0, fmt.Errorf("killing %s: it does not run", p.name)
	}
	if err := child.SignalGroup(p.cmd, syscall.SIGKILL); err != nil { // its group: what it runs, too
		return 0, fmt.Errorf("killing %s: %w", p.name, err)
	}
	<-p.exited
	p.kills++
	return p.cmd.Process.Pid, nil
}

// running says whether the process runs now.
func (p *process) running() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return false
	}
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// stop closes the process's input and waits; one that does not end in time is killed.
func (p *process) stop(grace time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopped = true
	if p.cmd == nil {
		return
	}
	select {
	case <-p.exited: // long ago, perhaps: its number may be another's by now
		return
	default:
	}
	_ = p.stdin.Close() // it may end just now
	select {
	case <-p.exited:
	case <-time.After(grace):
	}
	_ = child.SignalGroup(p.cmd, syscall.SIGKILL) // its group: what it left behind, usually nothing
	<-p.exited
}

// stopAll stops the processes, all at once.
func stopAll(processes []*process) {
	var wg sync.WaitGroup
	for _, p := range processes {
		wg.Go(func() { p.stop(10 * time.Second) })
	}
	wg.Wait()
}
