package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawl-dev/pawl/internal/child"
	"github.com/pawl-dev/pawl/internal/pgmqsql"
)

// peerEngine is a peer from npm: a script in peers/, started as a process of its own, that speaks the line protocol
// described in peers/peer.js.
type peerEngine struct {
	name, script, mode string
	graphs, batches    bool // what it can do
	pgmq               bool // it needs PGMQ in the database
	pieces             bool // its handlers may pause

	cmd    *exec.Cmd
	lines  *bufio.Scanner
	stdin  io.WriteCloser
	stderr tail
}

// npmPeers are those that npm brings, with what the benchmark asks of each.
func npmPeers() []engine {
	return []engine{
		&peerEngine{name: "pgflow", script: "pgflow.js", graphs: true, batches: true, pgmq: true},
		&peerEngine{name: "DBOS, steps in its process", script: "dbos.js", mode: "steps", graphs: true},
		&peerEngine{name: "DBOS, queued steps", script: "dbos.js", mode: "queue", graphs: true},
		&peerEngine{name: "Graphile Worker", script: "graphile.js", batches: true, pieces: true},
		&peerEngine{name: "pg-boss", script: "pgboss.js", batches: true, pieces: true},
	}
}

func (e *peerEngine) Name() string { return e.name }

func (e *peerEngine) Can(w work) (string, bool) {
	base := baseWork()
	switch {
	case !w.plain():
		return "", false
	case !e.graphs && !w.line():
		return "no DAG", false
	case w.Batch != base.Batch && !e.batches:
		return "no batches", false
	case w.InFlight > 0 && !e.pieces:
		return "", false
	}
	if err := installPeers(); err != nil {
		return err.Error(), false
	}
	return "", true
}

func (e *peerEngine) PIDs() []int {
	if e.cmd == nil {
		return nil
	}
	return []int{e.cmd.Process.Pid}
}

func (e *peerEngine) Open(ctx context.Context, pool *pgxpool.Pool, w work) error {
	if e.pgmq {
		if err := installPGMQ(ctx, pool); err != nil {
			return err
		}
	}
	asked, err := json.Marshal(map[string]any{"url": pool.Config().ConnString(), "mode": e.mode, "graph": graphOf(w.Shape),
		"text": payload(w.Payload), "batch": w.Batch, "in_flight": w.InFlight})
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "node", "--no-deprecation", e.script, string(asked))
	cmd.Dir, cmd.Stderr, cmd.WaitDelay = peersFolder, &e.stderr, 10*time.Second
	cmd.Env = append(os.Environ(), "NODE_ENV=production")
	child.DieWithParent(cmd)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if e.stdin, err = cmd.StdinPipe(); err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", e.script, err)
	}
	e.cmd, e.lines = cmd, bufio.NewScanner(stdout)
	return e.answer("ready")
}

// answer reads lines up to one of the protocol.
func (e *peerEngine) answer(want string) error {
	for e.lines.Scan() {
		said, ours := strings.CutPrefix(e.lines.Text(), "bench: ")
		switch {
		case !ours:
		case said == want:
			return nil
		default:
			return fmt.Errorf("%s: %s", e.script, said)
		}
	}
	return fmt.Errorf("%s ended: %s", e.script, e.stderr.String())
}

func (e *peerEngine) Run(_ context.Context, n int) error {
	if _, err := fmt.Fprintf(e.stdin, "run %d\n", n); err != nil {
		return fmt.Errorf("asking %s: %w: %s", e.script, err, e.stderr.String())
	}
	return e.answer("done")
}

func (e *peerEngine) One(ctx context.Context) error { return e.Run(ctx, 1) }

func (e *peerEngine) Close(context.Context) error {
	if e.cmd == nil {
		return nil
	}
	cmd := e.cmd
	e.cmd = nil
	if _, err := io.WriteString(e.stdin, "close\n"); err == nil {
		for e.lines.Scan() { // until it ends
			continue
		}
	}
	return errors.Join(e.stdin.Close(), cmd.Wait())
}

// installPGMQ puts PGMQ alone into a database.
func installPGMQ(ctx context.Context, pool *pgxpool.Pool) error {
	text, err := pgmqsql.Load()
	if errors.Is(err, pgmqsql.ErrMissing) {
		_, err = pool.Exec(ctx, "create extension pgmq")
		return err
	}
	if err == nil {
		_, err = pool.Exec(ctx, text)
	}
	return err
}

// tail keeps the end of what a process writes.
type tail struct{ text []byte }

func (t *tail) Write(b []byte) (int, error) {
	t.text = append(t.text, b...)
	t.text = t.text[max(0, len(t.text)-2000):]
	return len(b), nil
}

func (t *tail) String() string { return strings.TrimSpace(string(t.text)) }

var peersFolder, _ = filepath.Abs("peers")
