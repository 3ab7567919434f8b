-- Works with releases since 0010

-- What subjects with a quota or a budget have used, by the day: longer windows are sums of days, so a quota whose window
-- changes is right at once. Redis decides about calls; this is what its counters are loaded from.

create type quota_scope as enum ('organization', 'project', 'key', 'user');

create table quota_usage (
  organization_id text collate "C" not null,
  scope quota_scope not null,
  subject text collate "C" not null check (char_length(subject) <= 1000), -- empty: the organization
  window_start date not null, -- the day, in UTC, on which the calls were admitted
  requests bigint not null check (requests >= 0),
  tokens bigint not null check (tokens >= 0),
  credits bigint not null check (credits >= 0),
  primary key (organization_id, scope, subject, window_start)
) with (fillfactor = 50);
create index quota_usage_by_age on quota_usage (window_start);

-- The usage moves in the statement that writes the events, whoever writes them, as the counts of decisions do
-- (0015): an event that is written twice counts once, and the rows are changed in the order of their key.
create function count_quota_usage() returns trigger language plpgsql as $$
begin
  if not exists (select from new_event where header ? 'quotas') then
    return null;
  end if;
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
  return null;
end $$;
create trigger event_counts_quota_usage after insert on event
  referencing new table as new_event
  for each statement execute function count_quota_usage();

-- Which alerts of a budget were written, so that each is written once a month, whichever processes notice it. A budget
-- of another size alerts anew.
create table budget_alert (
  organization_id text collate "C" not null,
  scope quota_scope not null check (scope <> 'user'),
  subject text collate "C" not null,
  month date not null,
  budget bigint not null,
  percent integer not null check (percent between 1 and 100),
  primary key (organization_id, month, scope, subject, budget, percent)
);
create index budget_alert_by_age on budget_alert (month);
