package worker

import (
	"os"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/workflow"
)

// A call on a connection that has silently died ends early enough for another one within the lease; all SDKs agree.
func TestCallsEndWithinAThirdOfTheDefaultLease(t *testing.T) {
	t.Parallel()
	require.Equal(t, workflow.DefaultLease/3, callTimeout)
	for file, limit := range map[string]string{
		"../sdk/python/pawl/database.py":    `CALL_TIMEOUT = (\d+)\.0 `,
		"../sdk/typescript/src/database.ts": `callTimeout = (\d+)_000;`,
	} {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		found := regexp.MustCompile(limit).FindSubmatch(text)
		require.NotNil(t, found, file)
		seconds, err := strconv.Atoi(string(found[1]))
		require.NoError(t, err)
		require.Equal(t, callTimeout, time.Duration(seconds)*time.Second, file)
	}
}
