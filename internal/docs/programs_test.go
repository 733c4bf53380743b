package docs

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var goBlock = regexp.MustCompile("(?ms)^```go\n(.*?)^```")

// A whole program in a document compiles as it stands: in a folder of the module that only the compiler sees.
func TestGoProgramsInDocumentsCompile(t *testing.T) {
	t.Parallel()
	module, err := filepath.Abs(root)
	require.NoError(t, err)
	programs := 0
	for _, d := range read(t) {
		for _, block := range goBlock.FindAllStringSubmatch(strings.Join(d.lines, "\n"), -1) {
			if !strings.Contains(block[1], "\npackage main\n") {
				continue
			}
			programs++
			if strings.Contains(block[1], "signal.NotifyContext(") { // else a second Ctrl-C is swallowed while it stops
				require.Contains(t, block[1], "context.AfterFunc(ctx, stop)", d.path)
			}
			source, overlay := filepath.Join(t.TempDir(), "main.go"), filepath.Join(t.TempDir(), "overlay.json")
			require.NoError(t, os.WriteFile(source, []byte(block[1]), 0o600))
			text, err := json.Marshal(map[string]map[string]string{"Replace": {filepath.Join(module, "greet", "main.go"): source}})
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(overlay, text, 0o600))
			build := exec.CommandContext(t.Context(), "go", "build", "-overlay", overlay, "-o", os.DevNull, "./greet")
			build.Dir = module
			out, err := build.CombinedOutput()
			require.NoError(t, err, "%s: %s", d.path, out)
		}
	}
	require.Positive(t, programs)
}
