-- What a payer takes back of a charge: refunds, of which some fail, and disputes. And tax, which buys no credits.
-- Events come twice, late and in any order: what was reported is kept, and the sum is computed from all of it.

-- A negative refund undoes others of the same payment: they failed, or a dispute was won.
alter table refund drop constraint refund_micro_usd_check;
alter table refund add constraint refund_micro_usd_check check (micro_usd <> 0);

-- What was charged, tax and shipping included, if it is known. The payment has what was credited.
alter table payment_reference add column charged_micro_usd bigint check (charged_micro_usd > 0);

-- A charge may have disputes or failed refunds, and no refund. Its payment is known once it is counted.
alter table payment_refund drop constraint payment_refund_micro_usd_check;
alter table payment_refund add constraint payment_refund_micro_usd_check check (micro_usd >= 0);
alter table payment_refund add column is_counted boolean not null default false;
update payment_refund set is_counted = true where posted_micro_usd > 0;
drop index payment_refund_by_payment_intent;
drop index payment_refund_by_invoice;
drop index payment_refund_by_age;
create index payment_refund_by_payment_intent on payment_refund (payment_intent);
create index payment_refund_by_invoice on payment_refund (invoice);
create index payment_refund_by_age on payment_refund (reported_at) where not is_counted;

-- How much of a charge was refunded at a moment, without the refunds that had failed by then.
create table payment_refund_report (
  charge text collate "C" not null references payment_refund (charge) on delete cascade,
  as_of timestamptz(3) not null,            -- by the provider's clock
  micro_usd bigint not null check (micro_usd > 0),
  primary key (charge, as_of, micro_usd)
);

-- Refunds that failed or were canceled. That is final.
create table payment_refund_failure (
  refund text collate "C" primary key,
  charge text collate "C" not null references payment_refund (charge) on delete cascade,
  micro_usd bigint not null check (micro_usd > 0),
  failed_at timestamptz(3) not null         -- by the earliest report
);
create index payment_refund_failure_by_charge on payment_refund_failure (charge);

-- The newest report of each dispute; one that has ended stays ended.
create table payment_dispute (
  id text collate "C" primary key,
  charge text collate "C" not null references payment_refund (charge) on delete cascade,
  micro_usd bigint not null check (micro_usd > 0),
  is_ended boolean not null,
  is_won boolean not null,                  -- the payer does not get the money
  as_of timestamptz(3) not null
);
create index payment_dispute_by_charge on payment_dispute (charge);
