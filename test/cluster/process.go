package cluster

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/pawl-dev/pawl/internal/child"
)

// Process is a program that is killed, suspended and started again.
type Process struct {
	Name    string
	LogFile string

	command []string
	env     []string
	guard   *guard

	mu     sync.Mutex
	cmd    *exec.Cmd     // guarded by mu; nil before the first start
	exited chan struct{} // guarded by mu; closed when the last one has ended
}

func (s *Stage) newProcess(name string, command, env []string) *Process {
	return &Process{Name: name, LogFile: filepath.Join(s.Config.Folder, name+".log"), command: command, env: env, guard: s.guard}
}

// Start runs the program, unless it runs.
func (p *Process) Start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running() {
		return nil
	}
	log, err := os.OpenFile(p.LogFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("opening the log of %s: %w", p.Name, err)
	}
	defer log.Close() // the process has its own handle
	cmd := exec.Command(p.command[0], p.command[1:]...)
	cmd.Env = append(os.Environ(), p.env...)
	cmd.Stdout, cmd.Stderr = log, log
	child.InGroup(cmd) // Ctrl-C reaches us alone, and we stop the others
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", p.Name, err)
	}
	p.guard.tell("add", cmd.Process.Pid)
	exited := make(chan struct{})
	go func() {
		_ = cmd.Wait() // how it ended is in its log, or was our doing
		p.guard.tell("drop", cmd.Process.Pid)
		close(exited)
	}()
	p.cmd, p.exited = cmd, exited
	return nil
}

// running is for those who hold mu.
func (p *Process) running() bool {
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

// Running says whether the process has not ended.
func (p *Process) Running() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.running()
}

// Kill ends the process with SIGKILL and waits until it is gone. It is false when it did not run.
func (p *Process) Kill() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.running() {
		return false
	}
	_ = p.cmd.Process.Kill() // it may have ended just now
	<-p.exited
	return true
}

// Stop asks the process to end with SIGTERM and kills it when it has not after the grace.
func (p *Process) Stop(grace time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.running() {
		return
	}
	_ = p.cmd.Process.Signal(child.Resume) // it may be suspended
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.exited:
	case <-time.After(grace):
		_ = p.cmd.Process.Kill()
		<-p.exited
	}
}

// Suspend stops the process in its tracks; Resume lets it go on. They are false when it does not run.
func (p *Process) Suspend() bool { return p.signal(child.Suspend) }

// Resume ends Suspend.
func (p *Process) Resume() bool { return p.signal(child.Resume) }

func (p *Process) signal(signal syscall.Signal) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.running() && p.cmd.Process.Signal(signal) == nil
}
