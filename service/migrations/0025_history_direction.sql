-- Works with releases since 0010

-- Matches in earlier answers, which callers send, are counted apart from those in what users say. No policy has that direction;
-- as text, because a value cannot be used in the transaction that adds it, and not valid, because no row can have it yet.
alter type policy_direction add value 'history';
alter table policy add constraint policy_direction_is_own check (direction::text <> 'history') not valid;
alter table policy_version add constraint policy_version_direction_is_own
  check (direction::text <> 'history') not valid;
