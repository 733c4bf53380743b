package messaging_test

import (
	"encoding/json"

	"github.com/pawl-dev/pawl/messaging"
)

// kind is a sort of body with its decoder, forgetting the type.
type kind struct {
	schema  string
	decode  func([]byte) (any, error)
	example any // a zero value, for its tags
	good    []string
	bad     map[string]string // body → a piece of the error
}

func erase[T any](decode func([]byte) (T, error)) func([]byte) (any, error) {
	return func(body []byte) (any, error) { return decode(body) }
}

const (
	taskID = `"task_id":"01890f3e-7b1a-7c3d-9e4f-5a6b7c8d9e0f"`
	ofStep = taskID + `,"step":"charge","attempt":1`
)

var kinds = []kind{
	{
		schema: "task_request", decode: erase(messaging.DecodeTaskRequest), example: messaging.TaskRequest{},
		good: []string{
			`{"template":"shop/fulfil_order","input":{}}`,
			` {"v":1,"template":"shop/fulfil_order@1.2-rc1","input":null,"key":"order-7","on_duplicate":"reject"}`,
			`{"handler":"shop.charge","input":[1],"namespace":"shop","queue":"slow_queue"}`,
			`{"handler":"h","input":"x"}`,
			`{"template":"a/b","input":1,"request_id":"01890f3e-7b1a-7c3d-9e4f-5a6b7c8d9e0f","run_at":"2026-01-31T12:00:00.5+01:00",
			  "requester":"admin","reply_to":"replies","correlation_id":"c","tags":{"a":"b","c":""}}`,
		},
		bad: map[string]string{
			`{"input":{}}`:       `field "template": is missing`,
			`{"template":"a/b"}`: `field "input": is missing`,
			`{"template":"a/b","handler":"h","input":1}`:                                         `cannot stand beside template`,
			`{"template":"a/b","queue":"q","input":1}`:                                           `belongs to handler`,
			`{"template":"a/b","namespace":"n","input":1}`:                                       `belongs to handler`,
			`{"temlpate":"a/b","input":1}`:                                                       `field "temlpate": is unknown; did you mean "template"? Allowed: v, request_id, template,`,
			`{"Template":"a/b","input":1}`:                                                       `field "Template": is unknown; did you mean "template"?`,
			`{"template":"a/b","input":1,"zzzzzzzzz":1}`:                                         `is unknown. Allowed:`,
			`{"template":"ab","input":1}`:                                                        `no "/"`,
			`{"template":"A/b","input":1}`:                                                       `bad namespace`,
			`{"template":"a/b-c","input":1}`:                                                     `bad name`,
			`{"template":"a/b@","input":1}`:                                                      `bad version`,
			`{"template":7,"input":1}`:                                                           `must be a string`,
			`{"template":"a/b","input":1,"key":null}`:                                            `field "key": is null: write a string that is not empty, or leave it out`,
			`{"template":"a/b","input":1,"key":""}`:                                              `is empty`,
			`{"template":"a/b","input":1,"on_duplicate":"attac"}`:                                `attach or reject`,
			`{"template":"a/b","input":1,"request_id":"7"}`:                                      `a UUID`,
			`{"template":"a/b","input":1,"request_id":"{01890f3e-7b1a-7c3d-9e4f-5a6b7c8d9e0f}"}`: `a UUID`,
			`{"template":"a/b","input":1,"run_at":"tomorrow"}`:                                   `a time with its zone`,
			`{"template":"a/b","input":1,"reply_to":"orchestration_step_results"}`:               `engine's own queues`,
			`{"template":"a/b","input":1,"reply_to":"My-Queue"}`:                                 `queue name`,
			`{"template":"a/b","input":1,"tags":{"a":1}}`:                                        `an object of strings`,
			`{"handler":"1","input":1}`:                                                          `field "handler"`,
			`{"handler":"h","input":1,"namespace":"N"}`:                                          `field "namespace"`,
			`{"handler":"h","input":1,"queue":"orchestration_x"}`:                                `engine's own queues`,
			`{"v":0,"template":"a/b","input":1}`:                                                 `field "v": must be a whole number`,
			`{"v":"1","template":"a/b","input":1}`:                                               `field "v": must be a whole number`,
			`{"v":null,"template":"a/b","input":1}`:                                              `field "v": must be a whole number`,
			`{"v":1.5,"template":"a/b","input":1}`:                                               `field "v": must be a whole number`,
		},
	},
	{
		schema: "step_result", decode: erase(messaging.DecodeStepResult), example: messaging.StepResult{},
		good: []string{
			`{` + ofStep + `,"status":"complete"}`,
			`{"v":1,` + ofStep + `,"index":3,"status":"complete","result":{"a":[1]},"worker":"w","error":null}`,
			`{` + ofStep + `,"status":"failed","error":{"type":"timeout","message":"","retryable":true,"retry_after":1.5}}`,
			`{` + ofStep + `,"status":"rejected","error":{"type":"bad_card","message":"no"},"result":null}`,
		},
		bad: map[string]string{
			`{"step":"a","attempt":1,"status":"complete"}`:                                           `field "task_id": is missing`,
			`{` + taskID + `,"attempt":1,"status":"complete"}`:                                       `field "step": is missing`,
			`{` + taskID + `,"step":"a","attempt":0,"status":"complete"}`:                            `1 or more`,
			`{` + taskID + `,"step":"a","attempt":"1","status":"complete"}`:                          `a whole number`,
			`{` + ofStep + `,"index":-1,"status":"complete"}`:                                        `negative`,
			`{` + ofStep + `,"status":"done"}`:                                                       `complete, failed or rejected`,
			`{` + ofStep + `,"status":"failed"}`:                                                     `field "error": is missing`,
			`{` + ofStep + `,"status":"failed","error":null}`:                                        `field "error": is missing`,
			`{` + ofStep + `,"status":"failed","error":"x"}`:                                         `not a JSON object`,
			`{` + ofStep + `,"status":"failed","error":{"type":"a"}}`:                                `field "error.message": is missing`,
			`{` + ofStep + `,"status":"failed","error":{"type":"","message":"m"}}`:                   `field "error.type": is empty`,
			`{` + ofStep + `,"status":"failed","error":{"type":"a","message":"m","retriable":true}}`: `did you mean "retryable"?`,
			`{` + ofStep + `,"status":"failed","error":{"type":"a","message":"m","retry_after":-1}}`: `negative`,
			`{` + ofStep + `,"status":"failed","error":{"type":"a","message":"m"},"result":1}`:       `belongs to status complete`,
			`{` + ofStep + `,"status":"complete","error":{"type":"a","message":"m"}}`:                `cannot stand beside`,
		},
	},
	{
		schema: "step_message", decode: erase(messaging.DecodeStepMessage), example: messaging.StepMessage{},
		good: []string{
			`{"v":1,` + ofStep + `,"index":0,"handler":"h","input":{},"dependencies":{"a":null},"config":null,"token":"t","correlation_id":null}`,
			`{"v":1,` + ofStep + `,"handler":"h","by_reference":true,"token":"t","config":{"a":1},"correlation_id":"c"}`,
		},
		bad: map[string]string{
			`{` + ofStep + `,"token":"t"}`:                                             `field "handler": is missing`,
			`{` + ofStep + `,"handler":"h"}`:                                           `field "token": is missing`,
			`{` + ofStep + `,"handler":"h","token":"t","dependencies":[]}`:             `an object`,
			`{` + ofStep + `,"handler":"h","token":"t","by_reference":true,"input":1}`: `cannot stand beside`,
			`{` + ofStep + `,"handler":"h","token":"t","by_reference":"yes"}`:          `true or false`,
			`{` + ofStep + `,"handler":"h","token":"t","index":-2}`:                    `negative`,
			`{` + ofStep + `,"handler":"h","token":"t","priority":1}`:                  `is unknown`,
		},
	},
	{
		schema: "step_enqueue", decode: erase(messaging.DecodeStepEnqueue), example: messaging.StepEnqueue{},
		good: []string{`{"v":1,` + taskID + `,"reason":"resumed"}`, `{"queue":"shop_queue","reason":"limit changed"}`},
		bad: map[string]string{
			`{"reason":"r"}`: `either task_id or queue`,
			`{` + taskID + `,"queue":"q","reason":"r"}`: `either task_id or queue`,
			`{"queue":"Q","reason":"r"}`:                `queue name`,
			`{"queue":"q"}`:                             `field "reason": is missing`,
		},
	},
	{
		schema: "task_finalization", decode: erase(messaging.DecodeTaskFinalization), example: messaging.TaskFinalization{},
		good: []string{`{"v":1,` + taskID + `,"reason":"all steps ended"}`},
		bad: map[string]string{
			`{"reason":"r"}`:                `field "task_id": is missing`,
			`{` + taskID + `}`:              `field "reason": is missing`,
			`{"task_id":null,"reason":"r"}`: `is null`,
		},
	},
	{
		schema: "reply", decode: erase(messaging.DecodeReply), example: messaging.Reply{},
		good: []string{
			`{"v":1,"request_id":"r","outcome":"created",` + taskID + `,"status":"completed","result":{"a":1}}`,
			`{"request_id":null,"outcome":"invalid","error":{"error":"InvalidRequest","message":"m"}}`,
			`{"request_id":"r","outcome":"rejected",` + taskID + `,"error":{"error":"TaskAlreadyExists"},"status":"running"}`,
			`{"request_id":"r","outcome":"attached",` + taskID + `,"status":"result_expired","result":null}`,
		},
		bad: map[string]string{
			`{"outcome":"created"}`:                `field "request_id": is missing`,
			`{"request_id":"r","outcome":"lost"}`:  `created, attached, rejected or invalid`,
			`{"request_id":7,"outcome":"created"}`: `a string`,
			`{"request_id":"r"}`:                   `field "outcome": is missing`,
		},
	},
}

// noBodies are wrong for every kind.
var noBodies = []string{``, ` `, `null`, `1`, `"x"`, `[]`, `[{}]`, `{`, `{"a":}`, `{} {}`, `true`}

func raw(text string) json.RawMessage { return json.RawMessage(text) }
