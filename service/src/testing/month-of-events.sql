-- A month of calls: 30 days with 5,000 events each, of two organizations. One in a hundred is refused by a policy, one in a
-- thousand is a change of an administrator. Triggers do not count them.
set session_replication_role = replica;

select make_event_partition(date '2026-01-01' + day) from generate_series(0, 29) as day;

insert into event (day, id, shard, organization_id, kind, at, header, payload, salt, payload_hash)
select at::date, (lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0') || '7000' || '8000'
    || lpad(to_hex(number), 12, '0'))::uuid,
  0, 'org_' || number % 2, case when number % 1000 = 0 then 'revision' else 'enforcement' end, at,
  case when number % 1000 = 0 then jsonb_build_object('action', 'updated', 'object_id', 'x')
    else jsonb_build_object('phase', 'call', 'project_id', 'proj_' || number % 50,
      'policy_id', case when number % 100 = 4 then 'pol_1' end,
      'decision', case when number % 100 = 4 then 'refuse' else 'allow' end) end,
  '{}', '\x00', sha256('{}')
from (
  select number, timestamptz '2026-01-01 00:00:00Z' + number * interval '17.28 seconds' as at
  from generate_series(0, 149999) as number
) as numbered;

set session_replication_role = origin;
analyze;
