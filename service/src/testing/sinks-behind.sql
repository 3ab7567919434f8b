-- Ten days of the log with a partition each, in which fifty organizations have a hundred entries a day. Each organization has
-- twenty sinks, which have the first nine and a half days; one sink has many dead letters.

do $$
begin
  for number in 1..10 loop
    execute format('create table audit_log_day%s partition of audit_log for values from (%L) to (%L)',
      number, date '2026-01-01' + number - 1, date '2026-01-01' + number);
  end loop;
end $$;

insert into organization (id, name, created_at)
select 'org_' || number, 'Many', '2026-01-01' from generate_series(1, 50) as number;

-- Ids begin with the milliseconds since 1970; events are 864 seconds apart.
insert into audit_log (day, organization_id, org_seq, event_day, event_id, leaf)
select date '2026-01-01' + (number - 1) / 100, 'org_' || organization, number, date '2026-01-01' + (number - 1) / 100,
  (lpad(to_hex(1767225600000 + (number - 1) * 864000::bigint), 12, '0') || '70008000' ||
    lpad(to_hex(number * 100 + organization), 12, '0'))::uuid,
  decode(repeat('00', 32), 'hex')
from generate_series(1, 1000) as number, generate_series(1, 50) as organization;

insert into audit_head (organization_id, org_seq, day, frontier)
select id, 1000, '2026-01-10', '' from organization;

insert into export_sink (id, organization_id, type, label, enabled, config, created_at, updated_at)
select 'exp_' || organization || '_' || number, 'org_' || organization, 'webhook', 'Many', true, '{}', '2026-01-01', '2026-01-01'
from generate_series(1, 50) as organization, generate_series(1, 20) as number;

insert into export_cursor (sink_id, organization_id, is_replay, org_seq, signed_size, day, next_at)
select id, organization_id, false, 950, 0, '2026-01-01', now() from export_sink;

insert into export_dead_letter (sink_id, org_seq, event_day, event_id, error, attempts, created_at)
select 'exp_7_3', number, '2026-01-01', gen_random_uuid(), 'Bad', 1, now() from generate_series(1, 20000) as number;

analyze;
