package conformance

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/pawl-dev/pawl/internal/child"
)

// restartPause is the time before a worker that has ended is started again, as a supervisor would.
const restartPause = 200 * time.Millisecond

type processConfig struct {
	command string
	env     []string
	log     string
	output  io.Writer
}

// process is the worker under test: started again whenever it ends, until it is told to end.
type process struct {
	config processConfig
	log    *os.File

	mu sync.Mutex
	// These are guarded by mu.
	cmd     *exec.Cmd
	starts  int
	exits   int  // that nobody asked for
	ending  bool // do not start it again
	code    int  // of the last exit
	stopped chan struct{}
}

func newProcess(config processConfig) (*process, error) {
	log, err := os.Create(config.log)
	if err != nil {
		return nil, fmt.Errorf("making the worker's log: %w", err)
	}
	p := &process{config: config, log: log}
	return p, p.start()
}

// start starts the worker as the leader of a process group of its own.
func (p *process) start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ending {
		return nil
	}
	cmd := exec.Command("sh", "-c", script(p.config.command))
	cmd.Env = p.config.env
	child.InGroup(cmd)
	child.DieWithParent(cmd)
	cmd.Stdout, cmd.Stderr = p.log, p.log
	if p.config.output != nil {
		out := io.MultiWriter(p.log, p.config.output)
		cmd.Stdout, cmd.Stderr = out, out
	}
	cmd.WaitDelay = time.Second // for children that hold its output open
	if err := cmd.Start(); err != nil {
		return err
	}
	p.cmd, p.stopped = cmd, make(chan struct{})
	p.starts++
	go p.watch(cmd, p.stopped)
	return nil
}

var simple = regexp.MustCompile(`^[A-Za-z0-9_./~-]+( +[A-Za-z0-9_./:=@,+'"-]+)*$`)

// script is what the shell runs: the worker in the shell's place where that is possible; otherwise a shell that survives
// SIGTERM until the worker has ended, and ends with its exit code.
func script(command string) string {
	if simple.MatchString(command) {
		if _, err := exec.LookPath(strings.Fields(command)[0]); err == nil { // no builtin of the shell, such as exec
			return "exec " + command
		}
	}
	return "trap : TERM\n" + command
}

func (p *process) watch(cmd *exec.Cmd, stopped chan struct{}) {
	err := cmd.Wait()
	_ = child.SignalGroup(cmd, syscall.SIGKILL) // what it left behind
	p.mu.Lock()
	p.code = cmd.ProcessState.ExitCode()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && !errors.Is(err, exec.ErrWaitDelay) {
		p.code = -1
	}
	again := !p.ending
	if again {
		p.exits++
	}
	p.mu.Unlock()
	close(stopped)
	if again {
		time.Sleep(restartPause)
		_ = p.start() // a worker that does not start fails its checks
	}
}

// signal sends a signal to the worker and its children.
func (p *process) signal(s syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = child.SignalGroup(p.cmd, s) // it may have ended just now
}

// terminate asks the worker to end, and returns its exit code when it has.
func (p *process) terminate(patience time.Duration) (code int, err error) {
	p.mu.Lock()
	p.ending = true
	stopped := p.stopped
	p.mu.Unlock()
	p.signal(syscall.SIGTERM)
	select {
	case <-stopped:
	case <-time.After(patience):
		return 0, fmt.Errorf("it did not end within %s after SIGTERM", patience)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.code, nil
}

// unexpected counts the exits that nobody asked for.
func (p *process) unexpected() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.exits
}

// exitCode of the last exit.
func (p *process) exitCode() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.code
}

// end kills what is left.
func (p *process) end() {
	p.mu.Lock()
	p.ending = true
	stopped := p.stopped
	p.mu.Unlock()
	p.signal(syscall.SIGKILL)
	<-stopped
	_ = p.log.Close() // nobody writes any more
}

// tail is the end of what the worker wrote.
func (p *process) tail() string {
	text, err := os.ReadFile(p.config.log)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-4000):])
}
