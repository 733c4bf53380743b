package main

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/internal/sandbox"
)

func TestATurnCountsAWorkersSteps(t *testing.T) {
	t.Parallel()
	bin := filepath.Join(t.TempDir(), "goworker")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", bin, "./goworker").CombinedOutput()
	require.NoError(t, err, "%s", out)
	s, err := sandbox.Start(t.Context(), sandbox.Config{})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Stop()) }()
	pool, err := pgxpool.New(t.Context(), s.DatabaseURL())
	require.NoError(t, err)
	defer pool.Close()

	one := turn{pool: pool, url: s.DatabaseURL(), steps: 30, concurrency: 8, queue: "throughput_1", command: bin}
	rate, cpu, err := one.run(t.Context())
	require.NoError(t, err)
	require.Positive(t, rate)
	require.Positive(t, cpu)

	none := turn{pool: pool, url: s.DatabaseURL(), steps: 1, concurrency: 1, queue: "throughput_2", command: "no-such-worker"}
	_, _, err = none.run(t.Context())
	require.ErrorContains(t, err, "the worker has ended")
	require.ErrorContains(t, err, "not found")
}
