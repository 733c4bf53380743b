package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFiguresWrittenAreReadAndCompared(t *testing.T) {
	t.Parallel()
	diamond := cell{label: "diamond", work: baseWork()}
	b := &bench{
		results: map[string][]figures{"Pawl | diamond": {{StepsPerSecond: 1000}, {StepsPerSecond: 3000}, {StepsPerSecond: 2000}}, rawKey: {{StepsPerSecond: 8000}}},
		latency: map[string][]float64{"Pawl | diamond": {5, 7, 6}},
	}
	path := filepath.Join(t.TempDir(), "benchmarks.csv")
	if err := b.writeCSV(path); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	was := readCSV(text)
	if was.steps["Pawl | diamond"] != 2000 || was.idle["Pawl | diamond"] != 6 {
		t.Fatalf("read %v", was)
	}
	b.results["Pawl | diamond"], b.results[rawKey] = []figures{{StepsPerSecond: 2200}}, []figures{{StepsPerSecond: 4000}}
	var out strings.Builder
	b.change(&out, was, []cell{diamond})
	for _, want := range []string{"4,000 messages/s, were 8,000 (-50 %)", "2,200 steps/s, were 2,000 (+10 %; in raw PGMQ +120 %)", "6.0 ms, were 6.0 (+0 %)"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in:\n%s", want, &out)
		}
	}
}

func TestTheRatioComparesEachRoundWithTheLimitAroundIt(t *testing.T) {
	t.Parallel()
	b := &bench{results: map[string][]figures{
		"Pawl | diamond": {{StepsPerSecond: 1000}, {StepsPerSecond: 500}, {StepsPerSecond: 3000}},
		rawKey: {{StepsPerSecond: 3000}, {StepsPerSecond: 5000}, {StepsPerSecond: 2000}, {StepsPerSecond: 2000},
			{StepsPerSecond: 10000}, {StepsPerSecond: 10000}},
	}}
	if got := b.ratio(); got != "0.50" { // 0.5, 0.5, 0.6
		t.Fatal(got)
	}
	b.results[rawKey] = b.results[rawKey][1:]
	if got := b.ratio(); got != "unknown" {
		t.Fatal(got)
	}
}

func TestGraphsNameWhatStandsBefore(t *testing.T) {
	t.Parallel()
	for shape, edges := range map[string]int{"single": 0, "chain": 3, "diamond": 4, "fan20": 40, "fan1000": 2000, "chain500": 499} {
		seen, count := map[string]bool{}, 0
		for _, n := range graphOf(shape) {
			for _, need := range n.Needs {
				if !seen[need] {
					t.Errorf("%s: %s needs %s, which stands after it", shape, n.Name, need)
				}
			}
			seen[n.Name], count = true, count+len(n.Needs)
		}
		if len(seen) != (work{Shape: shape}).steps() || count != edges {
			t.Errorf("%s has %d steps and %d edges", shape, len(seen), count)
		}
	}
}

func TestRatesAreNumbersOrMax(t *testing.T) {
	t.Parallel()
	rates, err := parseRates("1,0.5,max")
	if err != nil || len(rates) != 3 || rates[1] != 0.5 || rates[2] != 0 {
		t.Fatal(rates, err)
	}
	if _, err := parseRates("1,fast"); err == nil {
		t.Fatal("fast is no rate")
	}
}
