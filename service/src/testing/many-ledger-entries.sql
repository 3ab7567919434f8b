-- 250,000 calls: of 1,001 organizations, one has 150,000 and a hundred have 1,000 each. Each has made a payment first.
insert into organization (id, name, created_at)
  select 'org_' || lpad(n::text, 24, '0'), 'Organization ' || n, '2026-01-01'
  from generate_series(0, 1000) n;

create temporary table call as
  select n, 'org_' || lpad((case when n < 150000 then 0 else 1 + n % 100 end)::text, 24, '0') as organization_id,
    'proj_' || n % 7 as project_id, 'key_' || n % 50 as key_id, 'model-' || n % 5 as model,
    100 + n % 1000 as input_tokens, 10 + n % 100 as output_tokens,
    timestamptz '2026-01-01 00:00:01Z' + n * interval '40 seconds' as at
  from generate_series(0, 249999) n;

insert into ledger_entry (organization_id, id, debit, credit, amount, kind, meta, at)
  select organization_id, 'pay_1', 'topup', 'wallet', 1000000000000, 'payment', '{}', '2026-01-01'
  from credit_account;
insert into ledger_entry (organization_id, id, debit, credit, amount, kind, project_id, meta, at)
  select organization_id, 'req_' || lpad(n::text, 24, '0'), 'wallet', 'revenue',
    input_tokens * 3 + output_tokens * 15, 'usage', project_id,
    jsonb_build_object('project_id', project_id, 'key_id', key_id, 'model', model,
      'price_version', 'price_0123456789ab', 'prices', jsonb_build_object('input', 3000000,
      'cached_input', 300000, 'cache_write', 3750000, 'output', 15000000),
      'input_tokens', input_tokens, 'cached_input_tokens', 0, 'cache_write_tokens', 0,
      'output_tokens', output_tokens, 'usage_source', 'upstream'), at
  from call order by n;
insert into usage_day
  select organization_id, (at at time zone 'UTC')::date, project_id, key_id, model, count(*),
    sum(input_tokens), sum(output_tokens), sum(input_tokens * 3 + output_tokens * 15)
  from call group by 1, 2, 3, 4, 5;

update organization set paid_micro_usd = 1000000000000;
update credit_account set posted = 1000000000000;
update credit_account account set posted = posted - sums.amount, used = sums.amount
  from (select organization_id, sum(input_tokens * 3 + output_tokens * 15) as amount from call group by 1) sums
  where sums.organization_id = account.organization_id;
analyze;
