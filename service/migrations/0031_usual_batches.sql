-- Works with releases since 0010

-- What each call costs the database, in the usual case.

-- Moves the credits of calls as `move_credits` (0014) does, but a usual batch by a few statements over all of its items, without
-- a loop that decides about each of them. A batch is usual if
--
-- - it releases nothing,
-- - every settlement finds its hold, is not more than was held, and has no entry in the ledger yet,
-- - there is room for all of its holds before anything is settled. A settlement sets credits free, so each of these holds would
--   also fit if it were decided alone, in its turn.
--
-- Any other batch goes to `move_credits` before anything is changed: what happens in special cases is written there, once.
--
-- A hold that is there already is a unique violation, which undoes the batch; the caller then calls `move_credits`. Only a
-- hold whose answer was lost is made again, and looking for it would cost every other one a search.
--
-- `account_ids` are the organizations of the batch, each once. `account_charges` is what is charged to each in all,
-- `account_holds` what is held for each in all: null if the batch has no hold for it.
--
-- A usual batch has one row for each account, with its id and what is posted and held after the batch: the caller knows the
-- amounts of its items and works out the answers itself. Any other batch has the rows of `move_credits`, without an id.
create function move_credits_by_sets(
  account_ids text[], account_charges bigint[], account_holds bigint[],
  settled_organizations text[], settled_ids text[], settled_amounts bigint[], settled_metas jsonb[],
  event_ids uuid[], event_days date[], event_shards smallint[], event_times timestamptz[], event_headers jsonb[],
  event_payloads bytea[], event_salts bytea[], event_hashes bytea[],
  released_organizations text[], released_ids text[], released_amounts bigint[],
  held_organizations text[], held_ids text[], held_amounts bigint[], held_metas jsonb[], lifetimes_ms bigint[],
  with_metered boolean
) returns table (account_id text, outcome text, amount bigint, rest bigint) language plpgsql
-- Rows are found by their keys, whatever the planner believes about the size of a table when a connection is new.
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_bitmapscan = off
as $$
-- Arrays are read by the number of an item: unnesting ten of them side by side takes twice as long.
declare
  account_count constant integer := cardinality(account_ids);
  settled_count constant integer := cardinality(settled_ids);
  held_count constant integer := cardinality(held_ids);
  is_usual boolean;
  moment timestamptz(3); -- as exact as the time of an entry, or a day sum could be in another day than its entries
begin
  -- The lock comes first, in the order of the ids, as in `move_credits`: statements after it read what is current.
  select count(*) = account_count and bool_and(locked.has_room) and cardinality(released_ids) = 0 into is_usual
  from (
    select with_metered or account_holds[number] is null
      or account_holds[number] <= account.posted - account.held + account.overdraft as has_room
    from generate_series(1, account_count) as number
    join credit_account account on account.organization_id = account_ids[number]
    order by account.organization_id for update of account
  ) locked;
  if is_usual and settled_count > 0 then
    select count(*) = settled_count into is_usual
    from generate_series(1, settled_count) as number
    join credit_hold hold on hold.organization_id = settled_organizations[number] and hold.id = settled_ids[number]
      and hold.amount >= settled_amounts[number]
    -- One search of the index finds the entry of the call and its late one. Should there be another entry in between, the
    -- batch is decided by `move_credits` for nothing.
    where not exists (
      select from ledger_entry entry
      where entry.organization_id = hold.organization_id and entry.id between hold.id and hold.id || ':late');
  end if;
  if is_usual is not true then
    return query select null, moved.* from move_credits(
      settled_organizations, settled_ids, settled_amounts, settled_metas, event_ids, event_days, event_shards, event_times,
      event_headers, event_payloads, event_salts, event_hashes, released_organizations, released_ids, released_amounts,
      held_organizations, held_ids, held_amounts, held_metas, lifetimes_ms, with_metered) moved;
    return;
  end if;

  if held_count > 0 then
    insert into credit_hold (organization_id, id, amount, expires_at, meta)
    select held_organizations[number], held_ids[number], held_amounts[number],
      clock_timestamp() + lifetimes_ms[number] * interval '1 millisecond', held_metas[number]
    from generate_series(1, held_count) as number;
  end if;
  if settled_count = 0 then
    return query update credit_account account
    set held = account.held + account_holds[number], is_metered = with_metered
    from generate_series(1, account_count) as number
    where account.organization_id = account_ids[number]
    returning account.organization_id, null, account.posted, account.held;
    return;
  end if;

  return query with settled_holds as (
    delete from credit_hold hold using generate_series(1, settled_count) as number
    where hold.organization_id = settled_organizations[number] and hold.id = settled_ids[number]
    returning hold.organization_id, hold.amount
  ), freed as (
    select hold.organization_id, sum(hold.amount)::bigint as amount from settled_holds hold group by hold.organization_id
  )
  update credit_account account
  set posted = account.posted - account_charges[number], used = account.used + account_charges[number],
    held = account.held - coalesce(freed.amount, 0) + coalesce(account_holds[number], 0),
    is_metered = case when account_holds[number] is null then account.is_metered else with_metered end
  from generate_series(1, account_count) as number
  left join freed on freed.organization_id = account_ids[number]
  where account.organization_id = account_ids[number]
  returning account.organization_id, null, account.posted, account.held;

  moment := clock_timestamp();
  insert into ledger_entry (organization_id, id, debit, credit, amount, kind, project_id, meta, at)
  select settled_organizations[number], settled_ids[number], 'wallet', 'revenue', settled_amounts[number], 'usage',
    settled_metas[number]->>'project_id', settled_metas[number], moment
  from generate_series(1, settled_count) as number;

  insert into usage_day as sums
    (organization_id, day, project_id, key_id, model, requests, input_tokens, output_tokens, credits)
  select settled_organizations[number], (moment at time zone 'UTC')::date,
    coalesce(settled_metas[number]->>'project_id', ''), settled_metas[number]->>'key_id', settled_metas[number]->>'model',
    count(*), sum((settled_metas[number]->>'input_tokens')::bigint), sum((settled_metas[number]->>'output_tokens')::bigint),
    sum(settled_amounts[number])
  from generate_series(1, settled_count) as number
  group by 1, 2, 3, 4, 5 order by 1, 2, 3, 4, 5
  on conflict (organization_id, day, project_id, key_id, model) do update set
    requests = sums.requests + excluded.requests,
    input_tokens = sums.input_tokens + excluded.input_tokens,
    output_tokens = sums.output_tokens + excluded.output_tokens,
    credits = sums.credits + excluded.credits;

  insert into event (day, id, shard, organization_id, kind, at, header, payload, salt, payload_hash)
  select event_days[number], event_ids[number], event_shards[number], settled_organizations[number], 'enforcement',
    event_times[number], event_headers[number], event_payloads[number], event_salts[number], event_hashes[number]
  from generate_series(1, settled_count) as number on conflict do nothing;
