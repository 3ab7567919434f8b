-- Works with releases since 0010

-- The log has a partition for each day. The worker makes them ahead, and drops those that are older than
-- AUDIT_RETENTION_DAYS: rows of the log are never deleted one by one. The default partition takes what has no day: events of
-- a writer whose clock is far off, and all events when no worker has run for days.

create view event_partition as
select partition.relname::text as name,
  (regexp_match(bound, 'FROM \(''([^'']+)''\)'))[1]::date as first_day,
  (regexp_match(bound, 'TO \(''([^'']+)''\)'))[1]::date as end_day -- the day after the last one
from pg_inherits
join pg_class partition on partition.oid = inhrelid
cross join lateral pg_get_expr(partition.relpartbound, partition.oid) as bound
where inhparent = 'event'::regclass and bound <> 'DEFAULT';

-- Statement triggers are not inherited.
create function keep_partition_of_events(name text) returns void language plpgsql as $$
begin
  execute format('create trigger %I before truncate on %I for each statement execute function refuse_change()',
    name || '_is_not_emptied', name);
end $$;

-- Makes the partition of a day, unless there is one. A table that is attached does not make writers wait, as one that is
-- created as a partition would.
create function make_event_partition(wanted date) returns boolean language plpgsql as $$
declare
  name text := 'event_' || to_char(wanted, 'YYYYMMDD');
begin
  if exists (select from event_partition where first_day <= wanted and wanted < end_day) then
    return false;
  end if;
  execute format('create table %I (like event including defaults including constraints)', name);
  perform keep_partition_of_events(name);
  execute format('alter table event attach partition %I for values from (%L) to (%L)', name, wanted, wanted + 1);
  return true;
end $$;

-- Turns the default partition into one of the days that it has, and makes a new one, if these days come after all that have a
-- partition. Writers wait until its rows were read once. What a writer with a wrong clock has put there stays there: as a day of
-- its own it would be dropped at once, or come after all other days for years.
create function date_default_partition() returns boolean language plpgsql as $$
declare
  first date;
  ending date;
  name text;
begin
  select min(day), max(day) + 1 into first, ending from event_default;
  if first is null or ending > (now() at time zone 'UTC')::date + 8
    or exists (select from event_partition where end_day > first) then
    return false;
  end if;
  name := 'event_' || to_char(first, 'YYYYMMDD') || '_' || to_char(ending - 1, 'YYYYMMDD');
  alter table event detach partition event_default;
  execute format('alter table event_default rename to %I', name);
  execute format('alter table event attach partition %I for values from (%L) to (%L)', name, first, ending);
  create table event_default partition of event default;
  perform keep_partition_of_events('event_default');
  return true;
end $$;

-- Detaches and drops a partition. Whoever calls it limits how long it may wait for a lock: writers wait behind it.
create function drop_event_partition(name text) returns void language plpgsql as $$
begin
  execute format('alter table event detach partition %I', name);
  execute format('drop table %I', name);
end $$;

select date_default_partition();
select make_event_partition((now() at time zone 'UTC')::date + days) from generate_series(-1, 1) as days;

-- For readers of one organization's events, newest first: an id begins with its time. Every call pays for the first two. The
-- others have only what is rare, so that looking for it does not read everything.
create index event_by_organization on event (organization_id, id);
create index event_by_project on event (organization_id, (header->>'project_id'), id)
  where header->>'project_id' is not null;
create index event_by_policy on event (organization_id, (header->>'policy_id'), id)
  where header->>'policy_id' is not null;
create index event_by_decision on event (organization_id, (header->>'decision'), id)
  where header->>'decision' <> 'allow';
create index event_by_kind on event (organization_id, kind, id) where kind <> 'enforcement';

-- For removing what is too old for charts.
create index policy_decision_hour_by_age on policy_decision_hour (hour);
