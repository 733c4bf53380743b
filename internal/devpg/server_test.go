package devpg

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

const (
	patience = time.Minute
	pause    = 50 * time.Millisecond
)

// childEnv makes this test binary a process that starts a server and waits to be killed.
const childEnv = "PAWL_DEVPG_TEST_CHILD"

func TestMain(m *testing.M) {
	if dir, ok := os.LookupEnv(childEnv); ok {
		serveUntilKilled(dir)
		return
	}
	os.Exit(m.Run())
}

func serveUntilKilled(dir string) {
	server, err := Start(context.Background(), Config{Dir: dir, Settings: TestSettings()})
	if err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
	fmt.Println(server.Dir(), server.Port())
	_, _ = io.Copy(io.Discard, os.Stdin)
}

func TestWindowsIsToldWhatToDoInstead(t *testing.T) {
	t.Parallel()
	require.NoError(t, checkSystem("linux"))
	require.NoError(t, checkSystem("darwin"))
	err := checkSystem("windows")
	require.ErrorContains(t, err, "WSL")
	require.ErrorContains(t, err, "--database-url")
}

func TestServerAnswersAndStopRemovesItsTemporaryFolder(t *testing.T) {
	t.Parallel()
	server, err := Start(t.Context(), Config{Settings: map[string]string{"work_mem": "7MB", "fsync": "off"}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Stop()) })
	conn, err := pgx.Connect(t.Context(), server.URL("postgres"))
	require.NoError(t, err)
	var setting string
	require.NoError(t, conn.QueryRow(t.Context(), `select current_setting('work_mem')`).Scan(&setting))
	require.Equal(t, "7MB", setting)

	require.NoError(t, server.Stop())
	require.NoError(t, server.Stop(), "a second Stop")
	require.NoDirExists(t, server.Dir())
	require.False(t, listens(server.Port()))
}

func TestServerInMemoryLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	server, err := Start(t.Context(), Config{Settings: TestSettings(), InMemory: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Stop()) })
	parent := inMemory()
	if parent == "" {
		parent = os.TempDir()
	}
	require.Equal(t, parent, filepath.Dir(server.Dir()))
	require.NoError(t, server.Stop())
	require.NoDirExists(t, server.Dir())
}

func TestServerAsksForItsPassword(t *testing.T) {
	t.Parallel()
	server, err := Start(t.Context(), Config{Settings: TestSettings()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Stop()) })
	_, err = pgx.Connect(t.Context(), serverURL(server.Port(), "wrong", "postgres"))
	require.ErrorContains(t, err, "password authentication failed")
}

func TestServerInAFolderKeepsItsData(t *testing.T) {
	t.Parallel()
	dir := openFolder(t)
	for _, statement := range []string{`create table kept (a int)`, `insert into kept values (1)`} {
		server, err := Start(t.Context(), Config{Dir: dir, Settings: TestSettings()})
		require.NoError(t, err)
		conn, err := pgx.Connect(t.Context(), server.URL("postgres"))
		require.NoError(t, err)
		_, err = conn.Exec(t.Context(), statement)
		require.NoError(t, err)
		require.NoError(t, server.Stop())
	}
}

func TestServerLeavesAFolderOfOthersAlone(t *testing.T) {
	t.Parallel()
	for _, entry := range []string{".git/config", "data/sheet.csv"} {
		dir := openFolder(t)
		file := filepath.Join(dir, entry)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, nil, 0o600))
		before, err := os.Stat(dir)
		require.NoError(t, err)
		_, err = Start(t.Context(), Config{Dir: dir, Settings: TestSettings()})
		require.ErrorContains(t, err, "folder "+dir+" is not empty and holds no database of pawl dev; name a new or an empty one")
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Len(t, entries, 1)
		after, err := os.Stat(dir)
		require.NoError(t, err)
		require.Equal(t, before.Sys().(*syscall.Stat_t).Uid, after.Sys().(*syscall.Stat_t).Uid)
	}
}

func TestServerTakesAFolderWhereAStartBrokeOff(t *testing.T) {
	t.Parallel()
	dir := openFolder(t)
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "data.new"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "password"), []byte("x\n"), 0o600))
	server, err := Start(t.Context(), Config{Dir: dir, Settings: TestSettings()})
	require.NoError(t, err)
	require.NoError(t, server.Stop())
}

