-- Works with releases since 0010

-- The money of calls: settles calls, lets go of holds and makes holds, for many calls in one statement and one commit.
-- service/src/credits/holds/hold-queue.ts describes how the service uses it. Releases call it by name and parameters, so a
-- function that works differently gets a new name, and this one is dropped when no release calls it any more.
--
-- It is a function because each of its statements has a snapshot of its own. The accounts are locked first, in the order
-- of their ids, so that two transactions never wait for each other; whatever is read afterwards is then current, and
-- nothing that another process has committed under the lock is overlooked.
--
-- Settlements come first, so that what they set free can be held at once. Each item is decided as if it were alone, in the
-- order of the arrays. No call may be in them twice. There is one row for each item, first the settlements, then the
-- releases, then the holds:
--
-- | Item       | outcome                          | amount                           | rest                     |
-- | ---------- | -------------------------------- | -------------------------------- | ------------------------ |
-- | settlement | settled                          | what was charged, now or earlier | the balance after it     |
-- | release    | released                         | what was held, or 0              | null                     |
-- | hold       | held; refused; other_amount, if  | what new calls could use         | what calls hold, in all  |
-- |            | the call is held with another one |                                 |                          |
-- | each       | no_account                       | null                             | null                     |
create function move_credits(
  settled_organizations text[], settled_ids text[], settled_amounts bigint[], settled_metas jsonb[],
  event_ids uuid[], event_days date[], event_shards smallint[], event_times timestamptz[], event_headers jsonb[],
  event_payloads bytea[], event_salts bytea[], event_hashes bytea[],
  released_organizations text[], released_ids text[], released_amounts bigint[],
  held_organizations text[], held_ids text[], held_amounts bigint[], held_metas jsonb[], lifetimes_ms bigint[],
  with_metered boolean
) returns table (outcome text, amount bigint, rest bigint) language plpgsql
-- Rows are found by their keys, whatever the planner believes about the size of a table when a connection is new.
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
declare
  account_ids text[];
  posted_now bigint[];
  used_now bigint[];
  held_now bigint[];
  overdrafts bigint[];
  metered_now boolean[];
  changed boolean[];
  place integer; -- of an item's account in these arrays
  settled_count constant integer := cardinality(settled_ids);
  released_count constant integer := cardinality(released_ids);
  held_count constant integer := cardinality(held_ids);
  found_row record;
  hold_amounts bigint[];
  earlier_charges bigint[];
  earlier_entries boolean[];
  swept_amounts bigint[];
  -- An array that is unnested beside others has all its elements from the start: a first assignment to the third element
  -- would make it an array of one element.
  charges bigint[] := array_fill(null::bigint, array[settled_count]);
  entry_kinds text[] := array_fill(null::text, array[settled_count]);
  has_charges boolean := false;
  has_writeoffs boolean := false;
  has_new_holds boolean := false;
  new_holds boolean[] := array_fill(false, array[held_count]);
  charge bigint;
  moment timestamptz(3); -- as exact as the time of an entry, or a day sum could be in another day than its entries
