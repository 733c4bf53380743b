package cluster

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawl-dev/pawl/test/faults"
)

// FindBouncer is the path of PgBouncer, or empty when it is not installed.
func FindBouncer() string {
	for _, name := range []string{"pgbouncer", "/usr/sbin/pgbouncer", "/opt/homebrew/bin/pgbouncer"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// startBouncer runs PgBouncer, pooling transactions, before a proxy. The URL leads through it.
func startBouncer(ctx context.Context, s *Stage, proxy *faults.Proxy) (*Process, string, error) {
	u, err := url.Parse(s.Config.DatabaseURL)
	if err != nil {
		return nil, "", fmt.Errorf("reading the database's URL: %w", err)
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", fmt.Errorf("finding a port for PgBouncer: %w", err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		return nil, "", fmt.Errorf("finding a port for PgBouncer: %w", err)
	}
	_, port, _ := net.SplitHostPort(address)
	target, targetPort, _ := net.SplitHostPort(proxy.Addr())
	password, _ := u.User.Password()
	settings := fmt.Sprintf("[databases]\n* = host=%s port=%s user=%s password=%s\n\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = %s\n"+
		"auth_type = any\npool_mode = transaction\ndefault_pool_size = 6\nmax_client_conn = 100\nserver_login_retry = 1\nunix_socket_dir =\n"+
		"ignore_startup_parameters = extra_float_digits,search_path,statement_timeout\n", target, targetPort, u.User.Username(), password, port)
	file := filepath.Join(s.Config.Folder, "pgbouncer.ini")
	if err := os.WriteFile(file, []byte(settings), 0o644); err != nil {
		return nil, "", fmt.Errorf("writing PgBouncer's settings: %w", err)
	}
	command := []string{s.Config.PgBouncer, file}
	if os.Geteuid() == 0 { // it refuses to run as root
		command = []string{s.Config.PgBouncer, "-u", unprivileged(), file}
	}
	process := s.newProcess("pgbouncer", command, nil)
	if err := process.Start(); err != nil {
		return nil, "", err
	}
	u.Host, u.User = address, url.User(u.User.Username())
	u.RawQuery = "sslmode=disable&default_query_exec_mode=exec"
	return process, u.String(), awaitBouncer(ctx, process, u.String())
}

func unprivileged() string {
	for _, name := range []string{"postgres", "nobody"} {
		if _, err := user.Lookup(name); err == nil {
			return name
		}
	}
	return "nobody"
}

func awaitBouncer(ctx context.Context, process *Process, url string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		conn, err := pgx.Connect(ctx, url)
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for PgBouncer: %w; see %s", err, process.LogFile)
		case <-time.After(50 * time.Millisecond):
		}
		if !process.Running() {
			return fmt.Errorf("starting PgBouncer: %w; see %s", err, process.LogFile)
		}
	}
}
