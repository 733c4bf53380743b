package workerapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/internal/pgtest"
	"github.com/pawl-dev/pawl/internal/workerapi"
)

const token = "correct horse battery staple"

// house is a database with a template of one step, and the API before it.
type house struct {
	*testing.T
	db  *pgxpool.Pool
	url string
	log *bytes.Buffer // to be read when no request runs
}

func newHouse(t *testing.T) *house {
	t.Helper()
	t.Parallel()
	db := pgtest.DB(t)
	_, err := db.Exec(t.Context(), `select pawl.register_template('{"namespace": "shop", "name": "pay", "version": "1",
		"steps": [{"no": 0, "name": "charge", "handler": "shop.charge", "queue": "shop_queue", "needs": []}]}')`)
	require.NoError(t, err)
	log := new(bytes.Buffer)
	server := httptest.NewServer(workerapi.Handler(workerapi.Config{
		Pool: db, Token: token, Timeout: time.Minute, Log: slog.New(slog.NewTextHandler(log, nil)),
	}))
	t.Cleanup(server.Close)
	return &house{T: t, db: db, url: server.URL, log: log}
}

// submit makes a task and returns its id.
func (h *house) submit(input string) uuid.UUID {
	h.Helper()
	var id int64
	require.NoError(h, h.db.QueryRow(h.Context(), `select pgmq.send('orchestration_task_requests',
		jsonb_build_object('template', 'shop/pay', 'input', $1::jsonb))`, input).Scan(&id))
	var task uuid.UUID
	require.NoError(h, h.db.QueryRow(h.Context(), `select (pawl.process_task_requests(jsonb_build_array(jsonb_build_object(
		'msg_id', $1::bigint, 'template_id', (select max(template_id) from pawl.templates))), 'test')->0->>'task_id')::uuid`, id).Scan(&task))
	return task
}

func (h *house) state(task uuid.UUID) (state string) {
	h.Helper()
	require.NoError(h, h.db.QueryRow(h.Context(), "select state::text from pawl.tasks where task_id = $1", task).Scan(&state))
	return state
}

// answer of the API.
type answer struct {
	status int
	header http.Header
	body   string
}

