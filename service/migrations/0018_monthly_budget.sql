-- Works with releases since 0010

-- What a project or a key may cost in a month: {credits, alert_percents, hard_stop}. It is read with every credential. The
-- budget of an organization stands in the configuration of its policy gateway.
alter table project add column monthly_budget jsonb check (jsonb_typeof(monthly_budget) = 'object');
alter table api_key add column monthly_budget jsonb check (jsonb_typeof(monthly_budget) = 'object');

-- Few have one, and lists of budgets must not look through all keys.
create index project_with_budget on project (organization_id, id) where monthly_budget is not null;
create index api_key_with_budget on api_key (organization_id, id) where monthly_budget is not null;
