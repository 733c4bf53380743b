package faults

import (
	"bufio"
	"context"
	"io"
	"net"
	"strings"
	"sync"
	"time"
)

// drainTimeout is how long the server may take to tell the end of what a cut client had asked for.
const drainTimeout = 10 * time.Second

// session is one connection of a client.
type session struct {
	p      *Proxy
	client net.Conn
	server net.Conn      // set before the pumps run
	over   chan struct{} // closed by end
	once   sync.Once

	mu sync.Mutex
	// These are guarded by mu.
	before string     // the SQL of the open transaction so far
	asked  []*request // on their way, or being worked
	status byte       // of the last "ready": I idle, T in a transaction, E in a failed one; 0 before the first
	listen bool       // LISTEN was sent
	deaf   bool       // nothing reaches the client any more
	gone   bool       // the client was cut; the server may still tell what became of its requests
}

func newSession(p *Proxy, client net.Conn) *session {
	return &session{p: p, client: client, over: make(chan struct{})}
}

// run passes the connection's bytes until one side has ended.
func (s *session) run() {
	defer s.p.forget(s)
	defer s.end()
	if !s.p.pass(s, false) {
		return
	}
	reader := bufio.NewReaderSize(s.client, 32<<10)
	opening, ok := s.open(reader)
	if !ok {
		return
	}
	server, err := (&net.Dialer{Timeout: 10 * time.Second}).DialContext(context.Background(), "tcp", s.p.config.Target)
	if err != nil {
		return // refused: so is the client
	}
	s.mu.Lock()
	s.server = server
	s.mu.Unlock()
	select {
	case <-s.over: // end did not see the server
		_ = server.Close()
		return
	default:
	}
	if _, err := server.Write(opening); err != nil {
		return
	}
	var pumps sync.WaitGroup
	pumps.Go(func() { defer s.clientEnded(); s.pumpRequests(reader) })
	pumps.Go(func() { defer s.end(); s.pumpReplies() })
	pumps.Wait()
}

// open reads the opening; encryption is declined.
func (s *session) open(reader *bufio.Reader) (opening []byte, ok bool) {
	for {
		code, message, err := readOpening(reader)
		if err != nil {
			return nil, false
		}
		if code != codeSSL && code != codeGSS {
			return message, true // a start, or the cancelling of another's request
		}
		if _, err := s.client.Write([]byte{'N'}); err != nil {
			return nil, false
		}
	}
}

func (s *session) pumpRequests(reader *bufio.Reader) {
	inquiry := &inquiry{statements: make(map[string]string)}
	for {
		f, err := readFrame(reader)
		if err != nil {
			return
		}
		r, send := inquiry.add(f)
		if !send {
			continue
		}
		frames := inquiry.take()
		if !s.p.pass(s, false) {
			return
		}
		if r != nil && !s.ask(r) {
			continue // lost
		}
		if _, err := s.server.Write(join(frames)); err != nil {
			return
		}
		if r != nil && r.early != nil {
			s.cut()
			r.early.spring()
			return
		}
	}
}

func join(frames []frame) []byte {
	if len(frames) == 1 {
		return frames[0]
	}
	var all []byte
	for _, f := range frames {
		all = append(all, f...)
	}
	return all
}

