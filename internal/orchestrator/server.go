package orchestrator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/pawl-dev/pawl/internal/workerapi"
)

// server answers /healthz, /readyz, /metrics and /v1/worker/.
type server struct {
	http *http.Server
	addr string
	done chan struct{} // closed when nothing is served any more
}

// readyTimeout bounds the question to the database behind /readyz.
const readyTimeout = 2 * time.Second

func (o *Orchestrator) serve(ctx context.Context) (*server, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", o.config.Listen)
	if err != nil {
		return nil, fmt.Errorf("listening on %s: %w; choose another address with --listen, or off", o.config.Listen, err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, "ok", "") })
	mux.HandleFunc("GET /readyz", o.ready)
	mux.Handle("GET /metrics", promhttp.HandlerFor(o.config.Registry, promhttp.HandlerOpts{}))
	mux.Handle("/v1/worker/", workerapi.Handler(workerapi.Config{ // without a token it says that it is off
		Pool: o.pools.calls, Token: o.config.WorkerToken, Log: o.config.Logger,
	}))
	s := &server{
		addr: listener.Addr().String(),
		done: make(chan struct{}),
		http: &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: time.Minute,
			IdleTimeout: 2 * time.Minute, ErrorLog: slog.NewLogLogger(o.config.Logger.Handler(), slog.LevelDebug)},
	}
	go func() {
		defer close(s.done)
		if err := s.http.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			o.config.Logger.Error("serving HTTP", "error", err)
		}
	}()
	return s, nil
}

// ready says whether this process works: it is not stopping, and the database answers.
func (o *Orchestrator) ready(w http.ResponseWriter, r *http.Request) {
	if o.stopping.Load() {
		answer(w, http.StatusServiceUnavailable, "stopping", "")
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
	defer cancel()
	if err := o.pools.side.Ping(ctx); err != nil {
		o.config.Logger.Warn("not ready: the database does not answer", "error", err)
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

// stop lets requests end until ctx does.
func (s *server) stop(ctx context.Context) {
	if err := s.http.Shutdown(ctx); err != nil {
		_ = s.http.Close() // what is left is broken off
	}
	<-s.done
}
