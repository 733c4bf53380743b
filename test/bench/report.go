package main

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// table prints medians, one line for each engine and cell.
func (b *bench) table(w io.Writer, engines []engine, cells []cell) {
	raw := (&rawPGMQ{}).Name()
	fmt.Fprintf(w, "| work | engine | steps/s [min..max] | tasks/s | Postgres us/step | ours us/step | WAL B/step | idle p50/p99 ms |\n")
	fmt.Fprintf(w, "| --- | --- | --: | --: | --: | --: | --: | --: |\n")
	fmt.Fprintf(w, "| messages, batch 100, 2 connections | %s | %s | | %s | %s | %s | |\n", raw, b.span(raw+" | messages, batch 100"),
		b.number(raw+" | messages, batch 100", func(f figures) float64 { return f.PostgresMicros }),
		b.number(raw+" | messages, batch 100", func(f figures) float64 { return f.ClientMicros }),
		b.number(raw+" | messages, batch 100", func(f figures) float64 { return f.WALBytes }))
	for _, c := range cells {
		for _, e := range engines {
			k := key(e, c)
			if why, no := b.missing[k]; no {
				fmt.Fprintf(w, "| %s | %s | — (%s) | | | | | |\n", c.label, e.Name(), why)
				continue
			}
			if len(b.results[k]) == 0 && len(b.latency[k]) == 0 {
				continue
			}
			idle := ""
			if l := b.latency[k]; len(l) > 0 {
				idle = fmt.Sprintf("%.1f / %.1f", median(l), quantile(l, 0.99))
			}
			fmt.Fprintf(w, "| %s | %s | %s | %s | %s | %s | %s | %s |\n", c.label, e.Name(), b.span(k),
				b.number(k, func(f figures) float64 { return f.TasksPerSecond }), b.number(k, func(f figures) float64 { return f.PostgresMicros }),
				b.number(k, func(f figures) float64 { return f.ClientMicros }), b.number(k, func(f figures) float64 { return f.WALBytes }), idle)
		}
	}
}

func (b *bench) number(k string, of func(figures) float64) string {
	engine, label, _ := strings.Cut(k, " | ")
	v := b.median(engine, label, of)
	if math.IsNaN(v) {
		return ""
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
	commit, _ := exec.CommandContext(ctx, "git", "rev-parse", "--short", "HEAD").Output()
	var version string
	_ = b.admin.QueryRow(ctx, "select split_part(version(), ' on ', 1)").Scan(&version)
	fmt.Fprintf(&page, `# Benchmarks

Printed by a command on %s, commit %s: %s, PGMQ 1.11.1, %s, %d cores shared by Postgres, orchestrators, workers and
submitters, everything durable (fsync, synchronous_commit, full_page_writes on), audit and fences on, handlers that do nothing.

Read ratios, not absolute figures: engines take turns in one run, %d rounds of about %.0f s each, medians, least and greatest in
brackets. "ours" is the CPU of everything that is not Postgres: workers, orchestrators and the submitting program. A step is complete when its
completion is durable. raw PGMQ is messages sent, read and deleted with PGMQ's own functions; an engine's bound is half of it.

![steps per second](benchmarks.svg)

`, time.Now().UTC().Format("2006-01-02"), strings.TrimSpace(string(commit)), version, runtime.Version(), runtime.NumCPU(), b.reps, b.seconds)
	b.table(&page, engines, cells)
	notes, err := os.ReadFile("notes.md")
	if err == nil {
		page.WriteString("\n")
		page.Write(notes)
	}
	return os.WriteFile(filepath.Join(folder, "benchmarks.md"), []byte(page.String()), 0o644)
}

func (b *bench) writeCSV(path string) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	w := csv.NewWriter(file)
	rows := [][]string{{"engine", "work", "round", "steps_per_second", "tasks_per_second", "postgres_us_per_step", "client_us_per_step", "wal_bytes_per_step", "foreign_cores"}}
	for k, fs := range b.results {
		engine, label, _ := strings.Cut(k, " | ")
		for i, f := range fs {
			row := []string{engine, label, strconv.Itoa(i + 1)}
			for _, v := range []float64{f.StepsPerSecond, f.TasksPerSecond, f.PostgresMicros, f.ClientMicros, f.WALBytes, f.Foreign} {
				row = append(row, strconv.FormatFloat(v, 'f', 2, 64))
			}
			rows = append(rows, row)
		}
	}
	if err := w.WriteAll(rows); err != nil {
		return err
	}
	return file.Close()
}

// plot draws horizontal bars of steps per second.
func (b *bench) plot(engines []engine, cells []cell) string {
	type bar struct {
		label string
		value float64
		own   bool
	}
	var bars []bar
	most := 1.0
	for _, c := range cells {
		for _, e := range engines {
			v := b.median(e.Name(), c.label, func(f figures) float64 { return f.StepsPerSecond })
			if !math.IsNaN(v) {
				bars = append(bars, bar{c.label + " — " + e.Name(), v, e.Name() == "Pawl"})
				most = max(most, v)
			}
		}
	}
	var s strings.Builder
	height := 22*len(bars) + 20
	fmt.Fprintf(&s, `<svg xmlns="http://www.w3.org/2000/svg" width="860" height="%d" font-family="sans-serif" font-size="12">`, height)
	for i, bar := range bars {
		y, color := 10+22*i, "#b8c0cc"
		if bar.own {
			color = "#2f6f9f"
		}
		fmt.Fprintf(&s, `<text x="300" y="%d" text-anchor="end">%s</text><rect x="310" y="%d" width="%.0f" height="16" fill="%s"/><text x="%.0f" y="%d">%s</text>`,
			y+13, bar.label, y, bar.value/most*450, color, 316+bar.value/most*450, y+13, grouped(bar.value))
	}
	s.WriteString("</svg>\n")
	return s.String()
}
