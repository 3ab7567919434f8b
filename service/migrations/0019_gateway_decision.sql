-- Works with releases since 0010

-- What the configuration of the policy gateway decided, by the minute, in each arm of its rollout. Rollbacks go by it, and
-- the rollout is shown by it.

create type gateway_arm as enum ('shadow', 'canary', 'enforced');
create type gateway_decision as enum ('allow', 'rewrite', 'summary', 'escalate', 'refuse');

create table gateway_decision_minute (
  organization_id text collate "C" not null,
  minute timestamptz(0) not null, -- its beginning, of the event's own time
  -- Decisions of rules that were changed since do not count against the new ones.
  policy_epoch bigint not null,
  arm gateway_arm not null,
  decision gateway_decision not null,
  count bigint not null check (count > 0),
  primary key (organization_id, minute, policy_epoch, arm, decision)
) with (fillfactor = 50);
create index gateway_decision_minute_by_age on gateway_decision_minute (minute);

-- The counts move in the statement that writes the events, as those of policies do (0015): an event that is written twice
-- counts once, and the rows are changed in the order of their key.
create function count_gateway_decisions() returns trigger language plpgsql as $$
begin
  if not exists (select from new_event where header ? 'rollout_mode') then
    return null;
  end if;
  insert into gateway_decision_minute as counts (organization_id, minute, policy_epoch, arm, decision, count)
  select event.organization_id, date_trunc('minute', event.at), (event.header->>'policy_epoch')::bigint,
    (event.header->>'rollout_mode')::gateway_arm,
    -- A policy of the organization may have decided otherwise, which is not the configuration's doing.
    coalesce(event.header->>'gateway_decision', event.header->>'decision')::gateway_decision, count(*)
  from new_event event
  -- A value that is not known here must not keep an event from being written, so it is not counted.
  where event.kind = 'enforcement' and event.header->>'phase' = 'call'
    and event.header->>'rollout_mode' in ('shadow', 'canary', 'enforced')
    and coalesce(event.header->>'gateway_decision', event.header->>'decision')
      in ('allow', 'rewrite', 'summary', 'escalate', 'refuse')
    and event.header->>'policy_epoch' is not null
    -- One user who is over a quota says nothing about the rules, and must not end them for everybody.
    and coalesce(event.header->>'reason_code', '') not in ('USER_QUOTA_EXCEEDED', 'PROJECT_QUOTA_EXCEEDED')
  group by 1, 2, 3, 4, 5 order by 1, 2, 3, 4, 5
  on conflict (organization_id, minute, policy_epoch, arm, decision) do update set
    count = counts.count + excluded.count;
  return null;
end $$;
create trigger event_counts_gateway_decisions after insert on event
  referencing new table as new_event
  for each statement execute function count_gateway_decisions();

-- Those that may be rolled back are looked at every other second.
create index gateway_config_with_rollback on gateway_config (organization_id)
  where config->'rollout'->>'rollback_on_spike' = 'true';
-- A rollback begins an epoch too, with the same revision.
create index policy_epoch_by_gateway_revision on policy_epoch (organization_id, gateway_revision, epoch)
  where gateway_revision is not null;
