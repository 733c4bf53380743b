package cluster

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/test/faults"
)

// Report is what a run prints at its end.
type Report struct {
	Seed     uint64
	Commit   string
	Duration time.Duration
	Verdict  Verdict
	Faults   []FaultFigures
	Proxies  faults.Counts // of all proxies together
	Extra    []string      // lines that only this run has

	Missing []string // situations that were to be reached and were not
}

// FaultFigures are those of one kind.
type FaultFigures struct {
	Fault               Fault
	Injected, Effective int
	Service, ServiceP99 time.Duration // the longest and the 99th percentile
	Max, P99            time.Duration // of the recovery
	Delayed             int           // strikes that do not count for the recovery: the clock was set back meanwhile
}

// Report sums up a fire.
func (f *Fire) Report(v Verdict) Report {
	r := Report{Seed: f.stage.Config.Seed, Verdict: v}
	by := make(map[Fault][]Strike)
	for _, s := range f.Strikes {
		if s.Injected {
			by[s.Fault] = append(by[s.Fault], s)
		}
	}
	for _, k := range kinds {
		strikes := by[k.fault]
		if len(strikes) == 0 {
			continue
		}
		figures := FaultFigures{Fault: k.fault, Injected: len(strikes)}
		slices.SortFunc(strikes, func(a, b Strike) int { return cmp.Compare(a.Recovered, b.Recovered) })
		undelayed := strikes
		if k.target != clockTarget {
			undelayed = slices.DeleteFunc(slices.Clone(strikes), f.delayed)
		}
		figures.Delayed = len(strikes) - len(undelayed)
		if n := len(undelayed); n > 0 {
			figures.Max, figures.P99 = undelayed[n-1].Recovered, undelayed[(n*99-1)/100].Recovered
		}
		slices.SortFunc(strikes, func(a, b Strike) int { return cmp.Compare(a.Service, b.Service) })
		figures.Service, figures.ServiceP99 = strikes[len(strikes)-1].Service, strikes[(len(strikes)*99-1)/100].Service
		for _, s := range strikes {
			if s.Effective {
				figures.Effective++
			}
		}
		r.Faults = append(r.Faults, figures)
	}
	for _, m := range f.stage.Members {
		c := m.Proxy.Counts()
		r.Proxies.Connections += c.Connections
		r.Proxies.Cut += c.Cut
		r.Proxies.NotificationsDropped += c.NotificationsDropped
		r.Proxies.Unknown += c.Unknown
		r.Proxies.UnknownApplied += c.UnknownApplied
		r.Proxies.UnknownRefused += c.UnknownRefused
	}
	r.Missing = r.missing(f.server != nil, f.stage.Config.Clock != nil)
	return r
}

// Effective is how many faults of all kinds were.
func (r Report) Effective() (injected, effective int) {
	for _, f := range r.Faults {
		injected += f.Injected
		effective += f.Effective
	}
	return injected, effective
}

// missing are the situations that a run exists to reach, and did not. A run that does not reach them proves nothing.
func (r Report) missing(server, clock bool) []string {
	v := r.Verdict
	effective := make(map[Fault]int)
	for _, f := range r.Faults {
		effective[f.Fault] = f.Effective
	}
	absorbed := func(parts ...string) (n int) {
		for reason, times := range v.Absorbed {
			for _, part := range parts {
				if strings.Contains(reason, part) {
					n += times
				}
			}
		}
		return n
	}
	garbage := 0
	for reason, n := range v.DeadLetters {
		if strings.HasPrefix(reason, "garbage") {
			garbage += n
		}
	}
	reached := []struct {
		what  string
		times int
	}{
		{"a commit whose reply was lost, and that took place", r.Proxies.UnknownApplied},
		{"a commit that was lost", r.Proxies.UnknownRefused},
		{"a request that was there before", absorbed("duplicate request")},
		{"a result for a step that had ended, or of an older attempt", absorbed("step is", "older attempt")},
		{"a delivery of a step that had ended", absorbed("stale delivery", "stale message")},
		{"a lease that ended and was taken by another delivery", v.Reclaimed},
		{"a step that failed and was tried again", v.Retried},
		{"a cancel that came in time", v.States["cancelled"]},
		{"a cancel that came too late", v.Calls["cancel too late ok"] + v.Calls["cancel too late failed"]},
		{"a task that failed for good", v.States["error"]},
		{"garbage that became a dead letter", garbage},
		{"notifications that were lost", r.Proxies.NotificationsDropped},
		{"a process killed while it had work in hand", effective[KillWorker] + effective[KillOrchestrator]},
		{"a worker suspended for longer than its lease while it had work in hand", effective[FreezeWorker]},
		{"a connection cut inside a request or transaction", effective[CutOne] + effective[CutAll]},
		{"a backend terminated inside a request or transaction", effective[TerminateBackend]},
	}
	var missing []string
	for _, s := range reached {
		if s.times == 0 {
			missing = append(missing, s.what)
		}
	}
	if server && effective[StopServer]+effective[KillServer]+effective[KillBackend] == 0 {
		missing = append(missing, "a crash of Postgres with work in hand")
	}
	if clock && (effective[ClockForward] == 0 || effective[ClockBack]+effective[ClockFarBack] == 0) {
		missing = append(missing, "a jump of the database's clock, forward and back, with messages in flight")
	}
	return missing
}

