package actors_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/actors"
)

// knocking is a listener that notifies without end, of one channel.
type knocking struct{ channel string }

func (k knocking) Subscribe(channel string) (<-chan struct{}, func()) {
	if channel != k.channel {
		return nil, func() {}
	}
	woken, ended := make(chan struct{}), make(chan struct{})
	go func() {
		for {
			select {
			case woken <- struct{}{}:
			case <-ended:
				return
			}
		}
	}()
	return woken, func() { close(ended) }
}

func (knocking) Proven() bool { return true }

func TestWakingARoutineThatFailsDoesNotEndItsRest(t *testing.T) {
	h := newHouse(t)
	const fails = 5
	var looks atomic.Int32
	var first atomic.Pointer[time.Time]
	h.start(actors.Config{Settings: actors.Settings{IdlePoll: time.Hour}, Listener: knocking{"pawl_due"}, Work: &faulty{h.db, func(sql string, _ []any) error {
		if !strings.Contains(sql, "fire_due") {
			return nil
		}
		if n := looks.Add(1); n <= fails {
			now := time.Now()
			first.CompareAndSwap(nil, &now)
			return &pgconn.PgError{Code: "57P03"}
		}
		return nil
	}}})
	require.Eventually(t, func() bool { return looks.Load() > fails }, patience, 5*time.Millisecond)
	// Nine tenths at least of 100, 200, 400, 800 and 1,600 ms.
	require.GreaterOrEqual(t, time.Since(*first.Load()), 2790*time.Millisecond)
	rested := looks.Load()
	require.Eventually(t, func() bool { return looks.Load() > rested+5 }, patience, 5*time.Millisecond, "one that does not fail is woken")
}
