package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// figures of one run, per completed step unless they say otherwise.
type figures struct {
	StepsPerSecond float64
	TasksPerSecond float64
	PostgresMicros float64 // CPU of all server processes
	ClientMicros   float64 // CPU of this process and of the engine's own
	WALBytes       float64
	Commits        float64 // transactions that the engine committed, statements of their own among them
	PostgresMB     float64 // memory of the server's processes after the run, shared pages counted once
	ClientMB       float64 // memory of the engine's processes, this one too when the engine works in it
	Foreign        float64 // cores that everybody else used meanwhile
}

// usage is what has been used up to a moment.
type usage struct {
	at                         time.Time
	postgres, clients, machine float64 // CPU seconds
	wal                        float64
}

func measureUsage(ctx context.Context, pool *pgxpool.Pool, postmaster int, pids []int) (usage, error) {
	u := usage{at: time.Now(), postgres: treeSeconds(postmaster), clients: ownSeconds(), machine: machineSeconds()}
	for _, pid := range pids {
		u.clients += processSeconds(pid, false)
	}
	err := pool.QueryRow(ctx, "select (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::float8").Scan(&u.wal)
	return u, err
}

// since gives the figures between two moments.
func (u usage) since(before usage, tasks, steps int) figures {
	seconds := u.at.Sub(before.at).Seconds()
	n := float64(tasks * steps)
	return figures{
		StepsPerSecond: n / seconds, TasksPerSecond: float64(tasks) / seconds,
		PostgresMicros: (u.postgres - before.postgres) * 1e6 / n, ClientMicros: (u.clients - before.clients) * 1e6 / n,
		WALBytes: (u.wal - before.wal) / n,
		Foreign:  math.Max(0, (u.machine-before.machine-(u.postgres-before.postgres)-(u.clients-before.clients))/seconds),
	}
}

// memory of the server and of an engine's processes now, in MB.
func memory(postmaster int, e engine) (server, clients float64) {
	for _, pid := range e.PIDs() {
		clients += processMB(pid, "status", "VmRSS:")
	}
	if _, apart := e.(*peerEngine); !apart {
		clients += processMB(os.Getpid(), "status", "VmRSS:")
	}
	return treeMB(postmaster), clients
}

// commits of a database since it was made. A session's count arrives when the session ends, so they all have to.
func (b *bench) commits(ctx context.Context, pool *pgxpool.Pool) (float64, error) {
	name := pool.Config().ConnConfig.Database
	pool.Reset()
	err := untilTrue(ctx, b.admin, `select not exists (select from pg_stat_activity where datname = $1 and backend_type = 'client backend')`, name)
	if err != nil {
		return 0, fmt.Errorf("waiting for the sessions of %s to end: %w", name, err)
	}
	var commits float64
	err = b.admin.QueryRow(ctx, "select xact_commit::float8 from pg_stat_database where datname = $1", name).Scan(&commits)
	return commits, err
}

// median of values; NaN when there are none.
func median(values []float64) float64 { return quantile(values, 0.5) }

func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}
