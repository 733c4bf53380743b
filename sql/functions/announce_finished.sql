-- does: wakes those who wait for a task's end, on channel pawl_finished.
-- called by: settle_step_results, finish_counted_tasks, end_tasks, resolve_task.
-- locks: nothing.
-- raises: nothing.
create or replace function pawl.announce_finished() returns void language plpgsql as $$
begin
  perform pawl.tell('pawl_finished', 'pawl_queues.finished');
end $$;
