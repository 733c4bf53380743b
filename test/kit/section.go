package kit

import (
	"os"
	"strings"

	"github.com/stretchr/testify/require"
)

// Section gives what stands between two markers of a document, and what writes something else there.
func Section(t TB, file, name string) (have string, write func(text string)) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	begin, end := "<!-- begin "+name+" -->\n", "<!-- end "+name+" -->"
	before, rest, ok := strings.Cut(string(text), begin)
	require.True(t, ok, "%s lacks %s", file, begin)
	have, after, ok := strings.Cut(rest, end)
	require.True(t, ok, "%s lacks %s", file, end)
	return have, func(text string) {
		require.NoError(t, os.WriteFile(file, []byte(before+begin+text+end+after), 0o644)) //nolint:gosec // a document
	}
}
