package worker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestClaimsAheadFollowTheHandlersSpeed(t *testing.T) {
	t.Parallel()
	var a ahead
	at := time.Now()
	call := func(ends int, since, took time.Duration) {
		at = at.Add(since)
		a.called(ends, at, took)
	}
	call(0, 0, 5*time.Millisecond)
	require.Zero(t, a.count(32))
	for range 10 { // handlers that take as long as calls: each call finds all slots ended
		call(32, 5*time.Millisecond, 5*time.Millisecond)
	}
	require.GreaterOrEqual(t, a.count(32), 30)
	require.LessOrEqual(t, a.count(32), 32)
	require.Equal(t, 3*8, a.count(8))
	for range 10 { // handlers that take a second
		call(1, 30*time.Millisecond, 5*time.Millisecond)
	}
	require.Zero(t, a.count(32))
}

func TestAnEmptiedQueueIsLookedAtAgainThenLeftAlone(t *testing.T) {
	t.Parallel()
	l := look{idle: func() time.Duration { return time.Second }}
	now := time.Now()
	l.found(10, 10, now)
	require.True(t, l.at.IsZero(), "a full claim: there may be more")
	l.found(10, 3, now)
	for _, after := range again {
		require.Equal(t, after, l.at.Sub(now))
		l.found(10, 0, l.at.Add(-time.Millisecond))
		require.Equal(t, after, l.at.Sub(now), "a look that a report brought along does not put it off")
		l.found(10, 0, l.at)
	}
	require.Equal(t, again[len(again)-1]+time.Second, l.at.Sub(now))
	l.woken()
	require.True(t, l.at.IsZero())
	l.found(10, 0, now)
	require.Equal(t, again[0], l.at.Sub(now))
}
