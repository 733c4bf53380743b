package devpg

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	startTimeout = 90 * time.Second
	stopTimeout  = 30 * time.Second
)

// Server is a running Postgres.
type Server struct {
	config    Config
	dir       string
	temporary bool
	port      int
	password  string
	owner     owner
	binaries  binaries
	watcher   *watcher
	cmd       *exec.Cmd
	exited    chan struct{} // closed when the server's process has ended
	stop      func() error
}

// Start runs a server and returns when it answers. It dies with this process.
func Start(ctx context.Context, config Config) (*Server, error) {
	s, err := prepare(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("starting Postgres: %w", err)
	}
	s.stop = sync.OnceValue(s.shutDown)
	afterwards := "keep"
	if s.temporary {
		afterwards = "remove"
	}
	if s.watcher, err = startWatcher(s.dir, afterwards); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	if s.password, err = s.initialize(); err == nil {
		err = s.launch(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting Postgres: %w", err), s.stop())
	}
	s.config.Logger.Info("postgres runs", "port", s.port, "dir", s.dir)
	return s, nil
}

// checkSystem refuses the systems that the server's watcher and its signals are not made for.
func checkSystem(name string) error {
	if name != "windows" {
		return nil
	}
	return errors.New("a server of Pawl's own runs on Linux and macOS, not on Windows; run this command in WSL, " +
		"or run a Postgres of yours, `pawl migrate --database-url …` and `orchestrator --database-url …`")
}

// prepare finds binaries and user, and makes the folder.
func prepare(ctx context.Context, config Config) (*Server, error) {
	s := &Server{config: config.withDefaults(), dir: config.Dir, exited: make(chan struct{})}
	err := checkSystem(runtime.GOOS)
	if err != nil {
		return nil, err
	}
	if s.binaries, err = ensure(ctx); err != nil {
		return nil, err
	}
	if s.owner, err = findOwner(); err != nil {
		return nil, err
	}
	if s.dir == "" {
		s.temporary = true
		parent := ""
		if config.InMemory {
			parent = inMemory()
		}
		s.dir, err = os.MkdirTemp(parent, "pawl-postgres-")
	} else if s.dir, err = filepath.Abs(s.dir); err == nil {
		if err := checkFolder(s.dir); err != nil {
			return nil, err
		}
		err = os.MkdirAll(s.dir, 0o700)
	}
	if err != nil {
		return nil, fmt.Errorf("making the server's folder: %w", err)
	}
	if err = s.owner.adopt(s.dir); err != nil && s.temporary {
		err = errors.Join(err, os.RemoveAll(s.dir))
	}
	return s, err
}

// launch runs the server; a free port that somebody else took in between is replaced.
func (s *Server) launch(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for try := 1; ; try++ {
		s.port = s.config.Port
		if s.port == 0 {
			port, err := freePort()
			if err != nil {
				return err
			}
			s.port = port
		}
		err := s.run(ctx)
		if err == nil || s.config.Port != 0 || try == 5 || ctx.Err() != nil {
			return err
		}
	}
}

// run starts the process and waits until the server answers or has ended.
func (s *Server) run(ctx context.Context) error {
	// A server that is just stopping may still write into the log: appending leaves no hole before its lines.
	logFile, err := os.OpenFile(s.LogFile(), os.O_CREATE|os.O_WRONLY|os.O_TRUNC|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("making the server's log: %w", err)
	}
	defer logFile.Close() // the server has its own handle
	s.cmd = s.binaries.command("postgres", s.arguments()...)
	s.cmd.Env = append(s.cmd.Env, s.config.Environment...)
	s.cmd.Stdout, s.cmd.Stderr = logFile, logFile
	s.owner.apply(s.cmd)
	if err := s.cmd.Start(); err != nil {
		s.cmd = nil
		return fmt.Errorf("running %s: %w", s.binaries.dir, err)
	}
	exited, cmd := make(chan struct{}), s.cmd
	s.exited = exited
	go func() {
		_ = cmd.Wait() // its log says why it ended
		close(exited)
	}()
	for !s.answers(ctx) {
		select {
		case <-exited:
			if portInUse(s.port) {
				return fmt.Errorf("port %d is in use: name another one, or none for a free one", s.port)
			}
			text, _ := os.ReadFile(s.LogFile())
			return fmt.Errorf("the server ended at once: %s", tail(text))
		case <-ctx.Done():
			return fmt.Errorf("waiting for the server: %w; see %s", ctx.Err(), s.LogFile())
		case <-time.After(50 * time.Millisecond):
		}
	}
	return nil
}

func (s *Server) arguments() []string {
	args := []string{
		"-D", s.dataDir(),
		"-c", "port=" + strconv.Itoa(s.port),
		"-c", "listen_addresses=127.0.0.1",
		"-c", "unix_socket_directories=" + s.socketDir(),
	}
	for _, name := range slices.Sorted(maps.Keys(s.config.Settings)) {
		args = append(args, "-c", name+"="+s.config.Settings[name])
	}
	return args
}

func (s *Server) answers(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.URL("postgres"))
	if err != nil {
		return false
	}
	return conn.Close(ctx) == nil
}

