package faults

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// maxFrame is beyond what tests send; a longer one is not a frame.
const maxFrame = 64 << 20

// Codes of the untyped messages that open a connection.
const (
	codeCancel = 80877102
	codeSSL    = 80877103
	codeGSS    = 80877104
)

// frame is one message of the protocol as it travels: kind, length, body.
type frame []byte

func (f frame) kind() byte   { return f[0] }
func (f frame) body() []byte { return f[5:] }

func readFrame(r *bufio.Reader) (frame, error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	length := binary.BigEndian.Uint32(head[1:])
	if length < 4 || length > maxFrame {
		return nil, fmt.Errorf("reading a message of kind %q: its length is %d", head[0], length)
	}
	f := make(frame, 1+length)
	copy(f, head[:])
	_, err := io.ReadFull(r, f[5:])
	return f, err
}

// readOpening reads a message that opens a connection: it has no kind.
func readOpening(r io.Reader) (code uint32, message []byte, err error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	length := binary.BigEndian.Uint32(head[:])
	if length < 8 || length > 10000 {
		return 0, nil, errors.New("this is not the opening of a Postgres connection")
	}
	message = make([]byte, length)
	copy(message, head[:])
	if _, err := io.ReadFull(r, message[4:]); err != nil {
		return 0, nil, err
	}
	return binary.BigEndian.Uint32(message[4:]), message, nil
}

// text reads a string that ends with a zero byte, and what follows it.
func text(body []byte) (string, []byte) {
	before, after, _ := bytes.Cut(body, []byte{0})
	return string(before), after
}
