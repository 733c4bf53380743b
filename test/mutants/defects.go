package main

// What finds most: the model, every crash of an operation, every meeting of two.
func model() tests { return tests{pkg: "./test/model", run: "TestTheEngineIsItsModel"} }

func engine(pattern string) tests { return tests{pkg: "./sql", run: pattern} }

func crashing(operation string) tests {
	return tests{pkg: "./test/crash", run: "TestEveryCrashPoint", only: operation}
}

func meeting(pair string) tests {
	return tests{pkg: "./test/crash", run: "TestEveryInterleaving", only: pair}
}

func inGo(pkg, pattern string) tests { return tests{pkg: pkg, run: pattern} }

// sql is a defect of one SQL function.
func sql(name, what string, find []tests, changes ...string) defect {
	return defect{What: what, File: "sql/functions/" + name + ".sql", Changes: changes, Tests: find}
}

func defects() []defect {
	var all []defect
	for _, group := range [][]defect{results(), claims(), ends(), doors(), submits(), gates(), guards(), entities(), chores(), programs()} {
		all = append(all, group...)
	}
	return all
}

// Results, counters, readiness.
func results() []defect {
	m := []tests{model()}
	return []defect{
		sql("apply_step_results", "results stay in their queue after they were applied", m,
			"delete from pgmq.q_orchestration_step_results q where", "update pgmq.q_orchestration_step_results q set vt = q.vt where"),
		sql("apply_step_results", "results are applied without the lock of their task", []tests{engine("Lock|Order|Concurren|Storm|Rule"), meeting("running: apply / cancel"), meeting("running: apply / complete b")},
			"    perform pawl.lock_tasks(tasks);\n", ""),
		sql("settle_step_results", "a result of another attempt is applied (attempt not compared)", m, " and s.attempt = r.attempt\n", "\n"),
		sql("settle_step_results", "a result is applied whatever the step's state is (no compare-and-swap)", m,
			"and s.attempt = r.attempt\n      and s.state in ('in_progress', 'enqueued')\n", "and s.attempt = r.attempt\n"),
		sql("settle_step_results", "a result of a step that nobody claimed counts one transition instead of two", m,
			"s.revision + case when s.state = 'enqueued' then 2 else 1 end,\n      worker = null, due_at = null, state_since = at, result", "s.revision + 1,\n      worker = null, due_at = null, state_since = at, result"),
		sql("settle_step_results", "needed steps are not counted down", m, "set needs_open = c.needs_open - n,", "set needs_open = c.needs_open,"),
		sql("settle_step_results", "a step becomes ready although another needed step is open", m,
			"state = case when c.needs_open = n and", "state = case when c.needs_open >= n and"),
		sql("settle_step_results", "ready steps are enqueued without their messages", m,
			"    perform pawl.send_step_messages(moved.refs);\n", "    null;\n"),
		sql("settle_step_results", "counters of a task are not kept", m, "set open_count = t.open_count - u.done, active", "set open_count = t.open_count, active"),
		sql("settle_odd_step_results", "one attempt more than max_attempts", m, "s.failures + 1 < limits.max_attempts", "s.failures + 1 <= limits.max_attempts"),
		sql("settle_odd_step_results", "what cannot be retried is retried", m, " and coalesce((r.error->>'retryable')::boolean, true)\n", "\n"),
		sql("settle_odd_step_results", "a failure of an older attempt fails the present one", m,
			"elsif r.attempt = s.attempt and s.state in", "elsif s.state in"),
		sql("settle_odd_step_results", "a result of an attempt that has not begun is absorbed in silence", m, "if not found or r.attempt > s.attempt then", "if not found then"),
		sql("settle_odd_step_results", "a late result leaves no trace", m,
			"      insert into pawl.absorbed (queue, msg_id, task_id, step, index, attempt, reason)\n      values", "      perform"),
		sql("hand_in_step_results", "results whose task is locked are lost", []tests{engine("TestAReportWaitsForNoTask")},
			"where free is null or not r.task_id = any (free));", "where free is null);"),
		sql("hand_in_step_results", "a timeout ends an attempt whose report was accepted", []tests{engine("TestAnAcceptedReport")},
			"set due_at = null from mine m", "set due_at = s.due_at from mine m"),
		sql("hand_in_step_results", "a report is accepted beside the timeout that ends its attempt", []tests{engine("TestAReportThatWaitsForItsTimeoutIsLate")},
			"'enqueued') and s.due_at is null) into timely;", "'enqueued')) into timely;"),
		sql("fire_tasks", "the clock does not see a report that is not committed yet", []tests{engine("TestTheClockJudgesWhatItHasLocked")},
			"order by s.due_at, s.task_id, s.step limit bound for no key update skip locked);\n  if cardinality(timeouts)", "order by s.due_at, s.task_id, s.step limit bound);\n  if cardinality(timeouts)"),
		sql("hand_in_step_results", "a report waits for its task (no skip locked)", []tests{engine("TestAReportWaitsForNoTask"), meeting("running: cancel / report b")},
			"order by t.task_id for no key update skip locked) end", "order by t.task_id for no key update) end"),
		sql("hand_in_step_results", "what raises while applying loses the results", []tests{crashing("report complete/error")},
			"    free := null;", "    null;"),
		sql("recount_tasks", "hold does not hold", m, "p.on_failure = 'hold' and c.failed > 0", "false and c.failed > 0"),
		sql("recount_needs", "a failed step satisfies its dependents", m, "f.state in ('complete', 'resolved_manually')", "f.state in ('complete', 'resolved_manually', 'error')"),
		sql("cancel_unreachable", "only direct dependents of a failed step are cancelled", m, "    exit when gone is null;", "    exit;"),
		sql("settle_step_results", "a task with failed steps ends before its steps were counted", m, "or (t.open_count = u.done and t.failed_count = 0))", "or t.open_count = u.done)"),
		sql("settle_step_results", "a task goes on as it is although no step of it is active", m, "and (t.active_count + u.active > u.done or", "and (t.open_count > u.done or"),
		sql("start_attempts", "an attempt begins without a new number", m, "attempt = s.attempt + 1,", "attempt = s.attempt,"),
		sql("settle_tasks", "ready steps over the bound of a transaction are forgotten", []tests{engine("TestATransactionEnqueuesNoMoreThanItsBound")},
			"      perform pawl.send_step_enqueue(ids, 'more');\n", "      null;\n"),
	}
}

