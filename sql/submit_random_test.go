package sql_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/messaging"
	"github.com/pawl-dev/pawl/messaging/pgmq"
	engine "github.com/pawl-dev/pawl/test/kit"
)

// field of a body as it is spelled: a name may stand twice, and a value be spelled in many ways.
type field struct{ name, value string }

// writer makes requests' bodies: right ones, and right ones with something done to them.
type writer struct{ *rand.Rand }

func (w writer) pick(from ...string) string { return from[w.IntN(len(from))] }

// id is a new request's.
func (w writer) id() string {
	var id uuid.UUID
	for i := range id {
		id[i] = byte(w.Uint32())
	}
	return id.String()
}

// text is a JSON string, some of its letters spelled as escapes.
func (w writer) text(s string) string {
	quoted, _ := json.Marshal(s)
	if w.IntN(8) > 0 || len(s) == 0 {
		return string(quoted)
	}
	return fmt.Sprintf(`"\u%04x%s"`, s[0], strings.Trim(string(quoted), `"`)[1:])
}

func (w writer) number() string {
	digits := strings.Repeat(w.pick("7", "10", "123456789"), 9)[:1+w.IntN(8)]
	switch w.IntN(12) {
	case 0:
		digits = strings.Repeat("9", 60+w.IntN(10))
	case 1:
		digits += "." + strings.Repeat("0", w.IntN(70)) + "1"
	case 2:
		digits += w.pick("e", "E") + w.pick("", "+", "-") + fmt.Sprint(w.IntN(130))
	case 3:
		digits += ".5e" + w.pick("", "-") + w.pick("0", "00000000000000000000000000000000000000000000000000000000000000000001", "400", "999")
	}
	return w.pick("", "-") + digits
}

// value is any JSON.
func (w writer) value(depth int) string {
	switch kind := w.IntN(11); {
	case kind < 2:
		return w.number()
	case kind < 4:
		return w.text(w.pick("", "a", "sub/one", "send", "work_queue", "[[[{", "é\n", "1", strings.Repeat("8", 70), w.id()))
	case kind == 4:
		return w.pick("null", "true", "false", "[]", "{}")
	case kind == 5: // deep
		open := w.IntN(70)
		var b strings.Builder
		for n := range open {
			b.WriteString([]string{"[", `{"a": `}[(n+open)%2])
		}
		b.WriteString("1")
		for n := open - 1; n >= 0; n-- {
			b.WriteString([]string{"]", "}"}[(n+open)%2])
		}
		return b.String()
	case depth == 0:
		return "1"
	case kind < 8:
		return "[" + w.value(depth-1) + "," + w.value(depth-1) + "]"
	}
	return `{"a":` + w.value(depth-1) + `,"b":` + w.value(depth-1) + w.pick("", `,"a":1`) + "}"
}

// right is a request that SQL alone can judge.
func (w writer) right() []field {
	fields := []field{{"request_id", w.text(w.id())}, {"input", w.pick("{}", `{"order": "A-1"}`, "null", w.value(3))}}
	if w.IntN(2) == 0 {
		fields = append(fields, field{"template", w.text(w.pick("sub/one", "sub/one@1", "sub/diamond", "sub/diamond@1", "sub/gated"))})
	} else {
		fields = append(fields, field{"handler", w.text("send")})
		if w.IntN(2) == 0 {
			fields = append(fields, field{"namespace", w.text(w.pick("default", "sub"))})
		}
		if w.IntN(2) == 0 {
			fields = append(fields, field{"queue", w.text("work_queue")})
		}
	}
	for _, optional := range []field{{"v", "1"}, {"correlation_id", w.text("c-1")}, {"requester", w.text("anna")},
		{"tags", w.pick("{}", `{"shop": "berlin"}`, `{"": "", "b": "\u00e9"}`)}} {
		if w.IntN(3) == 0 {
			fields = append(fields, optional)
		}
	}
	w.Shuffle(len(fields), func(i, j int) { fields[i], fields[j] = fields[j], fields[i] })
	return fields
}

// spoil does something to a request, which may be right even then.
func (w writer) spoil(fields []field) []field {
	at := w.IntN(len(fields))
	f := &fields[at]
	names := []string{"request_id", "input", "template", "handler", "namespace", "queue", "correlation_id", "requester", "tags", "v",
		"key", "on_duplicate", "run_at", "reply_to", "", "Input", "input ", "traceparent"}
	switch w.IntN(10) {
	case 0:
		return append(fields[:at], fields[at+1:]...)
	case 1:
		return append(fields, field{w.pick(names...), w.value(1)})
	case 2:
		return append([]field{{w.pick(names...), w.value(0)}}, fields...)
	case 3:
		f.value = w.value(1)
	case 4:
		f.value = w.pick("[%s]", "[[%s]]", `{"a": %s}`, "[%s, %[1]s]", "[]")
		if strings.Contains(f.value, "%") {
			f.value = fmt.Sprintf(f.value, fields[at].value)
		}
	case 5:
		f.name = w.pick(names...)
	case 6:
		return append(fields, field{"tags", w.pick("[]", "null", `{"a": null}`, `{"a": 1}`, `{"a": ["x"]}`, `{"a": []}`, `{"a": {}}`,
			`{"a": [["x"]], "b": "c"}`, `"x"`, `[{"a": "b"}]`, `{"a": "b", "a": 1}`, `{"a": 1, "a": "b"}`)})
	case 7:
		return append(fields, field{"v", w.pick("1", "1.0", "1e0", "10e-1", "0.1e1", `"1"`, "0", "-1", "2", "null", "true", "[1]", "[]", "1.00", "1.5")})
	case 8:
		return append(fields, field{"request_id", w.oddID()})
	case 9:
		if strings.HasPrefix(f.value, `"`) {
			s := strings.Trim(f.value, `"`)
			f.value = `"` + w.pick(s+`\n`, " "+s, s+"@1", s+"@", s+"@adhoc:default_queue", "/"+s, s+"é", strings.ToUpper(s), "", s+s) + `"`
		}
	}
	return fields
}

