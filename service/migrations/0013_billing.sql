-- Works with releases since 0010

-- With BILLING=metered nothing is refused for lack of credits, so a balance may fall below zero. The flag is that of the
-- account's last hold: the statement that makes a hold sets it.
alter table credit_account
  add column is_metered boolean not null default false,
  drop constraint credit_account_check,
  add constraint credit_account_floor check (is_metered or posted - held >= -overdraft);

-- With BILLING=off calls are counted here without a ledger entry. These columns are the part of the sums that the ledger
-- does not have; an older release, which does not know them, adds to the sums only.
alter table usage_day
  add column unbilled_requests bigint not null default 0,
  add column unbilled_input_tokens bigint not null default 0,
  add column unbilled_output_tokens bigint not null default 0,
  add column unbilled_credits bigint not null default 0;