begin
  select array_agg(account.organization_id), array_agg(account.posted), array_agg(account.used), array_agg(account.held),
      array_agg(account.overdraft), array_agg(account.is_metered)
    into account_ids, posted_now, used_now, held_now, overdrafts, metered_now
    from (
      select * from credit_account
      where organization_id = any (settled_organizations || released_organizations || held_organizations)
      order by organization_id for update
    ) account;
  changed := array_fill(false, array[coalesce(cardinality(account_ids), 0)]);

  if settled_count > 0 then
    for found_row in
      delete from credit_hold hold
      using unnest(settled_organizations, settled_ids) with ordinality as item (organization_id, id, number)
      where hold.organization_id = item.organization_id and hold.id = item.id
      returning item.number, hold.amount
    loop
      hold_amounts[found_row.number] := found_row.amount;
    end loop;
    for found_row in
      select item.number, entry.kind, entry.amount, entry.meta->>'held' as held
      from unnest(settled_organizations, settled_ids) with ordinality as item (organization_id, id, number)
      join ledger_entry entry on entry.organization_id = item.organization_id
        and entry.id = any (array[item.id, item.id || ':late'])
    loop
      earlier_entries[found_row.number] := true;
      if found_row.kind in ('usage', 'late_usage') then
        earlier_charges[found_row.number] := found_row.amount;
      elsif found_row.kind = 'void_unknown' then
        swept_amounts[found_row.number] := found_row.held::bigint;
      end if;
    end loop;
    for item in 1 .. settled_count loop
      place := array_position(account_ids, settled_organizations[item]);
      outcome := 'no_account';
      amount := null;
      rest := null;
      if place is not null then
        held_now[place] := held_now[place] - coalesce(hold_amounts[item], 0);
        charge := earlier_charges[item];
        if charge is null then
          if hold_amounts[item] is not null and earlier_entries[item] is null then
            charge := least(settled_amounts[item], hold_amounts[item]);
            entry_kinds[item] := 'usage';
          else
            charge := case when metered_now[place]
              then least(settled_amounts[item], coalesce(swept_amounts[item], settled_amounts[item]))
              else greatest(0, least(settled_amounts[item], posted_now[place] - held_now[place] + overdrafts[place])) end;
            entry_kinds[item] := 'late_usage';
          end if;
          charges[item] := charge;
          has_charges := true;
          has_writeoffs := has_writeoffs or settled_amounts[item] > charge;
          posted_now[place] := posted_now[place] - charge;
          used_now[place] := used_now[place] + charge;
        end if;
        changed[place] := true;
        outcome := 'settled';
        amount := charge;
        rest := posted_now[place];
      end if;
      return next;
    end loop;
  end if;

  if released_count > 0 then
    hold_amounts := null;
    for found_row in
      delete from credit_hold hold
      using unnest(released_organizations, released_ids, released_amounts) with ordinality
        as item (organization_id, id, amount, number)
      where hold.organization_id = item.organization_id and hold.id = item.id and hold.amount = item.amount
      returning item.number, hold.amount
    loop
      hold_amounts[found_row.number] := found_row.amount;
    end loop;
    for item in 1 .. released_count loop
      place := array_position(account_ids, released_organizations[item]);
      outcome := case when place is null then 'no_account' else 'released' end;
      amount := null;
      rest := null;
      if place is not null then
        amount := coalesce(hold_amounts[item], 0);
        held_now[place] := held_now[place] - amount;
        changed[place] := true;
      end if;
      return next;
    end loop;
  end if;

  if held_count > 0 then
    hold_amounts := null;
    for found_row in
      select item.number, hold.amount
      from unnest(held_organizations, held_ids) with ordinality as item (organization_id, id, number)
      join credit_hold hold on hold.organization_id = item.organization_id and hold.id = item.id
    loop
      hold_amounts[found_row.number] := found_row.amount;
    end loop;
    for item in 1 .. held_count loop
      place := array_position(account_ids, held_organizations[item]);
      outcome := 'no_account';
      amount := null;
      rest := null;
      if place is not null then
        outcome := 'refused';
        if hold_amounts[item] is not null then
          outcome := case when hold_amounts[item] = held_amounts[item] then 'held' else 'other_amount' end;
        elsif with_metered or held_amounts[item] <= posted_now[place] - held_now[place] + overdrafts[place] then
          outcome := 'held';
          new_holds[item] := true;
          has_new_holds := true;
          held_now[place] := held_now[place] + held_amounts[item];
          metered_now[place] := with_metered;
          changed[place] := true;
        end if;
        amount := posted_now[place] - held_now[place];
        rest := held_now[place];
      end if;
      return next;
    end loop;
  end if;

  if has_new_holds then
    insert into credit_hold (organization_id, id, amount, expires_at, meta)
    select item.organization_id, item.id, item.amount,
      clock_timestamp() + item.lifetime_ms * interval '1 millisecond', item.meta
    from unnest(held_organizations, held_ids, held_amounts, held_metas, lifetimes_ms, new_holds)
      as item (organization_id, id, amount, meta, lifetime_ms, is_new)
    where item.is_new;
  end if;

  update credit_account account
  set posted = item.posted, used = item.used, held = item.held, is_metered = item.is_metered
  from unnest(account_ids, posted_now, used_now, held_now, metered_now, changed)
    as item (organization_id, posted, used, held, is_metered, is_changed)
  where account.organization_id = item.organization_id and item.is_changed;

  if not has_charges then
    return;
  end if;
  moment := clock_timestamp();
  insert into ledger_entry (organization_id, id, debit, credit, amount, kind, project_id, meta, at)
  select item.organization_id, case when item.kind = 'usage' then item.id else item.id || ':late' end, 'wallet', 'revenue',
    item.charge, item.kind::ledger_kind, item.meta->>'project_id', item.meta, moment
  from unnest(settled_organizations, settled_ids, settled_metas, charges, entry_kinds)
    as item (organization_id, id, meta, charge, kind)
  where item.charge is not null;

  if has_writeoffs then
    insert into ledger_entry (organization_id, id, debit, credit, amount, kind, project_id, meta, at)
    select item.organization_id, case when item.kind = 'usage' then item.id else item.id || ':late' end || ':writeoff',
      'writeoff', 'revenue', item.amount - item.charge, 'writeoff', item.meta->>'project_id', item.meta, moment
    from unnest(settled_organizations, settled_ids, settled_amounts, settled_metas, charges, entry_kinds)
      as item (organization_id, id, amount, meta, charge, kind)
    where item.amount > item.charge;
  end if;

  insert into usage_day as sums
    (organization_id, day, project_id, key_id, model, requests, input_tokens, output_tokens, credits)
  select item.organization_id, (moment at time zone 'UTC')::date, coalesce(item.meta->>'project_id', ''),
    item.meta->>'key_id', item.meta->>'model', count(*), sum((item.meta->>'input_tokens')::bigint),
    sum((item.meta->>'output_tokens')::bigint), sum(item.charge)
  from unnest(settled_organizations, settled_metas, charges) as item (organization_id, meta, charge)
  where item.charge is not null group by 1, 2, 3, 4, 5 order by 1, 2, 3, 4, 5
  on conflict (organization_id, day, project_id, key_id, model) do update set
    requests = sums.requests + excluded.requests,
    input_tokens = sums.input_tokens + excluded.input_tokens,
    output_tokens = sums.output_tokens + excluded.output_tokens,
    credits = sums.credits + excluded.credits;

  insert into event (day, id, shard, organization_id, kind, at, header, payload, salt, payload_hash)
  select item.day, item.id, item.shard, item.organization_id, 'enforcement', item.at, item.header, item.payload, item.salt,
    item.payload_hash
  from unnest(settled_organizations, charges, event_ids, event_days, event_shards, event_times, event_headers,
    event_payloads, event_salts, event_hashes)
    as item (organization_id, charge, id, day, shard, at, header, payload, salt, payload_hash)
  where item.charge is not null on conflict do nothing;
end $$;
