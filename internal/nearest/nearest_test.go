package nearest_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/internal/nearest"
)

func TestTheNearestNameIsSuggested(t *testing.T) {
	t.Parallel()
	queues := []string{"shop_queue", "billing_queue", "a", "slow"}
	for name, want := range map[string]string{
		"shop_qeue": "shop_queue", "shpo_queue": "shop_queue", "biling_queu": "billing_queue", "solw": "slow",
		"nothing_alike_at_all": "", "b": "", "": "", "SHOP": "",
	} {
		require.Equal(t, want, nearest.Name(name, queues), name)
	}
	require.Equal(t, `; did you mean "slow"?`, nearest.Suggestion("slo", queues))
	require.Empty(t, nearest.Suggestion("xyz", nil))
}
