package demo

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestProcessIsKilledStartedAgainAndStopped(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := newProcess(program{name: "reader", command: []string{"/bin/sh", "-c", "echo $NAME; cat >/dev/null; echo ended"}, env: []string{"NAME=x"}}, dir)
	require.NoError(t, p.start())
	require.True(t, p.running())
	pid, err := p.kill()
	require.NoError(t, err)
	require.NotZero(t, pid)
	require.False(t, p.running())
	require.NoError(t, p.start())
	require.True(t, p.running())
	p.stop(time.Minute)
	require.False(t, p.running())
	require.NoError(t, p.start(), "after a stop nothing starts")
	require.False(t, p.running())
	text, err := os.ReadFile(filepath.Join(dir, "reader.log"))
	require.NoError(t, err)
	require.Contains(t, string(text), "ended")
	require.Equal(t, 1, p.kills)
}

func TestProcessThatDoesNotEndIsKilled(t *testing.T) {
	t.Parallel()
	p := newProcess(program{name: "deaf", command: []string{"/bin/sh", "-c", "sleep 600 </dev/null"}}, t.TempDir())
	require.NoError(t, p.start())
	stopAll([]*process{p, newProcess(program{name: "never started"}, t.TempDir())})
	require.False(t, p.running())
}
