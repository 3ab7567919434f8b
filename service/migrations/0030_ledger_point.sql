-- Works with releases since 0010

-- How far the ledger of an organization has been proven, so that the hourly check only reads what came since
-- (service/src/credits/reconcile). Rows may be removed at any time: the next check then reads those ledgers from their beginning.
--
-- `at` and `seq` are those of the last entry that was read, in the order of ledger_entry_by_age. Entries are written under the lock of
-- their account and get both under it, so a later one comes after it, as long as the server's clock does not go back by more than a
-- minute: entries of the last minute before a check are never counted as proven. If it does, the sums differ, and the whole ledger of the
-- organization is checked again.
create table ledger_point (
  organization_id text collate "C" primary key,
  at timestamptz(3) not null,
  seq bigint not null,
  -- What the entries up to there add up to.
  wallet bigint not null,
  used bigint not null,
  paid bigint not null,
  written_off bigint not null,
  written_off_of_charges bigint not null,
  -- The day of `at`, and the sums of its entries up to there by project, key and model: the day may go on.
  day date not null,
  day_sums jsonb not null,
  -- Something differed when the whole ledger was last checked: it is checked as a whole until nothing does.
  differs boolean not null
);
