package main

// Ends of tasks, operators' commands, the clock.
func ends() []defect {
	m := []tests{model()}
	return []defect{
		sql("end_tasks", "a cancelled task leaves steps in back-off open", m,
			"s.state in ('pending', 'enqueued', 'in_progress', 'waiting_for_retry', 'waiting')\n    and not (s.state", "s.state in ('pending', 'enqueued', 'in_progress', 'waiting')\n    and not (s.state"),
		sql("end_tasks", "a cancelled task keeps its deadline", m, "finalized_at = at, due_at = null, open_count", "finalized_at = at, open_count"),
		sql("end_tasks", "a cancelled task keeps its key", m, "  perform pawl.close_tasks(ids);\n", ""),
		sql("settle_step_results", "a complete task does not say so to its key and its sender", m, "      perform pawl.close_tasks(counted.told);\n", "      null;\n"),
		sql("finish_counted_tasks", "a failed task does not say so to its key and its sender", m, "    perform pawl.close_tasks(told);\n", "    null;\n"),
		sql("finalize_tasks", "a finalizer decides without the task's lock", []tests{engine("Finaliz")},
			"  perform from pawl.tasks t where t.task_id = any (tasks) order by t.task_id for no key update;\n", ""),
		sql("lock_task", "an operator's command decides without the task's lock", []tests{engine("TestCancelAnd|TestOperator"), meeting("running: cancel / resolve"), meeting("running: cancel / report b")},
			"select * into task from pawl.tasks t where t.task_id = id for no key update;", "select * into task from pawl.tasks t where t.task_id = id;"),
		sql("reset_steps", "an operator's retry keeps the count of failures", m, "error = null, failures = 0, round", "error = null, round"),
		sql("reset_steps", "what runs is reset without being ended first", m, "s.index = r.index and s.state = 'in_progress';", "s.index = r.index and false;"),
		sql("revive_steps", "an operator's retry of a step leaves its dependents cancelled", m,
			"when 'dependency_failed' then exists", "when 'dependency_failed' then false and exists"),
		sql("reopen_task", "a task takes its key back from a later task", m, "if holder <> task.task_id then", "if false then"),
		sql("fire_tasks", "a retry starts before its time", m, "any (mine) and s.due_at <= at and s.state = 'waiting_for_retry'", "any (mine) and s.state = 'waiting_for_retry'"),
		sql("fire_tasks", "a task that starts later times out instead", m, "\n    and t.state <> 'pending' and not pawl.is_final", "\n    and not pawl.is_final"),
		sql("fire_tasks", "attempts that nobody claimed, or that run, never time out", m, "s.task_id = any (mine) and s.due_at <= at and s.state in ('in_progress', 'enqueued')", "s.task_id = any (mine) and s.due_at <= at and s.state in ('enqueued')"),
		sql("fire_tasks", "two clocks fire the same task (no lock)", []tests{engine("Fire|Clock|Rule"), meeting("running: tick / tick"), meeting("running: tick / report b")},
			"x.task_id = u.task_id for no key update skip locked) t", "x.task_id = u.task_id) t"),
		sql("retry_delay", "a handler's retry_after is not heard", m, "when jsonb_typeof(error->'retry_after') = 'number' then", "when false then"),
		sql("end_step_by_hand", "a step is ended by hand twice", m, "elsif one.state in ('complete', 'skipped', 'resolved_manually') then", "elsif one.state in ('skipped') then"),
	}
}

// Requests and identities.
func doors() []defect {
	return []defect{
		sql("process_task_requests", "requests stay in their queue", []tests{crashing("request/before"), model()},
			"delete from pgmq.q_orchestration_task_requests q --", "update pgmq.q_orchestration_task_requests q set vt = q.vt --"),
		sql("process_task_requests", "a request_id is not heard: a request repeated after a lost COMMIT makes a second task", []tests{crashing("request/before"), engine("Request|Identity|Repeat")},
			"then g.message->>'request_id' end)::uuid,", "then null end)::uuid,"),
		sql("decide_identity", "a failed task keeps its key for ever", []tests{model()},
			"exit when held.status not in ('failed', 'cancelled', 'timed_out') and", "exit when"),
		sql("decide_identity", "two requests take over one ended key (no compare-and-swap)", []tests{engine("Identity|Crowd|Key"), meeting("failed: request / request")},
			" and i.task_id = held.task_id and i.epoch = held.epoch\n      and (i.status in ('failed', 'cancelled', 'timed_out') or i.expires_at <= at)\n", "\n"),
		sql("create_tasks", "a task that is there already raises", []tests{engine("TestRequestsTakeTheirIdsInOneOrder|TestBatchesTakeTheirIdsInOneOrder")}, "    on conflict (task_id) do nothing\n", ""),
	}
}

