package workerapi

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/pawl-dev/pawl/internal/strictjson"
	"github.com/pawl-dev/pawl/messaging"
	"github.com/pawl-dev/pawl/messaging/pgmq"
)

// Bounds of a call. They keep one request from holding a connection for long.
const (
	maxQuantity = 1000
	maxItems    = 1000       // reports or leases
	maxLeaseMS  = 43_200_000 // 12 h
	maxBytes    = 64 << 20
	// depthAround is how deep a result lies in a request for reports.
	depthAround = 3
)

// claimRequest has the arguments of pawl.claim_steps.
type claimRequest struct {
	Queue    string        `json:"queue"`
	Quantity int           `json:"quantity"`
	Worker   string        `json:"worker"`
	Options  *claimOptions `json:"options,omitempty" body:"nullable"`
}

type claimOptions struct {
	LeaseMS  *int64 `json:"lease_ms,omitempty" body:"nullable"`
	MaxBytes *int64 `json:"max_bytes,omitempty" body:"nullable"`
}

// reportRequest has the arguments of pawl.report_steps.
type reportRequest struct {
	Queue   string   `json:"queue"`
	Reports []report `json:"reports"`
	Worker  string   `json:"worker"`
}

type report struct {
	MsgID  int64                  `json:"msg_id"`
	ReadCT int32                  `json:"read_ct"`
	Status messaging.ResultStatus `json:"status"`
	Result json.RawMessage        `json:"result,omitempty"`
	Error  *messaging.StepError   `json:"error,omitempty" body:"nullable"`
}

// extendRequest has the arguments of pawl.extend_leases.
type extendRequest struct {
	Queue   string  `json:"queue"`
	Leases  []lease `json:"leases"`
	LeaseMS *int64  `json:"lease_ms,omitempty" body:"nullable"`
	Worker  string  `json:"worker,omitempty" body:"nullable"`
}

// releaseRequest has the arguments of pawl.release_steps.
type releaseRequest struct {
	Queue  string  `json:"queue"`
	Leases []lease `json:"leases"`
	Worker string  `json:"worker,omitempty" body:"nullable"`
}

type lease struct {
	MsgID  int64 `json:"msg_id"`
	ReadCT int32 `json:"read_ct"`
}

// read fills a request strictly, and returns its fields as they were sent: these,
// not what we make of them, are what the SQL function gets.
func read(body []byte, into any) (map[string]json.RawMessage, error) {
	limits := pgmq.JSONLimits{
		Depth: messaging.MaxDepth + depthAround, Number: messaging.MaxNumber, Exponent: messaging.MaxExponent,
	}
	if err := pgmq.CheckJSON(body, limits); err != nil {
		return nil, fmt.Errorf("the request's body: %w", err)
	}
	fields, err := strictjson.Object(body)
	if err != nil {
		return nil, err
	}
	return fields, strictjson.Fill(fields, into)
}

func parseClaim(body []byte) (statement, error) {
	var r claimRequest
	fields, err := read(body, &r)
	if err != nil {
		return statement{}, err
	}
	if r.Quantity < 1 || r.Quantity > maxQuantity {
		return statement{}, invalid("field %q: must be 1 to %d", "quantity", maxQuantity)
	}
	options := "{}"
	if r.Options != nil {
		if err := within("options.lease_ms", r.Options.LeaseMS, maxLeaseMS); err != nil {
			return statement{}, err
		}
		if err := within("options.max_bytes", r.Options.MaxBytes, maxBytes); err != nil {
			return statement{}, err
		}
		options = string(fields["options"])
	}
	return statement{
		sql:  `select pawl.claim_steps($1::text, $2::integer, $3::text, $4::text::jsonb)::text`,
		args: []any{r.Queue, r.Quantity, r.Worker, options},
	}, nil
}

func parseReport(body []byte) (statement, error) {
	var r reportRequest
	fields, err := read(body, &r)
	if err != nil {
		return statement{}, err
	}
	if err := countItems("reports", len(r.Reports)); err != nil {
		return statement{}, err
	}
	for i, one := range r.Reports {
		if err := one.check(); err != nil {
			return statement{}, invalid("reports[%d]: %s", i, err)
		}
	}
	return statement{
		sql:  `select pawl.report_steps($1::text, $2::text::jsonb, $3::text)::text`,
		args: []any{r.Queue, string(fields["reports"]), r.Worker},
	}, nil
}

// check says what pawl.read_reports would, and holds the result to the limits at
// the door.
func (r *report) check() error {
	switch r.Status {
	case messaging.Complete:
	case messaging.Failed, messaging.Rejected:
		if r.Error == nil {
			return fmt.Errorf(`field "error": is missing: %s says why, {type, message, retryable, retry_after?}`, r.Status)
		}
	default:
		return errors.New(`field "status": must be complete, failed or rejected`)
	}
	if r.Error != nil && r.Error.RetryAfter < 0 {
		return errors.New(`field "error.retry_after": is negative: it is a number of seconds from now`)
	}
	if len(r.Result) == 0 {
		return nil
	}
	if err := messaging.CheckBody(r.Result); err != nil {
		return fmt.Errorf(`field "result": %w`, err)
	}
	return nil
}

func parseExtend(body []byte) (statement, error) {
	var r extendRequest
	fields, err := read(body, &r)
	if err != nil {
		return statement{}, err
	}
	if err := countItems("leases", len(r.Leases)); err != nil {
		return statement{}, err
	}
	if err := within("lease_ms", r.LeaseMS, maxLeaseMS); err != nil {
		return statement{}, err
	}
	leaseMS := int64(30_000) // pawl.extend_leases' own default
	if r.LeaseMS != nil {
		leaseMS = *r.LeaseMS
	}
	return statement{
		sql:  `select pawl.extend_leases($1::text, $2::text::jsonb, $3::bigint, nullif($4::text, ''))::text`,
		args: []any{r.Queue, string(fields["leases"]), leaseMS, r.Worker},
	}, nil
}

func parseRelease(body []byte) (statement, error) {
	var r releaseRequest
	fields, err := read(body, &r)
	if err != nil {
		return statement{}, err
	}
	if err := countItems("leases", len(r.Leases)); err != nil {
		return statement{}, err
	}
	return statement{
		sql:  `select pawl.release_steps($1::text, $2::text::jsonb, nullif($3::text, ''))::text`,
		args: []any{r.Queue, string(fields["leases"]), r.Worker},
	}, nil
}

func countItems(field string, count int) error {
	if count > maxItems {
		return invalid("field %q: has %d elements, over the limit of %d", field, count, maxItems)
	}
	return nil
}

func within(field string, value *int64, most int64) error {
	if value != nil && (*value < 1 || *value > most) {
		return invalid("field %q: must be 1 to %d", field, most)
	}
	return nil
}
