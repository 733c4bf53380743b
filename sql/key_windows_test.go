package sql_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhoWaitedForAKeyTakesItsResultThoughItsWindowIsOver(t *testing.T) {
	for name, fields := range map[string]object{
		"no window":    {"identity": object{"dedup_window_ms": 0}},
		"no retention": {"retention_ms": 0},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKit(t)
			k.Template("shop/brief", fields, step("fetch", object{"key": "${input.url}", "handler": "do.fetch"}))
			input := object{"input": object{"url": "u"}}
			first, second, third := k.Submit("shop/brief", input), k.Submit("shop/brief", input), k.Submit("shop/brief", input)
			k.Finish("work_queue", k.ClaimOne("work_queue"))
			k.Rest()
			require.Empty(t, k.Claim("work_queue"), "the handler has run once")
			for _, waiter := range []string{k.result(second, "fetch"), k.result(third, "fetch")} {
				require.Equal(t, k.result(first, "fetch"), waiter)
			}
			require.Equal(t, []string{"complete", "complete"}, []string{k.State(second), k.State(third)})
			later := k.Submit("shop/brief", input)
			require.Equal(t, "enqueued", k.steps(later)["fetch"], "who comes later begins anew")
			k.sound()
		})
	}
}
