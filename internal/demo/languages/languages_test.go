package languages

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWorkersOfTheCheckout(t *testing.T) {
	t.Parallel()
	root, err := checkout()
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(root, "sdk/python/examples/mails.py"))
	require.FileExists(t, filepath.Join(root, "sdk/typescript/examples/shop_parcels.ts"))
	if python, err := Python("one"); err == nil { // else this machine has none
		require.FileExists(t, filepath.Join(python.Dir, "mails.py"))
		require.Contains(t, python.Args, "one")
	}
	if typescript, err := TypeScript("one"); err == nil {
		require.FileExists(t, filepath.Join(typescript.Dir, typescript.Args[1]))
		require.Contains(t, typescript.Env, "SHOP_WORKER=one")
	}
}

func TestNothingIsRunOutsideOfACheckout(t *testing.T) { // alone: it changes the folder of the process
	t.Chdir(t.TempDir())
	executable, err := os.Executable()
	require.NoError(t, err)
	require.NoFileExists(t, filepath.Join(filepath.Dir(executable), "go.mod"))
	_, err = Python("one")
	require.ErrorIs(t, err, errNoCheckout)
	_, err = TypeScript("one")
	require.ErrorIs(t, err, errNoCheckout)
}