// Failed says whether something did not hold, or the run proves nothing.
func (r Report) Failed() bool { return len(r.Verdict.Violations) > 0 || len(r.Missing) > 0 }

// Print writes the report as Markdown.
func (r Report) Print(w io.Writer) {
	v := r.Verdict
	injected, effective := r.Effective()
	fmt.Fprintf(w, "Seed %d, commit %s, %s of fire.\n\n", r.Seed, r.Commit, r.Duration.Round(time.Second))
	fmt.Fprintf(w, "| | |\n| --- | --- |\n")
	row := func(name string, format string, arguments ...any) {
		fmt.Fprintf(w, "| %s | %s |\n", name, fmt.Sprintf(format, arguments...))
	}
	row("tasks", "%d (%s)", v.Tasks, list(v.States))
	row("steps", "%d, in %d attempts, %d calls of handlers", v.Steps, v.Attempts, v.Handled)
	row("calls by worker", "%s", list(v.HandledBy))
	row("faults", "%d injected, %d effective, of %d kinds", injected, effective, len(r.Faults))
	row("commits with an unknown outcome", "%d: %d had taken place, %d had not, %d died with the server", r.Proxies.Unknown,
		r.Proxies.UnknownApplied, r.Proxies.UnknownRefused, r.Proxies.Unknown-r.Proxies.UnknownApplied-r.Proxies.UnknownRefused)
	row("clients' calls", "%s", list(v.Calls))
	row("submits with an unknown outcome", "%d, of which %d had arrived", v.UnknownCalls, v.UnknownHad)
	row("absorbed", "%s", list(v.Absorbed))
	stale := 0
	for reason, n := range v.Absorbed {
		if strings.HasPrefix(reason, "step is") || strings.HasPrefix(reason, "result of an older") {
			stale += n
		}
	}
	row("stale results refused", "%d", stale)
	row("dead letters", "%s", list(v.DeadLetters))
	row("leases reclaimed", "%d", v.Reclaimed)
	row("steps tried again", "%d", v.Retried)
	row("repairs", "%d", v.Repairs)
	row("deadlocks", "%d", v.Deadlocks)
	row("invariants asked", "%d", v.Invariants)
	row("violations", "%d", len(v.Violations))
	for _, line := range r.Extra {
		name, text, _ := strings.Cut(line, ": ")
		row(name, "%s", text)
	}
	fmt.Fprintf(w, "\nService is the time until a request that was sent after the fault had ended; recovery, until every request had ended that was under way "+
		"when it struck: both whatever else struck meanwhile.\n")
	delayed := 0
	for _, f := range r.Faults {
		delayed += f.Delayed
	}
	if delayed > 0 {
		fmt.Fprintf(w, "When Postgres' clock is set back, messages in flight wait as long as it jumped. That wait counts as the recovery of the jumps alone: "+
			"%d other faults of which it was a part count for all columns but the last two.\n", delayed)
	}
	fmt.Fprintln(w)
	fmt.Fprintf(w, "| fault | injected | effective | service p99 | maximum | recovery p99 | maximum |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: |\n")
	for _, f := range r.Faults {
		recovery := "– | –" // no strike counts
		if f.Delayed < f.Injected {
			recovery = fmt.Sprintf("%.1f s | %.1f s", f.P99.Seconds(), f.Max.Seconds())
		}
		fmt.Fprintf(w, "| %s | %d | %d | %.1f s | %.1f s | %s |\n", f.Fault, f.Injected, f.Effective,
			f.ServiceP99.Seconds(), f.Service.Seconds(), recovery)
	}
	for _, text := range v.Violations {
		fmt.Fprintf(w, "\nVIOLATION: %s\n", text)
	}
	for _, text := range r.Missing {
		fmt.Fprintf(w, "\nNEVER REACHED: %s\n", text)
	}
}

func list(of map[string]int) string {
	if len(of) == 0 {
		return "none"
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(of)) {
		parts = append(parts, fmt.Sprintf("%s %d", strings.ReplaceAll(name, "|", "/"), of[name]))
	}
	return strings.Join(parts, ", ")
}
