-- Works with releases since 0010

-- For reports of costs: names and values, as the organization has some too (0033).
alter table project add column labels jsonb not null default '{}' check (jsonb_typeof(labels) = 'object');
