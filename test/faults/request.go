package faults

import (
	"regexp"
	"strings"
)

// request is what a client asks at once, up to where the server answers "ready": one simple query, or the messages of the
// extended protocol up to Sync.
type request struct {
	sql         string // all its statements
	transaction string // the SQL of its transaction up to here
	executes    bool   // it runs something, rather than only preparing it
	commits     bool   // when it succeeds, something is committed: COMMIT itself, or a statement outside of a transaction
	swallow     *Trap  // its reply never arrives
	early       *Trap  // the client is cut as soon as it is sent
	failed      bool   // the reply told an error, or that the transaction was rolled back
}

// inquiry gathers the frames of a request.
type inquiry struct {
	statements map[string]string // prepared ones, by name
	frames     []frame
	sql        []string
	executes   bool
}

var (
	commit = regexp.MustCompile(`(?i)^\s*(commit|end)\b`)
	begin  = regexp.MustCompile(`(?i)^\s*(begin|start\s+transaction)\b`)
	listen = regexp.MustCompile(`(?i)^\s*listen\b`)
)

// add takes a frame of the client. The request is not nil when the frame ends it; send says that what was gathered is to
// be passed on either way.
func (q *inquiry) add(f frame) (r *request, send bool) {
	q.frames = append(q.frames, f)
	switch f.kind() {
	case 'Q':
		sql, _ := text(f.body())
		q.sql, q.executes = append(q.sql, sql), true
		return q.request(), true
	case 'P':
		name, rest := text(f.body())
		sql, _ := text(rest)
		q.statements[name] = sql
		q.sql = append(q.sql, sql)
	case 'B':
		_, rest := text(f.body())
		name, _ := text(rest)
		q.sql = append(q.sql, q.statements[name])
	case 'E':
		q.executes = true
	case 'S':
		return q.request(), true
	case 'C', 'D': // Close and Describe come with what follows
	default:
		return nil, true
	}
	return nil, false
}

func (q *inquiry) request() *request {
	r := &request{sql: strings.Join(q.sql, "; "), executes: q.executes}
	q.sql, q.executes = nil, false
	return r
}

func (q *inquiry) take() []frame {
	frames := q.frames
	q.frames = nil
	return frames
}