// Requests that are tasks at once.
func submits() []defect {
	decided := []tests{engine("TestRequestsThatHaveToBeDecided")}
	random := []tests{engine("TestWhatIsATaskAtOnce")}
	judged := []tests{engine("TestTemplatesAndSettings")}
	return []defect{
		sql("is_plain_request", "a key is not heard: a request with one is plain", decided, "requester,tags}'::text[] = '{}'", "requester,tags,key}'::text[] = '{}'"),
		sql("is_plain_request", "a list of texts passes for a text", random, `'strict $.* ? (@.type() != "string" || @ == "")'`, `'$.* ? (@.type() != "string" || @ == "")'`),
		sql("is_plain_request", "a tag may be a list", random, `'strict $.* ? (@.type() != "string")'`, `'$.* ? (@.type() != "string")'`),
		sql("is_plain_request", "a request_id's dashes may be anywhere", random, "body->>'request_id' like '________-____-____-____-____________'", "length(body->>'request_id') = 36"),
		sql("is_plain_request", "a namespace beside a template is ignored", decided, "    and not (body ? 'template' and body ?| '{namespace,queue}')\n", ""),
		sql("is_plain_request", "what equals version 1 passes for it", random, " and coalesce(body->>'v', '1') = '1'", ""),
		sql("is_plain_request", "bytes that jsonb adds to numbers are not counted", decided, "octet_length(body::text) <= 1048576\n        and ", ""),
		sql("submit_requests", "a function without sequential scans is compiled at every call", []tests{engine("TestFunctionsAreNotCompiled")}, " set jit = off as $$", " as $$"),
		sql("repair_attempts", "what a step passes is planned as the session likes", []tests{engine("TestTheWayOfAStep")}, " set enable_seqscan = off", ""),
		sql("is_plain_request", "numbers may be as long as they like", decided, "{64}|[0-9.-]{65}'", "{64}'"),
		sql("is_plain_request", "numbers in a small request may be as long as they like", random, "< 512 then (body->'input')::text !~ '[0-9.-]{65}'", "< 512 then true"),
		sql("read_reports", "a small report may hold a vast number", []tests{engine("BadReports")}, "octet_length(r::text) >= 1000 end", "false end"),
		sql("is_plain_request", "an input may be nested as deep as it likes", random, "'^([^{[]*[{[]){64}|[0-9", "'[0-9"),
		sql("plain_requests", "an input schema is not looked at", judged, "t.takes_any_input and not t.has", "not t.has"),
		sql("plain_requests", "a parked template starts tasks", judged, " and t.parked_reason is null\n", "\n"),
		sql("plain_requests", "an identity strategy is not looked at", judged, "in ('default', 'always_unique') as plain", "is not null as plain"),
		sql("plain_requests", "the first version counts, not the latest", []tests{engine("TestAPlainRequestIs")}, "order by t.template_id desc limit 1", "order by t.template_id limit 1"),
		sql("plain_requests", "plain requests begin more steps than one transaction may", []tests{engine("TestABatchIsPlain")}, "case when steps <= settings.max_steps_per_transaction then case", "case when true then case"),
		sql("plain_requests", "requests are taken in the order they come in: two batches wait for each other", []tests{engine("TestBatchesTakeTheirIds")},
			"array(select r::pawl.task_request from unnest(requests) r order by r.task_id) end end", "requests end end"),
		sql("submit_requests", "of two requests with one id the second is lost", []tests{engine("TestARepeatedId")},
			"if cardinality(pawl.create_tasks(fresh)) < cardinality(fresh) then", "if cardinality(pawl.create_tasks(fresh)) = 0 then"),
		sql("submit_requests", "a batch with an id that exists leaves its others as tasks, and sends them too", []tests{engine("TestARepeatedId")},
			"        raise exception 'a task with this id exists';\n      end if;\n      return null;\n", "        return null;\n      end if;\n"),
		sql("submit_requests", "a request whose task cannot be made fails its batch", []tests{engine("TestABatchOfWhichOneRaises")},
			"    null; -- the task-request actor", "    raise; -- the task-request actor"),
		sql("submit_requests", "a missing body is a message", []tests{engine("TestWhatCannotBeRead")}, "if bodies is null or array_position(bodies, null) is not null or", "if array_position(bodies, null) > 0 or"),
	}
}

