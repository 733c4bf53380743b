package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/pawl-dev/pawl/internal/config"
)

// server answers /healthz, /readyz and /metrics.
type server struct{ http *http.Server }

func (p *service) serve(ctx context.Context, name string) (*server, error) {
	if p.settings.Listen == config.Off {
		return nil, nil
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", p.settings.Listen)
	if err != nil {
		return nil, fmt.Errorf("listening on %s: %w; choose another address with --listen, or off", p.settings.Listen, err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, "ok", name) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		pinging, cancel := context.WithTimeout(r.Context(), 2*time.Second)
		defer cancel()
		switch {
		case ctx.Err() != nil:
			answer(w, http.StatusServiceUnavailable, "stopping", name)
		case p.pool.Ping(pinging) != nil:
			answer(w, http.StatusServiceUnavailable, "database does not answer", name)
		default:
			answer(w, http.StatusOK, "ok", name)
		}
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(p.registry, promhttp.HandlerOpts{}))
	s := &server{http: &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: 2 * time.Minute}}
	go func() {
		if err := s.http.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			p.log.Error("serving HTTP", "error", err)
		}
	}()
	p.log.Info("serving HTTP", "addr", listener.Addr().String())
	return s, nil
}

// close works without a server, too.
func (s *server) close() {
	if s == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = s.http.Shutdown(ctx) // the process ends either way
}

func answer(w http.ResponseWriter, code int, status, name string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]string{"status": status, "worker": name}) // a client that went away
}