// URL of a database on the server, password included.
func (s *Server) URL(database string) string {
	return serverURL(s.port, s.password, database)
}

func serverURL(port int, password, database string) string {
	u := url.URL{
		Scheme: "postgres", User: url.UserPassword(User, password),
		Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), Path: "/" + database, RawQuery: "sslmode=disable",
	}
	return u.String()
}

// Dir is the server's folder.
func (s *Server) Dir() string { return s.dir }

// Port on loopback.
func (s *Server) Port() int { return s.port }

// LogFile is where the server writes its log, new at each start.
func (s *Server) LogFile() string { return filepath.Join(s.dir, "server.log") }

// Exited is closed when the server has ended, wanted or not.
func (s *Server) Exited() <-chan struct{} { return s.exited }

// Failure says how a server that nobody stopped has ended, with the end of its log: Stop removes the log of a temporary one.
func (s *Server) Failure() error {
	<-s.exited
	text, _ := os.ReadFile(s.LogFile())
	return fmt.Errorf("the server ended (%s); its log ends:\n%s", s.cmd.ProcessState, tail(text))
}

func (s *Server) dataDir() string { return filepath.Join(s.dir, "data") }

// socketDir is the server's folder unless a socket's path there would be too long for the system: then none.
func (s *Server) socketDir() string {
	if len(s.dir) > 80 {
		return ""
	}
	return s.dir
}

// Stop ends the server's sessions and the server, and removes a temporary folder. It may be called again, and waits.
func (s *Server) Stop() error { return s.stop() }

func (s *Server) shutDown() error {
	err := s.endProcess()
	if s.temporary {
		err = errors.Join(err, os.RemoveAll(s.dir))
	}
	if s.watcher != nil {
		err = errors.Join(err, s.watcher.dismiss())
	}
	s.config.Logger.Info("postgres stopped", "dir", s.dir)
	return err
}

// endProcess asks for a fast shutdown, then an immediate one, then kills.
func (s *Server) endProcess() error {
	if s.cmd == nil {
		return nil
	}
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGQUIT, syscall.SIGKILL} {
		select {
		case <-s.exited:
			return nil
		default:
		}
		_ = s.cmd.Process.Signal(signal) // it may have ended just now
		select {
		case <-s.exited:
			return nil
		case <-time.After(stopTimeout):
		}
	}
	return fmt.Errorf("stopping Postgres in %s: pid %d does not end", s.dir, s.cmd.Process.Pid)
}

func portInUse(port int) bool {
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return errors.Is(err, syscall.EADDRINUSE)
	}
	return listener.Close() != nil
}

func freePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("finding a free port: %w", err)
	}
	defer listener.Close() // only asked for its number
	return listener.Addr().(*net.TCPAddr).Port, nil
}
