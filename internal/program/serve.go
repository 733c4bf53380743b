package program

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/pawl-dev/pawl/internal/config"
)

// Served is what a process answers over HTTP: /healthz, /readyz, /metrics and what is its own.
type Served struct {
	Address string // to listen on; config.Off: nothing is served
	DB      interface {
		Ping(ctx context.Context) error
	}
	Stopping func() bool
	Registry *prometheus.Registry
	Own      map[string]http.Handler // by pattern
	Log      *slog.Logger
}

// Server serves it. A nil one serves nothing.
type Server struct {
	http *http.Server
	addr string
	done chan struct{} // closed when nothing is served any more
}

// readyTimeout bounds the question to the database behind /readyz.
const readyTimeout = 2 * time.Second

// Start listens and serves until Stop.
func (s Served) Start(ctx context.Context) (*Server, error) {
	if s.Address == config.Off {
		return nil, nil
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", s.Address)
	if err != nil {
		return nil, fmt.Errorf("listening on %s: %w; choose another address with --listen, or off", s.Address, err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, "ok", "") })
	mux.HandleFunc("GET /readyz", s.ready)
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.Registry, promhttp.HandlerOpts{}))
	for pattern, handler := range s.Own {
		mux.Handle(pattern, handler)
	}
	server := &Server{
		addr: listener.Addr().String(),
		done: make(chan struct{}),
		http: &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: time.Minute,
			IdleTimeout: 2 * time.Minute, ErrorLog: slog.NewLogLogger(s.Log.Handler(), slog.LevelDebug)},
	}
	go func() {
		defer close(server.done)
		if err := server.http.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			s.Log.Error("serving HTTP", "error", err)
		}
	}()
	s.Log.Info("serving HTTP", "addr", server.addr)
	return server, nil
}

// ready says whether this process works: it is not stopping, and the database answers.
func (s Served) ready(w http.ResponseWriter, r *http.Request) {
	if s.Stopping() {
		answer(w, http.StatusServiceUnavailable, "stopping", "")
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
	defer cancel()
	if err := s.DB.Ping(ctx); err != nil {
		s.Log.Warn("not ready: the database does not answer", "error", err)
		answer(w, http.StatusServiceUnavailable, "unavailable", "the database does not answer")
		return
	}
	answer(w, http.StatusOK, "ready", "")
}

func answer(w http.ResponseWriter, status int, word, reason string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	body := map[string]string{"status": word}
	if reason != "" {
		body["reason"] = reason
	}
	_ = json.NewEncoder(w).Encode(body) // the other side may be gone
}

// Addr is where it is served, or "".
func (s *Server) Addr() string {
	if s == nil {
		return ""
	}
	return s.addr
}

// Stop lets requests end until ctx does.
func (s *Server) Stop(ctx context.Context) {
	if s == nil {
		return
	}
	if err := s.http.Shutdown(ctx); err != nil {
		_ = s.http.Close() // what is left is broken off
	}
	<-s.done
}
