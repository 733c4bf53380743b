-- does: makes a UUIDv7: 48 bits of milliseconds, then random bits, so that tasks are stored in the order of their time.
-- called by: process_task_requests for requests without a request_id.
-- locks: nothing.
-- raises: nothing.
create or replace function pawl.new_task_id() returns uuid language sql volatile as $$
  select encode(set_bit(set_bit(overlay(uuid_send(gen_random_uuid())
    placing substring(int8send((extract(epoch from clock_timestamp()) * 1000)::bigint) from 3) from 1 for 6),
    52, 1), 53, 1), 'hex')::uuid
$$;
