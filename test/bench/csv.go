package main

import (
	"bytes"
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

// committed reads the figures that docs/benchmarks.csv has in the last commit. None when there is no such file.
func committed(ctx context.Context) past {
	text, err := exec.CommandContext(ctx, "git", "show", "HEAD:./../../docs/benchmarks.csv").Output()
	if err != nil {
		return past{}
	}
	return readCSV(text)
}

// past figures by engine | label: median steps per second, median milliseconds when idle.
type past struct{ steps, idle map[string]float64 }

func readCSV(text []byte) past {
	rows, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil || len(rows) == 0 {
		return past{}
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
	steps := map[string]float64{}
	for k, v := range values {
		steps[k] = median(v)
	}
	return past{steps, idle}
}

// change prints how Pawl's figures differ from those committed: as they are, and measured in raw PGMQ of the same run, which
// takes the machine's mood out.
func (b *bench) change(w io.Writer, was past, cells []cell) {
	if len(was.steps) == 0 {
		fmt.Fprintln(w, "\nno committed figures to compare with (docs/benchmarks.csv)")
		return
	}
	fmt.Fprintln(w, "\nagainst the committed docs/benchmarks.csv:")
	mood := b.rate(rawKey) / was.steps[rawKey]
	fmt.Fprintf(w, "  %-28s %9s messages/s, were %s (%+.0f %%)\n", "raw PGMQ", grouped(b.rate(rawKey)), grouped(was.steps[rawKey]), 100*(mood-1))
	for _, c := range cells {
		k := key(&pawlEngine{}, c)
		if before, now := was.steps[k], b.rate(k); before > 0 && now > 0 {
			fmt.Fprintf(w, "  %-28s %9s steps/s, were %s (%+.0f %%; in raw PGMQ %+.0f %%)\n", c.label, grouped(now), grouped(before),
				100*(now/before-1), 100*(now/before/mood-1))
		}
		if before, now := was.idle[k], median(b.latency[k]); before > 0 && now > 0 {
			fmt.Fprintf(w, "  %-28s %9.1f ms, were %.1f (%+.0f %%)\n", c.label+", idle", now, before, 100*(now/before-1))
		}
	}
}
