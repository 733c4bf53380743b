package cluster

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
)

// Entry of the ledger: something that a handler did.
type Entry struct {
	What     string            `json:"what"` // start, done
	Task     string            `json:"task"`
	Step     string            `json:"step"`
	Attempt  int               `json:"attempt"`
	Delivery int               `json:"delivery"`
	Token    string            `json:"token"`
	Nonce    string            `json:"nonce"` // of this call of the handler; the result that it returns
	Needs    map[string]string `json:"needs"` // nonces in the results of the steps before
	Worker   string            `json:"worker"`
}

// ReadLedger reads what handlers wrote.
func ReadLedger(file string) ([]Entry, error) {
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // nobody has worked yet
	}
	if err != nil {
		return nil, fmt.Errorf("reading the ledger: %w", err)
	}
	defer f.Close()
	var entries []Entry
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e Entry
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return nil, fmt.Errorf("reading line %d of the ledger: %w", len(entries)+1, err)
		}
		entries = append(entries, e)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("reading the ledger: %w", err)
	}
	return entries, nil
}

// StepName is one step of one task.
type StepName struct{ Task, Step string }

// Ended is how the database says that a step ended: the nonce in its result, and the attempt that ended it.
type Ended struct {
	State, Nonce string
	Attempt      int
}

// CompareLedger says what of the ledger contradicts the database. copied are steps of which somebody sent a second
// message: their deliveries are counted by each message for itself.
func CompareLedger(entries []Entry, steps map[StepName]Ended, copied map[StepName]bool) []string {
	type delivery struct {
		StepName
		attempt, delivery int
	}
	var wrong []string
	began := make(map[delivery]string)
	done := make(map[StepName]map[string]int) // nonce → attempt
	tokens := make(map[StepName]string)
	for _, e := range entries {
		name := StepName{e.Task, e.Step}
		if _, known := steps[name]; !known {
			wrong = append(wrong, fmt.Sprintf("%s/%s was worked on and does not exist", e.Task, e.Step))
			continue
		}
		if tokens[name] == "" {
			tokens[name] = e.Token
		} else if tokens[name] != e.Token {
			wrong = append(wrong, fmt.Sprintf("%s/%s had two tokens", e.Task, e.Step))
		}
		if e.What == "done" {
			if done[name] == nil {
				done[name] = make(map[string]int)
			}
			done[name][e.Nonce] = e.Attempt
			continue
		}
		d := delivery{name, e.Attempt, e.Delivery}
		if first := began[d]; first != "" && !copied[name] {
			wrong = append(wrong, fmt.Sprintf("%s/%s attempt %d delivery %d was handed out twice: to %s and %s", e.Task, e.Step, e.Attempt, e.Delivery, first, e.Worker))
		}
		began[d] = e.Worker
		for need, nonce := range e.Needs {
			if before := steps[StepName{e.Task, need}]; before.Nonce != nonce {
				wrong = append(wrong, fmt.Sprintf("%s/%s was given result %s of %s, and it is %s", e.Task, e.Step, nonce, need, before.Nonce))
			}
		}
	}
	for name, step := range steps {
		attempt, ok := done[name][step.Nonce]
		if step.State == "complete" && (!ok || attempt != step.Attempt) {
			wrong = append(wrong, fmt.Sprintf("%s/%s is complete by attempt %d with a result that no such handler returned", name.Task, name.Step, step.Attempt))
		}
	}
	slices.Sort(wrong)
	return wrong
}
