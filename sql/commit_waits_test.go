package sql_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A commit that notifies waits for all others that do. With the short wait for a row still in force it failed after a tenth of a
// second, and with it a whole batch, wherever commits take their time.
func TestNoShortWaitIsInForceAtTheCommit(t *testing.T) {
	for _, own := range []string{"0", "7s"} {
		t.Run(own, func(t *testing.T) {
			k := newKit(t)
			k.Template("shop/two", nil, step("a"), step("b: a"))
			k.Exec("set local lock_timeout = '" + own + "'")
			setting(k, "direct = false, staged = true")
			task := k.Submit("shop/two")
			require.Equal(t, []string{"a", "b"}, k.work(queue))
			require.Equal(t, "complete", k.State(task))
			require.Equal(t, own, get[string](k, "show lock_timeout"))
		})
	}
}