func (h *house) send(request *http.Request) answer {
	h.Helper()
	response, err := http.DefaultClient.Do(request)
	require.NoError(h, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(h, err)
	require.Equal(h, "application/json", response.Header.Get("Content-Type"), string(body))
	require.True(h, json.Valid(body))
	return answer{response.StatusCode, response.Header, string(body)}
}

func (h *house) request(call, body string) *http.Request {
	h.Helper()
	request, err := http.NewRequestWithContext(h.Context(), http.MethodPost, h.url+"/v1/worker/"+call, strings.NewReader(body))
	require.NoError(h, err)
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Content-Type", "application/json")
	return request
}

func (h *house) post(call, body string) answer {
	h.Helper()
	return h.send(h.request(call, body))
}

func (h *house) ok(call, body string, into any) {
	h.Helper()
	got := h.post(call, body)
	require.Equal(h, http.StatusOK, got.status, got.body)
	require.NoError(h, json.Unmarshal([]byte(got.body), into), got.body)
}

// refused asserts an error and returns its message.
func (h *house) refused(got answer, status int, code string) string {
	h.Helper()
	require.Equal(h, status, got.status, got.body)
	var e struct {
		Error     string `json:"error"`
		Message   string `json:"message"`
		RequestID string `json:"request_id"`
	}
	require.NoError(h, json.Unmarshal([]byte(got.body), &e))
	require.Equal(h, code, e.Error)
	require.NotEmpty(h, e.Message)
	require.Equal(h, got.header.Get("X-Request-Id"), e.RequestID)
	return e.Message
}

type claimed struct {
	MsgID   int64           `json:"msg_id"`
	ReadCT  int             `json:"read_ct"`
	TaskID  uuid.UUID       `json:"task_id"`
	Step    string          `json:"step"`
	Handler string          `json:"handler"`
	Input   json.RawMessage `json:"input"`
	Token   string          `json:"token"`
}

func (h *house) claim() []claimed {
	h.Helper()
	var steps []claimed
	h.ok("claim", `{"queue":"shop_queue","quantity":10,"worker":"w1","options":{"lease_ms":60000}}`, &steps)
	return steps
}

func (h *house) claimOne() claimed {
	h.Helper()
	steps := h.claim()
	require.Len(h, steps, 1)
	return steps[0]
}

// fence is what a worker shows of the step it holds.
func (c claimed) fence(more string) string {
	text, err := json.Marshal(map[string]any{"msg_id": c.MsgID, "read_ct": c.ReadCT})
	if err != nil {
		panic(err)
	}
	return strings.TrimSuffix(string(text), "}") + more + "}"
}

func TestATaskIsWorkedOverHTTP(t *testing.T) {
	h := newHouse(t)
	task := h.submit(`{"amount": 7}`)
	step := h.claimOne()
	require.Equal(t, task, step.TaskID)
	require.Equal(t, "shop.charge", step.Handler)
	require.JSONEq(t, `{"amount": 7}`, string(step.Input))
	require.NotEmpty(t, step.Token)
	require.Empty(t, h.claim(), "it is held")

	got := h.post("extend", `{"queue":"shop_queue","leases":[`+step.fence("")+`],"lease_ms":60000,"worker":"w1"}`)
	require.Equal(t, http.StatusOK, got.status)
	require.Contains(t, got.body, `"extended"`)

	report := `{"queue":"shop_queue","worker":"w1","reports":[` + step.fence(`,"status":"complete","result":{"paid":1.10}`) + `]}`
	var answers []struct {
		MsgID    int64 `json:"msg_id"`
		Accepted bool  `json:"accepted"`
	}
	h.ok("report", report, &answers)
	require.Len(t, answers, 1)
	require.True(t, answers[0].Accepted)
	require.Equal(t, "complete", h.state(task))
	var result string
	require.NoError(t, h.db.QueryRow(t.Context(), "select result::text from pawl.steps where task_id = $1", task).Scan(&result))
	require.Equal(t, `{"paid": 1.10}`, result, "the number as it was sent")

	h.ok("report", report, &answers)
	require.False(t, answers[0].Accepted, "a second report is late")
}

func TestAReleasedStepIsClaimedAgain(t *testing.T) {
	h := newHouse(t)
	h.submit(`{}`)
	step := h.claimOne()
	got := h.post("release", `{"queue":"shop_queue","leases":[`+step.fence("")+`]}`)
	require.Equal(t, http.StatusOK, got.status)
	require.Contains(t, strings.ReplaceAll(got.body, " ", ""), `"released":true`)
	again := h.claimOne()
	require.Equal(t, step.MsgID, again.MsgID)
	require.Equal(t, step.ReadCT+1, again.ReadCT)

	got = h.post("extend", `{"queue":"shop_queue","leases":[`+step.fence("")+`],"lease_ms":null}`)
	require.Contains(t, got.body, `"lost"`, "the fence is the new holder's")
}

func TestAFailureIsReported(t *testing.T) {
	h := newHouse(t)
	task := h.submit(`{}`)
	step := h.claimOne()
	var answers []map[string]any
	h.ok("report", `{"queue":"shop_queue","worker":"w1","reports":[`+step.fence(
		`,"status":"failed","error":{"type":"card","message":"","retryable":false,"retry_after":0.5}`)+`]}`, &answers)
	require.Equal(t, true, answers[0]["accepted"])
	require.Equal(t, "error", h.state(task))
}

func TestWithoutTheTokenNothingHappens(t *testing.T) {
	h := newHouse(t)
	h.submit(`{}`)
	for _, sent := range []string{"", "Bearer", "Bearer ", "Bearer wrong", "Basic " + token, token, "Bearer " + token + "x"} {
		request := h.request("claim", `{"queue":"shop_queue","quantity":1,"worker":"w"}`)
		request.Header.Set("Authorization", sent)
		got := h.send(request)
		h.refused(got, http.StatusUnauthorized, "Unauthorized")
		require.NotEmpty(t, got.header.Get("WWW-Authenticate"))
	}
	request := h.request("claim", `{"queue":"shop_queue","quantity":1,"worker":"w"}`)
	request.Header.Set("Authorization", "bearer  "+token)
	require.Equal(t, http.StatusOK, h.send(request).status, "schemes have no case")

	off := httptest.NewServer(workerapi.Handler(workerapi.Config{Pool: h.db}))
	defer off.Close()
	h.url = off.URL
	request = h.request("claim", `{}`)
	request.Header.Set("Authorization", "Bearer ")
	h.refused(h.send(request), http.StatusForbidden, "Disabled")
}

func TestMalformedRequestsAreRefusedWithTheReason(t *testing.T) {
	h := newHouse(t)
	reports := func(one string) string { return `{"queue":"shop_queue","worker":"w","reports":[` + one + `]}` }
	for _, c := range []struct{ call, body, want string }{
		{"claim", ``, "ends where a value should be"},
		{"claim", `[]`, "not a JSON object"},
		{"claim", `{"quantity":1,"worker":"w"}`, `"queue": is missing`},
		{"claim", `{"queue":"shop_queue","quantity":1}`, `"worker": is missing`},
		{"claim", `{"queue":"shop_queue","quantity":1,"worker":""}`, `"worker": is empty`},
		{"claim", `{"queue":"shop_queue","quantity":0,"worker":"w"}`, `must be 1 to 1000`},
		{"claim", `{"queue":"shop_queue","qantity":1,"worker":"w"}`, `did you mean "quantity"?`},
		{"claim", `{"queue":"shop_queue","quantity":1,"worker":"w","options":{"lease":1}}`, `"options.lease": is unknown`},
		{"claim", `{"queue":"shop_queue","quantity":1,"worker":"w","options":{"lease_ms":0}}`, `options.lease_ms`},
		{"claim", `{"queue":"shop_queue","quantity":1,"worker":"w","options":{"max_bytes":-1}}`, `options.max_bytes`},
		{"report", reports(`{}`), `reports[0].msg_id`},
		{"report", reports(`{"msg_id":1,"read_ct":1,"status":"done"}`), `complete, failed or rejected`},
		{"report", reports(`{"msg_id":1,"read_ct":1,"status":"failed"}`), `"error": is missing`},
		{"report", reports(`{"msg_id":1,"read_ct":1,"status":"failed","error":{"type":"t","message":"m","retry_after":-1}}`), `negative`},
		{"report", reports(`{"msg_id":1,"read_ct":99999999999,"status":"complete"}`), `whole number`},
		{"report", reports(`{"msg_id":1,"read_ct":1,"status":"complete","result":"a\u0000b"}`), `\u0000 cannot be stored`},
		{"report", reports(`{"msg_id":1,"read_ct":1,"status":"complete","result":1e100000}`), `exponent`},
		{"report", reports(`{"msg_id":1,"read_ct":1,"status":"complete","result":` + strings.Repeat("[", 65) + strings.Repeat("]", 65) + `}`), `nested deeper than`},
		{"report", reports(`{"msg_id":1,"read_ct":1,"status":"complete","result":"` + strings.Repeat("x", 1<<20) + `"}`), `over the limit of 1048576`},
		{"report", reports(strings.Repeat(`{"msg_id":1,"read_ct":1,"status":"complete"},`, 1000) + `{"msg_id":1,"read_ct":1,"status":"complete"}`), `limit of 1000`},
		{"extend", `{"queue":"shop_queue","leases":[{"msg_id":1}]}`, `leases[0].read_ct`},
		{"extend", `{"queue":"shop_queue","leases":[],"lease_ms":43200001}`, `lease_ms`},
		{"release", `{"queue":"shop_queue","leases":[null]}`, `leases[0]`},
		{"release", `{"queue":"shop_queue","leases":[],"lease_ms":1}`, `is unknown`},
	} {
		message := h.refused(h.post(c.call, c.body), http.StatusBadRequest, "InvalidRequest")
		require.Contains(t, message, c.want)
	}
	large := `{"queue":"` + strings.Repeat("x", 8<<20) + `"}`
	h.refused(h.post("claim", large), http.StatusRequestEntityTooLarge, "TooLarge")
	require.Empty(t, h.log.String(), "mistakes of workers are not logged here")
}

func TestAnUnknownQueueIsSaid(t *testing.T) {
	h := newHouse(t)
	for call, rest := range map[string]string{
		"claim": `"quantity":1,"worker":"w"`, "report": `"reports":[],"worker":"w"`, "extend": `"leases":[]`, "release": `"leases":[]`,
	} {
		for _, queue := range []string{"shop_qeue", "Shop'; drop schema pawl --", "orchestration_step_results"} {
			message := h.refused(h.post(call, `{"queue":"`+queue+`",`+rest+`}`), http.StatusNotFound, "UnknownQueue")
			require.Contains(t, message, "shop_queue", "it names what there is")
		}
	}
}

func TestOtherPathsAndMethodsAreRefused(t *testing.T) {
	h := newHouse(t)
	h.refused(h.post("claims", `{}`), http.StatusNotFound, "NotFound")
	request := h.request("claim", "")
	request.Method = http.MethodGet
	got := h.send(request)
	h.refused(got, http.StatusMethodNotAllowed, "MethodNotAllowed")
	require.Equal(t, "POST", got.header.Get("Allow"))
	request = h.request("claim", `{}`)
	request.Header.Set("Content-Type", "text/plain")
	h.refused(h.send(request), http.StatusUnsupportedMediaType, "UnsupportedMediaType")
}

func TestRequestIDsAreKeptOrMade(t *testing.T) {
	h := newHouse(t)
	request := h.request("claim", `{}`)
	request.Header.Set("X-Request-Id", "abc-1")
	require.Equal(t, "abc-1", h.send(request).header.Get("X-Request-Id"))
	request = h.request("claim", `{}`)
	request.Header.Set("X-Request-Id", "no spaces allowed")
	made, err := uuid.Parse(h.send(request).header.Get("X-Request-Id"))
	require.NoError(t, err)
	require.EqualValues(t, 7, made.Version())
}

func TestADatabaseThatCannotIsUnavailable(t *testing.T) {
	h := newHouse(t)
	tx, err := h.db.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(context.Background()) }()
	_, err = tx.Exec(t.Context(), "lock table pawl.queues in access exclusive mode")
	require.NoError(t, err)
	config := h.db.Config()
	config.ConnConfig.RuntimeParams["lock_timeout"] = "10ms"
	hasty, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	defer hasty.Close()
	log := new(bytes.Buffer)
	server := httptest.NewServer(workerapi.Handler(workerapi.Config{
		Pool: hasty, Token: token, Log: slog.New(slog.NewTextHandler(log, nil)), Timeout: time.Minute,
	}))
	h.url = server.URL
	got := h.post("claim", `{"queue":"shop_queue","quantity":1,"worker":"w"}`)
	h.refused(got, http.StatusServiceUnavailable, "Unavailable")
	require.Equal(t, "1", got.header.Get("Retry-After"))
	server.Close()
	require.Contains(t, log.String(), "sqlstate=55P03")
}

func TestWhatTheEngineRaisesIsNotQuoted(t *testing.T) {
	h := newHouse(t)
	err := pgx.BeginFunc(t.Context(), h.db, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `create or replace function pawl.check_step_queue(queue text) returns void language plpgsql as
			$$ begin raise exception 'hunter2' using errcode = 'P0001', hint = 'hunter2'; end $$`)
		return err
	})
	require.NoError(t, err)
	got := h.post("extend", `{"queue":"shop_queue","leases":[]}`)
	h.refused(got, http.StatusInternalServerError, "InternalError")
	require.NotContains(t, got.body, "hunter2")
	require.NotContains(t, h.log.String(), "hunter2")
	require.Contains(t, h.log.String(), "sqlstate=P0001")
	require.Contains(t, h.log.String(), "request_id="+got.header.Get("X-Request-Id"))
}
