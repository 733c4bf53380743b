package kit

import (
	"os"
	"strconv"
	"time"

	"github.com/stretchr/testify/require"
)

// Seed of a test's random choices, printed; PAWL_SEED replays it.
func Seed(t TB) uint64 {
	t.Helper()
	s := uint64(time.Now().UnixNano())
	if text := os.Getenv("PAWL_SEED"); text != "" {
		var err error
		s, err = strconv.ParseUint(text, 10, 64)
		require.NoError(t, err, "PAWL_SEED")
	}
	t.Logf("PAWL_SEED=%d", s)
	return s
}