func (w writer) oddID() string {
	id := w.id()
	bare := strings.ReplaceAll(id, "-", "")
	at := 1 + w.IntN(34)
	return w.pick(`"`+strings.ToUpper(id)+`"`, `"`+bare+`"`, `"{`+id+`}"`, `"urn:uuid:`+id+`"`, `"`+id[:35]+`"`, `"`+id+`0"`, `"`+id+`\n"`,
		`"`+uuid.Nil.String()+`"`, `["`+id+`"]`, `"`+id[:at]+"-"+id[at+1:]+`"`, `"`+id[:at]+"g"+id[at+1:]+`"`, `"`+id[:35]+`٠"`,
		`"`+bare[:4]+"-"+bare[4:8]+"-"+bare[8:16]+"-"+bare[16:20]+"-"+bare[20:]+`"`, `"`+bare[:28]+"-"+bare[28:]+`---"`)
}

// body is JSON that jsonb takes.
func (w writer) body() string {
	for {
		fields := w.right()
		for range w.IntN(3) {
			if len(fields) > 0 {
				fields = w.spoil(fields)
			}
		}
		parts := make([]string, len(fields))
		for i, f := range fields {
			name, _ := json.Marshal(f.name)
			parts[i] = w.pick("", " ", "\t") + string(name) + w.pick("", " ") + ":" + w.pick("", "\n") + f.value
		}
		text := w.pick("", " ") + "{" + strings.Join(parts, ",") + "}" + w.pick("", "\n")
		if pgmq.CheckJSON([]byte(text), pgmq.JSONLimits{Exponent: 999}) == nil {
			return text
		}
	}
}

// What a submit takes at once, the task-request actor would have taken: it reads what jsonb made of the body, within the
// limits at the door.
func TestWhatIsATaskAtOnceTheActorWouldHaveTaken(t *testing.T) {
	k := submitKit(newKit(t))
	seed := uint64(1)
	if os.Getenv("PAWL_SEED") != "" {
		seed = engine.Seed(t)
	}
	t.Logf("PAWL_SEED=%d", seed)
	w := writer{rand.New(rand.NewPCG(seed, 0))}
	var atOnce, right, sent int
	for range 12 {
		bodies := make([]string, 400)
		for i := range bodies {
			bodies[i] = w.body()
		}
		verdicts := list[[]string](k, `select array[(pawl.submit_requests(array[body], null) is null)::text, body::jsonb::text]
			from unnest($1::text[]) with ordinality u(body, n) order by n`, bodies)
		for i, text := range bodies {
			request, err := taken(verdicts[i][1])
			sent++
			if err == nil {
				right++
			}
			if verdicts[i][0] == "true" {
				atOnce++
				require.NoError(t, err, "%s is a task, and the actor would have refused it", text)
				k.isTask(request, text)
			}
		}
	}
	t.Logf("%d of %d at once, %d right", atOnce, sent, right)
	require.Greater(t, atOnce, sent/4)
	require.Greater(t, sent-right, sent/4)
	require.Equal(t, []int{atOnce, sent - atOnce}, list[int](k, "select count(*) from pawl.tasks union all select count(*) from pgmq.q_orchestration_task_requests"))
}

// taken reads a body, as jsonb writes it, as the actor does.
func taken(stored string) (messaging.TaskRequest, error) {
	var compact bytes.Buffer
	if err := json.Compact(&compact, []byte(stored)); err != nil {
		return messaging.TaskRequest{}, err
	}
	if err := messaging.CheckBody(compact.Bytes()); err != nil {
		return messaging.TaskRequest{}, err
	}
	return messaging.DecodeTaskRequest([]byte(stored))
}

// isTask asserts that a task is what its request asked for.
func (k *kit) isTask(r messaging.TaskRequest, text string) {
	k.Helper()
	want := object{"namespace": r.Namespace, "template": r.Handler, "correlation_id": r.CorrelationID, "requester": r.Requester, "tags": nil}
	version := "adhoc:" + r.Queue
	switch {
	case r.Template != "":
		ref, err := messaging.ParseTemplateRef(r.Template)
		require.NoError(k, err)
		want["namespace"], want["template"], version = ref.Namespace, ref.Name, ref.Version
		if version == "" {
			version = map[string]string{"one": "1", "gated": "1", "diamond": "2"}[ref.Name]
		}
	case r.Namespace == "":
		want["namespace"] = "default"
	}
	if r.Handler != "" && r.Queue == "" {
		version += want["namespace"].(string) + "_queue"
	}
	want["version"] = version
	if r.Tags != nil {
		want["tags"] = r.Tags
	}
	have := k.object(`select jsonb_build_object('namespace', namespace, 'template', template, 'version', version,
		'correlation_id', coalesce(correlation_id, ''), 'requester', coalesce(requester, ''), 'tags', tags)
		from pawl.tasks where task_id = $1 and input = $2::text::jsonb and key is null and reply_to is null and state <> 'pending'
		and requested_at > $3`, r.RequestID, string(r.Input), time.Now().Add(-time.Hour))
	same, err := json.Marshal(want)
	require.NoError(k, err)
	found, err := json.Marshal(have)
	require.NoError(k, err)
	require.JSONEq(k, string(same), string(found), text)
}
