-- Works with releases since 0010

-- The set that manages an object: only requests which name that set change it. Null: none does. Releases before this one
-- neither read nor write the column, so what they create belongs to no set, and what they change keeps its own.
alter table project add column managed_by text check (char_length(managed_by) between 1 and 80);
alter table api_key add column managed_by text check (char_length(managed_by) between 1 and 80);
alter table policy add column managed_by text check (char_length(managed_by) between 1 and 80);
alter table gateway_config add column managed_by text check (char_length(managed_by) between 1 and 80);
alter table export_sink add column managed_by text check (char_length(managed_by) between 1 and 80);
alter table guardrail add column managed_by text check (char_length(managed_by) between 1 and 80);
alter table member add column managed_by text check (char_length(managed_by) between 1 and 80);

-- A proposal is made for a set, and so is the change, although a person without one may approve it.
alter table gateway_proposal
  add column for_set text check (char_length(for_set) between 1 and 80),
  add column takes_over boolean not null default false;
