package workerapi

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawl-dev/pawl/messaging"
)

// Config is what the handler needs. Pool is required.
type Config struct {
	Pool *pgxpool.Pool
	// Token is what workers must send. Empty: the API is off, and says so.
	Token string
	// MaxRequest is the largest request body in bytes. Zero: 8 MiB.
	MaxRequest int64
	// Timeout of one call, the wait for a connection included. Zero: 10 s.
	Timeout time.Duration
	// Log takes what went wrong on this side. Nil: slog.Default().
	Log *slog.Logger
}

// Handler returns the handler of everything under /v1/worker/.
func Handler(config Config) http.Handler {
	if config.MaxRequest == 0 {
		config.MaxRequest = 8 << 20
	}
	if config.Timeout == 0 {
		config.Timeout = 10 * time.Second
	}
	if config.Log == nil {
		config.Log = slog.Default()
	}
	a := &api{config: config, token: sha256.Sum256([]byte(config.Token))}
	mux := http.NewServeMux()
	mux.HandleFunc("/v1/worker/claim", a.endpoint(call{parse: parseClaim, abandon: true}))
	mux.HandleFunc("/v1/worker/report", a.endpoint(call{parse: parseReport}))
	mux.HandleFunc("/v1/worker/extend", a.endpoint(call{parse: parseExtend}))
	mux.HandleFunc("/v1/worker/release", a.endpoint(call{parse: parseRelease}))
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		a.refuse(w, &problem{http.StatusNotFound, "NotFound",
			"there is no such call: POST to /v1/worker/claim, report, extend or release"})
	})
	return withRequestID(mux)
}

type api struct {
	config Config
	token  [sha256.Size]byte
}

// call is one endpoint.
type call struct {
	// parse checks a request body and makes the statement of it.
	parse func(body []byte) (statement, error)
	// abandon lets the call end with its client: what is claimed for somebody who
	// has gone costs a delivery. The other calls are finished whoever listens.
	abandon bool
}

// statement is a call of a SQL function that returns one JSON text.
type statement struct {
	sql  string
	args []any
}

func (a *api) endpoint(c call) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		answer, err := a.serve(w, r, c)
		if err != nil {
			a.refuse(w, a.judge(w, r, err))
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, answer) // who has gone is not told
	}
}

func (a *api) serve(w http.ResponseWriter, r *http.Request, c call) (answer string, err error) {
	if err := a.admit(w, r); err != nil {
		return "", err
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, a.config.MaxRequest))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return "", &problem{http.StatusRequestEntityTooLarge, "TooLarge",
			fmt.Sprintf("the request is over the limit of %d bytes: send smaller batches", large.Limit)}
	case err != nil:
		return "", invalid("the request's body ended early")
	}
	s, err := c.parse(body)
	if err != nil {
		return "", err
	}
	ctx := r.Context()
	if !c.abandon {
		ctx = context.WithoutCancel(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, a.config.Timeout)
	defer cancel()
	err = a.config.Pool.QueryRow(ctx, s.sql, s.args...).Scan(&answer)
	return answer, err
}

// admit lets a request pass that may be read at all.
func (a *api) admit(w http.ResponseWriter, r *http.Request) error {
	if a.config.Token == "" {
		return &problem{http.StatusForbidden, "Disabled", "the worker API is off: give the orchestrator a worker token"}
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	// Digests have one length, so that the comparison does not tell the token's.
	got := sha256.Sum256([]byte(strings.TrimSpace(token)))
	if subtle.ConstantTimeCompare(got[:], a.token[:]) != 1 || !strings.EqualFold(scheme, "Bearer") {
		w.Header().Set("WWW-Authenticate", `Bearer realm="pawl"`)
		return &problem{http.StatusUnauthorized, "Unauthorized", "send the worker token as Authorization: Bearer TOKEN"}
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return &problem{http.StatusMethodNotAllowed, "MethodNotAllowed", "use POST"}
	}
	if sent := r.Header.Get("Content-Type"); sent != "" {
		if kind, _, err := mime.ParseMediaType(sent); err != nil || kind != "application/json" {
			return &problem{http.StatusUnsupportedMediaType, "UnsupportedMediaType", "send Content-Type: application/json"}
		}
	}
	return nil
}

const requestIDHeader = "X-Request-Id"

var requestIDPattern = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// withRequestID gives every request an id, its sender's if that is harmless, and
// returns it with the answer.
func withRequestID(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := r.Header.Get(requestIDHeader)
		if !requestIDPattern.MatchString(id) {
			id = messaging.NewRequestID().String()
		}
		w.Header().Set(requestIDHeader, id)
		next.ServeHTTP(w, r)
	})
}