end $$;

-- What events count, in one trigger instead of three (0015, 0017, 0027): nearly every statement that writes events has nothing to
-- count, and each trigger cost it a call and a query to find that out. What is counted, and in which order, has not changed: the
-- counts move in the statement that writes the events, whichever release writes them; an event that is written twice is not
-- among the new rows the second time; the rows of a table are changed in the order of their key, so that two statements never
-- deadlock.
create function count_events() returns trigger language plpgsql as $$
declare
  has_gateway_calls boolean;
  has_matches boolean;
  has_quotas boolean;
begin
  select bool_or(header ?| array['rollout_mode', 'data_classification']), bool_or(header ? 'matches'),
      bool_or(header ? 'quotas')
    into has_gateway_calls, has_matches, has_quotas
    from new_event
    where header ?| array['rollout_mode', 'data_classification', 'matches', 'quotas'];
  if has_gateway_calls is null then
    return null;
  end if;

  -- Every call of an organization with a configuration has its classification.
  if has_gateway_calls then
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
  end if;

  if has_matches then
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
  end if;

  if has_quotas then
    insert into quota_usage as sums (organization_id, scope, subject, window_start, requests, tokens, credits)
    select event.organization_id, counter.scope, counter.subject, (event.header->>'quota_day')::date,
      -- A call whose settlement came after its hold was swept has two events, and the first has counted the request.
      count(*) filter (where swept.id is null), sum((event.header->>'quota_tokens')::bigint),
      sum((event.header->>'quota_credits')::bigint)
    from new_event event
    cross join lateral jsonb_to_recordset(event.header->'quotas') as counter (scope quota_scope, subject text)
    left join ledger_entry swept on swept.organization_id = event.organization_id
      and swept.id = event.header->>'request_id' and swept.kind = 'void_unknown' and event.header->>'outcome' <> 'unknown'
    where event.header ? 'quotas'
    group by 1, 2, 3, 4 order by 1, 2, 3, 4
    on conflict (organization_id, scope, subject, window_start) do update set
      requests = sums.requests + excluded.requests,
      tokens = sums.tokens + excluded.tokens,
      credits = sums.credits + excluded.credits;
  end if;
  return null;
end $$;

-- On the parent, because every insert goes through it. All in one transaction: no event is counted twice, or not at all.
-- The earlier triggers are disabled and not dropped: dropping one waits for every reader of the table, such as a dump, and calls
-- would wait behind it.
create trigger event_is_counted after insert on event
  referencing new table as new_event
  for each statement execute function count_events();
alter table event disable trigger event_counts_gateway_decisions;
alter table event disable trigger event_counts_policy_decisions;
alter table event disable trigger event_counts_quota_usage;