// ask notes a request. It is false when a trap takes it.
func (s *session) ask(r *request) bool {
	s.mu.Lock()
	inTransaction := s.status == 'T' || s.status == 'E'
	r.commits = r.executes && (commit.MatchString(r.sql) || !inTransaction && !begin.MatchString(r.sql) && len(s.asked) == 0)
	if !inTransaction && len(s.asked) == 0 {
		s.before = ""
	}
	if r.executes {
		s.before += r.sql + ";\n"
	}
	r.transaction = s.before
	s.listen = s.listen || listen.MatchString(r.sql)
	lost := s.deaf || s.gone
	s.mu.Unlock()
	if lost {
		return false
	}
	trap := s.p.trapped(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	if trap == nil || !trap.Request {
		if trap != nil && trap.Early {
			r.early = trap
		} else {
			r.swallow = trap
		}
		s.asked = append(s.asked, r)
		return true
	}
	if r.commits {
		s.p.unknown(false, true)
	}
	s.p.config.Log.Debug("losing a request", "sql", r.sql)
	s.deaf = true
	if !trap.Hang {
		s.reset()
	}
	trap.spring()
	return false
}

func (s *session) pumpReplies() {
	reader, writer := bufio.NewReaderSize(s.server, 32<<10), bufio.NewWriterSize(s.client, 32<<10)
	for {
		f, err := readFrame(reader)
		if err != nil {
			_ = writer.Flush() // what the server said last
			return
		}
		keep, done := s.replied(f)
		if done {
			return
		}
		if keep {
			if _, err := writer.Write(f); err != nil && !s.isGone() {
				return
			}
		}
		if reader.Buffered() == 0 && writer.Buffered() > 0 {
			if !s.p.pass(s, true) {
				return
			}
			if err := writer.Flush(); err != nil && !s.isGone() {
				return
			}
		}
	}
}

// replied notes a frame of the server and says whether the client gets it, and whether the session is done.
func (s *session) replied(f frame) (keep, done bool) {
	if f.kind() == 'A' && s.p.dropNotification() {
		return false, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var r *request
	if len(s.asked) > 0 {
		r = s.asked[0]
	}
	keep = !s.deaf && !s.gone && (r == nil || r.swallow == nil)
	if r == nil {
		if f.kind() == 'Z' {
			s.status = f.body()[0]
		}
		return keep, false
	}
	switch f.kind() {
	case 'E':
		r.failed = true
	case 'C':
		tag, _ := text(f.body())
		r.failed = r.failed || strings.HasPrefix(tag, "ROLLBACK")
	case 'Z':
		s.status = f.body()[0]
		s.asked = s.asked[1:]
		done = s.settle(r)
	}
	return keep, done
}

// settle counts a request whose reply never arrives; the caller holds mu. It is true when nobody waits for more.
func (s *session) settle(r *request) (done bool) {
	if r.swallow == nil && !s.gone && !s.deaf {
		return false
	}
	if r.commits {
		s.p.unknown(!r.failed, r.failed)
	}
	if r.swallow != nil {
		s.p.config.Log.Debug("swallowing a reply", "sql", r.sql, "failed", r.failed)
		s.deaf = true
		if !r.swallow.Hang {
			s.reset()
		}
		r.swallow.spring()
	}
	return s.gone && len(s.asked) == 0
}

// cut resets the client's side. The server's goes on until it has told what became of the requests under way.
func (s *session) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reset()
}

// reset is cut for those who hold mu.
func (s *session) reset() {
	s.gone = true
	linger(s.client)
	_ = s.client.Close()
	if s.server == nil {
		return
	}
	if len(s.asked) == 0 {
		_ = s.server.Close()
		return
	}
	_ = s.server.SetReadDeadline(time.Now().Add(drainTimeout))
}

// clientEnded leaves the server's side to itself while it still works for a client that is gone.
func (s *session) clientEnded() {
	s.mu.Lock()
	drain := s.gone && len(s.asked) > 0
	s.mu.Unlock()
	if !drain {
		s.end()
	}
}

// end closes both sides. Requests whose end the server did not tell are counted.
func (s *session) end() {
	s.once.Do(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		close(s.over)
		_ = s.client.Close()
		if s.server != nil {
			_ = s.server.Close()
		}
		if !s.gone && !s.deaf {
			return
		}
		for _, r := range s.asked {
			if r.commits {
				s.p.unknown(false, false)
			}
		}
	})
}

func (s *session) isGone() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gone
}

// busy says whether a request is under way or a transaction open.
func (s *session) busy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.asked) > 0 || s.status == 'T' || s.status == 'E'
}

func (s *session) deafen() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.listen || s.deaf {
		return false
	}
	s.deaf = true
	return true
}

// linger makes the close of a connection a reset.
func linger(conn io.Closer) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // a connection that has ended needs none
	}
}
