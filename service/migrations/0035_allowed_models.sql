-- Works with releases since 0010

-- The ids of the models that calls of a project or a key may use; null: all of them. Read with every credential.
alter table project add column allowed_models text[] check (cardinality(allowed_models) <= 500);
alter table api_key add column allowed_models text[] check (cardinality(allowed_models) <= 500);
