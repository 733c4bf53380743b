package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/pgmqsql"
)

// table prints medians, one line for each engine and cell.
func (b *bench) table(w io.Writer, engines []engine, cells []cell) {
	fmt.Fprint(w, `| work | engine | steps/s [min..max] | tasks/s | Postgres us/step | ours us/step | WAL B/step | commits/step | MB Postgres / ours | idle p50 / p99 ms |
| --- | --- | --: | --: | --: | --: | --: | --: | --: | --: |
`)
	b.row(w, limit.label, key(&rawPGMQ{}, limit))
	for _, c := range cells {
		for _, e := range engines {
			if why, no := b.missing[key(e, c)]; no && why != "" {
				fmt.Fprintf(w, "| %s | %s | — (%s) |\n", c.label, e.Name(), why)
				continue
			}
			b.row(w, c.label, key(e, c))
		}
	}
}

func (b *bench) row(w io.Writer, label, k string) {
	if len(b.results[k]) == 0 && len(b.latency[k]) == 0 {
		return
	}
	engine, _, _ := strings.Cut(k, " | ")
	idle := ""
	if l := b.latency[k]; len(l) > 0 {
		idle = fmt.Sprintf("%.1f / %.1f", median(l), quantile(l, 0.99))
	}
	number := func(of func(figures) float64) string { return b.number(k, of) }
	fmt.Fprintf(w, "| %s | %s | %s | %s | %s | %s | %s | %s | %s / %s | %s |\n", label, engine, b.span(k),
		number(func(f figures) float64 { return f.TasksPerSecond }), number(func(f figures) float64 { return f.PostgresMicros }),
		number(func(f figures) float64 { return f.ClientMicros }), number(func(f figures) float64 { return f.WALBytes }),
		number(func(f figures) float64 { return f.Commits }),
		number(func(f figures) float64 { return f.PostgresMB }), number(func(f figures) float64 { return f.ClientMB }), idle)
}

// more prints what is no cell: submits, and latency under load.
func (b *bench) more(w io.Writer) {
	var rows strings.Builder
	for _, how := range submits {
		name := "Pawl | " + how.label
		if len(b.results[name+created]) > 0 {
			tasks := func(f figures) float64 { return f.TasksPerSecond }
			fmt.Fprintf(&rows, "| %s | %s | %s |\n", how.label, b.number(name+acknowledged, tasks), b.number(name+created, tasks))
		}
	}
	if rows.Len() > 0 {
		fmt.Fprintf(w, "\n| submitting | acknowledged/s | tasks created/s |\n| --- | --: | --: |\n%s", rows.String())
	}
	if len(b.rates) > 0 {
		fmt.Fprint(w, "\n"+rateHeader)
	}
	for _, r := range b.rates {
		fmt.Fprintln(w, r.row())
	}
}

func (b *bench) number(k string, of func(figures) float64) string {
	v := b.median(k, of)
	if math.IsNaN(v) {
		return ""
	}
	if v < 10 {
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
	return grouped(v)
}

func (b *bench) span(k string) string {
	var values []float64
	for _, f := range b.results[k] {
		values = append(values, f.StepsPerSecond)
	}
	if len(values) == 0 {
		return ""
	}
	return fmt.Sprintf("**%s** [%s..%s]", grouped(median(values)), grouped(quantile(values, 0)), grouped(quantile(values, 1)))
}

// grouped writes 12345 as 12,345.
func grouped(v float64) string {
	s := strconv.FormatFloat(math.Round(v), 'f', 0, 64)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// write leaves benchmarks.md, benchmarks.csv and a plot in a folder.
func (b *bench) write(ctx context.Context, folder string, engines []engine, cells []cell) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	if err := b.writeCSV(filepath.Join(folder, "benchmarks.csv")); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, "benchmarks.svg"), []byte(b.plot(engines, cells)), 0o644); err != nil {
		return err
	}
	var page strings.Builder
	fmt.Fprintf(&page, `# Benchmarks

Printed by `+"`make bench-peers`"+` on %s.

%s Everything is durable, with audit and fences on; handlers do nothing unless a row says otherwise.

Read ratios, not absolute figures: engines take turns in one run, %d rounds of about %g s each, medians, least and greatest in
brackets. "ours" is all that is not Postgres: workers, orchestrators and the submitting program. A step is complete when its
completion is durable. Commits count statements that are their own transaction, too. raw PGMQ is messages sent, read and
deleted with PGMQ's own functions; an engine's bound is half of it: %s of the bound for Pawl's diamond. Peers: %s.

![steps per second](benchmarks.svg)

`, time.Now().UTC().Format("2006-01-02"), b.machine(ctx), b.reps, b.seconds, b.ratio(), versions())
	b.table(&page, engines, cells)
	b.more(&page)
	notes, err := os.ReadFile("notes.md")
	if err == nil {
		page.WriteString("\n")
		page.Write(notes)
	}
	return os.WriteFile(filepath.Join(folder, "benchmarks.md"), []byte(page.String()), 0o644)
}

// machine in a sentence: where and with what this was measured.
func (b *bench) machine(ctx context.Context) string {
	commit, _ := exec.CommandContext(ctx, "git", "rev-parse", "--short", "HEAD").Output()
	var version string
	_ = b.admin.QueryRow(ctx, "select split_part(version(), ' on ', 1)").Scan(&version)
	var set []string
	for _, name := range slices.Sorted(maps.Keys(settings())) {
		set = append(set, name+"="+settings()[name])
	}
	return fmt.Sprintf("Commit %s, %s, PGMQ %s, %s, %d cores (%s) that Postgres, orchestrators, workers and submitters share; %s.",
		strings.TrimSpace(string(commit)), version, pgmqsql.Version, runtime.Version(), runtime.NumCPU(), processor(), strings.Join(set, ", "))
}

// processor's name, as Linux says it.
func processor() string {
	b, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(b)) {
		if name, value, _ := strings.Cut(line, ":"); strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}