// Gates and step keys.
func gates() []defect {
	return []defect{
		sql("open_gate", "one attempt more than the concurrency limit", []tests{engine("Concurrency|Gate")},
			"greatest(0, q.max_concurrency - (select", "greatest(0, 1 + q.max_concurrency - (select"),
		sql("release_held", "two orchestrators release through one gate at once (no lock)", []tests{engine("Gate"), meeting("gated: release / release")},
			"where x.queue = name for update skip locked;", "where x.queue = name;"),
		sql("free_slots", "the end of an attempt does not free its slot", []tests{engine("Concurrency|Gate"), crashing("report a step of a freed slot/before")},
			"and (s.attempt <> h.attempt or s.state not in ('enqueued', 'in_progress'))", "and false"),
		sql("gate_level", "tokens pile up without a bound", []tests{engine("Rate|Window|Gate")},
			"least(pawl.gate_burst(q), q.tokens", "greatest(pawl.gate_burst(q), q.tokens"),
		sql("take_step_key", "a failed holder keeps a step's key", []tests{engine("Key"), crashing("fail a step with a key/before")},
			"and s.state not in ('error', 'cancelled', 'skipped')) and (held.expires_at <= pawl.now()) is not true;", ");"),
		sql("free_step_keys", "who waits for a step's key is not woken", []tests{engine("Key"), crashing("complete a step with a key/before")},
			"and not w.task_id = any (free) order by w.task_id", "and false order by w.task_id", "and not w.task_id = any (free)) end;", "and false) end;"),
	}
}

// The guards.
func guards() []defect {
	raw := []tests{engine("TestRawUpdatesMeetTheGuards|Layers")}
	return []defect{
		sql("guard_steps", "the guard of steps does not compare revisions", raw, "case when j.revision = j.was + case strpos(j.move, '|') when 0 then 1 else 2 end then", "case when true then"),
		sql("guard_steps", "the guard of steps lets illegal transitions pass", raw, "coalesce(case when j.revision = j.was", "coalesce(case when j.move is null then 'any' when j.revision = j.was"),
		sql("guard_steps", "the guard of steps lets anybody make an operator's transition", raw, "case when acting is not null then", "case when true then"),
		sql("legal_moves", "an operator's transitions are everybody's", raw, "case when l.operator_only then '!' else '' end || l.from_state", "l.from_state"),
		sql("guard_tasks", "the guard of tasks lets illegal transitions pass", raw, "coalesce(case when j.revision = j.was", "coalesce(case when j.move is null then 'any' when j.revision = j.was"),
		sql("guard_tasks", "the first of two transitions in one update is not audited", []tests{model()},
			"generate_series(1, greatest(m.revision - m.was, 1)) as hop", "greatest(m.revision - m.was, 1) as hop"),
	}
}

// Entity claims.
func entities() []defect {
	claim := []tests{engine("Claim|Janitor|Entity|Row")}
	return []defect{
		sql("close_entity_claim", "a janitor reverts a row that somebody touched", claim, "or (seen->>'version')::bigint = c.version)", "or true)"),
		sql("close_entity_claim", "a claim outlives its end", claim, "  delete from pawl.entity_claims x where x.entity = c.entity and x.entity_id = c.entity_id;\n", ""),
		sql("begin_claimed_delivery", "a redelivery meets the claim of an earlier delivery as if it were somebody else's", []tests{crashing("claim an entity again where busy fails/before")}, "  if found then\n    perform pawl.put_off", "  if false then\n    perform pawl.put_off"),
		sql("begin_claimed_delivery", "a row is claimed in whatever state it is", claim, "if not busy and seen->>'state' = claim->>'from' then", "if not busy then",
			"elsif seen->>'state' <> claim->>'from' then", "elsif false then"),
		sql("begin_claimed_delivery", "an entity changes while a claim of it begins", []tests{engine("TestAnEntityDoesNotChange")}, " for key share nowait;", ";"),
		sql("lock_entity", "what a key means depends on the session", []tests{engine("TestAKey")}, "  set datestyle = 'ISO, MDY' set timezone = 'UTC' set", "  set"),
		sql("reconcile_claims", "a claim whose result waits is taken for lost", []tests{engine("TestAResultThatWaitsForItsRow")}, " and not c.task_id = any (flight) for", " for"),
		sql("revert_stale_claims", "a janitor takes claims whose lease is not over", claim,
			"where x.claimed_at < at - e.claim_limit and x.lease_until < at order by", "where x.claimed_at < at - e.claim_limit order by",
			"and x.claimed_at < at - one.claim_limit and x.lease_until < at for update", "and x.claimed_at < at - one.claim_limit for update"),
		sql("end_reported_claims", "a success whose row somebody else moved counts as one", claim, "      results[place].status := 'failed';\n", ""),
	}
}

