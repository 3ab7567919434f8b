-- Works with releases since 0010

-- What policies decided, by the hour, for charts. One row counts the matches of one version in one project.

create type policy_decision as enum ('allow', 'refuse');

create table policy_decision_hour (
  organization_id text collate "C" not null,
  hour timestamptz(0) not null, -- the beginning of the hour, in UTC, of the event's own time
  policy_id text collate "C" not null,
  version integer not null,
  project_id text collate "C" not null, -- empty: the call named no project
  direction policy_direction not null check (direction <> 'both'),
  decision policy_decision not null,
  mode policy_mode not null,
  count bigint not null check (count > 0),
  -- The policy stands before the hour: a chart shows one policy over time.
  primary key (organization_id, policy_id, hour, version, project_id, direction, decision, mode)
) with (fillfactor = 50);

-- The counts move in the statement that writes the events, whoever writes them. An event that is written twice is not
-- among the new rows the second time, so every match is counted once. The rows are changed in the order of their key:
-- two statements that count the same policies never deadlock.
create function count_policy_decisions() returns trigger language plpgsql as $$
begin
  -- Nearly every statement ends here. Asking first is cheaper than an insert that finds nothing.
  if not exists (select from new_event where header ? 'matches') then
    return null;
  end if;
  insert into policy_decision_hour as counts
    (organization_id, hour, policy_id, version, project_id, direction, decision, mode, count)
  select event.organization_id, date_trunc('hour', event.at, 'UTC'), match.policy_id, match.version,
    coalesce(event.header->>'project_id', ''), match.direction,
    case match.mode when 'enforcing' then 'refuse' else 'allow' end::policy_decision, match.mode, count(*)
  from new_event event
  cross join lateral jsonb_to_recordset(event.header->'matches')
    as match (policy_id text, version integer, direction policy_direction, mode policy_mode)
  group by 1, 2, 3, 4, 5, 6, 7, 8
  order by event.organization_id, match.policy_id, 2, match.version, 5, match.direction, 7, match.mode
  on conflict (organization_id, policy_id, hour, version, project_id, direction, decision, mode) do update set
    count = counts.count + excluded.count;
  return null;
end $$;
-- On the parent, because every insert goes through it: a statement's trigger does not fire for a partition that is
-- inserted into by its own name.
create trigger event_counts_policy_decisions after insert on event
  referencing new table as new_event
  for each statement execute function count_policy_decisions();

-- Texts on which a policy is tried before it is published. They belong to the policy, not to one of its versions.
create type policy_expectation as enum ('must_match', 'must_not_match');

create table policy_example (
  organization_id text collate "C" not null,
  policy_id text collate "C" not null,
  position integer not null check (position between 0 and 999),
  text text not null check (char_length(text) between 1 and 20000),
  direction policy_direction not null check (direction <> 'both'),
  expect policy_expectation not null,
  primary key (organization_id, policy_id, position),
  foreign key (organization_id, policy_id) references policy (organization_id, id)
);
