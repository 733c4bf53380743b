package workerapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pawl-dev/pawl/internal/sqlstate"
	"github.com/pawl-dev/pawl/internal/store"
	"github.com/pawl-dev/pawl/internal/strictjson"
	"github.com/pawl-dev/pawl/messaging/pgmq"
)

// problem is an answer other than 200.
type problem struct {
	status  int
	code    string // a word to branch by
	message string // what is wrong and what to do
}

// Error is the problem's message.
func (p *problem) Error() string { return p.message }

func invalid(format string, args ...any) *problem {
	return &problem{http.StatusBadRequest, "InvalidRequest", fmt.Sprintf(format, args...)}
}

// raised are the errors that the SQL functions raise about a call. Their texts
// are written for callers; the others' may hold what was sent.
var raised = map[string]problem{
	sqlstate.UnknownQueue:    {http.StatusNotFound, "UnknownQueue", ""},
	sqlstate.WorkerMissing:   {http.StatusBadRequest, "InvalidRequest", ""},
	sqlstate.MalformedReport: {http.StatusBadRequest, "InvalidRequest", ""},
}

// judge makes an answer of an error, and logs those that are this side's.
func (a *api) judge(w http.ResponseWriter, r *http.Request, err error) *problem {
	var (
		known  *problem
		strict *strictjson.Error
		text   *pgmq.JSONError
		pgErr  *pgconn.PgError
	)
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &strict), errors.As(err, &text):
		return invalid("%s", err)
	case errors.As(err, &pgErr):
		if p, ok := raised[pgErr.Code]; ok {
			p.message = pgErr.Message
			if pgErr.Hint != "" {
				p.message += ": " + pgErr.Hint
			}
			return &p
		}
	case r.Context().Err() != nil:
		// Nobody reads this.
		return &problem{http.StatusServiceUnavailable, "Unavailable", "the client has gone"}
	}
	class := store.Classify(err)
	a.config.Log.ErrorContext(r.Context(), "serving the worker API",
		"path", r.URL.Path, "request_id", w.Header().Get(requestIDHeader), "sqlstate", sqlstate.Of(err), "class", string(class))
	if class.Infrastructure() {
		return &problem{http.StatusServiceUnavailable, "Unavailable", "the database cannot do it now: send the same again in a moment"}
	}
	return &problem{http.StatusInternalServerError, "InternalError", "the engine failed: the orchestrator's log has the request id"}
}

// refuse writes a problem.
func (a *api) refuse(w http.ResponseWriter, p *problem) {
	if p.status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(p.status)
	_ = json.NewEncoder(w).Encode(map[string]string{ // who has gone is not told
		"error": p.code, "message": p.message, "request_id": w.Header().Get(requestIDHeader),
	})
}