// Claims, deliveries, fences.
func claims() []defect {
	m := []tests{model()}
	return []defect{
		sql("write_queue_functions", "a report is accepted by message alone (no fence)", m,
			"        where q.msg_id = any (ids) and ((q.msg_id, q.read_ct) in (select * from unnest(ids, read_counts))) is true\n        returning", "        where q.msg_id = any (ids)\n        returning"),
		sql("write_queue_functions", "a heartbeat moves the lease of somebody else (no fence)", m,
			"        where q.msg_id = any (ids) and ((q.msg_id, q.read_ct) in (select * from unnest(ids, read_counts))) is true\n      returning", "        where q.msg_id = any (ids)\n      returning"),
		sql("write_queue_functions", "reading does not count deliveries", m, "set read_ct = q.read_ct + 1", "set read_ct = q.read_ct"),
		sql("write_queue_functions", "two readers get the same message (no skip locked, no lock)", []tests{engine("Reader|Everybody"), meeting("running: claim / claim")},
			"order by q.msg_id limit quantity for update skip locked) p;", "order by q.msg_id limit quantity) p;"),
		sql("report_and_claim_steps", "what a call leaves in its queue wakes nobody", []tests{engine("TestWhatACallTakesItself")},
			"if current_setting('pawl.quiet') = own || ' left' then", "if false then"),
		sql("write_queue_functions", "what a read leaves because of its size wakes nobody", []tests{engine("TestWhatACallTakesItself")},
			"and (cardinality(ids) >= quantity or size > max_bytes) then", "and cardinality(ids) >= quantity then"),
		sql("report_and_claim_steps", "what a call takes itself wakes everybody", []tests{engine("TestWhatACallTakesItself")},
			"    perform set_config('pawl.quiet', own, true);\n", "    null;\n"),
		sql("begin_deliveries", "the delivery limit is not looked at", m, "where d.read_ct <= coalesce((d.headers->>'max_deliveries')::int, 10) and not", "where not"),
		sql("begin_deliveries", "a message of an older attempt begins the present one", m,
			"where s.attempt = a.attempt and s.state", "where s.state", "\n      and s.attempt = f.attempt and s.state", "\n      and s.state"),
		sql("begin_special_deliveries", "a delivery over the limit disappears without a result", m,
			"      perform pawl.send_crash_result(s, format('delivered %s times without a result', d.read_ct - 1));\n", "      null;\n"),
		sql("begin_special_deliveries", "a stale delivery is dropped without a trace", m,
			"      insert into pawl.absorbed (queue, msg_id, task_id, step, index, attempt, reason)\n      values", "      perform"),
		sql("claim_steps", "one bad message costs the batch its deliveries", []tests{engine("TestOneBadMessage|TestGarbage"), crashing("claim odd messages/error")},
			"        perform pawl.refuse_delivery(queue, one, sqlstate, sqlerrm);\n", "        raise;\n"),
		sql("refuse_delivery", "an error of the infrastructure makes a dead letter", []tests{crashing("claim/always")},
			"if pawl.is_infrastructure_error(code) then", "if false then"),
		sql("refuse_delivery", "a dead letter leaves its attempt open", []tests{engine("DeadLetter|OneBad|Garbage|Refus"), crashing("claim odd messages/before")},
			"if pawl.as_uuid(one.message->>'task_id') is not null and jsonb", "if false and jsonb"),
		sql("extend_leases", "a heartbeat takes claims before messages, a report messages before claims", []tests{meeting("entity: extend / fail")},
			"  perform pawl.check_step_queue(queue);\n", `  perform pawl.check_step_queue(queue);
  if exists (select from pawl.entity_claims) then
    perform pawl.extend_claims(queue, leases, lease_ms);
  end if;
`),
		sql("extend_leases", "a heartbeat does not tell of a cancel", m, "then 'extended' else 'cancelled' end))", "then 'extended' else 'extended' end))"),
	}
}
