-- What decides an organization's tier: its plan, and what it has paid in all.

create type organization_plan as enum ('free', 'developer', 'growth', 'scale');
alter table organization
  add column plan organization_plan not null default 'free',
  add column paid_micro_usd bigint not null default 0 check (paid_micro_usd >= 0);

-- A payment counts once, however often it is reported: its id is the payer's.
create table payment (
  organization_id text collate "C" not null references organization (id),
  id text collate "C" not null check (char_length(id) between 1 and 200),
  micro_usd bigint not null check (micro_usd > 0),
  recorded_at timestamptz(3) not null,
  primary key (organization_id, id)
);
create trigger payment_is_immutable before update or delete on payment
  for each row execute function refuse_change();
create trigger payment_is_kept before truncate on payment
  for each statement execute function refuse_change();
