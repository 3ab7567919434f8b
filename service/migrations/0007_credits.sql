-- Prepaid credits. One credit is one micro-USD. Whoever changes an account locks its row first and takes
-- the new values from what it locked: constraints are judged against the statement's snapshot otherwise.

-- Payments wait meanwhile: one that came between the two statements at the end would be in one of them only.
lock table payment in share row exclusive mode;

create table credit_account (
  organization_id text collate "C" primary key references organization (id),
  posted bigint not null default 0,                            -- paid and granted, minus used and refunded
  used bigint not null default 0 check (used >= 0),            -- everything ever charged
  held bigint not null default 0 check (held >= 0),            -- promised to calls that are under way
  overdraft bigint not null default 0 check (overdraft >= 0),  -- 0: the balance never goes below zero
  check (posted - held >= -overdraft)
) with (fillfactor = 50);

-- Never on first use: two first calls at once would find none.
insert into credit_account (organization_id) select id from organization;
create function open_credit_account() returns trigger language plpgsql as $$
begin
  insert into credit_account (organization_id) values (new.id);
  return null;
end $$;
create trigger organization_has_an_account after insert on organization
  for each row execute function open_credit_account();

-- What a call may cost at worst, from before it is sent upstream until it is settled. `id` is the request's.
create table credit_hold (
  organization_id text collate "C" not null,
  id text collate "C" not null,
  amount bigint not null check (amount >= 0),
  expires_at timestamptz(3) not null,
  meta jsonb not null,
  primary key (organization_id, id)
);
create index credit_hold_by_expiry on credit_hold (expires_at);

create type ledger_account as enum ('wallet', 'revenue', 'topup', 'promo', 'refund', 'writeoff');
create type ledger_kind as enum
  ('usage', 'void_unknown', 'late_usage', 'writeoff', 'payment', 'grant', 'refund');

-- Every movement once, with both its sides. `id` is that of its cause: a request, a payment, a grant, a
-- refund; `:writeoff` and `:late` are added where one cause has a second movement.
create table ledger_entry (
  organization_id text collate "C" not null,
  id text collate "C" not null check (char_length(id) between 1 and 220),
  seq bigint not null generated always as identity,
  debit ledger_account not null,
  credit ledger_account not null,
  amount bigint not null check (amount >= 0),
  kind ledger_kind not null,
  project_id text collate "C",
  meta jsonb not null,
  -- Of the moment, not of the transaction: it is taken under the account's lock, so it rises with seq.
  at timestamptz(3) not null default clock_timestamp(),
  primary key (organization_id, id)
);
create index ledger_entry_by_age on ledger_entry (organization_id, at, seq);
create index ledger_entry_by_project on ledger_entry (organization_id, project_id, at, seq);
create index ledger_entry_by_kind on ledger_entry (organization_id, kind, at, seq)
  where kind <> 'usage';
create trigger ledger_entry_is_immutable before update or delete on ledger_entry
  for each row execute function refuse_change();
create trigger ledger_entry_is_kept before truncate on ledger_entry
  for each statement execute function refuse_change();

-- The sums of the ledger that charts ask for, moved in the statement that writes the entries.
create table usage_day (
  organization_id text collate "C" not null,
  day date not null,
  project_id text collate "C" not null,
  key_id text collate "C" not null,
  model text collate "C" not null,
  requests bigint not null,
  input_tokens bigint not null,
  output_tokens bigint not null,
  credits bigint not null,
  primary key (organization_id, day, project_id, key_id, model)
) with (fillfactor = 50);

-- Payments that were recorded before there was a ledger.
insert into ledger_entry (organization_id, id, debit, credit, amount, kind, meta, at)
  select organization_id, id, 'topup', 'wallet', micro_usd, 'payment', '{}', recorded_at
  from payment order by recorded_at;
update credit_account account set posted = paid.amount
  from (select organization_id, sum(micro_usd) as amount from payment group by 1) paid
  where paid.organization_id = account.organization_id;