func TestServerThatCannotStartSaysWhy(t *testing.T) {
	t.Parallel()
	_, err := Start(t.Context(), Config{Settings: map[string]string{"no_such_setting": "1"}, Port: 1})
	require.ErrorContains(t, err, "no_such_setting")
}

func TestServerNamesAPortThatIsInUse(t *testing.T) {
	t.Parallel()
	other, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer other.Close()
	port := other.Addr().(*net.TCPAddr).Port
	_, err = Start(t.Context(), Config{Port: port, Settings: TestSettings()})
	require.EqualError(t, err, fmt.Sprintf("starting Postgres: port %d is in use: name another one, or none for a free one", port))
}

func TestServerStopsWhenItsParentIsKilled(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{"", openFolder(t)} {
		t.Run("folder="+filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			parent := exec.Command(os.Args[0])
			parent.Env = append(os.Environ(), childEnv+"="+dir)
			input, err := parent.StdinPipe()
			require.NoError(t, err)
			output, err := parent.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, parent.Start())
			line, err := bufio.NewReader(output).ReadString('\n')
			require.NoError(t, err)
			var folder string
			var port int
			_, err = fmt.Sscan(line, &folder, &port)
			require.NoError(t, err, line)
			require.True(t, listens(port))

			require.NoError(t, parent.Process.Kill())
			_ = parent.Wait() // "signal: killed"
			_ = input.Close()
			require.Eventually(t, func() bool { return !listens(port) }, patience, pause)
			if dir == "" {
				require.Eventually(t, func() bool { _, err := os.Stat(folder); return os.IsNotExist(err) }, patience, pause)
			} else {
				require.Eventually(t, func() bool {
					_, err := os.Stat(filepath.Join(folder, "data", "postmaster.pid"))
					return os.IsNotExist(err)
				}, patience, pause)
			}
		})
	}
}

func TestSharedServerIsOneAndStopsWithItsLastUser(t *testing.T) {
	t.Parallel()
	config := Config{Dir: openFolder(t), Settings: TestSettings(), lookInterval: "0.1"}
	first, err := Share(t.Context(), config)
	require.NoError(t, err)
	second, err := Share(t.Context(), config)
	require.NoError(t, err)
	require.Equal(t, first.URL("postgres"), second.URL("postgres"))
	require.NoError(t, first.Leave())
	require.True(t, listens(second.port))
	require.NoError(t, second.Leave())
	require.Eventually(t, func() bool { return !listens(second.port) }, patience, pause)

	again, err := Share(t.Context(), config)
	require.NoError(t, err)
	require.True(t, listens(again.port))
	require.NoError(t, again.Leave())
	require.Eventually(t, func() bool { return !listens(again.port) }, patience, pause)
}

func TestRootCannotUseAFolderThatTheServersUserCannotReach(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root runs the server as another user")
	}
	closed := filepath.Join(t.TempDir(), "closed")
	require.NoError(t, os.Mkdir(closed, 0o700))
	_, err := Start(t.Context(), Config{Dir: filepath.Join(closed, "server")})
	require.ErrorContains(t, err, "choose a folder outside of "+closed)
}

// openFolder is a short path that the server's user reaches, unlike t.TempDir on some machines.
func openFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "pawl-test-")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(dir, 0o755))
	t.Cleanup(func() {
		require.Eventually(t, func() bool { return os.RemoveAll(dir) == nil }, patience, pause)
	})
	return filepath.Join(dir, strings.Repeat("s", 3))
}

func listens(port int) bool {
	conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return false
	}
	return conn.Close() == nil
}

func TestAStartThatCannotUseItsTemporaryFolderRemovesIt(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only as root does the server run as another user")
	}
	closed := t.TempDir()
	require.NoError(t, os.Chmod(closed, 0o700))
	t.Setenv("TMPDIR", closed)
	_, err := Start(t.Context(), Config{})
	require.ErrorContains(t, err, "cannot reach")
	left, err := os.ReadDir(closed)
	require.NoError(t, err)
	require.Empty(t, left)
}
