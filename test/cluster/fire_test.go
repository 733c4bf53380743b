package cluster

import (
	"bytes"
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/test/kit"
)

// fireFor is how long the fire burns; PAWL_FIRE changes it.
func fireFor(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("PAWL_FIRE")
	if text == "" {
		return 45 * time.Second
	}
	d, err := time.ParseDuration(text)
	require.NoError(t, err, "PAWL_FIRE")
	return d
}

func TestUnderFireNothingIsLostAndNothingIsDoneTwice(t *testing.T) {
	t.Parallel()
	duration := fireFor(t)
	program := FindBouncer()
	if program == "" {
		t.Log("PgBouncer is not installed: no worker is behind it")
	}
	plan := &Plan{Seed: kit.Seed(t), DurationMS: int(duration.Milliseconds()), Rate: 4, Orchestrators: 3, Workers: 2, Clients: 2, Bouncer: program != ""}
	plan.Draw()
	s := set(t, Config{Seed: plan.Seed, Orchestrators: plan.Orchestrators, Workers: plan.Workers, PgBouncer: program})
	for range plan.Clients {
		_, err := s.AddClient()
		require.NoError(t, err)
	}
	load, err := s.StartLoad(LoadConfig{Seed: plan.Seed, Rate: 12, Open: 100})
	require.NoError(t, err)
	fire := s.NewFire(load.History, nil)
	require.NoError(t, fire.Run(t.Context(), plan))
	load.Stop()

	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.NoError(t, load.Settle(ctx))
	fire.Recover()
	v := rest(t, s, load, fire.Copied())
	report := fire.Report(v)
	report.Duration, report.Commit = duration, "at work"
	var text bytes.Buffer
	report.Print(&text)
	t.Logf("\n%s", text.String())
	require.NotZero(t, v.Tasks)
}

func TestAHealthyCoreGoesOnWhenTheOthersAreBroken(t *testing.T) {
	t.Parallel()
	s := set(t, Config{Orchestrators: 3, Workers: 2})
	awaitComplete(t, s, request(t, s.Pool, 20, nil))
	all := request(t, s.Pool, 50, map[string]any{"input": map[string]any{"ms": 30}})
	orchestrators, workers := s.Of(Orchestrator), s.Of(Worker)
	orchestrators[1].Proxy.BlackHole()
	orchestrators[2].Suspend()
	workers[1].Suspend()
	awaitComplete(t, s, append(all, request(t, s.Pool, 50, nil)...))
	require.NoError(t, s.Heal())
	rest(t, s, nil, nil)
}

func TestAPlanIsItsSeedAndComesBackFromItsFile(t *testing.T) {
	t.Parallel()
	draw := func(seed uint64) *Plan {
		p := &Plan{Seed: seed, DurationMS: 60_000, Rate: 5, Orchestrators: 3, Workers: 4, Clients: 2, Server: true}
		p.Draw()
		return p
	}
	require.Equal(t, draw(7), draw(7))
	require.NotEqual(t, draw(7).Events, draw(8).Events)
	require.Len(t, draw(7).Events, 300)
	var file bytes.Buffer
	require.NoError(t, draw(7).Write(&file))
	require.NoError(t, draw(8).Write(&file))
	plans, err := ReadPlans(&file)
	require.NoError(t, err)
	require.Equal(t, []*Plan{draw(7), draw(8)}, plans)
	_, err = ReadPlans(bytes.NewBufferString(`{"at_ms": 1, "fault": "garbage"}`))
	require.ErrorContains(t, err, "begins with an event")
}

// A checker that cannot fail is worthless.
func TestTheLedgerIsCompared(t *testing.T) {
	t.Parallel()
	first, last := StepName{"t", "first"}, StepName{"t", "last"}
	entry := func(what string, name StepName, nonce string) Entry {
		return Entry{What: what, Task: name.Task, Step: name.Step, Attempt: 1, Delivery: 1, Token: name.Step, Nonce: nonce, Worker: "w"}
	}
	steps := map[StepName]Ended{first: {State: "complete", Nonce: "a", Attempt: 1}, last: {State: "complete", Nonce: "b", Attempt: 1}}
	begun := entry("start", last, "b")
	begun.Needs = map[string]string{"first": "a"}
	good := []Entry{entry("start", first, "a"), entry("done", first, "a"), begun, entry("done", last, "b")}
	require.Empty(t, CompareLedger(good, steps, nil))

	wrong := func(change func(entries []Entry) []Entry) string {
		found := CompareLedger(change(append([]Entry(nil), good...)), steps, nil)
		require.Len(t, found, 1)
		return found[0]
	}
	require.Contains(t, wrong(func(e []Entry) []Entry { return append(e, entry("start", first, "c")) }), "handed out twice")
	require.Empty(t, CompareLedger(append(good, entry("start", first, "c")), steps, map[StepName]bool{first: true}))
	require.Contains(t, wrong(func(e []Entry) []Entry { return e[:3] }), "no such handler returned")
	require.Contains(t, wrong(func(e []Entry) []Entry { e[2].Needs = map[string]string{"first": "x"}; return e }), "was given result x of first")
	require.Contains(t, wrong(func(e []Entry) []Entry { e[1].Token = "x"; return e }), "two tokens")
	require.Contains(t, wrong(func(e []Entry) []Entry { return append(e, entry("start", StepName{"t", "other"}, "c")) }), "does not exist")
}