// Reconciler, retention, dead letters.
func chores() []defect {
	return []defect{
		sql("lost_attempts", "attempts that have their message are repaired", []tests{engine("TestHealthyWork|TestLostMessage")},
			"and m.message->>'attempt' = s.attempt::text)", "and m.message->>'attempt' <> s.attempt::text)"),
		sql("reconcile_attempts", "results on their way are not waited for", []tests{engine("TestResultOnItsWay")},
			" and not n.task_id = any (flight) limit 2000)", " limit 2000)"),
		sql("reconcile_attempts", "a report that comes while a pass looks is taken for lost", []tests{engine("TestAReportThatComesDuringAPass")},
			"coalesce(pg_sequence_last_value(issued), 0)", "0"),
		sql("start_tasks", "a large task whose bound has moved is never built", []tests{engine("TestALargeTaskThatWasPutOff")},
			"\n      or not exists (select from pawl.steps s where s.task_id = t.task_id) then", " then"),
		sql("put_off_delivery", "what did not begin counts as a delivery", []tests{engine("TestAStepThatSomebodyHolds")}, "$2 - 1", "$2"),
		sql("put_off_delivery", "what was put off has never been delivered", []tests{engine("TestAStepThatSomebodyHolds")}, "$2 - 1", "0"),
		sql("hand_in_step_results", "an older snapshot decides who waits for a key", []tests{engine("TestAReportOfAnOlderSnapshot")},
			"\n      and current_setting('transaction_isolation') = 'read committed' then array", " then array"),
		sql("unfit_state", "a lack of memory is a state that does not fit", []tests{engine("TestStatesMustFit")}, "if pawl.concerns_all(sqlstate) then", "if false then"),
		sql("sweep_tasks", "retention is not waited for", []tests{engine("Sweep|Retention|Kept")}, "and p.finalized_at <= l.before window", "and p.finalized_at is not null window"),
		sql("dead_letter_messages", "a dead letter of a known attempt leaves it open", []tests{crashing("dead-letter a message/before"), engine("DeadLetter")},
			"where $3 = 'orchestration_step_results' and coalesce", "where false and coalesce"),
	}
}

// Programs in Go.
func programs() []defect {
	return []defect{
		{What: "a client whose role may only send is refused", File: "client/submit.go",
			Changes: []string{"			if !unavailable(err) {", "			if true {"},
			Tests:   []tests{inGo("./client", "TestARoleThatMayOnlySend")}},
		{What: "a submit's span is not its tasks'", File: "client/submit.go",
			Changes: []string{"	ctx, span := c.span(ctx, len(requests))", "	_, span := c.span(ctx, len(requests))"},
			Tests:   []tests{inGo("./client", "TestASubmitIsASpan")}},
		{What: "an error of the infrastructure is taken for the message's own", File: "internal/store/class.go",
			Changes: []string{"		return Contention\n", "		return Permanent\n"},
			Tests:   []tests{inGo("./internal/store", "TestClasses")}},
		{What: "an unknown error without a code is taken for the message's own", File: "internal/store/class.go",
			Changes: []string{"	default:\n		return Lost\n", "	default:\n		return Permanent\n"},
			Tests:   []tests{inGo("./internal/store", "TestErrorsWithoutACode")}},
		{What: "a batch that fails is given up whole", File: "actors/delivery.go",
			Changes: []string{"			suspects = append(fresh, suspects...)\n", "			suspects = suspects[:0]\n			return nil\n"},
			Tests:   []tests{inGo("./actors", "TestWhatRaisesAlone|TestAMessageThatPanics")}},
		{What: "what raises alone is put back for ever", File: "actors/delivery.go",
			Changes: []string{"if class != store.Permanent && !spent {", "if !spent {"},
			Tests:   []tests{inGo("./actors", "TestWhatRaisesAlone")}},
		{What: "the infrastructure's errors make dead letters", File: "actors/delivery.go",
			Changes: []string{"if class != store.Permanent && !spent {", "if false {"},
			Tests:   []tests{inGo("./actors", "TestInfrastructureErrors|TestALockedTask")}},
		{What: "a panic in a message worked alone loses those behind it", File: "actors/delivery.go",
			Changes: []string{"		err := d.recovering(w, m)\n", "		err := d.together(w, []store.Message{m})\n"},
			Tests:   []tests{inGo("./actors", "TestAMessageThatPanics|TestAPanic")}},
		{What: "an actor does not go on after a full batch or an empty queue", File: "actors/consumer.go",
			Changes: []string{"	case Tick, again:\n		c.turn(ctx, w)\n", "	case Tick, again:\n"},
			Tests:   []tests{inGo("./actors", "TestRequestsBecome|TestNotifications|TestGarbage")}},
	}
}
