-- The audit log of month-of-events.sql: its 150,000 events have their numbers, each in the partition of its day. Beside them are
-- 5,000 small organizations with a sink each, of which 9 have something to send. One sink of a large organization has sent nothing.
set session_replication_role = replica;

select make_event_partition(date '2026-02-01' + day) from generate_series(0, 3) as day;
select make_audit_log_partition(date '2026-01-01' + day) from generate_series(0, 29) as day;

insert into audit_log (day, organization_id, org_seq, event_day, event_id, leaf)
select day, organization_id, row_number() over (partition by organization_id order by id), day, id, sha256(id::text::bytea)
from event;
insert into audit_log (day, organization_id, org_seq, event_day, event_id, leaf)
select date '2026-01-30', 'small_' || sink, number, date '2026-01-30', gen_random_uuid(), sha256('')
from generate_series(1, 5000) as sink, generate_series(1, 10) as number;

insert into audit_head (organization_id, org_seq, day, frontier)
select organization_id, max(org_seq), max(day), '' from audit_log group by organization_id;
update audit_cursor set (xid, seq) = (select max(xid), max(seq) from event);

insert into export_sink (id, organization_id, type, label, enabled, config, created_at, updated_at)
select 'sink_' || organization_id, organization_id, 'webhook', '', true, '{}', now(), now()
from audit_head where organization_id <> 'org_1';
insert into export_cursor (sink_id, organization_id, is_replay, org_seq, signed_size, day, next_at)
select 'sink_' || organization_id, organization_id, false,
  case when organization_id = 'org_0' then 0 when organization_id ~ '^small_[0-9]$' then 5 else org_seq end,
  0, case when organization_id = 'org_0' then date '2026-01-01' else day end, now()
from audit_head where organization_id <> 'org_1';
-- They need not be listed yet.
insert into export_object (sink_id, key, sha256, bytes, first_seq, last_seq, at)
select id, 'object', '', 1, 1, 1, now() + interval '1 day' from export_sink;

set session_replication_role = origin;
analyze;
