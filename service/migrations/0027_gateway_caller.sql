-- Works with releases since 0010

-- Which credentials had calls, and what the configuration of the policy gateway decided about them: one caller alone must not be
-- able to have it rolled back for everybody. One row for each decision and not one for each minute: when it was last made is all
-- that a window needs. Only organizations with `rollback_on_spike` have rows.
create table gateway_caller (
  organization_id text collate "C" not null,
  -- 16 bits of a hash of the credential's id, so that no organization has more than 65,536 of them, however many users it has.
  -- Those that share a place count as one, which is refused if one of them is.
  caller integer not null check (caller between 0 and 65535),
  -- False for calls that say nothing about the rules: in the shadow, outside of a rollout, over a quota, or with content that
  -- is always blocked. Their decision is `allow`.
  is_enforced boolean not null,
  decision gateway_decision not null,
  minute timestamptz(0) not null, -- the last one, of the event's own time
  policy_epoch bigint not null, -- the last one
  primary key (organization_id, caller, is_enforced, decision)
-- No index on the minute: every update would have to change it, and the table is small.
) with (fillfactor = 50);

-- What a call says about the rules of a configuration; null: nothing.
create function gateway_decision_of(header jsonb) returns gateway_decision language sql stable as $$
  select case
    -- One user who is over a quota must not end the rules for everybody.
    when header->>'reason_code' in ('USER_QUOTA_EXCEEDED', 'PROJECT_QUOTA_EXCEEDED') then null
    -- Nor one who sends what no rule could allow: it is refused whatever the rules are.
    when header->'triggered_categories' ?| array['self-harm', 'sexual/minors'] then null
    -- A policy of the organization may have decided otherwise, which is not the configuration's doing. A value that is not
    -- known here must not keep an event from being written, so it is not counted.
    when coalesce(header->>'gateway_decision', header->>'decision')
      in ('allow', 'rewrite', 'summary', 'escalate', 'refuse')
      then coalesce(header->>'gateway_decision', header->>'decision')::gateway_decision
  end
$$;

create or replace function count_gateway_decisions() returns trigger language plpgsql as $$
begin
  -- Every call of an organization with a configuration has its classification.
  if not exists (select from new_event where header ?| array['rollout_mode', 'data_classification']) then
    return null;
  end if;
  insert into gateway_decision_minute as counts (organization_id, minute, policy_epoch, arm, decision, count)
  select event.organization_id, date_trunc('minute', event.at), (event.header->>'policy_epoch')::bigint,
    (event.header->>'rollout_mode')::gateway_arm, gateway_decision_of(event.header), count(*)
  from new_event event
  where event.kind = 'enforcement' and event.header->>'phase' = 'call'
    and event.header->>'rollout_mode' in ('shadow', 'canary', 'enforced')
    and event.header->>'policy_epoch' is not null and gateway_decision_of(event.header) is not null
  group by 1, 2, 3, 4, 5 order by 1, 2, 3, 4, 5
  on conflict (organization_id, minute, policy_epoch, arm, decision) do update set
    count = counts.count + excluded.count;

  insert into gateway_caller as known (organization_id, caller, is_enforced, decision, minute, policy_epoch)
  select organization_id, caller, is_enforced, case when is_enforced then decision else 'allow' end,
    max(minute), max(policy_epoch)
  from (
    select event.organization_id, (hashtextextended(event.header->>'actor', 0) & 65535)::integer as caller,
      coalesce(event.header->>'rollout_mode' in ('canary', 'enforced'), false)
        and gateway_decision_of(event.header) is not null as is_enforced,
      gateway_decision_of(event.header) as decision,
      date_trunc('minute', event.at) as minute, (event.header->>'policy_epoch')::bigint as policy_epoch
    from new_event event
    join gateway_config saved on saved.organization_id = event.organization_id
      and saved.config->'rollout'->>'rollback_on_spike' = 'true'
    where event.kind = 'enforcement' and event.header->>'phase' = 'call'
      and event.header->>'policy_epoch' is not null and event.header->>'actor' is not null
  ) called
  group by 1, 2, 3, 4 order by 1, 2, 3, 4
  on conflict (organization_id, caller, is_enforced, decision) do update set
    minute = greatest(known.minute, excluded.minute),
    policy_epoch = greatest(known.policy_epoch, excluded.policy_epoch)
  where known.minute < excluded.minute or known.policy_epoch < excluded.policy_epoch;
  return null;
end $$;
