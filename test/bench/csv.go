package main

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
)

// column of the file of figures: one line is one run, or the idle latency of a cell.
type column struct {
	name string
	of   func(figures) float64
}

var columns = []column{
	{"steps_per_second", func(f figures) float64 { return f.StepsPerSecond }},
	{"tasks_per_second", func(f figures) float64 { return f.TasksPerSecond }},
	{"postgres_us_per_step", func(f figures) float64 { return f.PostgresMicros }},
	{"client_us_per_step", func(f figures) float64 { return f.ClientMicros }},
	{"wal_bytes_per_step", func(f figures) float64 { return f.WALBytes }},
	{"commits_per_step", func(f figures) float64 { return f.Commits }},
	{"postgres_mb", func(f figures) float64 { return f.PostgresMB }},
	{"client_mb", func(f figures) float64 { return f.ClientMB }},
	{"foreign_cores", func(f figures) float64 { return f.Foreign }},
}

func (b *bench) writeCSV(path string) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	head := []string{"engine", "work", "round"}
	for _, c := range columns {
		head = append(head, c.name)
	}
	rows := [][]string{append(head, "idle_p50_ms", "idle_p99_ms")}
	write := func(v float64) string { return strconv.FormatFloat(v, 'f', 2, 64) }
	for _, k := range slices.Sorted(maps.Keys(b.results)) {
		engine, label, _ := strings.Cut(k, " | ")
		for i, f := range b.results[k] {
			row := []string{engine, label, strconv.Itoa(i + 1)}
			for _, c := range columns {
				row = append(row, write(c.of(f)))
			}
			rows = append(rows, append(row, "", ""))
		}
	}
	for _, k := range slices.Sorted(maps.Keys(b.latency)) {
		engine, label, _ := strings.Cut(k, " | ")
		row := append([]string{engine, label, "idle"}, make([]string, len(columns))...)
		rows = append(rows, append(row, write(median(b.latency[k])), write(quantile(b.latency[k], 0.99))))
	}
	w := csv.NewWriter(file)
	if err := w.WriteAll(rows); err != nil {
		return err
	}
	return file.Close()
}

// committed reads the figures that docs/benchmarks.csv has in the last commit: medians by engine | label. None when there
// is no such file.
func committed(ctx context.Context) (steps, idle map[string]float64) {
	text, err := exec.CommandContext(ctx, "git", "show", "HEAD:./../../docs/benchmarks.csv").Output()
	if err != nil {
		return nil, nil
	}
	rows, err := csv.NewReader(strings.NewReader(string(text))).ReadAll()
	if err != nil || len(rows) == 0 {
		return nil, nil
	}
	at := func(row []string, name string) float64 {
		v, err := strconv.ParseFloat(row[slices.Index(rows[0], name)], 64)
		if err != nil {
			return math.NaN()
		}
		return v
	}
	values, idle := map[string][]float64{}, map[string]float64{}
	for _, row := range rows[1:] {
		k := row[0] + " | " + row[1]
		if row[2] == "idle" {
			idle[k] = at(row, "idle_p50_ms")
		} else {
			values[k] = append(values[k], at(row, "steps_per_second"))
		}
	}
	steps = map[string]float64{}
	for k, v := range values {
		steps[k] = median(v)
	}
	return steps, idle
}

// change prints how Pawl's figures differ from those committed: as they are, and measured in raw PGMQ of the same run, which
// takes the machine's mood out.
func (b *bench) change(ctx context.Context, w io.Writer, cells []cell) {
	steps, idle := committed(ctx)
	if len(steps) == 0 {
		fmt.Fprintln(w, "\nno committed figures to compare with (docs/benchmarks.csv)")
		return
	}
	fmt.Fprintln(w, "\nagainst the committed docs/benchmarks.csv:")
	mood := b.rate(rawKey) / steps[rawKey]
	fmt.Fprintf(w, "  %-28s %9s messages/s, were %s (%+.0f %%)\n", "raw PGMQ", grouped(b.rate(rawKey)), grouped(steps[rawKey]), 100*(mood-1))
	for _, c := range cells {
		k := key(&pawlEngine{}, c)
		if was, now := steps[k], b.rate(k); was > 0 && now > 0 {
			fmt.Fprintf(w, "  %-28s %9s steps/s, were %s (%+.0f %%; in raw PGMQ %+.0f %%)\n", c.label, grouped(now), grouped(was),
				100*(now/was-1), 100*(now/was/mood-1))
		}
		if was, now := idle[k], median(b.latency[k]); was > 0 && now > 0 {
			fmt.Fprintf(w, "  %-28s %9.1f ms, were %.1f (%+.0f %%)\n", c.label+", idle", now, was, 100*(now/was-1))
		}
	}
}
