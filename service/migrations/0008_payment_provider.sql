-- What was paid back, and what a payment provider reports. Its events come twice, late and in any order;
-- whatever the order, the same is left here.

-- A refund takes back from one payment; several may, up to its amount.
create table refund (
  organization_id text collate "C" not null,
  id text collate "C" not null check (char_length(id) between 1 and 200),
  payment_id text collate "C" not null,
  micro_usd bigint not null check (micro_usd > 0),
  recorded_at timestamptz(3) not null,
  primary key (organization_id, id),
  foreign key (organization_id, payment_id) references payment (organization_id, id)
);
create index refund_by_payment on refund (organization_id, payment_id);
create trigger refund_is_immutable before update or delete on refund
  for each row execute function refuse_change();
create trigger refund_is_kept before truncate on refund
  for each statement execute function refuse_change();

-- A refund that the provider reports may be of a payment that was recorded by hand, for whomever.
create index payment_by_id on payment (id);

-- The plan in force is the higher of the one the operator has set and the one that subscriptions give:
-- neither can take away what the other gives.
alter table organization
  add column operator_plan organization_plan not null default 'free',
  add column subscribed_plan organization_plan not null default 'free';
update organization set operator_plan = plan;
alter table organization
  add constraint plan_is_the_higher check (plan = greatest(operator_plan, subscribed_plan));

-- From here on the keys are the provider's: an event comes before it is known whose it is.

create type payment_event_state as enum ('applied', 'waiting', 'ignored');

-- Events that were received, for 90 days. Applying one again would change nothing: the rows below see to it.
create table payment_event (
  id text collate "C" primary key check (char_length(id) between 1 and 200),
  type text not null check (char_length(type) between 1 and 200),
  state payment_event_state not null,
  customer text collate "C",
  charge text collate "C",                  -- what a refund is of
  organization_id text collate "C",
  effect jsonb not null,
  created_at timestamptz(3) not null,       -- by the provider's clock
  received_at timestamptz(3) not null
);
create index payment_event_by_customer on payment_event (customer, created_at, id)
  where state = 'waiting';
create index payment_event_by_charge on payment_event (charge) where state = 'waiting';
create index payment_event_by_age on payment_event (received_at);

-- Whose customer it is; what was learned first stays.
create table payment_customer (
  customer text collate "C" primary key,
  organization_id text collate "C" not null references organization (id)
);

-- Payments the provider has reported: each counts once, for one organization.
create table payment_reference (
  reference text collate "C" primary key,   -- of a payment intent or an invoice
  organization_id text collate "C" not null,
  foreign key (organization_id, reference) references payment (organization_id, id)
);

-- Refunds name a payment intent, payments an invoice: which belongs to which.
create table payment_link (
  payment_intent text collate "C" primary key,
  invoice text collate "C" not null
);
create index payment_link_by_invoice on payment_link (invoice);

-- How much of a charge was refunded in all, by the largest report, and how much of that was posted.
create table payment_refund (
  charge text collate "C" primary key,
  payment_intent text collate "C",
  invoice text collate "C",
  micro_usd bigint not null check (micro_usd > 0),
  posted_micro_usd bigint not null default 0 check (posted_micro_usd between 0 and micro_usd),
  reported_at timestamptz(3) not null
);
create index payment_refund_by_payment_intent on payment_refund (payment_intent)
  where posted_micro_usd < micro_usd;
create index payment_refund_by_invoice on payment_refund (invoice)
  where posted_micro_usd < micro_usd;
create index payment_refund_by_age on payment_refund (reported_at)
  where posted_micro_usd < micro_usd;

-- The newest report of each subscription; one that has ended stays ended.
create table payment_subscription (
  id text collate "C" primary key,
  organization_id text collate "C" not null references organization (id),
  prices text[] not null,                   -- ids of prices and of their products
  is_active boolean not null,
  is_ended boolean not null,
  as_of timestamptz(3) not null,
  tie text collate "C" not null             -- decides between reports of the same second
);
create index payment_subscription_by_organization on payment_subscription (organization_id)
  where is_active;
