package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
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
	Foreign        float64 // cores that everybody else used meanwhile
}

// usage is what has been used up to a moment.
type usage struct {
	at                         time.Time
	postgres, clients, machine float64 // CPU seconds
	wal                        float64
}

const ticksPerSecond = 100 // USER_HZ on every Linux that Go runs on

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

// treeSeconds sums the server's processes; the postmaster's own count includes backends that have ended.
func treeSeconds(postmaster int) float64 {
	total := processSeconds(postmaster, true)
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == postmaster {
			continue
		}
		if f := statFields(pid); len(f) > 1 && f[1] == strconv.Itoa(postmaster) {
			total += processSeconds(pid, false)
		}
	}
	return total
}

// statFields are those after the command's name: state, ppid, …
func statFields(pid int) []string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil
	}
	_, rest, _ := strings.Cut(string(b[strings.LastIndexByte(string(b), ')'):]), " ")
	return strings.Fields(rest)
}

func processSeconds(pid int, withChildren bool) float64 {
	f := statFields(pid)
	if len(f) < 15 {
		return 0
	}
	last := 13
	if withChildren {
		last = 15
	}
	var ticks float64
	for _, s := range f[11:last] {
		v, _ := strconv.ParseFloat(s, 64)
		ticks += v
	}
	return ticks / ticksPerSecond
}

func ownSeconds() float64 {
	var r syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &r)
	return time.Duration(r.Utime.Nano() + r.Stime.Nano()).Seconds()
}

func machineSeconds() float64 {
	b, _ := os.ReadFile("/proc/stat")
	line, _, _ := strings.Cut(string(b), "\n")
	var ticks float64
	for i, s := range strings.Fields(line)[1:] {
		if v, err := strconv.ParseFloat(s, 64); err == nil && i != 3 && i != 4 { // not idle, not waiting
			ticks += v
		}
	}
	return ticks / ticksPerSecond
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
