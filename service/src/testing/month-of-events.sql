-- A month of calls of two organizations in 30 days, 150,000 unless `seed.events` says how many. One in a hundred is refused by a
-- policy, one in fifty fails, one in a thousand is a change of an administrator. Triggers do not count them.
set session_replication_role = replica;

select make_event_partition(date '2026-01-01' + day) from generate_series(0, 29) as day;

insert into event (day, id, shard, organization_id, kind, at, header, payload, salt, payload_hash)
select at::date, (lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0') || '7000' || '8000'
    || lpad(to_hex(number), 12, '0'))::uuid,
  0, 'org_' || number % 2, case when number % 1000 = 0 then 'revision' else 'enforcement' end, at,
  case when number % 1000 = 0
    then jsonb_build_object('action', case when number % 10000 = 0 then 'deleted' else 'updated' end,
      'object', 'thing', 'object_id', 'thing_' || number / 1000 % 10, 'actor', 'mem_' || number / 1000 % 3,
      'actor_type', 'member', 'request_id', 'req_' || lpad(number::text, 24, '0'))
    else jsonb_build_object('phase', 'call', 'project_id', 'proj_' || number % 50, 'project_label', 'Search service',
      -- Half of the calls are those of one key.
      'actor', 'key_' || case when number % 4 < 2 then 0 else number % 500 end, 'actor_type', 'project_key',
      'request_id', 'req_' || lpad(number::text, 24, '0'), 'model', 'm', 'policy_target', 'messages',
      'outcome', case when number % 100 = 4 then 'blocked' when number % 50 = 8 then 'failed' else 'completed' end,
      'policy_epoch', 1, 'policy_id', case when number % 100 = 4 then 'pol_1' end, 'policy_name', null, 'version', null,
      'decision', case when number % 100 = 4 then 'refuse' else 'allow' end, 'enforced', false) end,
  '{}', '\x00', sha256('{}')
from (
  select number, timestamptz '2026-01-01 00:00:00Z' + number * (interval '30 days' / events) as at
  from (select coalesce(current_setting('seed.events', true), '150000')::integer) as seed (events),
    generate_series(0, events - 1) as number
) as numbered;

set session_replication_role = origin;
analyze;
